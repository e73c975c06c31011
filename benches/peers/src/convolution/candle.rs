//! candle.

use candle_core::{Device, Result, Tensor, Var};

use super::Inputs;
use crate::peer::{Peer, call};

pub struct Operands {
    x: Tensor,
    w: Tensor,
    tracked: [Var; 2],
    padding: usize,
    groups: usize,
}

impl Operands {
    pub fn new(Inputs { case, x, w }: &Inputs) -> Self {
        let make = || -> Result<Self> {
            let x = Tensor::from_slice(x, &case.images, &Device::Cpu)?;
            let w = Tensor::from_slice(w, &case.filters, &Device::Cpu)?;
            let tracked = [Var::from_tensor(&x)?, Var::from_tensor(&w)?];
            Ok(Operands { x, w, tracked, padding: case.padding(), groups: case.groups() })
        };
        make().expect("shapes fit")
    }
}

pub fn peer<'a>(operation: &str, operands: &'a Operands) -> Option<Box<dyn Peer + 'a>> {
    let function: fn(&Operands) -> Result<Vec<Tensor>> = match operation {
        "conv2d" => |o| Ok(vec![o.x.conv2d(&o.w, o.padding, 1, 1, o.groups)?]),
        "backward" => |o| {
            let [x, w] = &o.tracked;
            let y = x.conv2d(w, o.padding, 1, 1, o.groups)?;
            let mut gradients = y.backward()?;
            let gradient = |of: &Var| gradients.remove(of).expect("the result depends on both");
            Ok([x, w].map(gradient).into_iter().chain([y]).collect())
        },
        "max_pool2d" => |o| Ok(vec![o.x.max_pool2d(2)?]),
        _ => return None,
    };
    call(operands, function, |results| {
        let read = |y: &Tensor| y.flatten_all()?.to_vec1();
        let read = || results?.iter().map(read).collect::<Result<Vec<_>>>();
        read().expect("shapes fit").concat()
    })
}
