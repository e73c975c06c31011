//! swath.

use swath::prelude::*;
use swath::{ConvOptions, Padding, PoolOptions};

use super::Inputs;
use crate::peer::{Peer, call};

type T = Tensor<CpuBackend>;

pub struct Operands {
    x: T,
    w: T,
    tracked: [T; 2],
    ones: T,
    options: ConvOptions<2>,
}

impl Operands {
    pub fn new(Inputs { case, x, w }: &Inputs) -> Self {
        let make = || -> Result<Self> {
            let (x, w) = (T::from_slice(x, case.images)?, T::from_slice(w, case.filters)?);
            let padding = Padding::Zeros([case.padding(); 2]);
            let options = ConvOptions { padding, groups: case.groups(), ..Default::default() };
            let tracked = [x.requires_grad(), w.requires_grad()];
            let [n, _, rows, columns] = case.images;
            let ones = T::ones([n, case.filters[0], rows, columns], DType::F32)?;
            Ok(Operands { x, w, tracked, ones, options })
        };
        make().expect("shapes fit")
    }
}

pub fn peer<'a>(operation: &str, operands: &'a Operands) -> Option<Box<dyn Peer + 'a>> {
    let function: fn(&Operands) -> Result<Vec<T>> = match operation {
        "conv2d" => |o| Ok(vec![o.x.conv2d(&o.w, None, o.options)?]),
        "backward" => |o| {
            let [x, w] = &o.tracked;
            let y = x.conv2d(w, None, o.options)?;
            let gradients = y.backward_with(&o.ones)?;
            Ok(vec![gradients.wrt(x)?.clone(), gradients.wrt(w)?.clone(), y])
        },
        "max_pool2d" => |o| Ok(vec![o.x.max_pool2d(PoolOptions::default())?]),
        _ => return None,
    };
    call(operands, function, |results| {
        let read = || results?.iter().map(T::to_vec).collect::<Result<Vec<_>>>();
        read().expect("shapes fit").concat()
    })
}
