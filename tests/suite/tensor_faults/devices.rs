//! Every method with several operands refuses those of two devices, and names both.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::text;
use swath::ops::{Activation, BinaryOp, CompareOp, TernaryOp};
use swath::prelude::*;
use swath::{
    AnyBackend, ConvOptions, ConvTransposeOptions, Device, GridMode, GridPadding, ReduceMode,
    StftOptions,
};

type A = Tensor<AnyBackend>;

/// The operand that a letter stands for, on the default device.
fn operand(letter: char) -> A {
    let (shape, dtype): (&[usize], _) = match letter {
        'x' => (&[2, 3], DType::F32),
        't' => (&[3, 2], DType::F32),
        'u' => (&[2], DType::F32),
        'v' => (&[3], DType::F32),
        'b' => (&[1], DType::F32),
        's' => (&[], DType::F32),
        'm' => (&[2, 3], DType::Bool),
        'i' => (&[2, 3], DType::I64),
        'n' => (&[2], DType::I64),
        'c' => (&[1, 2, 3], DType::F32),
        'd' => (&[1, 2, 3, 3], DType::F32),
        'e' => (&[1, 2, 3, 3, 3], DType::F32),
        'q' => (&[3, 4], DType::F32),
        'r' => (&[1, 5], DType::F32),
        'g' => (&[1, 2, 2, 2], DType::F32),
        _ => panic!("no operand {letter}"),
    };
    match dtype {
        DType::I64 => A::zeros(shape, dtype).unwrap(),
        _ => A::ones(shape, dtype).unwrap(),
    }
}

type Call = Box<dyn Fn(&[&A]) -> Result<A>>;

/// Names of methods, letters of their operands, calls.
fn table() -> Vec<(&'static str, &'static str, Call)> {
    fn masked<'a>(mask: &'a A) -> Attention<'a, AnyBackend> {
        Attention { mask: Some(mask), ..Default::default() }
    }
    fn weighted<'a>(weight: &'a A) -> CrossEntropy<'a, AnyBackend> {
        CrossEntropy { weight: Some(weight), ..Default::default() }
    }
    macro_rules! rows {
        ($($names:literal $letters:literal: |$x:ident| $call:expr;)*) => {
            vec![$(($names, $letters, Box::new(|$x: &[&A]| $call) as Call)),*]
        };
    }
    let mut rows = rows! {
        "logaddexp" "xx": |x| x[0].logaddexp(x[1]);
        "isclose" "xx": |x| x[0].isclose(x[1], 0.0, 0.0, false);
        "allclose" "xx": |x| x[0].allclose(x[1], 0.0, 0.0).map(|_| x[0].clone());
        "logical_and" "mm": |x| x[0].logical_and(x[1]);
        "logical_or" "mx": |x| x[0].logical_or(x[1]);
        "logical_xor" "mi": |x| x[0].logical_xor(x[1]);
        "where_cond" "mxx": |x| A::where_cond(x[0], x[1], x[2]);
        "select" "mxx": |x| x[0].select(x[1], x[2]);
        "masked_fill" "xm": |x| x[0].masked_fill(x[1], 2.0);
        "clamp_min" "xx": |x| x[0].clamp_min(x[1]);
        "clamp_max" "xx": |x| x[0].clamp_max(x[1]);
        "matmul" "xt": |x| x[0].matmul(x[1]);
        "dot" "vv": |x| x[0].dot(x[1]);
        "outer" "uv": |x| x[0].outer(x[1]);
        "tensordot" "xt": |x| x[0].tensordot(x[1], 1);
        "einsum" "xtu": |x| A::einsum("ij,jk,k->i", x);
        "einsum" "xx": |x| A::einsum("ij,kl->", x);
        "gather" "xi": |x| x[0].gather(0, x[1]);
        "scatter" "xix": |x| x[0].scatter(0, x[1], x[2]);
        "scatter_add" "xix": |x| x[0].scatter_add(0, x[1], x[2]);
        "index_select" "xn": |x| x[0].index_select(0, x[1]);
        "index_add" "xnx": |x| x[0].index_add(0, x[1], x[2]);
        "embedding" "xn": |x| x[0].embedding(x[1]);
        "index" "xn": |x| x[0].index(&[Some(x[1])]);
        "index" "xnn": |x| x[0].index(&[Some(x[1]), Some(x[2])]);
        "index_put" "xnu": |x| x[0].index_put(&[Some(x[1]), Some(x[1])], x[2]);
        "index_put" "xx": |x| x[0].index_put(&[None], x[1]);
        "slice_assign" "xv": |x| x[0].slice_assign(s![1], x[1]);
        "set_slice" "xv": |x| { let mut y = x[0].clone(); y.set_slice(s![1], x[1]).map(|()| y) };
        "masked_select" "xm": |x| x[0].masked_select(x[1]);
        "masked_scatter" "xmx": |x| x[0].masked_scatter(x[1], x[2]);
        "cat" "xxx": |x| A::cat(x, 0);
        "stack" "xxx": |x| A::stack(x, 0);
        "meshgrid" "uvu": |x| A::meshgrid(x).map(|grid| grid[0].clone());
        "meshgrid_xy" "uv": |x| A::meshgrid_xy(x).map(|grid| grid[0].clone());
        "bincount_weighted" "nu": |x| x[0].bincount_weighted(x[1], 0);
        "searchsorted" "xv": |x| x[0].searchsorted(x[1]);
        "searchsorted_right" "xx": |x| x[0].searchsorted_right(x[1]);
        "searchsorted_as" "xv": |x| x[0].searchsorted_as(x[1], true, DType::I32);
        "bucketize" "xv": |x| x[0].bucketize(x[1], true);
        "bucketize_as" "xv": |x| x[0].bucketize_as(x[1], true, DType::I32);
        "scatter_reduce" "xix": |x| x[0].scatter_reduce(0, x[1], x[2], ReduceMode::Sum, true);
        "index_reduce" "xnx": |x| x[0].index_reduce(0, x[1], x[2], ReduceMode::Mean, true);
        "histogram_edges" "xux": |x| x[0].histogram_edges(x[1], Some(x[2]), false);
        "histogram2d" "xx": |x| x[0].histogram2d(x[1], [1, 2], [0.0..2.0, 0.0..2.0]);
        "isin" "xv": |x| x[0].isin(x[1]);
        "repeat_interleave" "xn": |x| x[0].repeat_interleave(x[1], 0);
        "embedding_with_padding" "xn": |x| x[0].embedding_with_padding(x[1], 0);
        "fmax" "xx": |x| x[0].fmax(x[1]);
        "fmin" "xx": |x| x[0].fmin(x[1]);
        "copysign" "xx": |x| x[0].copysign(x[1]);
        "heaviside" "xx": |x| x[0].heaviside(x[1]);
        "float_power" "xx": |x| x[0].float_power(x[1]);
        "ldexp" "xx": |x| x[0].ldexp(x[1]);
        "logaddexp2" "xx": |x| x[0].logaddexp2(x[1]);
        "add_scaled" "xx": |x| x[0].add_scaled(x[1], 2.0);
        "block_diag" "xt": |x| A::block_diag(x);
        "cartesian_prod" "uv": |x| A::cartesian_prod(x);
        "cross" "xx": |x| x[0].cross(x[1], 1);
        "kron" "xt": |x| x[0].kron(x[1]);
        "cosine_similarity" "xx": |x| x[0].cosine_similarity(x[1], 1, 1e-8);
        "pairwise_distance" "xx": |x| x[0].pairwise_distance(x[1], 2.0, 1e-6, false);
        "cdist" "xx": |x| x[0].cdist(x[1], 2.0);
        "trapezoid" "xv": |x| x[0].trapezoid(x[1], -1);
        "cumulative_trapezoid" "xv": |x| x[0].cumulative_trapezoid(x[1], -1);
        "cov" "xv": |x| x[0].cov(0, None, Some(x[1]));
        "window" "xu": |x| x[0].stft(&StftOptions::new(2).hop_length(1).window(x[1]));
        "roi_align" "dr": |x| x[0].roi_align(&x[1].mul(0.0)?, 1, 1.0, 1, false);
        "roi_align_max" "dr": |x| x[0].roi_align_max(&x[1].mul(0.0)?, 1, 1.0, 1, false);
        "nms" "qv": |x| x[0].nms(x[1], 0.5);
        "non_max_suppression" "qv": |x| {
            x[0].unsqueeze(0)?.non_max_suppression(&x[1].reshape((1, 1, 3))?, 1, 0.5, None, false)
        };
        "grid_sample" "dg": |x| x[0].grid_sample(x[1], GridMode::Bilinear, GridPadding::Zeros, false);
        "linear" "xxu": |x| x[0].linear(x[1], Some(x[2]));
        "linear_activation" "xxu": |x| x[0].linear_activation(x[1], Some(x[2]), Activation::Relu);
        "bias_activation" "xv": |x| x[0].bias_activation(x[1], Activation::Relu);
        "conv1d" "ccb": |x| x[0].conv1d(x[1], Some(x[2]), ConvOptions::default());
        "conv2d" "ddb": |x| x[0].conv2d(x[1], Some(x[2]), ConvOptions::default());
        "conv3d" "eeb": |x| x[0].conv3d(x[1], Some(x[2]), ConvOptions::default());
        "conv1d_activation" "ccb":
            |x| x[0].conv1d_activation(x[1], Some(x[2]), ConvOptions::default(), Activation::Relu);
        "conv_transpose1d" "ctu": |x| {
            let filters = x[1].reshape((2, 3, 1))?.narrow(1, 0, 2)?;
            x[0].conv_transpose1d(&filters, Some(x[2]), ConvTransposeOptions::default())
        };
        "conv_transpose2d" "dt": |x| {
            let filters = x[1].reshape((2, 3, 1, 1))?;
            x[0].conv_transpose2d(&filters, None, ConvTransposeOptions::default())
        };
        "layer_norm" "xvv": |x| x[0].layer_norm(Some(x[1]), Some(x[2]), 0.1);
        "layer_norm_with_statistics" "xvv":
            |x| x[0].layer_norm_with_statistics(Some(x[1]), Some(x[2]), 0.1).map(|y| y.0);
        "rms_norm" "xv": |x| x[0].rms_norm(Some(x[1]), 0.1);
        "batch_norm" "xvvvv": |x| x[0].batch_norm(x[1], x[2], Some(x[3]), Some(x[4]), 0.1);
        "batch_norm_training" "xvv":
            |x| x[0].batch_norm_training(Some(x[1]), Some(x[2]), 0.1).map(|y| y.0);
        "group_norm" "cuu": |x| x[0].group_norm(1, Some(x[1]), Some(x[2]), 0.1);
        "instance_norm" "cuu": |x| x[0].instance_norm(Some(x[1]), Some(x[2]), 0.1);
        "cross_entropy" "xn": |x| x[0].cross_entropy(x[1], CrossEntropy::default());
        "cross_entropy" "xnv": |x| x[0].cross_entropy(x[1], weighted(x[2]));
        "cross_entropy" "xxv": |x| x[0].cross_entropy(x[1], weighted(x[2]));
        "nll" "xnv": |x| x[0].nll(x[1], weighted(x[2]));
        "scaled_dot_product_attention" "cccb":
            |x| x[0].scaled_dot_product_attention(x[1], x[2], masked(x[3]));
        "backward_with" "xx": |x| {
            let leaf = x[0].requires_grad();
            leaf.reshape((2, 3))?.backward_with(x[1])?.wrt(&leaf).cloned()
        };
        "accumulate" "xx": |x| {
            let mut grads = swath::Gradients::new();
            grads.accumulate(&x[0].requires_grad(), x[1].clone()).map(|()| x[0].clone())
        };
        "vjp" "xx": |x| swath::vjp(|x| x.reshape(6), x[0], &x[1].reshape(6)?);
        "jvp" "xx": |x| swath::jvp(|x| x.reshape(6), x[0], x[1]).map(|y| y.1);
    };
    for &op in BinaryOp::ALL {
        rows.push(("binary", "xx", Box::new(move |x| x[0].binary(op, x[1]))));
    }
    for &op in TernaryOp::ALL {
        rows.push(("ternary", "xxx", Box::new(move |x| x[0].ternary(op, x[1], x[2]))));
    }
    for op in [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Ge] {
        rows.push(("compare", "xx", Box::new(move |x| x[0].compare(op, x[1]))));
    }
    type Assign = fn(&mut A, &A) -> Result<()>;
    let assignments: [Assign; 4] = [
        |x, y| x.add_assign(y),
        |x, y| x.sub_assign(y),
        |x, y| x.mul_assign(y),
        |x, y| x.div_assign(y),
    ];
    for assign in assignments {
        let call = move |x: &[&A]| {
            let mut y = x[0].clone();
            assign(&mut y, x[1]).map(|()| y)
        };
        rows.push(("add_assign", "xx", Box::new(call)));
    }
    rows
}

#[test]
fn operands_of_two_devices_are_refused_by_every_method() {
    let mut faults = Vec::new();
    for (name, letters, call) in table() {
        let here: Vec<A> = letters.chars().map(operand).collect();
        let there: Vec<A> = here.iter().map(|x| x.to_device(Device::Reference).unwrap()).collect();
        let result = call(&here.iter().collect::<Vec<_>>());
        assert!(result.is_ok(), "{name}: {}", text(result));
        for moved in 1..(1u32 << letters.len()) - 1 {
            let pairs = here.iter().zip(&there).enumerate();
            let mixed: Vec<&A> =
                pairs.map(|(i, (a, b))| if moved >> i & 1 == 1 { b } else { a }).collect();
            let text = match call(&mixed) {
                Ok(y) => {
                    faults.push(format!("{name} {letters} {moved:b}: {y:?}"));
                    continue;
                }
                Err(error) => error.to_string(),
            };
            let is_named = ["cpu", "reference", "to_device"].iter().all(|part| text.contains(part));
            if !is_named {
                faults.push(format!("{name} {letters} {moved:b}: {text}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// The methods of tensors in the source whose arguments are tensors are in the table, but for those of macros.
#[test]
fn the_table_has_every_method_with_several_operands() {
    let names: BTreeSet<&str> = table().iter().map(|row| row.0).collect();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tensor");
    let (mut paths, mut count) = (Vec::new(), 0);
    files(&source, &mut paths);
    for path in paths {
        let source = fs::read_to_string(&path).unwrap();
        for method in source.split("    pub fn ").skip(1) {
            let name = method.split(['(', '<']).next().unwrap();
            let signature = &method[..method.find(['{', ';']).unwrap_or(method.len())];
            let kinds = ["&Tensor<B>", "Operand<B>", "[T]", "CrossEntropy<", "&[Option<"];
            let is_one_of_several = kinds.iter().any(|kind| signature.contains(kind));
            // A slice of elements; kernels that run on the CPU alone, see `pulp_door`.
            let others = ["from_slice", "new", "zip_with"];
            if is_one_of_several && !name.starts_with('$') && !others.contains(&name) {
                count += 1;
                assert!(names.contains(name), "{name} of {}", path.display());
            }
        }
    }
    assert!(count > 40, "{count} methods");
}
