//! Distances, products of vectors and matrices, covariances, powers, diagonals: against PyTorch, in every float dtype, on
//! backends with kernels and without; exact values, edges and errors.

use swath::prelude::*;

use crate::minimal::Minimal;
use crate::support::vectors::Vectors;

type T = Tensor<CpuBackend>;

fn wide<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn text<V>(result: Result<V>) -> String {
    result.err().expect("should be an error").to_string()
}

fn near(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    for (i, (x, y)) in found.iter().zip(expected).enumerate() {
        let is_same = (x - y).abs() <= tolerance * scale || x == y;
        assert!(is_same, "{what}, element {i}: {x} instead of {y}");
    }
}

/// The value of a case of tests/vectors/make_linear.py and the gradients of its inputs, in every float dtype.
pub fn agree_on<B: Backend>(
    vectors: &Vectors,
    name: &str,
    count: usize,
    f: impl Fn(&[Tensor<B>]) -> Result<Tensor<B>>,
) {
    let dtypes = [(DType::F64, 1e-12), (DType::F32, 4e-6), (DType::F16, 2e-2), (DType::BF16, 0.1)];
    for (dtype, tolerance) in dtypes {
        let get = |part: &str| vectors.get(&format!("{name}/{part}"));
        let input = |i: usize| {
            let x = get(&i.to_string());
            let x = Tensor::<B>::from_vec(wide(x), *x.shape()).unwrap();
            x.to_dtype(dtype).unwrap().requires_grad()
        };
        let xs: Vec<Tensor<B>> = (0..count).map(input).collect();
        let what = |part: &str| format!("{name}, {}, {dtype}, {part}", B::NAME);
        let y = f(&xs).unwrap_or_else(|error| panic!("{}: {error}", what("y")));
        assert_eq!(y.shape(), get("y").shape(), "{}", what("y"));
        near(&what("y"), &wide(&y), &wide(get("y")), tolerance);
        let g = Tensor::<B>::from_vec(wide(get("g")), *y.shape()).unwrap();
        let grads = y.backward_with(&g.to_dtype(y.dtype()).unwrap()).unwrap();
        for (i, x) in xs.iter().enumerate() {
            let part = format!("d{i}");
            near(&what(&part), &wide(grads.wrt(x).unwrap()), &wide(get(&part)), tolerance);
        }
    }
}

/// [`agree_on`] three backends.
macro_rules! agree {
    ($($name:expr, $count:expr, $f:expr;)+) => {
        let vectors = crate::distances::vectors();
        $(
            crate::distances::agree_on::<CpuBackend>(&vectors, $name, $count, $f);
            crate::distances::agree_on::<ReferenceBackend>(&vectors, $name, $count, $f);
            crate::distances::agree_on::<crate::minimal::Minimal>(&vectors, $name, $count, $f);
        )+
    };
}
pub(crate) use agree;

pub fn vectors() -> Vectors {
    Vectors::read(include_str!("../vectors/linear.txt"))
}

/// A tensor of integers on any backend.
pub fn at<B: Backend>(shape: impl Into<Shape>, values: &[i64]) -> Tensor<B> {
    Tensor::from_vec(values.to_vec(), shape).unwrap()
}

#[test]
fn distances_are_those_of_pytorch() {
    agree! {
        "cosine_similarity", 2, |xs| xs[0].cosine_similarity(&xs[1], -1, 1e-8);
        "cosine_similarity_of_columns", 2, |xs| xs[0].cosine_similarity(&xs[1], 0, 0.5);
        "pairwise_distance", 2, |xs| xs[0].pairwise_distance(&xs[1], 2.0, 1e-6, false);
        "pairwise_distance_kept", 2, |xs| xs[0].pairwise_distance(&xs[1], 3.0, 0.5, true);
        "cdist_0.0", 2, |xs| xs[0].cdist(&xs[1], 0.0);
        "cdist_0.5", 2, |xs| xs[0].cdist(&xs[1], 0.5);
        "cdist_1.0", 2, |xs| xs[0].cdist(&xs[1], 1.0);
        "cdist_2.0", 2, |xs| xs[0].cdist(&xs[1], 2.0);
        "cdist_3.0", 2, |xs| xs[0].cdist(&xs[1], 3.0);
        "cdist_inf", 2, |xs| xs[0].cdist(&xs[1], f64::INFINITY);
        "cdist_by_products", 2, |xs| xs[0].cdist(&xs[1], 2.0);
    }
}

#[test]
fn products_and_powers_are_those_of_pytorch() {
    agree! {
        "cross", 2, |xs| xs[0].cross(&xs[1], -1);
        "cross_of_columns", 2, |xs| xs[0].cross(&xs[1], 0);
        "kron", 2, |xs| xs[0].kron(&xs[1]);
        "kron_of_ranks", 2, |xs| xs[0].kron(&xs[1]);
        "matrix_power_1", 1, |xs| xs[0].matrix_power(1);
        "matrix_power_2", 1, |xs| xs[0].matrix_power(2);
        "matrix_power_5", 1, |xs| xs[0].matrix_power(5);
        "vander", 1, |xs| xs[0].vander(4, true);
        "vander_decreasing", 1, |xs| xs[0].vander(None, false);
        "diag_embed", 1, |xs| xs[0].diag_embed(1, -2, -1);
        "diag_embed_apart", 1, |xs| xs[0].diag_embed(-2, 2, 0);
        "block_diag", 3, |xs| Tensor::block_diag(&[&xs[0], &xs[1], &xs[2]]);
        "cartesian_prod", 3, |xs| Tensor::cartesian_prod(&[&xs[0], &xs[1], &xs[2]]);
    }
}

#[test]
fn covariances_and_integrals_are_those_of_pytorch() {
    fn often<B: Backend>() -> Tensor<B> {
        at(4, &[1, 2, 0, 3])
    }
    fn counting<B: Backend>(x: &Tensor<B>) -> Tensor<B> {
        let weights = Tensor::<B>::from_vec(vec![0.5, 1.0, 2.0, 0.25], 4).unwrap();
        weights.to_dtype(x.dtype()).unwrap()
    }
    agree! {
        "cov", 1, |xs| xs[0].cov(1, None, None);
        "cov_of_one", 1, |xs| xs[0].cov(0, None, None);
        "cov_weighted", 1, |xs| xs[0].cov(2, Some(&often()), Some(&counting(&xs[0])));
        "cov_counted", 1, |xs| xs[0].cov(1, Some(&often()), None);
        "cov_counting", 1, |xs| xs[0].cov(1, None, Some(&counting(&xs[0])));
        "corrcoef", 1, |xs| xs[0].corrcoef();
        "trapezoid", 1, |xs| xs[0].trapezoid(0.5, -1);
        "trapezoid_of_points", 2, |xs| xs[0].trapezoid(&xs[1], -1);
        "trapezoid_of_columns", 2, |xs| xs[0].trapezoid(&xs[1], 0);
        "cumulative_trapezoid", 2, |xs| xs[0].cumulative_trapezoid(&xs[1], -2);
    }
}

/// Distances by products against those in f64: of near points, of points far from 0, of equal ones, of points whose
/// squares leave the range, in a small and in a large number.
#[test]
fn euclidean_distances_are_accurate_where_products_cancel() -> Result<()> {
    let mut rng = Rng::seed(9);
    let x = T::randn((60, 16), &mut rng)?;
    let nudge = T::randn((60, 16), &mut rng)?.mul(1e-4)?;
    let far_point = T::randn((1, 16), &mut rng)?.mul(1e4)?;
    let row = |x: &T, i: usize| x.narrow(0, i, 1);
    let clusters = T::cat(&[&x, &x.add(1e3)?], 0)?;
    let cases = [
        ("near", x.clone(), x.add(&nudge)?),
        ("itself", x.clone(), x.clone()),
        ("far from 0", x.add(&far_point)?, x.add(&far_point)?.add(&nudge)?),
        ("one near pair", x.clone(), T::cat(&[&row(&x, 7)?.add(1e-5)?, &nudge.add(3.0)?], 0)?),
        ("all near", x.mul(1e-6)?.add(1.0)?, row(&x, 0)?.add(&nudge)?),
        ("clusters", clusters.clone(), clusters),
        ("small", x.mul(1e-22)?, nudge.mul(1e-20)?),
        ("large", x.mul(1e20)?, nudge.mul(1e24)?),
    ];
    for (name, a, b) in cases {
        let leaves = [&a, &b].map(T::requires_grad);
        let wide_leaves = [&a, &b].map(|x| x.to_dtype(DType::F64).unwrap().requires_grad());
        let found = leaves[0].cdist(&leaves[1], 2.0)?;
        let [p, q] = &wide_leaves;
        let exact = p.unsqueeze(1)?.sub(q.unsqueeze(0)?)?.norm_axis(2.0, 2, false)?;
        for (found, exact) in wide(&found).iter().zip(wide(&exact)) {
            assert!((found - exact).abs() <= 2e-6 * exact, "{name}: {found} instead of {exact}");
        }
        let grads = found.sum_all()?.backward()?;
        let expected = exact.sum_all()?.backward()?;
        for (leaf, wide_leaf) in leaves.iter().zip(&wide_leaves) {
            near(name, &wide(grads.wrt(leaf)?), &wide(expected.wrt(wide_leaf)?), 1e-5);
        }
    }
    Ok(())
}

#[test]
fn points_that_are_not_finite_have_such_distances() -> Result<()> {
    let mut values = vec![0.5f32; 30 * 3];
    (values[3], values[7]) = (f32::INFINITY, f32::NAN);
    let x = T::from_vec(values, (30, 3))?;
    let y = x.cdist(&tensor![[0.0, 1.0, 2.0], [f32::INFINITY, 0.0, 0.0]], 2.0)?;
    let y = y.to_vec::<f32>()?;
    assert!(y[0].is_finite() && y[1] == f32::INFINITY && y[2] == f32::INFINITY);
    assert!(y[3].is_nan() && y[4].is_nan() && y[6..].iter().step_by(2).all(|d| d.is_finite()));
    Ok(())
}

/// Blocks of rows, computed again for gradients, change nothing.
#[test]
fn distances_in_blocks_are_those_of_single_rows() -> Result<()> {
    let mut rng = Rng::seed(3);
    let a = T::randn((5, 3), &mut rng)?.requires_grad();
    let b = T::randn((60_000, 3), &mut rng)?;
    let y = a.cdist(&b, 1.0)?;
    let total = y.square()?.sum_all()?;
    let gradient = total.backward()?.wrt(&a)?.to_vec::<f32>()?;
    for i in 0..5 {
        let row = a.detach().narrow(0, i, 1)?.requires_grad();
        let one = row.sub(&b)?.norm_axis(1.0, 1, false)?;
        assert_eq!(one.to_vec::<f32>()?, y.slice(s![i as isize])?.to_vec::<f32>()?);
        let expected = wide(one.square()?.sum_all()?.backward()?.wrt(&row)?);
        for (found, expected) in gradient[3 * i..].iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() <= 1e-4 * expected.abs());
        }
    }
    Ok(())
}

#[test]
fn distances_of_no_points_and_of_no_elements() -> Result<()> {
    let zeros = |dims: &[usize]| T::zeros(dims, DType::F32);
    for p in [0.0, 1.0, 2.0, f64::INFINITY] {
        assert_eq!(zeros(&[0, 3])?.cdist(&zeros(&[40, 3])?, p)?.dims(), [0, 40]);
        assert_eq!(zeros(&[40, 3])?.cdist(&zeros(&[2, 0, 3])?, p)?.dims(), [2, 40, 0]);
        assert_eq!(zeros(&[30, 0])?.cdist(&zeros(&[1, 0])?, p)?.to_vec::<f32>()?, [0.0; 30]);
        assert_eq!(zeros(&[0, 1, 3])?.cdist(&zeros(&[30, 3])?, p)?.dims(), [0, 1, 30]);
    }
    let deep = T::ones([1, 1, 1, 1, 2, 1, 3, 2], DType::F64)?;
    assert_eq!(deep.cdist(&deep.mul(2.0)?, 1.0)?.to_vec::<f64>()?, [2.0; 18]);
    assert_eq!(zeros(&[0, 3])?.pairwise_distance(&zeros(&[3])?, 2.0, 0.0, true)?.dims(), [0, 1]);
    assert_eq!(
        zeros(&[2, 0])?.cosine_similarity(&zeros(&[0])?, 1, 1.0)?.to_vec::<f32>()?,
        [0.0; 2]
    );
    assert_eq!(zeros(&[3])?.cosine_similarity(&zeros(&[3])?, 0, 1e-8)?.item::<f32>()?, 0.0);
    // Squares overflow, lengths do not.
    let large = tensor![3e30, 4e30];
    near("large", &wide(&large.cosine_similarity(&large, 0, 0.0)?), &[1.0], 1e-6);
    Ok(())
}

#[test]
fn integers_are_exact() -> Result<()> {
    let (a, b) = (tensor![i64; 1 << 40, 2, 3], tensor![i64; 3, 1 << 20, 1]);
    let cross = [2 - 3 * (1 << 20), 9 - (1 << 40), (1i64 << 60) - 6];
    assert_eq!(a.cross(&b, 0)?.to_vec::<i64>()?, cross);
    let bytes = tensor![i64; [1, 2], [3, 200]].to_dtype(DType::U8)?;
    assert_eq!((bytes.kron(&bytes)?.dtype(), bytes.kron(&bytes)?.dims()), (DType::U8, &[4, 4][..]));
    assert_eq!(bytes.matrix_power(2)?.to_vec::<i64>()?, [7, 402, 603, 40006]);
    assert_eq!(bytes.matrix_power(0)?.to_vec::<i64>()?, [1, 0, 0, 1]);
    assert_eq!(bytes.vander(3, true)?.slice(s![1, 1])?.to_vec::<i64>()?, [1, 200, 40000]);
    assert_eq!(bytes.diag_embed(0, 0, 1)?.dtype(), DType::U8);
    let joined = T::block_diag(&[bytes.ne(0)?, tensor![bool; true]])?;
    assert_eq!((joined.dtype(), joined.dims()), (DType::Bool, &[3, 3][..]));
    Ok(())
}

#[test]
fn powers_of_ten_and_two_are_exact() -> Result<()> {
    let tens = T::logspace_as(-22.0, 22.0, 45, 10.0, DType::F64)?.to_vec::<f64>()?;
    for (n, ten) in (-22..=22).zip(tens) {
        assert_eq!(ten, format!("1e{n}").parse::<f64>().unwrap());
    }
    let twos = T::logspace_as(-1000.0, 1000.0, 41, 2.0, DType::F64)?.to_vec::<f64>()?;
    for (i, two) in twos.into_iter().enumerate() {
        assert_eq!(two, 2f64.powi(50 * i as i32 - 1000));
    }
    let threes = T::logspace_as(0.0, 39.0, 40, 3.0, DType::I64)?.to_vec::<i64>()?;
    assert!(threes.into_iter().eq((0..40).map(|n| 3i64.pow(n))));
    let large = T::logspace_as(64.0, 63.0, 2, -2.0, DType::F32)?.to_vec::<f32>()?;
    assert_eq!(large, [2f32.powi(64), -2f32.powi(63)]);
    assert_eq!(T::logspace_as(63.0, 63.0, 1, 2.0, DType::U64)?.to_vec::<u64>()?, [1 << 63]);
    // As torch.logspace(1.2, 3, 4, base=4.3, dtype=torch.float64).
    let others = T::logspace_as(1.2, 3.0, 4, 4.3, DType::F64)?.to_vec::<f64>()?;
    near("logspace", &others, &LOGSPACE, 1e-15);
    assert_eq!(T::logspace(0.0, 1.0, 0, 2.0)?.dims(), [0]);
    assert_eq!(T::logspace(3.0, 9.0, 1, 2.0)?.to_vec::<f32>()?, [8.0]);
    assert!(T::logspace(0.5, 0.5, 1, -1.0)?.item::<f32>()?.is_nan());
    Ok(())
}

const LOGSPACE: [f64; 4] = [5.7565482172667055, 13.81157544403425, 33.13784737771648, 79.507];

#[test]
fn indices_of_triangles_are_those_that_are_kept() -> Result<()> {
    for (rows, columns) in [(3, 4), (4, 2), (1, 1), (0, 3), (3, 0)] {
        for k in [-9, -3, -1, 0, 1, 2, 9] {
            let x = T::ones((rows, columns), DType::F32)?;
            for (indices, kept) in [
                (T::tril_indices(rows, columns, k)?, x.tril(k)?),
                (T::triu_indices(rows, columns, k)?, x.triu(k)?),
            ] {
                assert_eq!((indices.dims()[0], indices.dtype()), (2, DType::I64));
                assert_eq!(indices.to_vec::<i64>()?, kept.nonzero()?.t()?.to_vec::<i64>()?);
            }
        }
    }
    Ok(())
}

#[test]
fn one_observation_or_one_sample() -> Result<()> {
    let x = tensor![[1.0], [3.0]];
    assert!(x.cov(1, None, None)?.to_vec::<f32>()?.iter().all(|c| c.is_nan()));
    assert_eq!(x.cov(0, None, None)?.to_vec::<f32>()?, [0.0; 4]);
    assert_eq!(tensor![1.0, 2.0].corrcoef()?.item::<f32>()?, 1.0);
    assert_eq!(tensor![[1.0, 2.0]].cov(1, None, None)?.dims(), [0; 0]);
    assert_eq!(T::zeros((0, 3), DType::F32)?.cov(1, None, None)?.dims(), [0, 0]);
    assert_eq!(x.trapezoid(1.0, 1)?.to_vec::<f32>()?, [0.0, 0.0]);
    let none = T::zeros((2, 0), DType::F16)?;
    assert_eq!(none.trapezoid(1.0, 1)?.to_vec::<half::f16>()?, [half::f16::ZERO; 2]);
    assert_eq!(none.cumulative_trapezoid(&none, -1)?.dims(), [2, 0]);
    assert_eq!(none.vander(0, true)?.dims(), [2, 0, 0]);
    assert_eq!(x.vander(0, true)?.dims(), [2, 1, 0]);
    assert_eq!(none.diag_embed(1, 0, 1)?.dims(), [1, 1, 2]);
    Ok(())
}

#[test]
fn errors_name_the_operation_and_the_shapes() -> Result<()> {
    let (x, y) = (T::ones((2, 3), DType::F32)?, T::ones((4, 5), DType::F32)?);
    let ints = x.to_dtype(DType::I64)?;
    let cases = [
        (text(x.cdist(&y, 2.0)), "cdist: shapes [2, 3] and [4, 5] do not fit"),
        (
            text(x.cdist(&x, -1.0)),
            "cdist: p must be at least 0, got -1, for shapes [2, 3] and [2, 3]",
        ),
        (text(x.cdist(&tensor![1.0], 2.0)), "cdist: shapes [2, 3] and [1] do not fit"),
        (text(ints.cdist(&ints, 2.0)), "cdist: not defined for i64 (of shape [2, 3])"),
        (
            text(x.pairwise_distance(&y, 2.0, 0.0, false)),
            "pairwise_distance: shapes [2, 3] and [4, 5] do not fit",
        ),
        (
            text(x.pairwise_distance(&x, f64::NAN, 0.0, false)),
            "pairwise_distance: p is NaN: expected a number, for shape [2, 3]",
        ),
        (
            text(x.cosine_similarity(&y, 0, 0.0)),
            "cosine_similarity: shapes [2, 3] and [4, 5] do not fit",
        ),
        (
            text(x.cosine_similarity(&x, 2, 0.0)),
            "cosine_similarity: axis 2 is out of range for shape [2, 3]",
        ),
        (text(x.cross(&x, 0)), "cross: shapes [2, 3] and [2, 3] do not fit"),
        (text(x.cross(&tensor![1.0], 1)), "cross: shapes [2, 3] and [1] do not fit"),
        (
            text(x.cross(&ints, 1)),
            "cross: dtypes f32 (of shape [2, 3]) and i64 differ; convert one with to_dtype",
        ),
        (text(x.matrix_power(2)), "matrix_power: shape [2, 3]: expected square matrices"),
        (
            text(T::eye(2, DType::F32)?.matrix_power(-1)),
            "matrix_power: the exponent must be at least 0, got -1 for shape [2, 2]; faer inverts matrices (feature `faer`)",
        ),
        (
            text(x.unsqueeze(0)?.cov(1, None, None)),
            "cov: shape [1, 2, 3]: expected variables with one axis, or two",
        ),
        (
            text(x.cov(1, Some(&tensor![i64; 1, -1, 1]), None)),
            "cov: weights must not be negative, for 3 observations",
        ),
        (
            text(x.cov(1, Some(&tensor![i64; 0, 0, 0]), None)),
            "cov: the sum of the weights is 0, for 3 observations",
        ),
        (text(x.cov(1, None, Some(&tensor![1.0]))), "cov: shapes [2, 3] and [1] do not fit"),
        (
            text(x.cov(1, Some(&tensor![1.0, 1.0, 1.0]), None)),
            "cov: dtypes f32 (of shape [3]) and i64 differ; convert one with to_dtype",
        ),
        (text(ints.corrcoef()), "corrcoef: not defined for i64 (of shape [2, 3])"),
        (text(x.trapezoid(&tensor![1.0, 2.0], 1)), "trapezoid: shapes [2, 3] and [2] do not fit"),
        (
            text(x.trapezoid(&T::ones((4, 3), DType::F32)?, 1)),
            "trapezoid: shapes [2, 3] and [4, 3] do not fit",
        ),
        (
            text(ints.cumulative_trapezoid(1, 0)),
            "cumulative_trapezoid: not defined for i64 (of shape [2, 3])",
        ),
        (text(x.diag_embed(0, 1, -2)), "diag_embed: axis 1 appears twice for shape [2, 3]"),
        (
            text(tensor![1.0].diag_embed(isize::MIN, 0, 1)),
            "diag_embed: shape [9223372036854775809, 9223372036854775809] holds more elements than this machine can address",
        ),
        (text(T::block_diag::<T>(&[])), "block_diag: expected at least one tensor"),
        (
            text(T::block_diag(&[&x.unsqueeze(0)?])),
            "block_diag: shape [1, 2, 3]: expected at most two axes",
        ),
        (text(T::cartesian_prod(&[&x])), "cartesian_prod: shape [2, 3]: expected vectors"),
        (text(T::cartesian_prod::<T>(&[])), "cartesian_prod: expected at least one tensor"),
        (text(T::full((), 1f32)?.vander(2, true)), "vander: shape []: expected at least one axis"),
        (
            text(tensor![1.0].vander(usize::MAX, true)),
            "vander: shape [1, 18446744073709551614] holds more elements than this machine can address",
        ),
        (
            text(T::logspace(0.0, f64::INFINITY, 2, 2.0)),
            "logspace: bounds and base must be finite, got 0, inf, 2",
        ),
        (
            text(T::logspace_as(0.0, 1.0, 3, 2.0, DType::I64)),
            "logspace: scalar 1.4142135623730951 is not representable in i64, the dtype of shape [3]",
        ),
        (
            text(T::logspace_as(0.0, 8.0, 2, 2.0, DType::U8)),
            "logspace: scalar 256 is not representable in u8, the dtype of shape [2]",
        ),
        (
            text(T::ones([3; 5], DType::F32)?.kron(&T::ones([3; 5], DType::F32)?)),
            "kron: 10 axes, at most 8 are supported",
        ),
    ];
    let wrong: Vec<_> = cases.iter().filter(|(found, expected)| found != expected).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Views of as many elements as can be addressed.
    let long = tensor![[1.0]].broadcast_to((1 << 59, 1))?;
    assert!(text(long.cdist(&long, 2.0)).starts_with("cdist: "));
    assert!(text(long.kron(&long)).starts_with("kron: "));
    assert!(text(T::tril_indices(usize::MAX, 2, 0)).starts_with("tril_indices: "));
    assert!(text(T::triu_indices(1 << 40, 1 << 19, 0)).starts_with("triu_indices: "));
    assert!(text(T::logspace(0.0, 1.0, usize::MAX, 2.0)).starts_with("logspace: "));
    Ok(())
}

#[test]
fn kron_merges_axes_of_one_element() -> Result<()> {
    let a = T::arange(0., 4., 1.)?.reshape([1, 2, 1, 1, 2, 1, 1, 1])?;
    let b = T::arange(0., 6., 1.)?.reshape([3, 2])?;
    let y = a.kron(&b)?;
    assert_eq!(y.dims(), [1, 2, 1, 1, 2, 1, 3, 2]);
    let expected = a.to_vec::<f32>()?.into_iter().flat_map(|a| (0..6).map(move |b| a * b as f32));
    assert_eq!(y.to_vec::<f32>()?, expected.collect::<Vec<_>>());
    Ok(())
}

/// The same on a backend without kernels of its own.
#[test]
fn other_backends_agree_on_creation() -> Result<()> {
    let x = Tensor::<Minimal>::logspace_as(0.0, 3.0, 4, 10.0, DType::I64)?;
    assert_eq!(x.to_vec::<i64>()?, [1, 10, 100, 1000]);
    assert_eq!(Tensor::<Minimal>::tril_indices(2, 2, 0)?.to_vec::<i64>()?, [0, 1, 1, 0, 0, 1]);
    Ok(())
}
