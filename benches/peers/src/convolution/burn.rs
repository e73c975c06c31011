//! burn's backend flex.

use burn_tensor::module::{conv2d, max_pool2d};
use burn_tensor::ops::{ConvOptions, MaxPoolOptions};
use burn_tensor::{Device, Tensor, TensorData};

use super::Inputs;
use crate::peer::{Peer, call};

pub struct Operands {
    x: Tensor<4>,
    w: Tensor<4>,
    tracked: [Tensor<4>; 2],
    options: ConvOptions<2>,
}

impl Operands {
    pub fn new(Inputs { case, x, w }: &Inputs) -> Self {
        let device = Device::flex();
        let tensor =
            |x: &[f32], shape| Tensor::<4>::from_data(TensorData::new(x.to_vec(), shape), &device);
        let (x, w) = (tensor(x, case.images), tensor(w, case.filters));
        let tracked = [&x, &w].map(|x| x.clone().autodiff().require_grad());
        let options = ConvOptions::new([1; 2], [case.padding(); 2], [1; 2], case.groups());
        Operands { x, w, tracked, options }
    }
}

pub fn peer<'a>(operation: &str, operands: &'a Operands) -> Option<Box<dyn Peer + 'a>> {
    let function: fn(&Operands) -> Vec<Tensor<4>> = match operation {
        "conv2d" => |o| vec![conv2d(o.x.clone(), o.w.clone(), None, o.options.clone())],
        "backward" => |o| {
            let [x, w] = &o.tracked;
            let y = conv2d(x.clone(), w.clone(), None, o.options.clone());
            let mut gradients = y.backward();
            let gradient = |of: &Tensor<4>| of.grad_remove(&mut gradients).expect("tracked");
            [x, w].map(gradient).into_iter().chain([y]).collect()
        },
        "max_pool2d" => |o| vec![max_pool2d(o.x.clone(), MaxPoolOptions::new([2; 2]))],
        _ => return None,
    };
    call(operands, function, |results| {
        results.into_iter().flat_map(|y| y.into_data().iter().collect::<Vec<f32>>()).collect()
    })
}
