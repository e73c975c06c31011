//! Thread-local workspaces for packing the operands of matrix products, which are kept between products.

use std::cell::Cell;
use std::thread::LocalKey;

use swath_kernels::{Float, Workspace};

/// An element type whose products are packed.
pub(crate) trait Packed: Float {
    /// Calls `f` with this thread's workspace.
    fn with_workspace<R>(f: impl FnOnce(&mut Workspace<Self>) -> R) -> R;

    /// Calls `f` with this thread's workspace for a right side that several products share.
    fn with_shared_workspace<R>(f: impl FnOnce(&mut Workspace<Self>) -> R) -> R;
}

/// Takes the workspace and puts it back. A call within `f` has another one: while a thread waits in a rayon pool, it
/// may run a job that comes here. So has a call in the destructor of a thread-local value that outlives the workspace.
#[inline(always)]
fn lend<E: Float, R>(
    kept: &'static LocalKey<Cell<Workspace<E>>>,
    f: impl FnOnce(&mut Workspace<E>) -> R,
) -> R {
    let taken = kept.try_with(|kept| kept.replace(Workspace::new()));
    let mut workspace = taken.unwrap_or_else(|_| Workspace::new());
    let result = f(&mut workspace);
    _ = kept.try_with(|kept| kept.set(workspace));
    result
}

macro_rules! packed {
    ($($t:ty, $own:ident, $shared:ident;)*) => {$(
        thread_local! {
            static $own: Cell<Workspace<$t>> = const { Cell::new(Workspace::new()) };
            static $shared: Cell<Workspace<$t>> = const { Cell::new(Workspace::new()) };
        }
        impl Packed for $t {
            #[inline(always)]
            fn with_workspace<R>(f: impl FnOnce(&mut Workspace<Self>) -> R) -> R {
                lend(&$own, f)
            }

            #[inline(always)]
            fn with_shared_workspace<R>(f: impl FnOnce(&mut Workspace<Self>) -> R) -> R {
                lend(&$shared, f)
            }
        }
    )*};
}
packed! { f32, OWN_F32, SHARED_F32; f64, OWN_F64, SHARED_F64; }

/// Allocates this thread's workspaces before its first product.
pub(crate) fn warm_up() {
    f32::with_workspace(Workspace::reserve_panel);
    f64::with_workspace(Workspace::reserve_panel);
}
