//! Costs of a call and of a node of the graph beside those of other crates: an addition of 8 elements, and a
//! chain of multiplications of one element by a number, made and dropped, or also differentiated.

use burn_tensor::{Device as BurnDevice, Tensor as Burn};
use candle_core::{Device, Tensor as Candle, Var};
use swath::prelude::{CpuBackend, Tensor as Swath};

use crate::cases::{FACTOR, NODES};
use crate::peer::{EXACT, Peer, call, check, report};

/// Half a rounding a node: results are less than 1.
const CHAIN: f32 = 0.5 * f32::EPSILON * NODES as f32;

/// Name, calls or nodes, and how far results may differ.
const CASES: [(&str, usize, f32); 5] = [
    ("add of 8", 1, EXACT),
    ("add of 8 tracked", 1, EXACT),
    ("chain", NODES, CHAIN),
    ("chain tracked", NODES, CHAIN),
    ("chain backward", NODES, CHAIN),
];

/// Times the wanted cases, swath `alone` or beside the others, in nanoseconds a call or a node.
pub fn overheads(wanted: &dyn Fn(&str) -> bool, alone: bool, once: bool) {
    swath::runtime::set_threads(1).expect("one thread is allowed");
    for (name, count, tolerance) in CASES {
        if !wanted(&format!("overhead {name}")) {
            continue;
        }
        let is_tracked = name.ends_with("tracked") || name.ends_with("backward");
        let own = Operands::<Swath<CpuBackend>>::new(is_tracked);
        let candle = Operands::<Candle>::new(is_tracked);
        let burn = Operands::<Burn<1>>::new(is_tracked);
        let mut peers = vec![("swath", own.peer(name))];
        if !alone {
            peers.extend([("candle", candle.peer(name)), ("burn", burn.peer(name))]);
        }
        check(name, &mut peers, tolerance);
        report(name, count, peers, once);
    }
}

/// A crate's tensor.
trait Tensor: Clone {
    fn new(elements: &[f32], is_tracked: bool) -> Self;
    fn add(&self, other: &Self) -> Self;
    fn mul(&self, factor: f64) -> Self;
    /// The gradient of `y` by this tensor.
    fn gradient(&self, y: Self) -> Self;
    fn read(self) -> Vec<f32>;
}

/// The operands of the addition, and the first of the chain.
struct Operands<T> {
    a: T,
    b: T,
    one: T,
}

impl<T: Tensor> Operands<T> {
    fn new(is_tracked: bool) -> Self {
        let tensor = |elements: &[f32]| T::new(elements, is_tracked);
        Operands { a: tensor(&[0.1; 8]), b: tensor(&[0.7; 8]), one: tensor(&[1.0]) }
    }

    fn peer(&self, name: &str) -> Box<dyn Peer + '_> {
        let function: fn(&Self) -> T = match name {
            "chain backward" => |x| x.one.gradient(chain(&x.one)),
            "chain" | "chain tracked" => |x| chain(&x.one),
            _ => |x| x.a.add(&x.b),
        };
        call(self, function, T::read).expect("always there")
    }
}

fn chain<T: Tensor>(x: &T) -> T {
    (0..NODES).fold(x.clone(), |y, _| y.mul(FACTOR))
}

impl Tensor for Swath<CpuBackend> {
    fn new(elements: &[f32], is_tracked: bool) -> Self {
        let x = Self::from_slice(elements, elements.len()).expect("the shape fits");
        if is_tracked { x.requires_grad() } else { x }
    }

    fn add(&self, other: &Self) -> Self {
        Swath::add(self, other).expect("equal shapes")
    }

    fn mul(&self, factor: f64) -> Self {
        self.mul_scalar(factor).expect("a tensor of f32")
    }

    fn gradient(&self, y: Self) -> Self {
        y.backward().expect("one element").remove(self).expect("y depends on it")
    }

    fn read(self) -> Vec<f32> {
        self.to_vec().expect("a tensor of f32")
    }
}

impl Tensor for Candle {
    fn new(elements: &[f32], is_tracked: bool) -> Self {
        let x = Candle::from_slice(elements, elements.len(), &Device::Cpu).expect("memory");
        if is_tracked { Var::from_tensor(&x).expect("memory").into_inner() } else { x }
    }

    fn add(&self, other: &Self) -> Self {
        Candle::add(self, other).expect("equal shapes")
    }

    fn mul(&self, factor: f64) -> Self {
        (self * factor).expect("a tensor of f32")
    }

    fn gradient(&self, y: Self) -> Self {
        y.backward().expect("a tensor of f32").remove(self).expect("y depends on it")
    }

    fn read(self) -> Vec<f32> {
        self.to_vec1().expect("a tensor of f32")
    }
}

impl Tensor for Burn<1> {
    fn new(elements: &[f32], is_tracked: bool) -> Self {
        let x = Burn::from_floats(elements, &BurnDevice::flex());
        if is_tracked { x.autodiff().require_grad() } else { x }
    }

    fn add(&self, other: &Self) -> Self {
        self.clone().add(other.clone())
    }

    fn mul(&self, factor: f64) -> Self {
        self.clone().mul_scalar(factor)
    }

    fn gradient(&self, y: Self) -> Self {
        self.grad_remove(&mut y.backward()).expect("y depends on it")
    }

    fn read(self) -> Vec<f32> {
        self.into_data().try_to_vec().expect("a tensor of f32")
    }
}
