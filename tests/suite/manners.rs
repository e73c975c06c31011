//! Manners of the public interface: arguments that convert, texts of errors and tensors, memory that is taken over,
//! operators in place.

use std::fs;
use std::path::{Path, PathBuf};

use swath::cpu::prelude::*;
use swath::{Axes, NewShape};

fn text<V>(result: Result<V>) -> String {
    result.err().expect("should be an error").to_string()
}

fn zeros(shape: impl Into<Shape>) -> Tensor {
    Tensor::zeros(shape, DType::F32).unwrap()
}

fn values(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

#[test]
fn the_cpu_prelude_needs_no_type_of_backend() -> Result<()> {
    let x: Tensor = Tensor::ones((2, 3), DType::F32)?;
    let y = Tensor::cat(&[&x, &Tensor::full((1, 3), 2.0f32)?], 0)?;
    assert_eq!(values(&y.sum_axis(1, false)?), [3.0, 3.0, 6.0]);
    let same: swath::Tensor<CpuBackend> = y;
    assert_eq!(same.dims(), [3, 3]);
    Ok(())
}

#[test]
fn an_error_is_debugged_as_it_is_displayed() {
    let error = zeros(2).add(zeros(3)).unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    assert_eq!(format!("{error:#?}"), "add: shapes [2] and [3] do not fit");
    // Two shapes of 72 bytes, the operation's name, and the variant with its axis.
    assert!(size_of::<Error>() <= 2 * size_of::<Shape>() + 24);
}

#[test]
fn reshape_infers_one_extent() -> Result<()> {
    let x = Tensor::arange(0., 24., 1.)?;
    let n = x.numel() / 6;
    let shapes: [NewShape; 12] = [
        (4, -1, 2).into(),
        [4, 3, -1].into(),
        (-1isize, 3usize, 2i64).into(),
        (n, -1, 2).into(),
        vec![-1, 3, 2].into(),
        vec![4usize, 3, 2].into(),
        (&vec![4usize, 3, 2]).into(),
        [4i64, -1, 2].as_slice().into(),
        (&[4, -1, 2]).into(),
        Shape::new([4, 3, 2]).into(),
        (&Shape::new([4, 3, 2])).into(),
        (4, 3, 2).into(),
    ];
    for shape in shapes {
        assert_eq!(x.reshape(shape)?.dims(), [4, 3, 2], "{shape:?}");
    }
    assert_eq!(x.reshape(-1)?.dims(), [24]);
    assert_eq!(x.reshape(24)?.dims(), [24]);
    assert_eq!(x.narrow(0, 0, 1)?.reshape(())?.dims(), [0; 0]);
    assert_eq!(zeros((0, 3)).reshape((-1, 3))?.dims(), [0, 3]);
    // The inferred extent is that of the elements of a view, with its gradient.
    let x = x.reshape((4, 6))?.requires_grad();
    let y = x.t()?.slice(s![..;2, ..])?.reshape((2, -1))?;
    assert_eq!(y.dims(), [2, 6]);
    assert_eq!(y.sum(None, false)?.backward()?.wrt(&x)?.dims(), [4, 6]);
    Ok(())
}

#[test]
fn reshape_says_why_an_extent_cannot_be_inferred() {
    let x = zeros((2, 3));
    let cases: [(Result<Tensor>, &str); 8] = [
        (x.reshape((4, 2)), "6 elements of [2, 3] do not fill [4, 2] (8)"),
        (x.reshape((-1, -1)), "at most one extent may be -1, got [-1, -1] for [2, 3]"),
        (
            x.reshape((-1, 4)),
            "6 elements of [2, 3] are not divisible by 4, the product of the other extents of [-1, 4]",
        ),
        (
            x.reshape((-2, 3)),
            "extents must not be negative, except -1 for one to infer, got [-2, 3] for [2, 3]",
        ),
        (
            zeros((0, 3)).reshape((-1, 0)),
            "any number could stand for the -1 of [-1, 0], whose other extents have product 0",
        ),
        (x.reshape([-1i64; 9]), "9 axes, at most 8 are supported"),
        (
            x.reshape((-1, usize::MAX, 2)),
            "shape [1, 18446744073709551615, 2] holds more elements than this machine can address",
        ),
        (x.reshape(i64::MIN), "shape [9223372036854775808] holds more elements"),
    ];
    for (result, expected) in cases {
        let text = text(result);
        assert!(text.starts_with(&format!("reshape: {expected}")), "{text}");
    }
}

#[test]
fn reductions_take_one_axis_or_several() -> Result<()> {
    let x = Tensor::randn((2, 3, 4), &mut Rng::seed(1))?;
    let axes: [Axes; 7] = [
        (0, -1).into(),
        [2, 0].into(),
        vec![-1, -3].into(),
        [0usize, 2].as_slice().into(),
        (&[0, -1]).into(),
        (0usize, -1i64).into(),
        [0, 2].into(),
    ];
    for axes in axes {
        let some = Some(&[0, 2][..]);
        let pairs = [
            (x.sum_axis(axes.clone(), false)?, x.sum(some, false)?),
            (x.mean_axis(axes.clone(), true)?, x.mean(some, true)?),
            (x.max_axis(axes.clone(), false)?, x.max(some, false)?),
            (x.logsumexp_axis(axes.clone(), false)?, x.logsumexp(some, false)?),
            (x.variance_axis(axes.clone(), false, 1)?, x.variance(some, false, 1)?),
            (x.std_axis(axes.clone(), true, 0)?, x.std(some, true, 0)?),
            (x.norm_axis(2.0, axes, false)?, x.norm(2.0, some, false)?),
        ];
        for (got, expected) in pairs {
            assert_eq!((got.dims(), values(&got)), (expected.dims(), values(&expected)));
        }
    }
    assert_eq!(text(x.sum_axis((0, -3), false)), "sum: axis 0 appears twice for shape [2, 3, 4]");
    assert_eq!(text(x.sum_axis((0, 3), false)), "sum: axis 3 is out of range for shape [2, 3, 4]");
    Ok(())
}

#[test]
fn errors_name_the_numbers_that_differ() -> Result<()> {
    let x = zeros((2, 3));
    let index = |shape: &[usize]| Tensor::zeros(shape, DType::I64).unwrap();
    let cases: [(Result<Tensor>, &str); 14] = [
        (x.matmul(&zeros((4, 5))), "inner extents 3 and 4 differ for shapes [2, 3] and [4, 5]"),
        (zeros(3).matmul(&zeros((4, 5))), "inner extents 3 and 4 differ for shapes [3] and [4, 5]"),
        (x.matmul(&zeros(4)), "inner extents 3 and 4 differ for shapes [2, 3] and [4]"),
        (
            zeros((2, 2, 3)).matmul(&zeros((5, 3, 1))),
            "leading axes [2] and [5] do not broadcast for shapes [2, 2, 3] and [5, 3, 1]",
        ),
        (x.matmul(&zeros(())), "shapes [2, 3] and [] do not fit"),
        (
            Tensor::cat(&[&x, &zeros((2, 4))], 0),
            "extents along axis 1 differ: 3 in [2, 3], 4 in [2, 4]",
        ),
        (
            Tensor::cat(&[&x, &x, &zeros((4, 5))], -1),
            "extents along axis 0 differ: 2 in [2, 3], 4 in [4, 5]",
        ),
        (
            Tensor::cat(&[&x, &zeros(3)], 0),
            "numbers of axes 2 and 1 differ for shapes [2, 3] and [3]",
        ),
        (x.gather(0, &index(&[1, 4])), "extents along axis 1 differ: 3 in [2, 3], 4 in [1, 4]"),
        (x.gather(1, &index(&[3])), "numbers of axes 2 and 1 differ for shapes [2, 3] and [3]"),
        (x.scatter_add(0, &index(&[9, 3]), &zeros((9, 2))), "shapes [9, 3] and [9, 2] do not fit"),
        (x.permute(&[0]), "expected the 2 axes of [2, 3] in some order, got [0]"),
        (
            x.transpose(Some(&[0, 1, 2])),
            "expected the 2 axes of [2, 3] in some order, got [0, 1, 2]",
        ),
        (x.permute(&[0, 2]), "axis 2 is out of range for shape [2, 3]"),
    ];
    for (result, expected) in cases {
        let text = text(result);
        assert!(
            text.ends_with(&format!(": {expected}")),
            "\"{text}\" should end with \"{expected}\""
        );
    }
    let rows = x.gather(0, &index(&[5, 3]))?;
    assert_eq!(rows.dims(), [5, 3]);
    Ok(())
}

#[test]
fn from_vec_adopts_the_memory_of_large_vectors() -> Result<()> {
    fn check<E: swath::Element>(value: impl Fn(usize) -> E) -> Result<()> {
        // 16 KiB are copied, more are not; every length of a last vector.
        let most = (16 << 10) / size_of::<E>();
        for len in [0, 1, most, most + 1, most + 7, 3 * most + 31] {
            let mut data = Vec::with_capacity(len + len % 3);
            data.extend((0..len).map(&value));
            let (address, exact) = (data.as_ptr().addr(), data.capacity() == len);
            let x = Tensor::from_vec(data.clone(), len)?;
            assert_eq!(x.to_vec::<E>()?, data);
            let x = Tensor::from_vec(data, len)?;
            let taken = x.as_slice::<E>()?.as_ptr().addr() == address;
            // Giving back spare capacity may move the values.
            assert!(taken == (len > most) || !exact, "{len} of {}", E::DTYPE);
            assert_eq!(x.to_vec::<E>()?, (0..len).map(&value).collect::<Vec<E>>());
            let y = Tensor::from_slice(&x.to_vec::<E>()?, len)?;
            assert_eq!(y.to_vec::<E>()?, x.to_vec::<E>()?);
        }
        Ok(())
    }
    check(|i| i as f32)?;
    check(|i| i as f64)?;
    check(|i| i as i64)?;
    check(|i| i as i32)?;
    check(|i| i as u32)?;
    check(|i| i as u8)?;
    check(|i| i % 3 == 0)?;
    check(|i| swath::f16::from_f32((i % 2048) as f32))?;
    check(|i| swath::bf16::from_f32((i % 256) as f32))
}

/// An adopted vector is aligned to 16 bytes, others to 64: results must not depend on it.
#[test]
fn results_on_adopted_memory_have_the_same_bits() -> Result<()> {
    let data = Tensor::randn((96, 97), &mut Rng::seed(3))?.to_vec::<f32>()?;
    let adopted = Tensor::from_vec(data.clone(), (96, 97))?;
    let mut copied = Tensor::zeros((96, 97), DType::F32)?;
    copied.as_slice_mut::<f32>()?.copy_from_slice(&data);
    type Step<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;
    let steps: [Step; 9] = [
        &|x| x.exp(),
        &|x| x.add(&x.square()?),
        &|x| x.sum_axis(0, false),
        &|x| x.sum_axis(1, false),
        &|x| x.softmax(1),
        &|x| x.matmul(&x.t()?),
        &|x| x.t()?.contiguous(),
        &|x| x.slice(s![1.., 3..;2])?.tanh(),
        &|x| Tensor::cat(&[x, x], 1),
    ];
    for (i, step) in steps.iter().enumerate() {
        let bits = |x: &Tensor| -> Result<Vec<u32>> {
            Ok(step(x)?.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
        };
        assert_eq!(bits(&adopted)?, bits(&copied)?, "step {i}");
    }
    // Overwritten in place, and dropped on another thread.
    let y = adopted * 2.0 + 1.0;
    let expected: Vec<f32> = data.iter().map(|x| x * 2.0 + 1.0).collect();
    assert_eq!(std::thread::spawn(move || values(&y)).join().unwrap(), expected);
    Ok(())
}

#[test]
fn slices_borrow_contiguous_elements() -> Result<()> {
    let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    assert_eq!(x.as_slice::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(x.narrow(0, 1, 1)?.as_slice::<f32>()?, [3.0, 4.0]);
    assert_eq!(x.requires_grad().as_slice::<f32>()?.len(), 4);
    assert_eq!(tensor![bool; true, false].as_slice::<bool>()?, [1, 0]);
    assert!(text(x.t()?.as_slice::<f32>()).contains("contiguous"));
    assert!(text(x.as_slice::<f64>()).contains("f32"));
    Ok(())
}

#[test]
fn assignments_work_in_place_where_nothing_else_shares_the_storage() -> Result<()> {
    let address = |x: &Tensor| x.as_slice::<f32>().unwrap().as_ptr().addr();
    let mut x = tensor![[1.0, 2.0], [3.0, 4.0]];
    let at = address(&x);
    x += 1.0;
    x -= &tensor![1.0, 2.0];
    x *= tensor![[2.0], [3.0]];
    x /= 2.0f32;
    assert_eq!(values(&x), [1.0, 1.0, 4.5, 4.5]);
    assert_eq!(address(&x), at, "nothing shares the storage");
    let kept = x.clone();
    x += &kept;
    assert_eq!((values(&kept), values(&x)), (vec![1.0, 1.0, 4.5, 4.5], vec![2.0, 2.0, 9.0, 9.0]));
    let row = x.narrow(0, 0, 1)?;
    x -= &row;
    assert_eq!((values(&row), values(&x)), (vec![2.0, 2.0], vec![0.0, 0.0, 7.0, 7.0]));
    let mut column = x.narrow(1, 0, 1)?;
    column *= 10.0;
    assert_eq!((values(&column), values(&x)), (vec![0.0, 70.0], vec![0.0, 0.0, 7.0, 7.0]));
    let mut broadcast = tensor![1.0].broadcast_to(3)?;
    broadcast += &tensor![1.0, 2.0, 3.0];
    assert_eq!(values(&broadcast), [2.0, 3.0, 4.0]);
    let mut empty = zeros((0, 2));
    empty += &tensor![1.0, 2.0];
    let mut scalar = zeros(());
    scalar += 2.0;
    assert_eq!((empty.dims(), values(&scalar)), (&[0, 2][..], vec![2.0]));
    let mut ids = tensor![i64; 6, 9];
    ids *= &tensor![bool; true, false];
    ids -= 3.0;
    ids /= 2.0;
    assert_eq!(ids.to_vec::<i64>()?, [1, -1]);
    Ok(())
}

#[test]
fn assignments_work_in_place_on_a_device_chosen_at_run_time() -> Result<()> {
    use swath::{AnyBackend, Device};
    type Any = swath::Tensor<AnyBackend>;
    for device in [Device::Cpu, Device::Reference] {
        let mut x = AnyBackend::with_device(device, || Any::ones(3, DType::F32))?;
        let address = |x: &Any| match x.data() {
            swath::AnyTensor::Cpu(x) => x.as_slice::<f32>().unwrap().as_ptr().addr(),
            _ => 0,
        };
        let at = address(&x);
        x += 2.0;
        x *= &Any::full(3, 2.0f32)?.to_device(device)?;
        assert_eq!((x.to_vec::<f32>()?, address(&x)), (vec![6.0; 3], at));
    }
    let mut x = Any::ones(1, DType::F32)?.to_device(Device::Cpu)?;
    let error = text(x.add_assign(&x.to_device(Device::Reference)?));
    assert!(error.contains("devices cpu and reference"), "{error}");
    assert_eq!(x.to_vec::<f32>()?, [1.0]);
    Ok(())
}

#[test]
fn a_failed_assignment_leaves_the_tensor_as_it_was() -> Result<()> {
    let mut x = tensor![1.0, 2.0];
    assert_eq!(text(x.add_assign(zeros(3))), "add_assign: shapes [2] and [3] do not fit");
    assert_eq!(text(x.mul_assign(zeros((3, 1)))), "mul_assign: shapes [2] and [3, 1] do not fit");
    assert!(text(x.sub_assign(&tensor![i64; 1])).starts_with("sub_assign: dtypes"));
    let mut flags = tensor![bool; true, false];
    assert!(text(flags.mul_assign(&x)).starts_with("mul_assign: dtypes"));
    assert!(text(flags.add_assign(flags.clone())).starts_with("add_assign: not defined for bool"));
    assert_eq!((values(&x), flags.to_vec::<bool>()?), (vec![1.0, 2.0], vec![true, false]));
    let mut ids = tensor![i64; 6, 9];
    assert!(text(ids.div_assign(&tensor![i64; 2, 0])).starts_with("div_assign: integer division"));
    assert!(text(ids.add_assign(2.5)).contains("2.5"));
    assert_eq!(ids.to_vec::<i64>()?, [6, 9]);
    Ok(())
}

#[test]
fn assignments_do_not_lose_a_gradient() -> Result<()> {
    let w = tensor![3.0, 5.0].requires_grad();
    let mut total = zeros(2);
    assert_eq!(
        text(total.add_assign(&w)),
        "add_assign: the operand is tracked, and a change in place of shape [2] is not recorded; \
         use add for a new tensor, or detach"
    );
    let mut y = w.exp()?;
    assert!(text(y.mul_assign(2.0)).starts_with("mul_assign: the tensor is tracked"));
    assert!(no_grad(|| text(y.mul_assign(2.0))).starts_with("mul_assign: the tensor is tracked"));
    no_grad(|| total += &w);
    assert_eq!((total.is_tracked(), values(&total)), (false, vec![3.0, 5.0]));
    // A value that a derivative saved is not overwritten.
    let mut factor = tensor![1.0, 2.0];
    let z = w.mul(&factor)?;
    factor *= 10.0;
    assert_eq!(values(z.sum(None, false)?.backward()?.wrt(&w)?), [1.0, 2.0]);
    Ok(())
}

#[test]
#[should_panic(expected = "sub_assign: the tensor is tracked")]
fn an_operator_panics_on_a_tracked_tensor() {
    let mut w = tensor![1.0].requires_grad();
    w -= 0.1;
}

#[test]
fn formats_choose_digits_and_exponents() -> Result<()> {
    let x = tensor![[1.0, -25.75], [1e-3, 0.0]];
    assert_eq!(format!("{x:.1e}"), "[[ 1.0e+00, -2.6e+01],\n [ 1.0e-03,  0.0e+00]]");
    assert_eq!(format!("{x:e}"), "[[ 1.000e+00, -2.575e+01],\n [ 1.000e-03,  0.000e+00]]");
    assert_eq!(format!("{:e}", tensor![i64; 15, 300]), "[1.5e+01, 3.0e+02], dtype=i64");
    assert_eq!(format!("{:e}", tensor![bool; true]), "[true], dtype=bool");
    assert_eq!(
        format!("{x:?}"),
        "Tensor { shape: [2, 2], dtype: F32, backend: \"cpu\", op: None, \
         values: [[1.000e+00, -2.575e+01], [1.000e-03, 0.000e+00]] }"
    );
    let y = Tensor::arange(0., 40., 1.)?.requires_grad().square()?;
    assert_eq!(
        format!("{y:.0?}"),
        "Tensor { shape: [40], dtype: F32, backend: \"cpu\", op: Some(\"square\"), \
         values: [0, 1, 4, ..., 1369, 1444, 1521] }"
    );
    let large = zeros([1, 2, 1, 3, 1, 4, 1, 5]).broadcast_to([9, 2, 9, 3, 9, 4, 9, 5])?;
    assert!(format!("{large:?}").len() < 5000);
    Ok(())
}

/// Every snippet of code in the column of swath is in a code block, which runs as a test.
#[test]
fn snippets_of_the_translation_page_are_run() {
    let page = include_str!("../../docs/FROM_NUMPY_AND_PYTORCH.md");
    let blocks: String = page.split("```").skip(1).step_by(2).collect();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let cells = rows.filter_map(|row| row.rsplit_once(" | ")).map(|(_, cell)| cell);
    let is_code = |code: &&str| code.contains(['(', '[', ';']) && !code.contains('…');
    let snippets = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).filter(is_code);
    let mut count = 0;
    for snippet in snippets {
        // A bar would end the cell.
        assert!(blocks.contains(&snippet.replace("\\|", "|")), "{snippet} is in no code block");
        count += 1;
    }
    assert!(count > 100, "{count} snippets");
}

/// Every public method of `Tensor` has an example. Those that macros make from rows have it in the macro or the row.
#[test]
fn methods_of_tensor_have_examples() {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => files(&path, found),
                false => found.push(path),
            }
        }
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = vec![source.join("tensor.rs")];
    files(&source.join("tensor"), &mut paths);
    files(&source.join("autodiff"), &mut paths);
    let (mut count, mut missing) = (0, Vec::new());
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let (mut of_tensor, mut docs) = (false, String::new());
        for line in text.lines().map(str::trim) {
            if line.starts_with("impl") {
                of_tensor = line.contains(" Tensor<") && !line.contains(" for ");
            } else if let Some(method) = line
                .strip_prefix("pub fn ")
                .filter(|method| of_tensor && !method.contains(") as \""))
            {
                count += 1;
                if !["```", "$(#[$doc])*"].iter().any(|part| docs.contains(part)) {
                    missing.push(format!("{}: {method}", path.display()));
                }
            }
            // The lines of a multi-line attribute, too, end where an item begins.
            match line.ends_with(['{', '}', ';']) && !line.starts_with("///") {
                true => docs.clear(),
                false => docs.push_str(line),
            }
        }
    }
    assert!(missing.is_empty(), "without an example:\n{}", missing.join("\n"));
    assert!(count > 100, "{count} methods");
}
