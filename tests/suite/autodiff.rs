//! Recording, saved values, release of graphs, and errors.

use std::sync::Arc;

use swath::prelude::*;
use swath::{Keep, is_grad_enabled};

use crate::support::alone;

type T = Tensor<CpuBackend>;

fn values(x: &T) -> Vec<f32> {
    x.to_vec::<f32>().unwrap()
}

fn leaf(values: &[f32]) -> T {
    T::from_slice(values, values.len()).unwrap().requires_grad()
}

fn sum(x: &T) -> T {
    x.sum(None, false).unwrap()
}

#[test]
fn gradients_of_a_shared_value_add_up() {
    let x = leaf(&[1.0, 2.0]);
    let y = (&x * &x + &x * 3.0) * &x;
    let grads = sum(&y).backward().unwrap();
    // d(x³ + 3x²) = 3x² + 6x
    assert_eq!(values(grads.wrt(&x).unwrap()), [9.0, 24.0]);
}

#[test]
fn a_tensor_times_itself_gets_both_gradients() {
    let x = leaf(&[3.0]);
    let grads = sum(&x.mul(&x).unwrap()).backward().unwrap();
    assert_eq!(values(grads.wrt(&x).unwrap()), [6.0]);
}

#[test]
fn a_second_pass_finds_the_graph_released_and_changes_nothing() {
    let x = leaf(&[1.0, 2.0]);
    let y = sum(&x.exp().unwrap());
    y.backward().unwrap();
    assert!(matches!(y.backward(), Err(Error::GraphReleased { .. })));
    // Another branch of the graph stays usable after the error.
    let shared = x.exp().unwrap();
    sum(&shared.square().unwrap()).backward().unwrap();
    let other = x.square().unwrap();
    let mixed = sum(&(&shared + &other));
    assert!(matches!(mixed.backward(), Err(Error::GraphReleased { op: "exp" })));
    assert_eq!(values(sum(&other).backward().unwrap().wrt(&x).unwrap()), [2.0, 4.0]);
}

#[test]
fn retain_graph_allows_another_pass() {
    let x = leaf(&[1.0, 2.0]);
    let y = sum(&x.square().unwrap());
    let retain = Backward { retain_graph: true, ..Backward::default() };
    for _ in 0..3 {
        let grads = y.backward_opts(retain).unwrap();
        assert_eq!(values(grads.wrt(&x).unwrap()), [2.0, 4.0]);
    }
    y.backward().unwrap();
    assert!(y.backward().is_err());
}

#[test]
fn backward_needs_a_scalar_or_an_upstream_gradient() {
    let x = leaf(&[1.0, 2.0]);
    let y = x.square().unwrap();
    assert!(matches!(y.backward(), Err(Error::NotScalar { .. })));
    let empty = T::zeros(0, DType::F32).unwrap().requires_grad();
    assert!(matches!(empty.exp().unwrap().backward(), Err(Error::NotScalar { .. })));
    let upstream = tensor![10.0, 100.0];
    assert_eq!(values(y.backward_with(&upstream).unwrap().wrt(&x).unwrap()), [20.0, 400.0]);
    assert!(y.backward_with(&tensor![1.0]).is_err());
    assert!(y.backward_with(&tensor![f64; 1.0, 1.0]).is_err());
    let one = T::ones((1, 1), DType::F32).unwrap().requires_grad();
    assert!(one.square().unwrap().backward().is_ok());
}

#[test]
fn a_missing_gradient_is_an_error_with_the_reason() {
    let x = leaf(&[1.0]);
    let unused = T::var("unused", CpuBackend::from_vec(vec![1.0], 1).unwrap());
    let constant = tensor![2.0];
    let middle = x.exp().unwrap();
    let grads = sum(&(&middle * &constant)).backward().unwrap();
    assert!(grads.get(&middle).is_none());
    assert!(matches!(grads.wrt(&middle), Err(Error::GradientNotKept { op: "exp", .. })));
    let error = grads.wrt(&unused).unwrap_err();
    assert!(matches!(&error, Error::NoGradient { .. }) && error.to_string().contains("unused"));
    assert!(matches!(grads.wrt(&constant), Err(Error::NoGradient { .. })));
    assert!(matches!(
        constant.exp().unwrap().sum(None, false).unwrap().backward(),
        Err(Error::NoGradient { .. })
    ));
    let integers = tensor![i64; 1, 2].requires_grad();
    assert!(!integers.is_tracked());
    assert!(matches!(grads.wrt(&integers), Err(Error::NoGradient { .. })));
}

#[test]
fn intermediate_gradients_are_kept_on_request() {
    let x = leaf(&[2.0]);
    let middle = x.square().unwrap();
    middle.retain_grad();
    let grads = sum(&middle.square().unwrap()).backward().unwrap();
    assert_eq!(values(grads.wrt(&middle).unwrap()), [8.0]);
    assert_eq!(values(grads.wrt(&x).unwrap()), [32.0]);

    let middle = x.square().unwrap();
    let y = sum(&middle);
    let all = Backward { keep: Keep::All, ..Backward::default() };
    let mut grads = y.backward_opts(all).unwrap();
    assert_eq!(values(grads.wrt(&y).unwrap()), [1.0]);
    assert_eq!(values(&grads.remove(&middle).unwrap()), [1.0]);
    assert!(grads.get(&middle).is_none());
}

#[test]
fn gradients_accumulate_over_passes() {
    let x = leaf(&[1.0, 2.0]);
    let mut total = Gradients::new();
    for factor in [1.0, 10.0] {
        let mut grads = sum(&(&x * factor)).backward().unwrap();
        total.accumulate(&x, grads.remove(&x).unwrap()).unwrap();
    }
    assert_eq!(values(total.wrt(&x).unwrap()), [11.0, 11.0]);
    assert!(total.accumulate(&x, tensor![1.0]).is_err());
    assert!(total.accumulate(&tensor![1.0], tensor![1.0]).is_err());
}

#[test]
fn no_grad_and_detach_cut_the_graph() {
    let x = leaf(&[2.0]);
    let y = no_grad(|| {
        assert!(!is_grad_enabled());
        x.square().unwrap()
    });
    assert!(!y.is_tracked() && is_grad_enabled());
    assert!(!x.detach().is_tracked());
    let panicked = std::panic::catch_unwind(|| no_grad(|| panic!("on purpose")));
    assert!(panicked.is_err() && is_grad_enabled());
    let grads = sum(&(&x.detach() * &x)).backward().unwrap();
    assert_eq!(values(grads.wrt(&x).unwrap()), [2.0]);
}

#[test]
fn leaves_have_names_and_identity() {
    let x = T::var("x", CpuBackend::from_vec(vec![1.0, 2.0], 2).unwrap());
    assert_eq!(x.name(), Some("x"));
    assert!(x.is_tracked() && x.dtype() == DType::F32);
    let same = x.requires_grad();
    let grads = sum(&same.square().unwrap()).backward().unwrap();
    assert_eq!(values(grads.wrt(&x).unwrap()), [2.0, 4.0]);
    let other = x.detach().requires_grad();
    assert!(grads.get(&other).is_none());
}

#[test]
fn gradients_can_be_differentiated() {
    let x = T::from_vec(vec![0.5f64], 1).unwrap().requires_grad();
    // sin → cos → -sin → -cos
    let mut y = x.sin().unwrap();
    for _ in 0..3 {
        y = grad(&y.sum(None, false).unwrap(), &[&x], true).unwrap().remove(0);
    }
    let value = y.to_vec::<f64>().unwrap()[0];
    assert!((value + 0.5f64.cos()).abs() < 1e-14, "{value}");
    let constant = tensor![f64; 1.0].requires_grad();
    assert!(grad(&x.sum(None, false).unwrap(), &[&constant], false).is_err());
}

#[test]
fn a_graph_recorded_on_one_thread_can_be_differentiated_on_another() {
    let x = leaf(&[1.0, 2.0]);
    let y = sum(&x.square().unwrap());
    let grads = std::thread::spawn(move || y.backward().unwrap()).join().unwrap();
    assert_eq!(values(grads.wrt(&x).unwrap()), [2.0, 4.0]);
}

#[test]
fn grad_returns_gradients_of_intermediate_tensors() {
    let x = leaf(&[2.0]);
    let middle = x.square().unwrap();
    let y = sum(&middle.square().unwrap());
    let gradients = grad(&y, &[&middle, &x], false).unwrap();
    assert_eq!(values(&gradients[0]), [8.0]);
    assert_eq!(values(&gradients[1]), [32.0]);
}

#[test]
fn accumulated_gradients_keep_their_history() {
    let x = leaf(&[3.0]);
    let mut total = Gradients::new();
    for _ in 0..2 {
        let first = grad(&sum(&x.square().unwrap()), &[&x], true).unwrap().remove(0);
        total.accumulate(&x, first).unwrap();
    }
    let second = grad(&sum(total.wrt(&x).unwrap()), &[&x], false).unwrap().remove(0);
    assert_eq!(values(&second), [4.0]);
    // Without create_graph the result holds no graph.
    let y = x.add(1.0).unwrap();
    let upstream = leaf(&[1.0]).exp().unwrap();
    assert!(!y.backward_with(&upstream).unwrap().wrt(&x).unwrap().is_tracked());
}

/// A rule saves only the values that it names: the storage of others is unshared once the program drops them.
#[test]
fn only_values_that_a_rule_names_are_kept() {
    // True for the input, and for the output, if recording `f` of a tracked tensor saves it.
    let kept = |f: fn(&T) -> Result<T>| {
        let x = leaf(&[1.0, 2.0]);
        let mut input = x.data().clone();
        let y = f(&x).unwrap();
        drop(x);
        let mut output = y.data().clone();
        let keeps_input = input.as_slice_mut::<f32>().is_err();
        let later = y.add_scalar(1.0).unwrap();
        drop(y);
        let keeps_output = output.as_slice_mut::<f32>().is_err();
        drop(later);
        assert!(input.as_slice_mut::<f32>().is_ok() && output.as_slice_mut::<f32>().is_ok());
        (keeps_input, keeps_output)
    };
    assert_eq!(kept(|x| x.exp()), (false, true));
    assert_eq!(kept(|x| x.log()), (true, false));
    assert_eq!(kept(|x| x.neg()), (false, false));
    assert_eq!(kept(|x| x.mul(3.0)), (false, false));
    assert_eq!(kept(|x| x.mul(&tensor![3.0, 4.0])), (false, false));
    let constant = |x: &T| x.reshape((1, 2))?.matmul(&T::ones((2, 3), DType::F32)?);
    assert_eq!(kept(constant), (false, false));
}

/// Graphs in thread-local values are dropped when the thread ends, after other thread-local values.
#[test]
fn deep_graphs_can_be_dropped_while_a_thread_ends() {
    thread_local! {
        static HELD: std::cell::RefCell<Vec<T>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    let work = || {
        HELD.with(|held| held.borrow_mut().push(leaf(&[1.0])));
        drop(leaf(&[1.0]).exp());
        let mut y = leaf(&[1.0]);
        for _ in 0..200_000 {
            y = y.add_scalar(0.0).unwrap();
        }
        HELD.with(|held| held.borrow_mut().push(y));
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap().join().unwrap();
}

/// A chain of a million ops is built, differentiated and dropped on a small stack, which recursion would
/// exceed.
#[test]
fn long_chains_do_not_recurse() {
    alone("autodiff::long_chains_do_not_recurse", differentiate_long_chains);
}

fn differentiate_long_chains() {
    const STEPS: usize = 1_000_000;
    let work = || {
        let x = leaf(&[1.0]);
        let mut y = x.clone();
        for i in 0..STEPS {
            y = if i % 2 == 0 { y.add_scalar(1.0) } else { y.mul(&x) }.unwrap();
            y = if i % 4 == 3 { y.mul_scalar(0.5).unwrap() } else { y };
        }
        let grads = sum(&y).backward().unwrap();
        assert_eq!(grads.len(), 1);
        // Another chain is dropped without a pass.
        let mut z = x.clone();
        for _ in 0..STEPS {
            z = z.square().unwrap();
        }
        let shared = Arc::new(z);
        drop(shared);
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap().join().unwrap();
    if let Some(peak) = peak_memory_bytes() {
        assert!(peak < 1 << 30, "peak memory {} MiB", peak >> 20);
    }
}

/// Peak memory of this process, if the system reports it.
fn peak_memory_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}
