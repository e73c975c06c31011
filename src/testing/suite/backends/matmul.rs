//! Matrix products.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, dtypes, floats};
use crate::testing::suite::inputs::{Rng, host};
use crate::testing::suite::ulp::unit_roundoff;
use swath::ops::UnaryOp;
use swath::{Backend, DType, HostData, Layout, Scalar, Shape, SliceItem, TensorData};

/// Layout of a matrix in its storage.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Storage {
    Plain,
    Transposed,
    /// A window: the row stride is larger than the row.
    Window,
    TransposedWindow,
    /// Every second column: no axis has stride 1.
    Stepped,
    /// Both axes reversed.
    Flipped,
    /// One row, repeated by a stride of 0.
    RepeatedRow,
    /// One column, repeated by a stride of 0.
    RepeatedColumn,
    /// One matrix, repeated along the leading axes by a stride of 0.
    SharedBatch,
}

use Storage::*;

/// A batch of matrices of shape `[…, rows, columns]`.
struct Matrix {
    storage: Storage,
    shape: Shape,
    base: Shape,
    data: HostData,
}

impl Matrix {
    fn new(dtype: DType, dims: &[usize], storage: Storage, value: impl FnMut() -> Scalar) -> Self {
        let rank = dims.len();
        let (mut base, lead) = (dims.to_vec(), rank - 2);
        match storage {
            Plain | Flipped => {}
            Transposed => base.swap(rank - 2, rank - 1),
            Window => base[lead..].iter_mut().for_each(|dim| *dim += 3),
            TransposedWindow => {
                base.swap(rank - 2, rank - 1);
                base[lead..].iter_mut().for_each(|dim| *dim += 3);
            }
            Stepped => base[rank - 1] *= 2,
            RepeatedRow => base[rank - 2] = 1,
            RepeatedColumn => base[rank - 1] = 1,
            SharedBatch => base[..lead].fill(1),
        }
        let base = Shape::from(base);
        let data = host(dtype, std::iter::repeat_with(value).take(base.numel()));
        Matrix { storage, shape: dims.into(), base, data }
    }

    fn layout(&self, base: &Layout) -> Layout {
        let rank = self.shape.ndim();
        let (row, column) = (rank - 2, rank - 1);
        let window = |layout: &Layout, rows: usize, columns: usize| {
            let narrowed = layout.narrow("test", row, 1, rows).unwrap();
            narrowed.narrow("test", column, 2, columns).unwrap()
        };
        let transpose = |layout: Layout| {
            let mut axes: Vec<usize> = (0..rank).collect();
            axes.swap(row, column);
            layout.permute("test", &axes).unwrap()
        };
        let (rows, columns) = (self.shape.dim(row), self.shape.dim(column));
        match self.storage {
            Plain => *base,
            Transposed => transpose(*base),
            Window => window(base, rows, columns),
            TransposedWindow => transpose(window(base, columns, rows)),
            Stepped => {
                let mut items = vec![SliceItem::from(..); rank];
                items[column] = items[column].step_by(2);
                base.slice("test", &items).unwrap()
            }
            Flipped => base.flip(row).flip(column),
            RepeatedRow | RepeatedColumn | SharedBatch => {
                base.broadcast_to("test", &self.shape).unwrap()
            }
        }
    }

    fn on<B: Backend>(&self) -> B::Tensor {
        let base = B::from_host(self.data.clone(), self.base).unwrap();
        B::view(&base, self.layout(base.layout())).unwrap()
    }
}

/// Unit roundoff of the type that products accumulate in.
fn accumulator(dtype: DType) -> f64 {
    unit_roundoff(if dtype == DType::F64 { DType::F64 } else { DType::F32 })
}

/// k u |A||B| for the additions, plus u |A||B|, which is at least u |AB|, for rounding the result.
fn tolerance(a: &Matrix, b: &Matrix) -> Tolerance {
    let dtype = a.data.dtype();
    let size = |x: &Matrix| {
        let wide = Reference::cast(&x.on::<Reference>(), DType::F64).unwrap();
        Reference::unary(UnaryOp::Abs, &wide).unwrap()
    };
    let products = Reference::to_host(&Reference::matmul(&size(a), &size(b)).unwrap()).unwrap();
    let HostData::F64(products) = products else { panic!("products of another dtype") };
    let inner = a.shape.dim(a.shape.ndim() - 1) as f64;
    let relative = (inner + 1.0) * accumulator(dtype) + unit_roundoff(dtype);
    Tolerance::absolute(products.iter().map(|size| relative * size).collect())
}

fn compare<B: Tested>(seen: &mut Disagreements, a: &Matrix, b: &Matrix) {
    let got = B::matmul(&a.on::<B>(), &b.on::<B>());
    let want = Reference::matmul(&a.on::<Reference>(), &b.on::<Reference>());
    let context = || {
        let dtype = a.data.dtype();
        format!("{dtype} {} {:?} × {} {:?}", a.shape, a.storage, b.shape, b.storage)
    };
    seen.compare::<B>(context, got, want, &tolerance(a, b));
}

fn uniform(rng: &mut Rng) -> Scalar {
    Scalar::Float(rng.uniform(-1.0, 1.0))
}

const STORAGES: [Storage; 8] =
    [Plain, Transposed, Window, TransposedWindow, Stepped, Flipped, RepeatedRow, RepeatedColumn];

pub fn products_agree_for_every_inner_extent<B: Tested>() {
    let mut rng = Rng(1);
    let mut seen = Disagreements::default();
    for dtype in floats::<B>() {
        for inner in [0, 1, 2, 255, 256, 257, 300] {
            for (rows, columns) in [(1, 1), (1, 17), (5, 1), (7, 9), (13, 33)] {
                for a_storage in [Plain, Transposed] {
                    for b_storage in [Plain, Transposed] {
                        let mut value = || uniform(&mut rng);
                        let a = Matrix::new(dtype, &[rows, inner], a_storage, &mut value);
                        let b = Matrix::new(dtype, &[inner, columns], b_storage, &mut value);
                        compare::<B>(&mut seen, &a, &b);
                    }
                }
            }
        }
    }
    seen.finish();
}

pub fn products_agree_for_every_storage<B: Tested>() {
    let mut rng = Rng(2);
    let mut seen = Disagreements::default();
    for dtype in floats::<B>() {
        for a_storage in STORAGES {
            for b_storage in STORAGES {
                for [rows, inner, columns] in [[6, 5, 7], [1, 18, 4], [19, 2, 1], [0, 3, 2]] {
                    let mut value = || uniform(&mut rng);
                    let a = Matrix::new(dtype, &[rows, inner], a_storage, &mut value);
                    let b = Matrix::new(dtype, &[inner, columns], b_storage, &mut value);
                    compare::<B>(&mut seen, &a, &b);
                }
            }
        }
    }
    seen.finish();
}

pub fn products_agree_around_tile_edges<B: Tested>() {
    let mut rng = Rng(3);
    let mut seen = Disagreements::default();
    for (dtype, a_storage, b_storage) in
        [(DType::F32, Plain, Transposed), (DType::F32, Window, Plain), (DType::F64, Plain, Plain)]
    {
        if !B::DTYPES.contains(&dtype) {
            continue;
        }
        for rows in [4, 6, 12, 13, 31, 70] {
            for columns in [8, 15, 16, 17, 48, 63, 65] {
                let mut value = || uniform(&mut rng);
                let a = Matrix::new(dtype, &[rows, 20], a_storage, &mut value);
                let b = Matrix::new(dtype, &[20, columns], b_storage, &mut value);
                compare::<B>(&mut seen, &a, &b);
            }
        }
        let mut value = || uniform(&mut rng);
        let a = Matrix::new(dtype, &[130, 270], a_storage, &mut value);
        let b = Matrix::new(dtype, &[270, 140], b_storage, &mut value);
        compare::<B>(&mut seen, &a, &b);
    }
    seen.finish();
}

pub fn products_agree_for_batches<B: Tested>() {
    let mut rng = Rng(4);
    let mut seen = Disagreements::default();
    let storages = [Plain, Transposed, Window, Flipped, SharedBatch];
    for dtype in floats::<B>() {
        for lead in [&[3][..], &[2, 3], &[1, 4], &[3, 1], &[2, 1, 2], &[0], &[2, 0]] {
            for a_storage in storages {
                for b_storage in storages {
                    let mut value = || uniform(&mut rng);
                    let a = Matrix::new(dtype, &[lead, &[5, 6]].concat(), a_storage, &mut value);
                    let b = Matrix::new(dtype, &[lead, &[6, 9]].concat(), b_storage, &mut value);
                    compare::<B>(&mut seen, &a, &b);
                }
            }
        }
    }
    seen.finish();
}

pub fn products_with_special_values_agree<B: Tested>() {
    let mut rng = Rng(5);
    let mut seen = Disagreements::default();
    for dtype in floats::<B>() {
        for special in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
            for storage in [Plain, Transposed] {
                let mut count = 0;
                let mut value = || {
                    count += 1;
                    if count % 37 == 5 { Scalar::Float(special) } else { uniform(&mut rng) }
                };
                let a = Matrix::new(dtype, &[9, 11], storage, &mut value);
                let b = Matrix::new(dtype, &[11, 18], Plain, &mut value);
                compare::<B>(&mut seen, &a, &b);
            }
        }
    }
    seen.finish();
}

/// Those of `I64` wrap; other integers are errors.
pub fn products_of_integers_agree<B: Tested>() {
    let mut seen = Disagreements::default();
    let mut rng = Rng(71);
    for dtype in dtypes::<B>().filter(|dtype| !dtype.is_float()) {
        let storages =
            [Plain, Transposed, Window, Stepped, Flipped, RepeatedRow, RepeatedColumn, SharedBatch];
        for (turn, &a_storage) in storages.iter().enumerate() {
            let b_storage = storages[(turn * 3 + 1) % storages.len()];
            for [m, k, n] in [[1, 1, 1], [3, 4, 5], [2, 9, 1], [0, 3, 2], [2, 0, 3], [5, 70, 261]] {
                for lead in [&[][..], &[3], &[2, 2]] {
                    let mut draw = || Scalar::Int(rng.next_u64() as i64 >> rng.below(60));
                    let dims = |rows, columns| [lead, &[rows, columns]].concat();
                    let a = Matrix::new(dtype, &dims(m, k), a_storage, &mut draw);
                    let b = Matrix::new(dtype, &dims(k, n), b_storage, &mut draw);
                    let got = B::matmul(&a.on::<B>(), &b.on::<B>());
                    let want = Reference::matmul(&a.on::<Reference>(), &b.on::<Reference>());
                    assert_eq!(want.is_ok(), dtype == DType::I64);
                    let context = || format!("{dtype} {lead:?} {m} {k} {n} {a_storage:?}");
                    seen.compare::<B>(context, got, want, &Tolerance::EXACT);
                }
            }
        }
    }
    seen.finish();
}
