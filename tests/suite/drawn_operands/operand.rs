//! Operands in drawn layouts: views of a storage whose other elements are known.

use swath::prelude::*;

use swath::{Backend, HostData, Layout, Strides};

use super::draw::Draw;

/// Shape and dtype of an operand; labels below a number instead of numbers of either sign.
#[derive(Clone, Debug)]
pub struct Spec {
    pub dims: Vec<usize>,
    pub dtype: DType,
    pub labels: Option<usize>,
}

impl Spec {
    pub fn new(dims: impl Into<Vec<usize>>, dtype: DType) -> Self {
        Spec { dims: dims.into(), dtype, labels: None }
    }

    pub fn labels(dims: impl Into<Vec<usize>>, below: usize) -> Self {
        Spec { dims: dims.into(), dtype: DType::I64, labels: Some(below) }
    }

    /// Changes an extent, the number of axes or the dtype.
    pub fn spoil(&mut self, draw: &mut Draw<'_>) {
        let at = draw.below(self.dims.len().max(1));
        match draw.below(6) {
            0 => self.dtype = draw.choose(&DTYPES),
            1 => self.dims.insert(at, draw.choose(&[1, 2, 3])),
            2 if !self.dims.is_empty() => _ = self.dims.remove(at),
            _ => {
                if let Some(dim) = self.dims.get_mut(at) {
                    *dim = draw.choose(&[*dim + 1, 0, 1, 2, 3, dim.saturating_sub(1), *dim * 2]);
                }
            }
        }
        self.dims.truncate(8);
        // Few elements, so that many are drawn.
        while self.dims.iter().product::<usize>() > 4096 {
            self.dims.iter_mut().for_each(|dim| *dim = dim.div_ceil(2));
        }
    }
}

/// All dtypes, floats more than once.
pub const DTYPES: [DType; 12] = [
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::F32,
    DType::Bool,
    DType::F64,
    DType::I32,
    DType::U8,
    DType::U32,
    DType::F32,
];

/// A storage of `len` elements, the layout of the operand in it, and the seed of the operand's values.
#[derive(Debug)]
pub struct Operand {
    spec: Spec,
    layout: Layout,
    len: usize,
    seed: u64,
}

impl Operand {
    pub fn new(draw: &mut Draw<'_>, spec: Spec) -> Self {
        let rank = spec.dims.len();
        let first = draw.below(rank.max(1));
        let is_empty = spec.dims.contains(&0);
        let (mut strides, mut step) = (vec![0isize; rank], draw.choose(&[1, 1, 1, 2]));
        let mut offset = draw.below(4);
        // From the innermost axis in memory, which is often the last.
        for axis in (0..rank).rev() {
            let axis = if draw.once_in(3) { (axis + first) % rank } else { axis };
            if strides[axis] != 0 {
                continue;
            }
            let dim = spec.dims[axis];
            let reach = (dim.max(1) - 1) as isize * step;
            strides[axis] = match draw.below(8) {
                0 => 0,
                1 if !is_empty => {
                    offset += reach.unsigned_abs();
                    -step
                }
                _ => step,
            };
            step = reach + step + isize::from(draw.once_in(6));
        }
        let shape = Shape::new(&spec.dims);
        if is_empty && draw.once_in(4) {
            offset = draw.choose(&[1 << 20, usize::MAX]);
        }
        let layout = Layout::new(shape, Strides::new(&strides), offset).expect("small strides");
        let last = layout.extent("test").expect("small strides").map_or(0, |(_, last)| last);
        Operand { spec, layout, len: last + 1 + draw.below(4), seed: draw.below(256) as u64 }
    }

    /// The operand, beside other elements for each `noise`.
    pub fn view<B: Backend>(&self, noise: u64) -> B::Tensor {
        let number = |seed: u64, i: usize| {
            let mixed = (seed << 32 | i as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed >> 20) % 1000
        };
        let own = |i: usize| match (self.spec.labels, number(self.seed, i)) {
            (Some(below), n) => (n % below.max(1) as u64) as f64,
            (None, n) => n as f64 / 256.0 - 2.0,
        };
        let other = |i: usize| (number(noise + 1000, i) as f64 - 500.0) * 64.0;
        let mut values: Vec<f64> = (0..self.len).map(other).collect();
        for (i, position) in self.layout.positions().enumerate() {
            values[position] = own(i);
        }
        let storage = B::from_host(HostData::F64(values), self.len.into());
        let storage = storage.and_then(|storage| B::cast(&storage, self.spec.dtype));
        storage.and_then(|storage| B::view(&storage, self.layout)).expect("a view of the storage")
    }
}

/// Shapes, dtypes and values of results.
pub type Found = Result<Vec<(Shape, HostData)>, String>;

pub fn values<B: Backend>(results: Result<Vec<B::Tensor>>) -> Found {
    let each =
        results.and_then(|all| all.iter().map(|x| Ok((*x.shape(), B::to_host(x)?))).collect());
    each.map_err(|error| error.to_string())
}

/// Fails unless both are the same, bit for bit.
#[track_caller]
pub fn compare(what: &dyn std::fmt::Debug, name: &str, found: [Found; 2]) -> bool {
    match &found {
        [Ok(a), Ok(b)] => {
            assert_eq!(a.len(), b.len(), "{what:?}");
            for ((shape, a), (other, b)) in a.iter().zip(b) {
                assert!(shape == other && a.dtype() == b.dtype(), "{what:?}");
                assert_eq!(
                    a.as_bytes(),
                    b.as_bytes(),
                    "{name} read elements around its operands: {what:#?}"
                );
            }
            true
        }
        [Err(a), Err(b)] => {
            assert_eq!(a, b, "{what:#?}");
            assert!(a.starts_with(name), "{a}, by {name}");
            false
        }
        _ => panic!("{name} depends on elements around its operands: {what:#?} {found:?}"),
    }
}
