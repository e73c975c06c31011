//! Attention, positions, and what surrounds them in transformers.

use swath::ops::Activation;
use swath::{Attention, Backend, DType, PadMode, Tensor};

use super::Rows;
use super::elementwise::wide;
use super::normalize::widened;
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Float, Int, Required, Text};
use crate::row::{Call, Results, Row, all, one, row};
use crate::run::Value;
use crate::weights;

/// Splits the last axis of `[b, t, heads · d]`: `[b, heads, t, d]`. A tensor of four axes has been split.
pub(super) fn split_heads<B: Backend>(x: &Tensor<B>, heads: Option<i64>) -> Result<Tensor<B>> {
    match *x.dims() {
        [_, _, _, _] => Ok(x.clone()),
        [batch, steps, width] => {
            let heads = heads.and_then(|heads| usize::try_from(heads).ok()).unwrap_or(0);
            if heads == 0 || !width.is_multiple_of(heads) {
                return Err(Error::operator(format!(
                    "the last axis of {} needs a number of heads",
                    x.shape()
                )));
            }
            Ok(x.reshape((batch, steps, heads, width / heads))?.permute(&[0, 2, 1, 3])?)
        }
        _ => Err(Error::operator(format!("expected 3 or 4 axes, got {}", x.shape()))),
    }
}

/// Joins heads again: `[b, heads, t, d]` as `[b, t, heads · d]`.
pub(super) fn join_heads<B: Backend>(x: &Tensor<B>) -> Result<Tensor<B>> {
    Ok(x.permute(&[0, 2, 1, 3])?.flatten(2, 3)?)
}

/// The heads of keys or values, each for as many consecutive heads of queries as there are.
fn repeat_heads<B: Backend>(x: &Tensor<B>, heads: usize) -> Result<Tensor<B>> {
    let &[batch, own, steps, width] = x.dims() else {
        return Err(Error::operator(format!("expected 4 axes, got {}", x.shape())));
    };
    if own == heads {
        return Ok(x.clone());
    }
    let each = heads.checked_div(own).filter(|each| each * own == heads);
    let each = each.ok_or_else(|| {
        Error::operator(format!("{own} heads do not divide {heads} heads of queries"))
    })?;
    Ok(x.unsqueeze(2)?.broadcast_to((batch, own, each, steps, width))?.flatten(1, 2)?)
}

/// The products of queries and keys, at least in `F32`.
fn scores<B: Backend>(q: &Tensor<B>, k: &Tensor<B>, scale: Option<f64>) -> Result<Tensor<B>> {
    let (q, k) = (widened(q)?, widened(&repeat_heads(k, q.dims()[1])?)?);
    let scale = scale.unwrap_or_else(|| 1.0 / (q.dims()[3].max(1) as f64).sqrt());
    Ok(q.matmul(&k.t()?)?.mul(scale)?)
}

/// The precision of a softmax that an attribute asks for.
fn precision<B: Backend>(call: &Call<'_, B>) -> Result<Option<DType>> {
    let Some(code) = call.find_int("softmax_precision")? else { return Ok(None) };
    let dtype = weights::dtype(code).filter(|dtype| dtype.is_float());
    dtype.map(Some).ok_or_else(|| Error::operator("softmax_precision must be a type of floats"))
}

/// Which keys queries may attend to, beyond what a mask says.
struct Allowed<B: Backend> {
    is_causal: bool,
    /// How many keys before and after a query's own position, if not any number.
    window: [i64; 2],
    /// Numbers of keys that are no padding.
    lengths: Option<Tensor<B>>,
    /// Numbers of queries, of keys, and of keys from before.
    counts: [usize; 3],
}

impl<B: Backend> Allowed<B> {
    /// True if swath's attention can say it: with as many new keys as queries.
    fn is_plain(&self) -> bool {
        let [t, s, past] = self.counts;
        self.lengths.is_none()
            && self.window.iter().all(|&side| side < 0)
            && (!self.is_causal || past + t == s)
    }

    /// True where a query may attend to a key, `[…, t, s]`; `None` if everywhere.
    fn mask(&self) -> Result<Option<Tensor<B>>> {
        let [t, s, past] = self.counts;
        let index = |count: usize| Tensor::arange_as(0.0, count as f64, 1.0, DType::I64);
        let (query, key) = (index(t)?.reshape((t, 1))?, index(s)?);
        let lengths =
            self.lengths.as_ref().map(|x| x.to_dtype(DType::I64)?.reshape((x.numel(), 1, 1, 1)));
        let lengths = lengths.transpose()?;
        let query = match &lengths {
            Some(lengths) => query.add(lengths.sub(t as i64)?)?,
            None => query.add(past as i64)?,
        };
        // How far before the query the key lies.
        let distance = query.sub(&key)?;
        let [left, right] = self.window;
        let rules = [
            self.is_causal.then(|| distance.ge(0_i64)),
            (left >= 0).then(|| distance.le(left)),
            (right >= 0).then(|| distance.ge(-right)),
            lengths.map(|lengths| key.lt(&lengths)),
        ];
        let mut rules = rules.into_iter().flatten();
        let first = rules.next().transpose()?;
        Ok(first
            .map(|first| rules.try_fold(first, |all, rule| all.logical_and(rule?)))
            .transpose()?)
    }
}

/// A mask, with keys after its last ones masked, together with a mask of the keys that are allowed.
fn masked<B: Backend>(
    mask: Option<&Tensor<B>>,
    allowed: Option<Tensor<B>>,
    keys: usize,
    dtype: DType,
) -> Result<Option<Tensor<B>>> {
    let Some(mask) = mask else { return Ok(allowed) };
    let mask = if mask.dtype() == DType::Bool { mask.clone() } else { mask.to_dtype(dtype)? };
    let is_bool = mask.dtype() == DType::Bool;
    let given = *mask.dims().last().ok_or_else(|| Error::operator("the mask must have axes"))?;
    let fill = if is_bool { 0.0 } else { f64::NEG_INFINITY };
    let mask = match keys.checked_sub(given) {
        Some(missing @ 1..) => mask.pad(&[(0, missing as isize)], PadMode::Constant(fill))?,
        _ => mask,
    };
    Ok(Some(match allowed {
        None => mask,
        Some(allowed) if is_bool => mask.logical_and(&allowed)?,
        Some(allowed) => mask.masked_fill(&allowed.logical_not()?, fill)?,
    }))
}

/// Attention by swath's operation.
fn fused<B: Backend>(
    q: &Tensor<B>,
    k: &Tensor<B>,
    v: &Tensor<B>,
    mask: Option<&Tensor<B>>,
    allowed: &Allowed<B>,
    scale: Option<f64>,
) -> Result<Tensor<B>> {
    let is_plain = allowed.is_plain();
    let own = if is_plain { None } else { allowed.mask()? };
    let mask = masked(mask, own, k.dims()[2], q.dtype())?;
    let causal = is_plain && allowed.is_causal;
    Ok(q.scaled_dot_product_attention(
        k,
        v,
        Attention { mask: mask.as_ref(), causal, scale, dropout: None },
    )?)
}

/// Softmax of the scores of each query, zeros if its bias excludes every key.
fn softmax_or_zeros<B: Backend>(scores: &Tensor<B>, bias: Option<&Tensor<B>>) -> Result<Tensor<B>> {
    let Some(bias) = bias.filter(|_| scores.numel() > 0) else { return Ok(scores.softmax(-1)?) };
    let is_empty = bias.detach().max_axis(-1, true)?.eq(f64::NEG_INFINITY)?;
    Ok(scores.masked_fill(&is_empty, 0.0)?.softmax(-1)?.masked_fill(&is_empty, 0.0)?)
}

fn attention<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (q_heads, kv_heads) = (call.find_int("q_num_heads")?, call.find_int("kv_num_heads")?);
    let q = split_heads(call.tensor(0)?, q_heads)?;
    let with_past = |at: usize, past: usize| -> Result<Tensor<B>> {
        let new = split_heads(call.tensor(at)?, kv_heads)?;
        Ok(call.find(past).map(|past| Tensor::cat(&[past, &new], 2)).transpose()?.unwrap_or(new))
    };
    let (k, v) = (with_past(1, 4)?, with_past(2, 5)?);
    let (t, s, past) = (q.dims()[2], k.dims()[2], call.find(4).map_or(0, |past| past.dims()[2]));
    let window = [call.int("left_window_size")?, call.int("right_window_size")?];
    let lengths = call.find(6).cloned();
    let allowed =
        Allowed { is_causal: call.flag("is_causal")?, window, lengths, counts: [t, s, past] };
    let (scale, softcap) = (call.find_float("scale")?, call.float("softcap")?);
    let precision = precision(call)?.unwrap_or(q.dtype());
    let dtype = q.dtype();
    let values = v.to_dtype(dtype)?;
    let (y, inner) = if softcap <= 0.0
        && call.outputs() < 4
        && (precision != DType::F64 || dtype == DType::F64)
    {
        (fused(&q, &k, &values, call.find(3), &allowed, scale)?, None)
    } else {
        let raw = scores(&q, &k, scale)?;
        let capped =
            if softcap > 0.0 { raw.div(softcap)?.tanh()?.mul(softcap)? } else { raw.clone() };
        let bias = masked(call.find(3), allowed.mask()?, s, raw.dtype())?;
        let bias = match bias {
            Some(mask) if mask.dtype() == DType::Bool => {
                let zeros = Tensor::zeros((), raw.dtype())?;
                Some(zeros.masked_fill(&mask.logical_not()?, f64::NEG_INFINITY)?)
            }
            bias => bias,
        };
        let biased = bias.as_ref().map_or(Ok(capped.clone()), |bias| capped.add(bias))?;
        let precise =
            if precision == DType::F64 { biased.to_dtype(precision)? } else { biased.clone() };
        let weights = softmax_or_zeros(&precise, bias.as_ref())?.to_dtype(raw.dtype())?;
        let y = weights.matmul(&widened(&repeat_heads(&values, q.dims()[1])?)?)?.to_dtype(dtype)?;
        let inner = match call.int("qk_matmul_output_mode")? {
            0 => raw,
            1 => capped,
            2 => biased,
            3 => weights,
            mode => {
                return Err(Error::operator(format!(
                    "qk_matmul_output_mode must be 0 to 3, but is {mode}"
                )));
            }
        };
        (y, Some(inner.to_dtype(dtype)?))
    };
    let y = if call.tensor(0)?.rank() == 3 { join_heads(&y)? } else { y };
    all([y, k, v].into_iter().chain(inner))
}

/// ONNX Runtime's operator: queries, keys and values may be packed, a bias is added to them, and a mask says which keys
/// are no padding.
fn multi_head_attention<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (heads, query) = (call.int("num_heads")?, call.tensor(0)?);
    let split = |x: &Tensor<B>| split_heads(x, Some(heads));
    // Element `i` of those that are packed in `[b, t, heads, 2 or 3, d]`.
    let packed = |x: &Tensor<B>, i: usize| -> Result<Tensor<B>> {
        Ok(x.narrow(3, i, 1)?.squeeze(3)?.permute(&[0, 2, 1, 3])?)
    };
    let mut parts = match (call.find(1), call.find(2)) {
        (None, _) => vec![packed(query, 0)?, packed(query, 1)?, packed(query, 2)?],
        (Some(pairs), None) => vec![split(query)?, packed(pairs, 0)?, packed(pairs, 1)?],
        (Some(key), Some(value)) => vec![split(query)?, split(key)?, split(value)?],
    };
    if let Some(bias) = call.find(3) {
        // Keys that are split already have had their bias.
        let biased = if call.find(1).is_some_and(|key| key.rank() == 4) { 1 } else { 3 };
        let mut first = 0;
        for part in &mut parts[..biased] {
            let (heads, width) = (part.dims()[1], part.dims()[3]);
            let own = bias.narrow(0, first, heads * width)?.reshape((heads, 1, width))?;
            first += heads * width;
            *part = part.add(own)?;
        }
    }
    for (part, past) in parts[1..].iter_mut().zip([call.find(6), call.find(7)]) {
        if let Some(past) = past {
            *part = Tensor::cat(&[past, &*part], 2)?;
        }
    }
    let (q, k, v) = (&parts[0], &parts[1], &parts[2]);
    let is_key = match call.find(4).map(|mask| (mask, mask.rank())) {
        None => None,
        Some((lengths, 1)) if lengths.numel() == q.dims()[0] => {
            let index = Tensor::arange_as(0.0, k.dims()[2] as f64, 1.0, lengths.dtype())?;
            Some(index.lt(lengths.reshape((lengths.numel(), 1, 1, 1))?)?)
        }
        Some((mask, 2)) => Some(mask.ne(0_i64)?.unsqueeze(1)?.unsqueeze(1)?),
        Some((mask, 3)) => Some(mask.ne(0_i64)?.unsqueeze(1)?),
        Some((mask, _)) => {
            return Err(Error::operator(format!("no mask of shape {} is known", mask.shape())));
        }
    };
    let padding = match &is_key {
        None => None,
        Some(is_key) => {
            let zeros = Tensor::zeros((), q.dtype())?;
            Some(zeros.masked_fill(&is_key.logical_not()?, call.float("mask_filter_value")?)?)
        }
    };
    let mask = match (padding, call.find(5)) {
        (Some(padding), Some(bias)) => Some(padding.add(bias)?),
        (padding, bias) => padding.or(bias.cloned()),
    };
    let past = call.find(6).map_or(0, |past| past.dims()[2]);
    let counts = [q.dims()[2], k.dims()[2], past];
    // As in ONNX Runtime, one query may attend to all keys.
    let is_causal = call.flag("unidirectional")? && counts[0] > 1;
    let allowed = Allowed { is_causal, window: [-1; 2], lengths: None, counts };
    let scale = call.find_float("scale")?.filter(|&scale| scale != 0.0);
    let y = join_heads(&fused(q, k, v, mask.as_ref(), &allowed, scale)?)?;
    all([y, k.clone(), v.clone()])
}

/// Attention of which graphs may change the scores and the weights.
fn flex_attention<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (q, k, v) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    if q.rank() != 4 {
        return Err(Error::operator("the queries must have 4 axes"));
    }
    let precision = precision(call)?.unwrap_or(wide(q.dtype()));
    let modified = |name: &str, x: Tensor<B>| -> Result<Tensor<B>> {
        if !call.bodies.iter().any(|(own, _)| *own == name) {
            return Ok(x);
        }
        match call.run_body(call.body(name)?, vec![Value::Tensor(x)])?.pop() {
            Some(Value::Tensor(y)) => Ok(y),
            _ => Err(Error::operator(format!("the graph {name:?} must return a tensor"))),
        }
    };
    let scores =
        modified("score_mod", scores(q, k, call.find_float("scale")?)?.to_dtype(precision)?)?;
    let weights = modified("prob_mod", scores.softmax(-1)?)?;
    one(weights.matmul(&repeat_heads(v, q.dims()[1])?.to_dtype(precision)?)?.to_dtype(v.dtype()))
}

/// The recurrence `state = e^decay · state + key ⊗ value` of which each output is a query's product with the state; in
/// the delta rules, only the part of the value that the state does not give for the key is added, times `beta`.
fn linear_attention<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (has_decay, has_beta) = match call.text("update_rule")? {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(Error::operator(format!("unknown update_rule {other:?}"))),
    };
    let (query, heads) = (call.tensor(0)?, call.int("kv_num_heads")?);
    let split = |x: &Tensor<B>, heads: i64| split_heads(&widened(x)?, Some(heads));
    let q = split(query, call.int("q_num_heads")?)?;
    let (k, v) = (split(call.tensor(1)?, heads)?, split(call.tensor(2)?, heads)?);
    let &[batch, own, steps, depth] = k.dims() else {
        return Err(Error::operator("the keys must have 3 axes"));
    };
    let each = q.dims()[1].checked_div(own).unwrap_or(0);
    if each * own != q.dims()[1] {
        return Err(Error::operator(format!(
            "{own} heads do not divide {} heads of queries",
            q.dims()[1]
        )));
    }
    // Queries that share a head of the state are rows of one product: `[b, heads, t, each, d]`.
    let q = q.reshape((batch, own, each, q.dims()[2], q.dims()[3]))?.permute(&[0, 1, 3, 2, 4])?;
    // One number for each head, or for each element of its keys: `[b, heads, t, 1 or d]`.
    let decay = if has_decay { Some(split(call.tensor(4)?, heads)?.exp()?) } else { None };
    let beta = match has_beta {
        true => Some(widened(call.tensor(5)?)?.permute(&[0, 2, 1])?.unsqueeze(-1)?.unsqueeze(-1)?),
        false => None,
    };
    let mut state = match call.find(3) {
        Some(state) => widened(state)?,
        None => Tensor::zeros((batch, own, depth, v.dims()[3]), v.dtype())?,
    };
    let at = |x: &Tensor<B>, step: usize| x.narrow(2, step, 1)?.squeeze(2);
    let mut outputs = Vec::with_capacity(steps);
    for step in 0..steps {
        if let Some(decay) = &decay {
            state = state.mul(at(decay, step)?.unsqueeze(-1)?)?;
        }
        let key = at(&k, step)?.unsqueeze(-2)?;
        let mut value = at(&v, step)?.unsqueeze(-2)?;
        if let Some(beta) = &beta {
            value = value.sub(key.matmul(&state)?)?.mul(at(beta, step)?)?;
        }
        state = key.t()?.mul_add(value, state)?;
        outputs.push(at(&q, step)?.matmul(&state)?.flatten(1, 2)?);
    }
    let scale = match call.float("scale")? {
        0.0 => 1.0 / (depth.max(1) as f64).sqrt(),
        scale => scale,
    };
    let y = match outputs.is_empty() {
        true => Tensor::zeros((batch, 0, own * each * v.dims()[3]), query.dtype())?,
        false => Tensor::stack(&outputs, 1)?.flatten(2, 3)?.mul(scale)?.to_dtype(query.dtype())?,
    };
    let dtype = call.find(3).unwrap_or(query).dtype();
    all([y, state.to_dtype(dtype)?])
}

/// A function of the sum of a tensor and a bias, which may be left out.
fn biased<B: Backend>(call: &Call<'_, B>, activation: Activation) -> Results<B> {
    let x = call.tensor(0)?;
    match call.find(1) {
        Some(bias) if bias.rank() == 1 => one(x.bias_activation(bias, activation)),
        Some(bias) => one(x.add(bias)?.activation(activation)),
        None => one(x.activation(activation)),
    }
}

impl<B: Backend> Rows<B> {
    pub const ATTENTION: &'static [Row<B>] = &[
        row(
            "Attention",
            23,
            &[
                ("is_causal", Int(0)),
                ("kv_num_heads", Absent),
                ("q_num_heads", Absent),
                ("left_window_size", Int(-1)),
                ("right_window_size", Int(-1)),
                ("qk_matmul_output_mode", Int(0)),
                ("scale", Absent),
                ("softcap", Float(0.0)),
                ("softmax_precision", Absent),
            ],
            attention,
        ),
        row(
            "ai.onnx.preview.FlexAttention",
            1,
            &[
                ("scale", Absent),
                ("softmax_precision", Absent),
                ("score_mod", Absent),
                ("prob_mod", Absent),
            ],
            flex_attention,
        ),
        row(
            "com.microsoft.MultiHeadAttention",
            1,
            &[
                ("num_heads", Required),
                ("mask_filter_value", Float(-10000.0)),
                ("scale", Absent),
                ("unidirectional", Int(0)),
            ],
            multi_head_attention,
        ),
        row(
            "LinearAttention",
            27,
            &[
                ("q_num_heads", Required),
                ("kv_num_heads", Required),
                ("chunk_size", Int(64)),
                ("scale", Float(0.0)),
                ("update_rule", Text("gated_delta")),
            ],
            linear_attention,
        ),
        row("com.microsoft.Gelu", 1, &[], |c| biased(c, Activation::Gelu)),
        row("com.microsoft.BiasGelu", 1, &[], |c| biased(c, Activation::Gelu)),
        row("com.microsoft.FastGelu", 1, &[], |c| biased(c, Activation::GeluTanh)),
        row("com.microsoft.QuickGelu", 1, &[("alpha", Float(1.702))], |c| {
            let x = c.tensor(0)?;
            one(x.mul(x.mul(c.float("alpha")?)?.sigmoid()?))
        }),
    ];
}
