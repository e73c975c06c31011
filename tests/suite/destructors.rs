//! Destructors that panic; products, and layers that fail, in destructors of thread-local values.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use swath::nn::{Linear, Module, Sequential};
use swath::prelude::*;

type T = Tensor<CpuBackend>;
type Data = <CpuBackend as Backend>::Tensor;

/// The identity. Counts its destructor's runs, and panics in it if told to.
#[derive(Clone)]
struct Identity(#[allow(dead_code, reason = "dropped with the operation")] Arc<Dropped>);

struct Dropped {
    panics: bool,
    count: Arc<AtomicUsize>,
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "a destructor of a user");
    }
}

impl CustomOp<CpuBackend> for Identity {
    fn name(&self) -> &'static str {
        "identity"
    }

    fn forward(&self, xs: &[&Data]) -> Result<Data> {
        Ok(xs[0].clone())
    }

    fn backward(&self, _: &[&T], _: &T, g: &T) -> Result<Vec<Option<T>>> {
        Ok(vec![Some(g.clone())])
    }
}

/// A chain of operations, deeper than destructors nest.
fn chain(length: usize, panics_at: Option<usize>, count: &Arc<AtomicUsize>) -> T {
    let mut x = T::ones(1, DType::F32).unwrap().requires_grad();
    for i in 0..length {
        let dropped = Dropped { panics: Some(i) == panics_at, count: Arc::clone(count) };
        x = T::apply(&Identity(Arc::new(dropped)), &[&x]).unwrap();
    }
    x
}

/// The rest of a chain is dropped, and so are later ones on the same thread.
#[test]
fn a_panic_in_a_destructor_leaks_no_later_graph() {
    for at in [0, 5, 150, 298, 299] {
        let count = Arc::new(AtomicUsize::new(0));
        let x = chain(300, Some(at), &count);
        assert_eq!(count.swap(0, Ordering::Relaxed), 0);
        let panic = catch_unwind(AssertUnwindSafe(|| drop(x))).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a destructor of a user"));
        count.store(0, Ordering::Relaxed);
        for _ in 0..3 {
            drop(chain(300, None, &count));
            assert_eq!(count.swap(0, Ordering::Relaxed), 300, "a panic at {at}");
        }
    }
}

/// The error of a layer, with its path.
fn failure() -> String {
    let layer = Linear::new(3, 2, &mut Rng::seed(1)).unwrap();
    let model: Sequential = Sequential::new().push(layer);
    model.forward(&T::ones((1, 4), DType::F32).unwrap()).unwrap_err().to_string()
}

/// Multiplies, convolves and fails when its thread ends.
struct AtExit(Arc<AtomicUsize>);

impl Drop for AtExit {
    fn drop(&mut self) {
        let work = || -> Result<f32> {
            let x = T::ones((4, 300), DType::F32)?;
            let images = T::ones((1, 2, 8, 8), DType::F32)?;
            let filters = T::ones((3, 2, 3, 3), DType::F32)?;
            let y = images.conv2d(&filters, None, ConvOptions::default())?;
            x.matmul(&x.t()?)?.sum(None, false)?.add(&y.sum(None, false)?)?.item()
        };
        let sum = work().unwrap();
        assert_eq!(sum, (16 * 300 + 3 * 36 * 18) as f32);
        let error = failure();
        assert!(error.contains("linear: 3 inputs expected, found 4"), "{error}");
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

thread_local! {
    static LATE: std::cell::OnceCell<AtExit> = const { std::cell::OnceCell::new() };
}

#[test]
fn products_and_errors_work_while_a_thread_ends() {
    let count = Arc::new(AtomicUsize::new(0));
    for uses_products_first in [true, false] {
        let mine = Arc::clone(&count);
        let ends = std::thread::spawn(move || {
            let register = || _ = LATE.with(|late| late.set(AtExit(mine)).is_ok());
            let use_products = || {
                let x = T::ones((40, 40), DType::F32).unwrap();
                x.matmul(&x).unwrap();
                assert!(failure().starts_with("in `0`"));
            };
            // Values are destroyed in the order or against the order of their first use.
            if uses_products_first {
                use_products();
                register();
            } else {
                register();
                use_products();
            }
        });
        ends.join().unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 2);
}
