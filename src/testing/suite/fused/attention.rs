//! `scaled_dot_product_attention` and its gradients against the composite on the reference backend.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{among, floats};
use swath::ops::DropoutMask;
use swath::prelude::*;

type R = Tensor<ReferenceBackend>;

const DROPOUT: DropoutMask = DropoutMask { p: 0.4, seed: 5, stream: 9 };

pub fn randn<B: Backend>(shape: impl Into<Shape>, seed: u64, dtype: DType) -> Tensor<B> {
    Tensor::randn(shape, &mut Rng::seed(seed)).unwrap().to_dtype(dtype).unwrap()
}

pub fn wide<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    let x: R = x.detach().to_backend().unwrap();
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Copies a tensor to the reference backend, floats as `f64`.
fn on_reference<B: Backend>(x: &Tensor<B>) -> R {
    let x64 = R::from_vec(wide(x), *x.shape()).unwrap();
    if x.dtype() == DType::Bool { x64.to_dtype(DType::Bool).unwrap() } else { x64 }
}

fn with_leading(lead: &[usize], rest: [usize; 2]) -> Shape {
    Shape::new([lead, &rest[..]].concat())
}

/// Shapes and options of one call.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub lead: &'static [usize],
    pub t: usize,
    pub s: usize,
    pub d: usize,
    pub e: usize,
    pub causal: bool,
    pub mask: Masked,
    pub dropout: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Masked {
    No,
    /// The shape of the scores.
    Bool,
    /// One value per key: stride 0 over heads and queries.
    Padding,
    Float,
    /// One value per query.
    Column,
}

pub const PLAIN: Case =
    Case { lead: &[2, 3], t: 5, s: 5, d: 4, e: 4, causal: false, mask: Masked::No, dropout: false };

/// Odd extents, unequal extents, extents 0 and 1, ranks 2 to 5, more than one block of queries and of
/// keys.
fn cases() -> Vec<Case> {
    let with = |causal, mask, dropout| Case { causal, mask, dropout, ..PLAIN };
    vec![
        PLAIN,
        Case { t: 7, s: 3, d: 5, e: 2, ..PLAIN },
        Case { t: 3, s: 9, e: 1, causal: true, ..PLAIN },
        // The first four queries have no visible key.
        Case { t: 9, s: 5, causal: true, ..PLAIN },
        Case { t: 1, s: 1, d: 1, ..with(true, Masked::No, false) },
        Case { t: 0, s: 4, ..PLAIN },
        Case { t: 4, s: 0, ..PLAIN },
        Case { t: 4, s: 0, ..with(true, Masked::No, false) },
        Case { d: 0, ..PLAIN },
        Case { e: 0, ..PLAIN },
        Case { lead: &[0, 3], ..PLAIN },
        Case { lead: &[], t: 6, ..with(true, Masked::Bool, false) },
        Case { lead: &[3], t: 6, ..with(false, Masked::Float, false) },
        Case { lead: &[2, 1, 2], t: 6, ..with(true, Masked::No, false) },
        with(true, Masked::Bool, true),
        with(false, Masked::Padding, false),
        with(true, Masked::Float, false),
        with(false, Masked::Column, true),
        Case { lead: &[1, 2], t: 130, s: 150, d: 7, e: 6, ..PLAIN },
        Case { lead: &[2, 1], t: 150, s: 150, d: 7, e: 6, ..with(true, Masked::No, true) },
        Case { lead: &[1, 1], t: 80, s: 70, d: 3, e: 5, ..with(true, Masked::Bool, false) },
        Case { lead: &[1, 1], t: 66, s: 200, d: 3, e: 5, ..with(true, Masked::Float, false) },
        Case { lead: &[1, 2], t: 3, s: 600, d: 3, e: 5, ..with(true, Masked::No, true) },
        Case { lead: &[2, 1], t: 600, s: 7, d: 3, e: 70, ..with(false, Masked::Padding, false) },
    ]
}

impl Case {
    pub fn mask<B: Backend>(&self, dtype: DType) -> Option<Tensor<B>> {
        let (t, s) = (self.t, self.s);
        let random_mask = |shape: Shape| randn::<B>(shape, 77, DType::F32).gt(-0.5).unwrap();
        match self.mask {
            Masked::No => None,
            Masked::Bool => {
                // The second query has no visible key.
                let row = Tensor::<B>::arange(0.0, t as f64, 1.0).unwrap().ne(1.0).unwrap();
                let mask =
                    random_mask(with_leading(self.lead, [t, s])).to_dtype(DType::F32).unwrap();
                let row = row.to_dtype(DType::F32).unwrap().reshape((t, 1)).unwrap();
                Some(mask.mul(&row).unwrap().to_dtype(DType::Bool).unwrap())
            }
            Masked::Padding => Some(random_mask(Shape::new([2, 1, 1, s]))),
            Masked::Float => Some(randn((t, s), 78, dtype)),
            Masked::Column => Some(randn((t, 1), 79, dtype)),
        }
    }

    /// q, k, v and the gradient of y: contiguous `[…, t, d]`, as in a model (views of one `[b, t, 3 c]`), or
    /// with unusual strides on every axis.
    pub fn operands<B: Backend>(&self, layout: usize, dtype: DType) -> [Tensor<B>; 4] {
        let &Case { lead, t, s, d, e, .. } = self;
        let plain = |rest, seed| randn::<B>(with_leading(lead, rest), seed, dtype);
        match (layout, lead) {
            (1, &[b, h]) if t == s && d == e => {
                let x = randn::<B>((b, t, 3 * h * d), 1, dtype);
                let part = |i| -> Result<_> {
                    let x = x.narrow(2, i * h * d, h * d)?.reshape((b, t, h, d))?;
                    x.permute(&[0, 2, 1, 3])
                };
                let g = randn((b, t, h, d), 2, dtype).permute(&[0, 2, 1, 3]).unwrap();
                [part(0).unwrap(), part(1).unwrap(), part(2).unwrap(), g]
            }
            (2, _) => {
                let columns = |[n, w]: [usize; 2], seed| plain([w, n], seed).t().unwrap();
                let flipped = columns([s, d], 4).flip(lead.len()).unwrap();
                let strided = every_second_column(&plain([s, 2 * e], 5));
                // Like the gradient of a sum.
                let one = randn(Shape::new(vec![1; lead.len() + 2]), 6, dtype);
                let g = one.broadcast_to(with_leading(lead, [t, e])).unwrap();
                [columns([t, d], 3), flipped, strided, g]
            }
            _ => [plain([t, d], 3), plain([s, d], 4), plain([s, e], 5), plain([t, e], 6)],
        }
    }

    pub fn options<'a, B: Backend>(&self, mask: Option<&'a Tensor<B>>) -> Attention<'a, B> {
        let dropout = self.dropout.then_some(DROPOUT);
        Attention { mask, causal: self.causal, scale: None, dropout }
    }
}

fn every_second_column<B: Backend>(x: &Tensor<B>) -> Tensor<B> {
    let (dims, rank) = (x.dims().to_vec(), x.rank());
    let pairs = [&dims[..rank - 1], &[dims[rank - 1] / 2, 2]].concat();
    x.reshape(Shape::new(pairs)).unwrap().narrow(-1, 1, 1).unwrap().squeeze(-1).unwrap()
}

/// y and the gradients of q, k and v.
fn results<B: Backend>(
    case: &Case,
    [q, k, v, g]: &[Tensor<B>; 4],
    mask: Option<&Tensor<B>>,
) -> Vec<Tensor<B>> {
    let (q, k, v) = (q.requires_grad(), k.requires_grad(), v.requires_grad());
    let y = q.scaled_dot_product_attention(&k, &v, case.options(mask)).unwrap();
    let gradients = y.backward_with(g).unwrap();
    let of = |x| gradients.wrt(x).unwrap().clone();
    vec![y.detach(), of(&q), of(&k), of(&v)]
}

pub fn close(got: &[f64], want: &[f64], tolerance: f64) -> Option<String> {
    assert_eq!(got.len(), want.len());
    let scale = want.iter().fold(1.0f64, |most, x| most.max(x.abs()));
    // Written so that NaN is never close.
    let near = |i: usize| (got[i] - want[i]).abs() <= tolerance * scale;
    let wrong = (0..got.len()).find(|&i| !near(i));
    wrong.map(|i| format!("element {i} is {}, not {}", got[i], want[i]))
}

pub fn forward_and_gradients_agree_in_every_layout<B: Tested>() {
    let mut wrong = Vec::new();
    for case in cases() {
        for dtype in floats::<B>() {
            let large = case.t > 60;
            for layout in 0..3 {
                if large && (layout != 1 && dtype != DType::F32) {
                    continue;
                }
                let operands = case.operands::<B>(layout, dtype);
                let mask = case.mask::<B>(dtype);
                let got = results(&case, &operands, mask.as_ref());
                let mask = mask.as_ref().map(on_reference);
                let want = results(&case, &operands.each_ref().map(on_reference), mask.as_ref());
                let tolerance = match dtype {
                    DType::F32 => 4e-6,
                    DType::F64 => 1e-14,
                    DType::F16 => 4e-3,
                    _ => 3e-2,
                };
                for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                    assert_eq!((got.dims(), got.dtype()), (want.dims(), dtype));
                    if let Some(text) = close(&wide(got), &wide(want), B::SLACK * tolerance) {
                        let name = ["y", "dq", "dk", "dv"][i];
                        wrong.push(format!("{case:?} {dtype} layout {layout}: {name} {text}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub fn queries_without_visible_keys_give_zeros_and_zero_gradients<B: Tested>() {
    let case = Case { t: 5, s: 3, causal: true, ..PLAIN };
    for dtype in among::<B>(&[DType::F32, DType::F64]) {
        let all = results(&case, &case.operands::<B>(0, dtype), None);
        for x in [&all[0], &all[1]] {
            let blind = x.narrow(2, 0, 2).unwrap();
            assert!(wide(&blind).iter().all(|&x| x == 0.0));
            assert!(wide(x).iter().any(|&x| x != 0.0));
        }
        let mask = Tensor::<B>::zeros((5, 3), DType::F32).unwrap().to_dtype(DType::Bool).unwrap();
        let case = Case { causal: false, ..case };
        for x in results(&case, &case.operands::<B>(0, dtype), Some(&mask)) {
            assert!(wide(&x).iter().all(|&x| x == 0.0));
        }
    }
}

pub fn nan_and_infinite_scores_give_nan_in_their_rows_alone<B: Tested>() {
    let tensor = |values: &[f32], dims: [usize; 2]| Tensor::<B>::from_slice(values, dims).unwrap();
    let q = tensor(&[f32::NAN, 1.0, 1.0, 1.0, f32::INFINITY, 1.0], [3, 2]);
    let (k, v) = (tensor(&[1.0, 0.0, 0.0, 1.0], [2, 2]), tensor(&[1.0, 2.0], [2, 1]));
    let y = q.scaled_dot_product_attention(&k, &v, Attention::default());
    let y = y.unwrap().to_vec::<f32>().unwrap();
    assert!(y[0].is_nan() && y[1] == 1.5 && y[2].is_nan(), "{y:?}");
}

/// Equal weights show the dropout of each one: element [h, i, j] uses word (h t + i) s + j of the random
/// stream.
pub fn dropout_counts_weights_in_row_major_order<B: Tested>() {
    let (h, t, s) = (2, 3, 70);
    let (q, k) = (
        Tensor::<B>::zeros((h, t, 1), DType::F32).unwrap(),
        Tensor::<B>::zeros((h, s, 1), DType::F32).unwrap(),
    );
    let v = Tensor::<B>::eye(s, DType::F32).unwrap().broadcast_to((h, s, s)).unwrap();
    let options = Attention { dropout: Some(DROPOUT), ..Default::default() };
    let y = q.scaled_dot_product_attention(&k, &v, options).unwrap();
    let kept = Tensor::<B>::ones((h, t, s), DType::F32).unwrap().dropout(DROPOUT).unwrap();
    let expected: Vec<f64> = wide(&kept).iter().map(|x| x / s as f64).collect();
    assert_eq!(close(&wide(&y), &expected, B::SLACK * 1e-6), None);
    let zeros = wide(&y).iter().filter(|&&y| y == 0.0).count();
    assert!((100..240).contains(&zeros), "{zeros}");
}
