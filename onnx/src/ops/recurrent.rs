//! Recurrent layers: `RNN`, `LSTM`, `GRU`.

use swath::{Backend, DType, Tensor};

use super::Rows;
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Int, Text};
use crate::row::{Call, Results, Row, all, row};

type Function<B> = Box<dyn Fn(&Tensor<B>) -> swath::Result<Tensor<B>>>;

/// A layer in one direction, without the part that is applied to all inputs at once.
struct Cell<B: Backend> {
    /// The weights of the hidden state, `[gates · hidden, hidden]`.
    weight: Tensor<B>,
    /// Their bias, if the cell does not add it to that of the inputs.
    bias: Option<Tensor<B>>,
    /// The weights of the cell state in the gates i, o and f, if they look at it.
    peepholes: Vec<Tensor<B>>,
    functions: Vec<Function<B>>,
    clip: Option<f64>,
}

impl<B: Backend> Cell<B> {
    /// Some of the gates in `[b, gates · hidden]`.
    fn gates(&self, x: &Tensor<B>, first: usize, count: usize) -> Result<Tensor<B>> {
        let hidden = self.weight.dims()[1];
        Ok(x.narrow(1, first * hidden, count * hidden)?)
    }

    /// Applies an activation function to a bounded input.
    fn activate(&self, function: usize, x: &Tensor<B>) -> Result<Tensor<B>> {
        Ok(match self.clip {
            Some(clip) => self.functions[function](&x.clamp(-clip, clip)?)?,
            None => self.functions[function](x)?,
        })
    }
}

/// The activation functions of all directions, of which each has these by default. Those that have parameters take them
/// from the lists in their order.
fn functions<B: Backend>(
    call: &Call<'_, B>,
    defaults: &[&str],
    directions: usize,
) -> Result<Vec<Function<B>>> {
    let names: Vec<&str> = match call.find_texts("activations")? {
        Some(names) => names.iter().map(|name| &**name).collect(),
        None => defaults.repeat(directions),
    };
    // There may be more: ONNX's default for `RNN` has two functions for one direction.
    if names.len() < defaults.len() * directions {
        let wanted = defaults.len() * directions;
        return Err(Error::operator(format!("expected {wanted} activations, got {}", names.len())));
    }
    let list =
        |name| Ok::<_, Error>(call.find_floats(name)?.unwrap_or(&[]).iter().map(|&x| f64::from(x)));
    let (mut alphas, mut betas) = (list("activation_alpha")?, list("activation_beta")?);
    let mut function = |name: &str| -> Result<Function<B>> {
        let mut alpha = |default: f64| alphas.next().unwrap_or(default);
        let mut beta = |default: f64| betas.next().unwrap_or(default);
        Ok(match name.to_ascii_lowercase().as_str() {
            "relu" => Box::new(|x| x.relu()),
            "tanh" => Box::new(|x| x.tanh()),
            "sigmoid" => Box::new(|x| x.sigmoid()),
            "softsign" => Box::new(|x| x.div(x.abs()?.add_scalar(1.0)?)),
            "softplus" => Box::new(|x| x.softplus()),
            "affine" => {
                let (a, b) = (alpha(1.0), beta(0.0));
                Box::new(move |x| x.affine(a, b))
            }
            "leakyrelu" => {
                let a = alpha(0.01);
                Box::new(move |x| x.leaky_relu(a))
            }
            "thresholdedrelu" => {
                let a = alpha(1.0);
                Box::new(move |x| x.masked_fill(&x.lt(a)?, 0.0))
            }
            "scaledtanh" => {
                let (a, b) = (alpha(1.0), beta(1.0));
                Box::new(move |x| x.mul(b)?.tanh()?.mul(a))
            }
            "hardsigmoid" => {
                let (a, b) = (alpha(0.2), beta(0.5));
                Box::new(move |x| x.hardsigmoid_with(a, b))
            }
            "elu" => {
                let a = alpha(1.0);
                Box::new(move |x| x.elu(a))
            }
            _ => return Err(Error::operator(format!("unknown activation {name:?}"))),
        })
    };
    names.into_iter().map(|name| function(name)).collect()
}

/// An input that may be left out and else has this shape.
fn shaped<'a, B: Backend>(
    call: &'a Call<'_, B>,
    at: usize,
    shape: &[usize],
) -> Result<Option<&'a Tensor<B>>> {
    match call.find(at) {
        Some(x) if x.dims() != shape => Err(Error::operator(format!(
            "input {at} must have shape {shape:?}, but has {}",
            x.shape()
        ))),
        found => Ok(found),
    }
}

/// Element `i` of the first axis.
fn part<B: Backend>(x: &Tensor<B>, i: usize) -> swath::Result<Tensor<B>> {
    x.narrow(0, i, 1)?.squeeze(0)
}

/// Runs a layer in its directions. Of the products of one step's inputs with the weights and of the states, `step` makes
/// the new states, the first of which is the output. `joins_biases` says that the bias of the hidden state is added to
/// that of the inputs.
fn recurrent<B: Backend>(
    call: &Call<'_, B>,
    (gates, states): (usize, usize),
    defaults: &[&str],
    joins_biases: bool,
    step: impl Fn(&Cell<B>, &Tensor<B>, &[Tensor<B>]) -> Result<Vec<Tensor<B>>>,
) -> Results<B> {
    let directions: &[bool] = match call.text("direction")? {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return Err(Error::operator(format!("unknown direction {other:?}"))),
    };
    let count = directions.len();
    // Before version 14, the batch is always the second axis.
    let is_batch_first = call.flag("layout")?;
    let x = if is_batch_first { call.tensor(0)?.swap_axes(0, 1)? } else { call.tensor(0)?.clone() };
    let (&[steps, batch, _], &[_, _, hidden]) = (x.dims(), call.tensor(2)?.dims()) else {
        return Err(Error::operator("the inputs and weights must have 3 axes"));
    };
    let rows = gates.saturating_mul(hidden);
    let weights = call.tensor(1)?;
    shaped(call, 1, &[count, rows, *weights.dims().last().unwrap_or(&0)])?;
    shaped(call, 2, &[count, rows, hidden])?;
    let biases = shaped(call, 3, &[count, rows.saturating_mul(2)])?;
    let peepholes =
        if states == 2 { shaped(call, 7, &[count, hidden.saturating_mul(3)])? } else { None };
    let initial = |state: usize| -> Result<Tensor<B>> {
        let shape = if is_batch_first { [batch, count, hidden] } else { [count, batch, hidden] };
        Ok(match shaped(call, 5 + state, &shape)? {
            Some(x) if is_batch_first => x.swap_axes(0, 1)?,
            Some(x) => x.clone(),
            None => Tensor::zeros([count, batch, hidden], x.dtype())?,
        })
    };
    let initial = (0..states).map(initial).collect::<Result<Vec<_>>>()?;
    // True while a sequence has not ended, `[steps, batch, 1]`.
    let is_running = match shaped(call, 4, &[batch])? {
        None => None,
        Some(lengths) => {
            let index =
                Tensor::arange_as(0.0, steps as f64, 1.0, DType::I64)?.reshape((steps, 1, 1))?;
            Some(index.lt(lengths.to_dtype(DType::I64)?.reshape((1, batch, 1))?)?)
        }
    };
    let is_wanted = call.node.outputs.first().is_some_and(Option::is_some);
    let mut functions = functions(call, defaults, count)?.into_iter();
    let (mut outputs, mut finals) = (Vec::new(), vec![Vec::new(); states]);
    for (direction, &is_reverse) in directions.iter().enumerate() {
        let bias = biases.map(|bias| part(bias, direction)?.reshape((2, rows))).transpose()?;
        let bias = bias.map(|bias| -> Result<_> {
            Ok(match joins_biases {
                true => (bias.sum_axis(0, false)?, None),
                false => (part(&bias, 0)?, Some(part(&bias, 1)?)),
            })
        });
        let (input_bias, bias) = bias.transpose()?.unzip();
        let peepholes = peepholes
            .map(|peepholes| part(peepholes, direction)?.split([hidden; 3], 0))
            .transpose()?;
        let cell = Cell {
            weight: part(call.tensor(2)?, direction)?,
            bias: bias.flatten(),
            peepholes: peepholes.unwrap_or_default(),
            functions: functions.by_ref().take(defaults.len()).collect(),
            clip: call.find_float("clip")?,
        };
        let products = x.linear(&part(weights, direction)?, input_bias.as_ref())?;
        let mut state = initial
            .iter()
            .map(|state| part(state, direction))
            .collect::<swath::Result<Vec<_>>>()?;
        let mut hidden_states = Vec::with_capacity(steps);
        for i in 0..steps {
            let at = if is_reverse { steps - 1 - i } else { i };
            let mut new = step(&cell, &part(&products, at)?, &state)?;
            let mut output = new[0].clone();
            if let Some(is_running) = &is_running {
                let is_running = part(is_running, at)?;
                output = output.masked_fill(&is_running.logical_not()?, 0.0)?;
                for (new, old) in new.iter_mut().zip(&state) {
                    *new = Tensor::where_cond(&is_running, new, old)?;
                }
            }
            state = new;
            if is_wanted {
                hidden_states.push(output);
            }
        }
        if is_reverse {
            hidden_states.reverse();
        }
        outputs.push(match hidden_states.is_empty() {
            true => Tensor::zeros([0, batch, hidden], x.dtype())?,
            false => Tensor::stack(&hidden_states, 0)?,
        });
        finals.iter_mut().zip(state).for_each(|(finals, state)| finals.push(state));
    }
    let y = Tensor::stack(&outputs, 1)?;
    let y = if is_batch_first { y.permute(&[2, 0, 1, 3])? } else { y };
    let last = |states: Vec<Tensor<B>>| Tensor::stack(&states, if is_batch_first { 1 } else { 0 });
    all([y].into_iter().chain(finals.into_iter().map(last).collect::<swath::Result<Vec<_>>>()?))
}

fn rnn<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    recurrent(call, (1, 1), &["Tanh"], true, |cell, x, state| {
        Ok(vec![cell.activate(0, &state[0].linear(&cell.weight, None)?.add(x)?)?])
    })
}

fn lstm<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let is_coupled = call.flag("input_forget")?;
    recurrent(call, (4, 2), &["Sigmoid", "Tanh", "Tanh"], true, |cell, x, state| {
        let [h, c] = state else { return Err(Error::operator("expected 2 states")) };
        let gates = h.linear(&cell.weight, None)?.add(x)?;
        // Gates that do not look at the cell state are opened together.
        let open = match cell.peepholes.is_empty() {
            true => Some(cell.activate(0, &cell.gates(&gates, 0, 3)?)?),
            false => None,
        };
        let gate = |at: usize, c: &Tensor<B>| match &open {
            Some(open) => cell.gates(open, at, 1),
            None => cell.activate(0, &c.mul_add(&cell.peepholes[at], cell.gates(&gates, at, 1)?)?),
        };
        let input = gate(0, c)?;
        let forget = if is_coupled { input.affine(-1.0, 1.0)? } else { gate(2, c)? };
        let candidate = cell.activate(1, &cell.gates(&gates, 3, 1)?)?;
        let c = forget.mul_add(c, input.mul(candidate)?)?;
        Ok(vec![gate(1, &c)?.mul(cell.activate(2, &c)?)?, c])
    })
}

fn gru<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let is_linear = call.flag("linear_before_reset")?;
    recurrent(call, (3, 1), &["Sigmoid", "Tanh"], !is_linear, |cell, x, state| {
        let (h, hidden) = (&state[0], cell.weight.dims()[1]);
        let candidate = cell.gates(x, 2, 1)?;
        type Candidate<'c, B> = dyn Fn(&Tensor<B>) -> Result<Tensor<B>> + 'c;
        let (gates, candidate_of): (_, Box<Candidate<'_, B>>) = match is_linear {
            true => {
                let products = h.linear(&cell.weight, cell.bias.as_ref())?;
                let own = cell.gates(&products, 2, 1)?;
                (
                    cell.gates(&products, 0, 2)?,
                    Box::new(move |reset| Ok(reset.mul_add(&own, &candidate)?)),
                )
            }
            false => {
                let weight = cell.weight.narrow(0, 2 * hidden, hidden)?;
                let gates = h.linear(&cell.weight.narrow(0, 0, 2 * hidden)?, None)?;
                (
                    gates,
                    Box::new(move |reset| {
                        Ok(reset.mul(h)?.linear(&weight, None)?.add(&candidate)?)
                    }),
                )
            }
        };
        let gates = cell.activate(0, &gates.add(cell.gates(x, 0, 2)?)?)?;
        let candidate = cell.activate(1, &candidate_of(&cell.gates(&gates, 1, 1)?)?)?;
        Ok(vec![candidate.lerp(h, cell.gates(&gates, 0, 1)?)?])
    })
}

/// The attributes that all of them have, and one's own.
macro_rules! attributes {
    ($($own:expr)?) => {
        &[
            ("direction", Text("forward")),
            ("activations", Absent),
            ("activation_alpha", Absent),
            ("activation_beta", Absent),
            ("clip", Absent),
            ("hidden_size", Absent),
            ("layout", Int(0)),
            $($own,)?
        ]
    };
}

impl<B: Backend> Rows<B> {
    pub const RECURRENT: &'static [Row<B>] = &[
        row("RNN", 7, attributes!(), rnn),
        row("LSTM", 7, attributes!(("input_forget", Int(0))), lstm),
        row("GRU", 7, attributes!(("linear_before_reset", Int(0))), gru),
    ];
}
