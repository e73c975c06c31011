//! [`Recording`]: the nodes of a forward pass, as this thread records them.
//!
//! A tensor whose layout repeats elements (strides of 0) is recorded without the repetition: its value has an extent of
//! 1 there, or lacks leading axes. Element-wise operators of ONNX broadcast such values by themselves; for the others
//! [`operand`] expands them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use swath::backend::Results;
use swath::backend::cpu::CpuTensor;
use swath::{
    Backend, CpuBackend, DType, Error, HostData, Layout, Result, Scalar, Shape, TensorData,
};

use crate::proto;

thread_local! {
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

static TENSORS: AtomicU64 = AtomicU64::new(0);

/// A tensor of [`Trace`](super::Trace): one of the CPU, and the number by which a recording knows it.
#[derive(Clone, Debug)]
pub struct TraceTensor {
    pub(super) data: CpuTensor,
    id: u64,
}

impl TensorData for TraceTensor {
    fn layout(&self) -> &Layout {
        self.data.layout()
    }

    fn dtype(&self) -> DType {
        self.data.dtype()
    }
}

impl TraceTensor {
    /// A tensor that no recording knows: a constant.
    pub fn new(data: CpuTensor) -> Self {
        TraceTensor { data, id: TENSORS.fetch_add(1, Ordering::Relaxed) }
    }

    /// The tensor of a recorded value; without one, a result that ONNX's operator does not give.
    pub fn bound(data: CpuTensor, value: Option<usize>) -> Self {
        let x = Self::new(data);
        with(|recording| recording.values.insert(x.id, value));
        x
    }

    /// The same elements with another layout.
    pub fn with_data(&self, data: CpuTensor) -> Self {
        TraceTensor { data, id: self.id }
    }

    pub fn dims(&self) -> &[usize] {
        self.data.shape().dims()
    }

    /// The number of the recorded value; `None` for a constant.
    pub fn value(&self) -> Result<Option<usize>> {
        match with(|recording| recording.values.get(&self.id).copied()) {
            Some(None) => Err(error("a result is used that ONNX's operator does not give")),
            found => Ok(found.flatten()),
        }
    }
}

/// A value: a parameter, an input, or the result of a node.
#[derive(Clone, Debug)]
pub struct Value {
    pub dims: Vec<usize>,
    pub dtype: DType,
    pub depends_on_input: bool,
}

/// An input of a node.
#[derive(Clone, Debug)]
pub enum Operand {
    Absent,
    Value(usize),
    Constant(CpuTensor),
}

pub type Attributes = Vec<proto::Attribute<'static>>;

pub fn int(name: &'static str, int: i64) -> proto::Attribute<'static> {
    proto::Attribute { name: name.into(), int, kind: 2, ..Default::default() }
}

pub fn float(name: &'static str, float: f64) -> proto::Attribute<'static> {
    proto::Attribute { name: name.into(), float: float as f32, kind: 1, ..Default::default() }
}

pub fn text(name: &'static str, text: &'static str) -> proto::Attribute<'static> {
    let bytes = text.as_bytes().into();
    proto::Attribute { name: name.into(), bytes, kind: 3, ..Default::default() }
}

pub fn list(name: &'static str, ints: impl Iterator<Item = i64>) -> proto::Attribute<'static> {
    proto::Attribute { name: name.into(), ints: ints.collect(), kind: 7, ..Default::default() }
}

/// An operator of ONNX, and the operation of swath that it is for.
#[derive(Clone, Debug)]
pub struct Node {
    pub op: &'static str,
    pub from: &'static str,
    pub inputs: Vec<Operand>,
    pub attributes: Attributes,
    /// The numbers of its results.
    pub outputs: std::ops::Range<usize>,
}

/// The values of a forward pass, parameters and inputs first, and its nodes.
#[derive(Debug, Default)]
pub struct Recording {
    pub values: HashMap<u64, Option<usize>>,
    pub all: Vec<Value>,
    pub nodes: Vec<Node>,
    /// True if extents are to be told from constants, by the comparison with another recording.
    pub is_dynamic: bool,
}

impl Recording {
    /// Adds a parameter or an input.
    pub fn leaf(&mut self, x: &TraceTensor, depends_on_input: bool) {
        // A tensor with several paths has the name of the first.
        self.values.entry(x.id).or_insert(Some(self.all.len()));
        let dims = unit_dims(x.layout());
        self.all.push(Value { dims, dtype: x.dtype(), depends_on_input });
    }
}

/// Runs `f` while this thread records, and returns the recording.
pub fn record<R>(recording: Recording, f: impl FnOnce() -> Result<R>) -> Result<(Recording, R)> {
    struct Restore(Option<Recording>);
    impl Drop for Restore {
        fn drop(&mut self) {
            RECORDING.replace(self.0.take());
        }
    }
    let _restore = Restore(RECORDING.replace(Some(recording)));
    let result = f()?;
    Ok((RECORDING.take().unwrap_or_default(), result))
}

/// Calls `f` with the recording of this thread, if there is one.
pub fn with<R: Default>(f: impl FnOnce(&mut Recording) -> R) -> R {
    RECORDING.with_borrow_mut(|recording| recording.as_mut().map(f)).unwrap_or_default()
}

pub fn error(reason: impl Into<String>) -> Error {
    Error::InvalidArgument { op: "export", reason: reason.into() }
}

/// Records a node whose results have these extents and dtypes. Returns the number of the first.
pub fn push(
    from: &'static str,
    op: &'static str,
    inputs: Vec<Operand>,
    attributes: Attributes,
    results: Vec<(Vec<usize>, DType)>,
) -> Option<usize> {
    with(|Recording { all, nodes, .. }| {
        let outputs = all.len()..all.len() + results.len();
        let depends = |x: &Operand| matches!(x, Operand::Value(at) if all[*at].depends_on_input);
        let depends_on_input = inputs.iter().any(depends);
        let value = |(dims, dtype)| Value { dims, dtype, depends_on_input };
        all.extend(results.into_iter().map(value));
        let first = outputs.start;
        nodes.push(Node { op, from, inputs, attributes, outputs });
        Some(first)
    })
}

/// The results of an operator, recorded unless all operands are constants.
pub fn results(
    from: &'static str,
    op: &'static str,
    inputs: Vec<Operand>,
    attributes: Attributes,
    data: impl IntoIterator<Item = CpuTensor>,
) -> Result<Results<TraceTensor>> {
    let data = data.into_iter().map(|y| CpuBackend::contiguous(&y));
    let data = data.collect::<Result<Vec<_>>>()?;
    if !inputs.iter().any(|x| matches!(x, Operand::Value(_))) {
        return Ok(data.into_iter().map(TraceTensor::new).collect());
    }
    let shapes = data.iter().map(|y| (y.shape().dims().to_vec(), y.dtype())).collect();
    let first = push(from, op, inputs, attributes, shapes).unwrap_or_default();
    Ok(data.into_iter().zip(first..).map(|(y, at)| TraceTensor::bound(y, Some(at))).collect())
}

/// The result of an operator that has one.
pub fn one(
    from: &'static str,
    op: &'static str,
    inputs: Vec<Operand>,
    attributes: Attributes,
    data: CpuTensor,
) -> Result<TraceTensor> {
    let y = results(from, op, inputs, attributes, [data])?.into_iter().next();
    y.ok_or_else(|| error("an operator has no result"))
}

/// The extents without repetition: 1 where the stride is 0.
pub fn unit_dims(layout: &Layout) -> Vec<usize> {
    let axes = layout.dims().iter().zip(layout.strides());
    axes.map(|(&dim, &stride)| if stride == 0 { dim.min(1) } else { dim }).collect()
}

/// The first elements along the axes for which `dims` has a smaller extent.
pub fn narrowed(x: &CpuTensor, dims: &[usize]) -> Result<CpuTensor> {
    let strides = x.strides().iter().copied().collect();
    let layout = Layout::new(Shape::new(dims), strides, x.layout().offset());
    CpuBackend::view(x, layout.unwrap_or(*x.layout()))
}

/// A constant list of extents, axes and the like.
pub fn ints(list: impl IntoIterator<Item = i64>) -> Result<Operand> {
    let list: Vec<i64> = list.into_iter().collect();
    let shape = Shape::new([list.len()]);
    Ok(Operand::Constant(CpuBackend::from_host(HostData::I64(list), shape)?))
}

pub fn extents(dims: &[usize]) -> Result<Operand> {
    ints(dims.iter().map(|&dim| dim as i64))
}

/// A constant number.
pub fn number(value: impl Into<Scalar>, dtype: DType) -> Result<Operand> {
    Ok(Operand::Constant(CpuBackend::full(Shape::scalar(), value.into(), dtype)?))
}

/// The tensor as an input of a node: with at least `rank` axes, the last `full` of which are not to be broadcast.
pub fn operand(x: &TraceTensor, full: usize, rank: usize) -> Result<Operand> {
    let (dims, unit) = (x.dims(), unit_dims(x.layout()));
    let lead = dims.len().saturating_sub(full);
    let wanted = [&unit[..lead], &dims[lead..]].concat();
    let (source, own) = match x.value()? {
        Some(at) => (Operand::Value(at), with(|recording| recording.all[at].dims.clone())),
        None => {
            // While extents are compared, a repetition is a node, so that no constant has its extent.
            let kept = if with(|recording| recording.is_dynamic) { &unit } else { &wanted };
            let ones = kept.iter().take_while(|&&dim| dim == 1).count();
            let kept = (&kept[..], if rank == 0 { &kept[ones..] } else { kept });
            let data = CpuBackend::reshape(&narrowed(&x.data, kept.0)?, Shape::new(kept.1))?;
            (Operand::Constant(data), kept.1.to_vec())
        }
    };
    let (op, list, shape) = if unit[lead..] != dims[lead..] && wanted != own {
        ("Expand", extents(&wanted)?, wanted)
    } else if own.len() < rank.min(dims.len()) {
        let missing = dims.len() - own.len();
        ("Unsqueeze", ints(0..missing as i64)?, [vec![1; missing], own].concat())
    } else {
        return Ok(source);
    };
    let at = push("broadcast_to", op, vec![source, list], vec![], vec![(shape, x.dtype())]);
    at.map(Operand::Value).ok_or_else(|| error("nothing is recorded"))
}

/// [`operand`] with all its elements.
pub fn whole(x: &TraceTensor) -> Result<Operand> {
    operand(x, x.dims().len(), x.dims().len())
}
