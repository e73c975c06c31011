//! candle and burn, whose functions of tensors make a new tensor.

use std::hint::black_box;

use burn_tensor::{Device as BurnDevice, activation};
use candle_core::{Device, Result, Tensor as CandleTensor};

use super::Peer;
use super::slices::EXPONENT;

type BurnTensor = burn_tensor::Tensor<1>;
type CandleFunction = fn(&CandleTensor, &CandleTensor) -> Result<CandleTensor>;
type BurnFunction = fn(BurnTensor, BurnTensor) -> BurnTensor;

struct Candle {
    function: CandleFunction,
    a: CandleTensor,
    b: CandleTensor,
}

impl Candle {
    fn call(&self) -> CandleTensor {
        (self.function)(black_box(&self.a), black_box(&self.b)).expect("equal shapes of f32")
    }
}

impl Peer for Candle {
    fn run(&mut self) {
        black_box(self.call());
    }

    fn results(&mut self) -> Vec<f32> {
        self.call().to_vec1().expect("a tensor of f32")
    }
}

pub fn candle(name: &str, a: &[f32], b: &[f32]) -> Option<Box<dyn Peer>> {
    let function: CandleFunction = match name {
        "neg" => |x, _| x.neg(),
        "relu" => |x, _| x.relu(),
        "sqrt" => |x, _| x.sqrt(),
        "exp" => |x, _| x.exp(),
        "log" => |x, _| x.log(),
        "tanh" => |x, _| x.tanh(),
        "silu" => |x, _| x.silu(),
        "gelu_tanh" => |x, _| x.gelu(),
        "gelu" => |x, _| x.gelu_erf(),
        "erf" => |x, _| x.erf(),
        "sin" => |x, _| x.sin(),
        "cos" => |x, _| x.cos(),
        "add" => |a, b| a + b,
        "mul" => |a, b| a * b,
        "pow" => |a, b| a.pow(b),
        "pow_scalar" => |a, _| a.powf(EXPONENT.into()),
        _ => return None,
    };
    let tensor = |x: &[f32]| CandleTensor::from_slice(x, x.len(), &Device::Cpu).expect("memory");
    Some(Box::new(Candle { function, a: tensor(a), b: tensor(b) }))
}

struct Burn {
    function: BurnFunction,
    a: BurnTensor,
    b: BurnTensor,
}

impl Burn {
    fn call(&self) -> BurnTensor {
        (self.function)(black_box(self.a.clone()), black_box(self.b.clone()))
    }
}

impl Peer for Burn {
    fn run(&mut self) {
        black_box(self.call());
    }

    fn results(&mut self) -> Vec<f32> {
        self.call().into_data().try_to_vec().expect("a tensor of f32")
    }
}

pub fn burn(name: &str, a: &[f32], b: &[f32]) -> Option<Box<dyn Peer>> {
    let function: BurnFunction = match name {
        "neg" => |x, _| x.neg(),
        "relu" => |x, _| activation::relu(x),
        "sqrt" => |x, _| x.sqrt(),
        "exp" => |x, _| x.exp(),
        "log" => |x, _| x.log(),
        "tanh" => |x, _| x.tanh(),
        "sigmoid" => |x, _| activation::sigmoid(x),
        "silu" => |x, _| activation::silu(x),
        "gelu_tanh" => |x, _| activation::gelu_approximate(x),
        "gelu" => |x, _| activation::gelu(x),
        "erf" => |x, _| x.erf(),
        "sin" => |x, _| x.sin(),
        "cos" => |x, _| x.cos(),
        "add" => |a, b| a.add(b),
        "mul" => |a, b| a.mul(b),
        "pow" => |a, b| a.powf(b),
        "pow_scalar" => |a, _| a.powf_scalar(EXPONENT),
        _ => return None,
    };
    let device = BurnDevice::flex();
    let tensor = |x: &[f32]| BurnTensor::from_floats(x, &device);
    Some(Box::new(Burn { function, a: tensor(a), b: tensor(b) }))
}
