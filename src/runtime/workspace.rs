//! Thread-local workspaces for packing the operands of matrix products, which are kept between products.

use std::cell::RefCell;
use std::thread::LocalKey;

use swath_kernels::{Float, Workspace};

/// An element type whose products are packed.
pub(crate) trait Packed: Float {
    /// This thread's workspace.
    fn workspace() -> &'static LocalKey<RefCell<Workspace<Self>>>;

    /// This thread's workspace for a right side that several products share.
    fn shared_workspace() -> &'static LocalKey<RefCell<Workspace<Self>>>;
}

macro_rules! packed {
    ($($t:ty, $own:ident, $shared:ident;)*) => {$(
        thread_local! {
            static $own: RefCell<Workspace<$t>> = const { RefCell::new(Workspace::new()) };
            static $shared: RefCell<Workspace<$t>> = const { RefCell::new(Workspace::new()) };
        }
        impl Packed for $t {
            fn workspace() -> &'static LocalKey<RefCell<Workspace<Self>>> {
                &$own
            }
            fn shared_workspace() -> &'static LocalKey<RefCell<Workspace<Self>>> {
                &$shared
            }
        }
    )*};
}
packed! { f32, OWN_F32, SHARED_F32; f64, OWN_F64, SHARED_F64; }

/// Allocates this thread's workspaces before its first product.
pub(crate) fn warm_up() {
    OWN_F32.with_borrow_mut(Workspace::reserve_panel);
    OWN_F64.with_borrow_mut(Workspace::reserve_panel);
}
