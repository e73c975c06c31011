//! Recordings as a model. Several recordings of one program, with different extents, tell which numbers are extents.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use swath::backend::cpu::CpuTensor;
use swath::{CpuBackend, DType, Result, Tensor, TensorData};

use super::record::{Attributes, Node, Operand, Recording, error, int};
use crate::{proto, weights};

/// A recording, its outputs, and the extents with names that it was made with.
pub struct Pass {
    pub recording: Recording,
    pub outputs: Vec<(String, Operand)>,
    pub extents: Vec<i64>,
}

impl Pass {
    fn dims<'p>(&'p self, operand: &'p Operand) -> &'p [usize] {
        match operand {
            Operand::Value(at) => &self.recording.all[*at].dims,
            Operand::Constant(x) => x.shape().dims(),
            Operand::Absent => &[],
        }
    }
}

/// An extent with a name, and an axis of an input that has it.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: String,
    pub input: String,
    pub axis: usize,
}

/// A number that depends on extents, `factor · Π extents + plus`.
struct Formula {
    factor: i64,
    extents: Vec<usize>,
    plus: i64,
}

/// What is written, and under which names.
pub struct Writer<'a> {
    /// The first, one for each extent with a name that is larger there, and one in which all are.
    passes: &'a [Pass],
    named: &'a [Named],
    /// The names of values, and the beginning of those that are made here, which no other name has.
    names: Vec<String>,
    prefix: String,
    /// Number of initializers that are parameters.
    parameters: usize,
    /// Constants that nodes compute, by node.
    computed: HashMap<String, String>,
    graph: proto::Graph<'static>,
}

/// Writes a model, whose parameters and inputs are the first values of the recordings.
pub fn model(
    title: &str,
    parameters: &[(String, CpuTensor)],
    inputs: Vec<String>,
    named: &[Named],
    passes: &[Pass],
) -> Result<proto::Model<'static>> {
    let Pass { recording: first, outputs, .. } = &passes[0];
    let graph = proto::Graph { name: Cow::Owned(title.to_owned()), ..Default::default() };
    let mut names: Vec<String> = parameters.iter().map(|(path, _)| path.clone()).collect();
    names.extend(inputs);
    let leaves = names.len();
    let outer: Vec<&String> = names.iter().chain(outputs.iter().map(|(name, _)| name)).collect();
    let mut seen = HashSet::new();
    if let Some(name) = outer.iter().find(|name| !seen.insert(**name)) {
        return Err(error(format!("two parameters, inputs or outputs have the name {name:?}")));
    }
    let mut prefix = ":".to_owned();
    while outer.iter().any(|name| name.starts_with(&prefix)) {
        prefix.push(':');
    }
    for node in &first.nodes {
        names.extend(node.outputs.clone().map(|at| format!("{prefix}{}:{at}", node.from)));
    }
    let computed = HashMap::new();
    let mut writer = Writer { passes, named, names, prefix, parameters: 0, computed, graph };
    writer.check()?;
    // The result of a node is renamed to an output; other outputs are copies.
    let mut is_live = vec![false; first.all.len()];
    let mut copies = Vec::new();
    for (at, (output, operand)) in outputs.iter().enumerate() {
        match operand {
            Operand::Value(value) if *value >= leaves && !is_live[*value] => {
                writer.names[*value] = output.clone();
            }
            _ => copies.push(at),
        }
        mark(&[operand], &mut is_live);
    }
    for node in first.nodes.iter().rev() {
        if is_live[node.outputs.clone()].contains(&true) {
            mark(&node.inputs.iter().collect::<Vec<_>>(), &mut is_live);
        }
    }
    for (at, (path, data)) in parameters.iter().enumerate().filter(|(at, _)| is_live[*at]) {
        let data = super::record::narrowed(data, &first.all[at].dims)?;
        let message = message(&data)?;
        writer.graph.initializers.push(proto::Tensor { name: Cow::Owned(path.clone()), ..message });
    }
    writer.parameters = writer.graph.initializers.len();
    for at in parameters.len()..leaves {
        let info = writer.info(writer.names[at].clone(), &vec![&Operand::Value(at); passes.len()]);
        writer.graph.inputs.push(info);
    }
    for (i, node) in first.nodes.iter().enumerate() {
        if is_live[node.outputs.clone()].contains(&true) {
            let operand = |k: usize| {
                let inputs = passes.iter().map(|pass| &pass.recording.nodes[i].inputs);
                let source = inputs.clone().zip(passes).map(|(inputs, pass)| pass.dims(&inputs[0]));
                let source = source.filter(|_| node.op == "Reshape" && k == 1).collect::<Vec<_>>();
                let versions = inputs.map(|inputs| &inputs[k]).collect::<Vec<_>>();
                writer.operand(&versions, node.from, &source)
            };
            let operands = (0..node.inputs.len()).map(operand).collect::<Result<_>>()?;
            let outputs = writer.names[node.outputs.clone()].to_vec();
            writer.node(node.op, operands, outputs, node.attributes.clone());
        }
    }
    for (at, (output, _)) in outputs.iter().enumerate() {
        let versions: Vec<&Operand> = passes.iter().map(|pass| &pass.outputs[at].1).collect();
        if copies.contains(&at) {
            let x = writer.operand(&versions, "an output", &[])?;
            writer.node("Identity", vec![x], vec![output.clone()], vec![]);
        }
        let info = writer.info(output.clone(), &versions);
        writer.graph.outputs.push(info);
    }
    Ok(proto::Model {
        ir_version: 9,
        producer: "swath-onnx".into(),
        producer_version: env!("CARGO_PKG_VERSION").into(),
        graph: Some(Box::new(writer.graph)),
        operator_sets: vec![proto::OperatorSet { version: 20, ..Default::default() }],
        ..Default::default()
    })
}

fn mark(operands: &[&Operand], is_live: &mut [bool]) {
    for operand in operands {
        if let Operand::Value(at) = operand {
            is_live[*at] = true;
        }
    }
}

fn message(x: &CpuTensor) -> Result<proto::Tensor<'static>> {
    weights::write("", &Tensor::from_data(x.clone())).map_err(crate::Error::into_swath)
}

impl Writer<'_> {
    /// The extents of a pass, for errors.
    fn setting(&self, pass: usize) -> String {
        let each = self.named.iter().zip(&self.passes[pass].extents);
        each.map(|(named, extent)| format!("{} {extent}", named.name))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Checks that all passes have the same nodes.
    fn check(&self) -> Result<()> {
        let text = |Node { op, inputs, attributes, outputs, .. }: &Node| {
            format!("{op} {} {attributes:?} {outputs:?}", inputs.len())
        };
        let first = &self.passes[0].recording.nodes;
        for (at, Pass { recording: Recording { nodes, .. }, .. }) in self.passes.iter().enumerate()
        {
            let is_same = |i: &usize| nodes.get(*i).map(text) == first.get(*i).map(text);
            if let Some(i) = (0..nodes.len().max(first.len())).find(|i| !is_same(i)) {
                let name = |nodes: &[Node]| nodes.get(i).map_or("none", |node| node.from);
                let options = if name(nodes) == name(first) { " with other options" } else { "" };
                return Err(error(format!(
                    "the program depends on an extent: operation {i} is {} for {}, and {}{options} for {}",
                    name(first),
                    self.setting(0),
                    name(nodes),
                    self.setting(at)
                )));
            }
            let outputs = |pass: &Pass| -> Vec<(String, Option<usize>)> {
                let value = |x: &Operand| if let Operand::Value(at) = x { Some(*at) } else { None };
                pass.outputs.iter().map(|(name, x)| (name.clone(), value(x))).collect()
            };
            if outputs(&self.passes[at]) != outputs(&self.passes[0]) {
                return Err(error("the program has other outputs for other extents"));
            }
        }
        Ok(())
    }

    /// The name of an operand, of which each pass has a version.
    /// It is the shape that a source of these extents gets, if there are some.
    fn operand(
        &mut self,
        versions: &[&Operand],
        from: &str,
        source: &[&[usize]],
    ) -> Result<String> {
        let mut constants = Vec::new();
        for version in versions {
            match (version, versions[0]) {
                (Operand::Absent, Operand::Absent) => {}
                (Operand::Value(at), Operand::Value(first)) if at == first => {}
                (Operand::Constant(x), Operand::Constant(_)) => constants.push(x),
                _ => return Err(error(format!("{from} has other operands for other extents"))),
            }
        }
        match versions[0] {
            Operand::Absent => Ok(String::new()),
            Operand::Value(at) => Ok(self.names[*at].clone()),
            Operand::Constant(_) => self.constant(&constants, from, source),
        }
    }

    fn constant(
        &mut self,
        versions: &[&CpuTensor],
        from: &str,
        source: &[&[usize]],
    ) -> Result<String> {
        let messages = versions.iter().map(|x| message(x)).collect::<Result<Vec<_>>>()?;
        let differs =
            |x: &proto::Tensor<'_>| x.dims != messages[0].dims || x.raw != messages[0].raw;
        let Some(other) = messages.iter().position(differs) else {
            return self.initializer(versions[0]);
        };
        match self.computed(versions, source)? {
            Some(name) => Ok(name),
            None => Err(error(format!(
                "{from} freezes an extent: one of its operands is a constant, {} for {}, and another one, {}, for {}",
                versions[0].shape(),
                self.setting(0),
                versions[other].shape(),
                self.setting(other)
            ))),
        }
    }

    /// A constant that extents determine: numbers by formulas, or as many numbers at equal distances as a formula says.
    fn computed(&mut self, versions: &[&CpuTensor], source: &[&[usize]]) -> Result<Option<String>> {
        let (dtype, rank) = (versions[0].dtype(), versions[0].shape().ndim());
        let mut lists = Vec::new();
        for x in versions {
            let x = Tensor::<CpuBackend>::from_data((*x).clone());
            let whole = x.to_dtype(DType::I64)?;
            if x.rank() > 1 || whole.to_dtype(dtype)?.ne(&x)?.any(None, false)?.item()? {
                return Ok(None);
            }
            lists.push(whole.to_vec::<i64>()?);
        }
        let (first, count) = (lists[0].clone(), lists[0].len());
        let is_list = dtype == DType::I64 || count == 1;
        let y = if is_list && lists.iter().all(|list| list.len() == count) {
            let value = |i: usize| lists.iter().map(|list| list[i]).collect::<Vec<_>>();
            let varies = |i: &usize| value(*i).iter().any(|&value| value != first[*i]);
            // `Reshape` keeps an extent of its source where the shape has 0, and finds one itself.
            let is_kept = |i: &usize| {
                let mut each = source.iter().zip(&lists);
                each.all(|(dims, list)| dims.get(*i).is_some_and(|&dim| dim as i64 == list[*i]))
            };
            let is_free = |i: &usize| varies(i) && !is_kept(i);
            if !source.is_empty() && !first.contains(&0) && (0..count).filter(is_free).count() <= 1
            {
                let shape = (0..count).map(|i| match (varies(&i), is_kept(&i)) {
                    (false, _) => first[i],
                    (true, true) => 0,
                    (true, false) => -1,
                });
                return self.ints(shape.collect()).map(Some);
            }
            let formulas = (0..count).map(|i| self.formula(&value(i))).collect::<Option<Vec<_>>>();
            let Some(formulas) = formulas else { return Ok(None) };
            let terms = formulas.iter().map(|f| self.term(f)).collect::<Result<Vec<_>>>()?;
            let list = match &terms[..] {
                [term] => term.clone(),
                _ => self.fresh("Concat", terms, vec![int("axis", 0)]),
            };
            if rank == 0 { self.scalar(list)? } else { list }
        } else {
            let step = first.get(1).map_or(0, |second| second.wrapping_sub(first[0]));
            let is_range = |list: &Vec<i64>| {
                list.first() == first.first()
                    && list.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step)
            };
            let counts: Vec<i64> = lists.iter().map(|list| list.len() as i64).collect();
            let formula = self.formula(&counts).filter(|_| step != 0 && lists.iter().all(is_range));
            let Some(Formula { factor, extents, plus }) = formula else { return Ok(None) };
            let (factor, plus) =
                (factor.wrapping_mul(step), plus.wrapping_mul(step).wrapping_add(first[0]));
            let end = self.term(&Formula { factor, extents, plus })?;
            let bounds = [self.ints(vec![first[0]])?, end, self.ints(vec![step])?];
            let bounds = bounds.into_iter().map(|x| self.scalar(x)).collect::<Result<_>>()?;
            self.fresh("Range", bounds, vec![])
        };
        Ok(Some(match dtype {
            DType::I64 => y,
            _ => self.fresh("Cast", vec![y], vec![int("to", weights::code(dtype))]),
        }))
    }

    /// The formula of a number with these values in the passes.
    fn formula(&self, values: &[i64]) -> Option<Formula> {
        let extent = |pass: usize, i: usize| self.passes[pass].extents[i];
        let extents: Vec<usize> =
            (0..self.named.len()).filter(|i| values[i + 1] != values[0]).collect();
        let product = |pass| extents.iter().fold(1i64, |all, &i| all.wrapping_mul(extent(pass, i)));
        let factor = match extents[..] {
            [] => 0,
            [i] => values[i + 1].wrapping_sub(values[0]) / (extent(i + 1, i) - extent(0, i)),
            _ => values[0] / product(0),
        };
        let scaled = |pass| factor.wrapping_mul(product(pass));
        let plus = if extents.len() < 2 { values[0].wrapping_sub(scaled(0)) } else { 0 };
        let is_right =
            (0..values.len()).all(|pass| scaled(pass).wrapping_add(plus) == values[pass]);
        is_right.then_some(Formula { factor, extents, plus })
    }

    /// A list of the one number of a formula.
    fn term(&mut self, formula: &Formula) -> Result<String> {
        if formula.extents.is_empty() {
            return self.ints(vec![formula.plus]);
        }
        let mut product = String::new();
        for &i in &formula.extents {
            let (input, axis) = (self.named[i].input.clone(), self.named[i].axis as i64);
            let extent =
                self.fresh("Shape", vec![input], vec![int("start", axis), int("end", axis + 1)]);
            product = match product.is_empty() {
                true => extent,
                false => self.fresh("Mul", vec![product, extent], vec![]),
            };
        }
        for (op, value, neutral) in [("Mul", formula.factor, 1), ("Add", formula.plus, 0)] {
            if value != neutral {
                let value = self.ints(vec![value])?;
                product = self.fresh(op, vec![product, value], vec![]);
            }
        }
        Ok(product)
    }

    fn scalar(&mut self, list: String) -> Result<String> {
        let inputs = vec![list, self.ints(vec![0])?];
        Ok(self.fresh("Squeeze", inputs, vec![]))
    }

    fn ints(&mut self, list: Vec<i64>) -> Result<String> {
        let count = list.len();
        self.initializer(Tensor::<CpuBackend>::from_vec(list, count)?.data())
    }

    /// A constant; of equal ones there is one.
    fn initializer(&mut self, x: &CpuTensor) -> Result<String> {
        let message = message(x)?;
        let all = &mut self.graph.initializers;
        let is_equal = |other: &&proto::Tensor<'_>| {
            (other.dtype, &other.dims, &other.raw) == (message.dtype, &message.dims, &message.raw)
        };
        if let Some(other) = all[self.parameters..].iter().find(is_equal) {
            return Ok(other.name.to_string());
        }
        let name = format!("{}constant:{}", self.prefix, all.len());
        all.push(proto::Tensor { name: Cow::Owned(name.clone()), ..message });
        Ok(name)
    }

    /// The result of a node that computes a constant; of equal ones there is one.
    fn fresh(&mut self, op: &'static str, inputs: Vec<String>, attributes: Attributes) -> String {
        let key = format!("{op} {inputs:?} {attributes:?}");
        if let Some(name) = self.computed.get(&key) {
            return name.clone();
        }
        let name = format!("{}extent:{}", self.prefix, self.computed.len());
        self.computed.insert(key, name.clone());
        self.node(op, inputs, vec![name.clone()], attributes);
        name
    }

    fn node(
        &mut self,
        op: &'static str,
        mut inputs: Vec<String>,
        outputs: Vec<String>,
        attributes: Attributes,
    ) {
        while inputs.last().is_some_and(String::is_empty) {
            inputs.pop();
        }
        self.graph.nodes.push(proto::Node {
            name: Cow::Owned(outputs[0].clone()),
            op: op.into(),
            inputs: inputs.into_iter().map(Cow::Owned).collect(),
            outputs: outputs.into_iter().map(Cow::Owned).collect(),
            attributes,
            ..Default::default()
        });
    }

    /// The dtype and the extents of an input or output.
    fn info(&self, name: String, versions: &[&Operand]) -> proto::ValueInfo<'static> {
        let dtype = match versions[0] {
            Operand::Value(at) => self.passes[0].recording.all[*at].dtype,
            Operand::Constant(x) => x.dtype(),
            Operand::Absent => DType::F32,
        };
        let all = versions.iter().zip(self.passes).map(|(x, pass)| pass.dims(x));
        let all = all.collect::<Vec<_>>();
        let dimension = |axis: usize| {
            let values = all.iter().map(|dims| dims.get(axis).map_or(0, |&dim| dim as i64));
            let (mut name, mut value) = (Cow::default(), 0);
            match self.formula(&values.collect::<Vec<_>>()) {
                Some(Formula { extents, plus, .. }) if extents.is_empty() => value = plus,
                Some(Formula { factor: 1, extents, plus: 0 }) if extents.len() == 1 => {
                    name = Cow::Owned(self.named[extents[0]].name.clone());
                }
                _ => {}
            }
            proto::Dimension { value, name, ..Default::default() }
        };
        let dims = (0..all[0].len()).map(dimension).collect();
        let shape = Some(Box::new(proto::Shape { dims, ..Default::default() }));
        let dtype = weights::code(dtype);
        let tensor = Some(Box::new(proto::TensorType { dtype, shape, ..Default::default() }));
        let kind = Some(Box::new(proto::Type { tensor, ..Default::default() }));
        proto::ValueInfo { name: Cow::Owned(name), kind, ..Default::default() }
    }
}
