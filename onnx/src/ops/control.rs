//! Graphs that run under a condition or for each of many elements, and lists of tensors.

use swath::{Backend, DType, Tensor};

use super::Rows;
use crate::error::{Error, Result};
use crate::program::{Extent, Kind, Port};
use crate::row::Default::{Absent, Int, Required};
use crate::row::{Call, Results, Row, axis, extents, ints, one, row};
use crate::run::{Body, Value};

/// A list of tensors.
type List<B> = Vec<Tensor<B>>;

/// The one element of a condition.
fn is_true<B: Backend>(x: &Tensor<B>) -> Result<bool> {
    Ok(x.to_dtype(DType::Bool)?.item::<bool>()?)
}

/// The tensor that a graph gives.
fn tensor<B: Backend>(value: Option<Value<B>>) -> Result<Tensor<B>> {
    match value {
        Some(Value::Tensor(x)) => Ok(x),
        _ => Err(Error::operator(
            "the graph must give a tensor, where it gives a list of them or nothing",
        )),
    }
}

fn branch<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let name = if is_true(call.tensor(0)?)? { "then_branch" } else { "else_branch" };
    call.run_body(call.body(name)?, Vec::new())
}

/// A number as a graph declares its input: a scalar, or a vector of one element.
fn number<B: Backend>(port: &Port, value: i64, dtype: DType) -> Result<Value<B>> {
    let (dtype, axes) = match &port.kind {
        Kind::Tensor(dtype, extents) => (*dtype, extents.as_ref().map_or(0, Vec::len)),
        _ => (dtype, 0),
    };
    Ok(Value::Tensor(Tensor::full_as(vec![1; axes], value, dtype)?))
}

/// Joins the results of iterations along a new axis. Without an iteration they have the extents that the graph
/// declares, and 0 where it declares none.
fn stack<B: Backend>(list: &[Tensor<B>], port: &Port, at: i64) -> Result<Tensor<B>> {
    if !list.is_empty() {
        return Ok(Tensor::stack(list, at)?);
    }
    let (dtype, mut dims) = declared(port);
    dims.insert(axis(at, dims.len() + 1)?, 0);
    Ok(Tensor::zeros(dims, dtype)?)
}

/// The dtype and extents that a graph declares, 0 where it declares none.
fn declared(port: &Port) -> (DType, Vec<usize>) {
    let known = |extent: &Extent| match extent {
        Extent::Known(extent) => *extent,
        Extent::Named(_) => 0,
    };
    match &port.kind {
        Kind::Tensor(dtype, extents) => (*dtype, extents.iter().flatten().map(known).collect()),
        _ => (DType::F32, Vec::new()),
    }
}

/// Runs a graph as often as a number and a condition say. A condition that a node does not have is ignored later, too.
fn repeat<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let body = call.body("body")?;
    let program = &body.program;
    let mut carried = call.inputs.get(2..).unwrap_or_default().to_vec();
    let count = carried.len();
    let scans =
        program.outputs.get(1 + count..).filter(|_| program.inputs.len() == 2 + count).ok_or_else(
            || {
                let (inputs, outputs) = (program.inputs.len(), program.outputs.len());
                Error::operator(format!(
                    "a graph of {inputs} inputs and {outputs} outputs cannot carry {count} values"
                ))
            },
        )?;
    let (trips, condition) = (call.number_of(0)?.map(|trips| trips as i64), call.find(1));
    if trips.is_none() && condition.is_none() {
        return Err(Error::operator(
            "without a number of iterations and a condition it would not end",
        ));
    }
    let mut goes_on = condition.map_or(Ok(true), is_true)?;
    let mut given = number(&program.inputs[1], i64::from(goes_on), DType::Bool)?;
    let mut lists: Vec<List<B>> = vec![Vec::new(); scans.len()];
    let mut at = 0;
    while goes_on && trips.is_none_or(|trips| at < trips) {
        let mut inputs = vec![Some(number(&program.inputs[0], at, DType::I64)?), Some(given)];
        inputs.append(&mut carried);
        let mut results = body.run(inputs, call.outer, call.number)?.into_iter();
        let next = tensor(results.next())?;
        if condition.is_some() {
            goes_on = is_true(&next)?;
        }
        given = Value::Tensor(next);
        carried.extend(results.by_ref().take(count).map(Some));
        for (list, result) in lists.iter_mut().zip(results) {
            list.push(tensor(Some(result))?);
        }
        at += 1;
    }
    let missing = || Error::operator("a carried value without an element is no result");
    let mut results =
        carried.into_iter().map(|value| value.ok_or_else(missing)).collect::<Result<Vec<_>>>()?;
    for (list, port) in lists.iter().zip(scans) {
        results.push(Value::Tensor(stack(list, port, 0)?));
    }
    Ok(results)
}

/// Runs a graph for each index of lists of equal length: the states in the end, and lists of its other results.
fn iterate<B: Backend>(
    call: &Call<'_, B>,
    body: &Body<B>,
    mut states: List<B>,
    lists: &[List<B>],
) -> Result<(List<B>, Vec<List<B>>)> {
    let (count, steps) = (states.len(), lists.first().map_or(0, Vec::len));
    let outputs = body.program.outputs.len().checked_sub(count);
    let outputs =
        outputs.ok_or_else(|| Error::operator(format!("a graph must give its {count} states")))?;
    let mut results: Vec<List<B>> = vec![Vec::new(); outputs];
    for i in 0..steps {
        let elements = lists.iter().map(|list| list[i].clone());
        let inputs = states.drain(..).chain(elements).map(Value::Tensor).collect();
        let mut values = call.run_body(body, inputs)?.into_iter().map(|value| tensor(Some(value)));
        states = values.by_ref().take(count).collect::<Result<_>>()?;
        for (list, value) in results.iter_mut().zip(values) {
            list.push(value?);
        }
    }
    Ok((states, results))
}

/// The integer of a list in an attribute that belongs to an input or output, 0 without one.
fn option<B: Backend>(call: &Call<'_, B>, name: &str, at: usize) -> Result<i64> {
    Ok(call.find_ints(name)?.and_then(|list| list.get(at)).copied().unwrap_or(0))
}

/// States, and lists that are scanned.
type Scanned<'c, B> = (Vec<&'c Tensor<B>>, Vec<&'c Tensor<B>>);

/// The inputs that are states, and those that are scanned.
fn scanned<'c, B: Backend>(call: &'c Call<'_, B>, first: usize) -> Result<Scanned<'c, B>> {
    let mut states =
        (first..call.inputs.len()).map(|at| call.tensor(at)).collect::<Result<Vec<_>>>()?;
    let count = usize::try_from(call.int("num_scan_inputs")?)
        .ok()
        .filter(|count| (1..=states.len()).contains(count));
    let count = count
        .ok_or_else(|| Error::operator("num_scan_inputs must be one to the number of inputs"))?;
    let lists = states.split_off(states.len() - count);
    Ok((states, lists))
}

/// The elements of tensors along an axis of each, which must be equally many.
fn elements<B: Backend>(
    call: &Call<'_, B>,
    xs: &[&Tensor<B>],
    axes: Option<&str>,
    directions: &str,
) -> Result<Vec<List<B>>> {
    let mut lists = Vec::new();
    for (i, x) in xs.iter().enumerate() {
        let mut list = x.unbind(axes.map_or(Ok(0), |axes| option(call, axes, i))?)?;
        if option(call, directions, i)? != 0 {
            list.reverse();
        }
        lists.push(list);
    }
    match lists.iter().all(|list: &List<B>| list.len() == lists[0].len()) {
        true => Ok(lists),
        false => Err(Error::operator("the scanned extents must be equal")),
    }
}

fn scan<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    if call.version() < 9 {
        return scan_batch(call);
    }
    let body = call.body("body")?;
    let (states, xs) = scanned(call, 0)?;
    let count = states.len();
    let lists = elements(call, &xs, Some("scan_input_axes"), "scan_input_directions")?;
    let (states, results) = iterate(call, body, states.into_iter().cloned().collect(), &lists)?;
    let mut values: Vec<Value<B>> = states.into_iter().map(Value::Tensor).collect();
    for (i, (mut list, port)) in results.into_iter().zip(&body.program.outputs[count..]).enumerate()
    {
        if option(call, "scan_output_directions", i)? != 0 {
            list.reverse();
        }
        values.push(Value::Tensor(stack(&list, port, option(call, "scan_output_axes", i)?)?));
    }
    Ok(values)
}

/// The first form of Scan: for each sequence of a batch, each of its own length, along the second axis.
fn scan_batch<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let body = call.body("body")?;
    let (states, xs) = scanned(call, 1)?;
    let (count, ports) = (states.len(), &body.program.outputs);
    let &[batch, steps, ..] = xs[0].dims() else {
        return Err(Error::operator(format!(
            "expected a batch of sequences, got shape {}",
            xs[0].shape()
        )));
    };
    let lens = extents(&call.ints_of(0)?.unwrap_or_else(|| vec![steps as i64; batch]))?;
    let is_sound = |x: &&Tensor<B>| x.dims().first() == Some(&batch);
    if lens.len() != batch
        || lens.iter().any(|&len| len > steps)
        || !states.iter().chain(&xs).all(is_sound)
    {
        return Err(Error::operator(format!(
            "expected {batch} sequences of up to {steps} elements, got {lens:?}"
        )));
    }
    let mut results: Vec<List<B>> = vec![Vec::new(); ports.len().max(count)];
    for (at, &len) in lens.iter().enumerate() {
        let sequence = |x: &&Tensor<B>| x.narrow(0, at, 1)?.squeeze(0);
        let own = xs
            .iter()
            .map(|x| sequence(x)?.narrow(0, 0, len))
            .collect::<swath::Result<List<B>>>()?;
        let lists = elements(call, &own.iter().collect::<Vec<_>>(), None, "directions")?;
        let (states, lists) = iterate(
            call,
            body,
            states.iter().map(sequence).collect::<swath::Result<_>>()?,
            &lists,
        )?;
        for (list, state) in results.iter_mut().zip(states) {
            list.push(state);
        }
        for ((list, own), port) in results[count..].iter_mut().zip(lists).zip(&ports[count..]) {
            let own = stack(&own, port, 0)?;
            let mut pads = vec![(0, 0); own.rank()];
            pads[0] = (0, (steps - len) as isize);
            list.push(own.pad(&pads, swath::PadMode::Constant(0.0))?);
        }
    }
    let mut values = Vec::new();
    for (i, (list, port)) in results.iter().zip(ports).enumerate() {
        values.push(Value::Tensor(match (list.is_empty(), states.get(i)) {
            (false, _) => Tensor::stack(list, 0)?,
            (true, Some(state)) => (*state).clone(),
            (true, None) => {
                let (dtype, dims) = declared(port);
                Tensor::zeros([&[0, steps], &dims[..]].concat(), dtype)?
            }
        }));
    }
    Ok(values)
}

/// Runs a graph for each element of the first list. Other lists give their elements, tensors are the same each time.
fn sequence_map<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let body = call.body("body")?;
    let mut results = vec![Vec::new(); body.program.outputs.len()];
    for i in 0..call.sequence(0)?.len() {
        let element = |value: &Option<Value<B>>| match value {
            Some(Value::Sequence(list)) => list.get(i).cloned().map(Value::Tensor),
            other => other.clone(),
        };
        let inputs = call.inputs.iter().map(element).collect::<Option<Vec<_>>>();
        let inputs =
            inputs.ok_or_else(|| Error::operator("the lists must be as long as the first"))?;
        for (list, value) in results.iter_mut().zip(call.run_body(body, inputs)?) {
            list.push(tensor(Some(value))?);
        }
    }
    Ok(results.into_iter().map(Value::Sequence).collect())
}

/// The results of an operator that gives a list.
fn list<B: Backend>(list: List<B>) -> Results<B> {
    Ok(vec![Value::Sequence(list)])
}

/// The place in a list that an input names, counted from the end if negative.
fn place<B: Backend>(call: &Call<'_, B>, at: usize, last: i64, default: i64) -> Result<usize> {
    let len = call.sequence(0)?.len() as i64;
    let place = call.number_of(at)?.map_or(default, |place| place as i64);
    let from_front = if place < 0 { place + len } else { place };
    let found = usize::try_from(from_front).ok().filter(|_| from_front <= last);
    found.ok_or_else(|| Error::operator(format!("place {place} is out of range for {len} tensors")))
}

fn sequence_insert<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let mut tensors = call.sequence(0)?.to_vec();
    let len = tensors.len() as i64;
    tensors.insert(place(call, 2, len, len)?, call.tensor(1)?.clone());
    list(tensors)
}

fn sequence_erase<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let mut tensors = call.sequence(0)?.to_vec();
    tensors.remove(place(call, 1, tensors.len() as i64 - 1, -1)?);
    list(tensors)
}

fn sequence_at<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let tensors = call.sequence(0)?;
    let at = place(call, 1, tensors.len() as i64 - 1, -1)?;
    one(Ok::<_, Error>(tensors[at].clone()))
}

fn split_to_sequence<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let axis = call.axis("axis", x.rank())?;
    let (sizes, is_empty) = (call.find(1), x.dims()[axis] == 0);
    match sizes.map(ints).transpose()?.as_deref() {
        None if !call.flag("keepdims")? => list(x.unbind(axis)?),
        Some(numbers) if sizes.is_some_and(|sizes| sizes.rank() > 0) => {
            list(x.split(extents(numbers)?, axis)?)
        }
        // swath makes one part of an empty axis.
        _ if is_empty => list(Vec::new()),
        numbers => list(x.split(extents(numbers.unwrap_or(&[1]))?[0], axis)?),
    }
}

fn concat_from_sequence<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (tensors, axis) = (call.sequence(0)?, call.int("axis")?);
    one(if call.flag("new_axis")? {
        Tensor::stack(tensors, axis)
    } else {
        Tensor::cat(tensors, axis)
    })
}

/// The value of an optional one, if it has one.
fn element<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    match call.inputs.first() {
        Some(Some(value)) => Ok(vec![value.clone()]),
        _ => Err(Error::operator("the optional value has no element")),
    }
}

impl<B: Backend> Rows<B> {
    pub const CONTROL: &'static [Row<B>] = &[
        row("If", 1, &[("then_branch", Required), ("else_branch", Required)], branch),
        row("Loop", 1, &[("body", Required)], repeat),
        row(
            "Scan",
            8,
            &[
                ("body", Required),
                ("num_scan_inputs", Required),
                ("directions", Absent),
                ("scan_input_axes", Absent),
                ("scan_input_directions", Absent),
                ("scan_output_axes", Absent),
                ("scan_output_directions", Absent),
            ],
            scan,
        ),
        row("SequenceMap", 17, &[("body", Required)], sequence_map),
        row("SequenceConstruct", 11, &[], |c| list(c.tensors()?.into_iter().cloned().collect())),
        row("SequenceEmpty", 11, &[("dtype", Int(1))], |_| list(Vec::new())),
        row("SequenceInsert", 11, &[], sequence_insert),
        row("SequenceErase", 11, &[], sequence_erase),
        row("SequenceAt", 11, &[], sequence_at),
        row("SequenceLength", 11, &[], |c| one(Tensor::full((), c.sequence(0)?.len() as i64))),
        row("SplitToSequence", 11, &[("axis", Int(0)), ("keepdims", Int(1))], split_to_sequence),
        row(
            "ConcatFromSequence",
            11,
            &[("axis", Required), ("new_axis", Int(0))],
            concat_from_sequence,
        ),
        row("Optional", 15, &[("type", Absent)], element),
        row("OptionalGetElement", 15, &[], element),
        row("OptionalHasElement", 15, &[], |c| {
            one(Tensor::full((), matches!(c.inputs.first(), Some(Some(_)))))
        }),
    ];
}
