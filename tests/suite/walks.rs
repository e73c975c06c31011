//! Views and short rows larger than one block of workspace: operations on a view against a copy made element
//! by element, and reductions of many short rows against each alone.

use swath::ops::ReduceOp;
use swath::prelude::*;
use swath::testing::shared_regions;

use crate::support::alone;

type T = Tensor<CpuBackend>;

/// Repeating integers from -300 to 690, which `f16` represents exactly.
fn counted(dims: &[usize]) -> Result<T> {
    let count = dims.iter().product::<usize>();
    T::from_vec((0..count).map(|i| (i % 991) as f32 - 300.0).collect::<Vec<f32>>(), dims)
}

/// A contiguous copy of the view, made element by element.
fn copied(view: &T, elements: &[f32]) -> Result<T> {
    let (dims, strides) = (view.dims().to_vec(), view.layout().strides().to_vec());
    let mut positions = vec![view.layout().offset() as isize];
    for (&dim, &stride) in dims.iter().zip(&strides) {
        let along = |at: isize| (0..dim as isize).map(move |i| at + i * stride);
        positions = positions.into_iter().flat_map(along).collect();
    }
    T::from_vec(positions.iter().map(|&at| elements[at as usize]).collect::<Vec<f32>>(), dims)
}

/// Named views that are not contiguous, with more elements than a block of workspace, each with a copy.
fn views() -> Result<Vec<(&'static str, T, T)>> {
    let mut views = Vec::new();
    let mut push = |name, base: &T, view: T| -> Result<()> {
        let copy = copied(&view, &base.to_vec::<f32>()?)?;
        views.push((name, view, copy));
        Ok(())
    };
    let square = counted(&[150, 170])?;
    push("transposed", &square, square.t()?)?;
    push("transposed, backwards", &square, square.flip(1)?.t()?)?;
    push("transposed, every other column", &square, square.slice(s![.., ..;2])?.t()?)?;
    push("transposed, every third row backwards", &square, square.slice(s![..;-3, ..])?.t()?)?;
    let large = counted(&[700, 300])?;
    push("transposed, for threads", &large, large.t()?)?;
    push("transposed backwards, for threads", &large, large.flip(1)?.t()?)?;
    for channels in [4, 7, 8] {
        let rows = counted(&[21_000, channels])?;
        push("few long rows", &rows, rows.t()?)?;
        push("few long rows backwards", &rows, rows.flip(1)?.t()?)?;
        let square = counted(&[5000, 4, channels])?;
        push("short runs far apart", &square, square.permute(&[2, 0, 1])?)?;
        let even = square.slice(s![.., .., ..;2])?;
        push("every other of them", &square, even.permute(&[2, 0, 1])?)?;
    }
    let block = counted(&[70, 130, 69])?;
    let part = block.narrow(1, 0, 120)?;
    push("tiles of several runs", &block, part.permute(&[2, 1, 0])?)?;
    let image = counted(&[90, 110, 3])?;
    push("channels first", &image, image.permute(&[2, 0, 1])?)?;
    push("axes reversed", &image, image.permute(&[2, 1, 0])?)?;
    push("rows and columns exchanged", &image, image.permute(&[1, 0, 2])?)?;
    for width in [1, 2, 4, 5, 8, 17, 24, 40] {
        let heads = counted(&[3, 61, 70, width])?;
        push("axes in the middle exchanged", &heads, heads.permute(&[0, 2, 1, 3])?)?;
        let small = counted(&[300, width + 3, width])?;
        push("many small transposes", &small, small.permute(&[0, 2, 1])?)?;
        let row = counted(&[1, width])?;
        push("rows repeated", &row, row.expand((9000, width))?)?;
        let column = counted(&[9000, 1])?;
        push("columns repeated", &column, column.expand((9000, width))?)?;
        let both = counted(&[7, 1, width, 1])?;
        push("every other axis repeated", &both, both.expand((7, 30, width, 9))?)?;
    }
    Ok(views)
}

fn bits(x: &T) -> Result<Vec<u64>> {
    let values = x.to_dtype(DType::F64)?.to_vec::<f64>()?;
    Ok(values.into_iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect())
}

fn views_on_threads() -> Result<()> {
    for threads in [1, 3] {
        swath::runtime::set_threads(threads)?;
        let before = shared_regions();
        for (name, view, copy) in views()? {
            let text = format!("{name} {:?} on {threads} threads", view.dims());
            for dtype in [DType::F32, DType::F64, DType::F16, DType::I64] {
                let (view, copy) = match dtype {
                    DType::F32 => (view.clone(), copy.clone()),
                    // The same layout in another dtype.
                    _ => (relaid(&view, dtype)?, copy.to_dtype(dtype)?),
                };
                let other = copy.add_scalar(7.0)?;
                let same = |got: T, want: T| -> Result<()> {
                    assert!(bits(&got)? == bits(&want)?, "{text} {dtype}");
                    Ok(())
                };
                same(view.contiguous()?, copy.clone())?;
                same(view.neg()?, copy.neg()?)?;
                same(view.add(&other)?, copy.add(&other)?)?;
                same(other.sub(&view)?, other.sub(&copy)?)?;
                same(view.mul(&view)?, copy.mul(&copy)?)?;
                same(view.gt(&other)?, copy.gt(&other)?)?;
                same(view.to_dtype(DType::F32)?, copy.to_dtype(DType::F32)?)?;
                same(view.gt(0.0)?.select(&view, &other)?, copy.gt(0.0)?.select(&copy, &other)?)?;
            }
        }
        assert!(threads == 1 || shared_regions() > before + 100);
    }
    Ok(())
}

/// The view's storage converted to the dtype, and the same view of it.
fn relaid(view: &T, dtype: DType) -> Result<T> {
    let mut base = view.clone();
    // Flips axes of negative stride, so that the first element has the smallest position.
    let backwards: Vec<usize> =
        (0..view.dims().len()).filter(|&axis| view.layout().strides()[axis] < 0).collect();
    for &axis in &backwards {
        base = base.flip(axis)?;
    }
    let mut order: Vec<usize> = (0..view.dims().len()).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(base.layout().strides()[axis]));
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(to, &from)| inverse[from] = to);
    let repeated: Vec<usize> =
        (0..view.dims().len()).filter(|&axis| base.layout().strides()[axis] == 0).collect();
    for &axis in &repeated {
        base = base.narrow(axis, 0, 1)?;
    }
    let packed = base.permute(&order)?.contiguous()?.to_dtype(dtype)?;
    let mut moved = packed.permute(&inverse)?;
    for &axis in &backwards {
        moved = moved.flip(axis)?;
    }
    moved.expand(view.dims())
}

#[test]
fn operations_on_views_agree_with_those_on_copies() {
    alone("walks::operations_on_views_agree_with_those_on_copies", || views_on_threads().unwrap());
}

fn short_rows_on_threads() -> Result<()> {
    let before = shared_regions();
    use ReduceOp::*;
    let folds = [
        Sum,
        Mean,
        Prod,
        Max,
        Min,
        ArgMax,
        ArgMin,
        Variance { ddof: 1 },
        Std { ddof: 0 },
        Norm { p: 0.0 },
        Norm { p: 1.0 },
        Norm { p: 2.0 },
        Norm { p: 3.0 },
        Norm { p: f64::INFINITY },
        Norm { p: f64::NEG_INFINITY },
        LogSumExp,
        Any,
        All,
    ];
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1e-40, 3e38];
    for threads in [1, 3] {
        swath::runtime::set_threads(threads)?;
        let few = (1..=35).chain(47..=49).map(|count| (count, 40));
        for (count, rows) in few.chain([(2, 5000), (3, 60_000), (24, 9000), (48, 9000)]) {
            let wide = |i: usize| match i % 23 {
                0 => special[i / 23 % special.len()],
                _ => ((i * i % 997) as f32 - 400.0) * 0.013,
            };
            let elements = (0..rows * (count + 2)).map(wide).collect::<Vec<f32>>();
            let x = T::from_vec(elements, (rows, count + 2))?.narrow(1, 1, count)?.flip(0)?;
            // Many rows are arranged in groups of 800, with gaps between the groups.
            let x = match rows % 1000 {
                0 => x.reshape((rows / 1000, 1000, count))?.narrow(1, 100, 800)?,
                _ => x.unsqueeze(0)?,
            };
            let rows = x.dims()[0] * x.dims()[1];
            for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64] {
                let x = match dtype {
                    DType::F32 => x.clone(),
                    _ => relaid(&x, dtype)?,
                };
                for fold in folds {
                    let Ok(all) = x.reduce(fold, Some(&[2]), false) else {
                        assert!(dtype == DType::I64, "{fold:?} {dtype}");
                        continue;
                    };
                    let all = bits(&all)?;
                    for row in (0..rows).step_by(1 + rows / 40) {
                        let (group, row_in) = (row / x.dims()[1], row % x.dims()[1]);
                        let alone = x.narrow(0, group, 1)?.narrow(1, row_in, 1)?.contiguous()?;
                        let alone = bits(&alone.reduce(fold, Some(&[2]), false)?)?;
                        assert!(alone[0] == all[row], "{fold:?} {dtype} row {row} of {count}");
                    }
                }
            }
        }
    }
    assert!(shared_regions() > before + 100);
    Ok(())
}

#[test]
fn short_rows_reduce_the_same_alone_and_among_many() {
    alone("walks::short_rows_reduce_the_same_alone_and_among_many", || {
        short_rows_on_threads().unwrap()
    });
}
