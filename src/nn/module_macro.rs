//! [`module!`](crate::module!).

/// Implements [`Visit`](crate::nn::Visit) for a struct: lists its parts in order, then, after
/// `skip`, the fields without tensors. All fields must be named: a forgotten one is the compile error
/// ``missing field `bias` ``.
///
/// A tensor without a role is a parameter if it is tracked or frozen, and otherwise a buffer. In a field with the role
/// `parameter`, a tensor of floats that is neither tracked nor frozen is an error of
/// [`Optimizer::step`](crate::optim::Optimizer::step), instead of being left untrained. A file may
/// lack the buffers in fields with the role `counter`.
///
/// ```
/// use swath::prelude::*;
/// struct Mlp<B: Backend> {
///     weights: Vec<Tensor<B>>,
///     bias: Option<Tensor<B>>,
///     width: usize,
/// }
/// swath::module!(Mlp<B> { weights: parameter, bias: parameter; skip width });
///
/// struct OnCpu {
///     weight: Tensor<CpuBackend>,
/// }
/// swath::module!(OnCpu: CpuBackend { weight });
/// ```
///
/// The struct may have further generic parameters, written as in an `impl`. The first one is the backend, unless the
/// backend is named after the parameters. A parameter has at most one bound in the list; more go into a `where`
/// clause.
///
/// ```
/// use swath::nn::{Module, Visit};
/// use swath::prelude::*;
/// struct Residual<B: Backend, M: Module<B>, const N: usize> {
///     layers: [M; N],
///     scale: Tensor<B>,
/// }
/// swath::module!(Residual<B, M: Module<B>, const N: usize> { layers, scale });
///
/// struct Pair<F, G> {
///     first: F,
///     second: G,
/// }
/// swath::module!(Pair<F, G>: CpuBackend where F: Visit<CpuBackend>, G: Visit<CpuBackend> + Clone { first, second });
/// ```
///
/// ```compile_fail,E0063
/// use swath::prelude::*;
/// struct Mlp<B: Backend> {
///     weight: Tensor<B>,
///     bias: Tensor<B>,
/// }
/// swath::module!(Mlp<B> { weight });
/// ```
#[macro_export]
macro_rules! module {
    ($Name:ident < $($rest:tt)+) => {
        $crate::__module!(@parameters $Name [] $($rest)+);
    };
    ($Name:ident $($rest:tt)+) => {
        $crate::__module!(@backend $Name [] $($rest)+);
    };
}

/// The rest of `module!`. Collects the generic parameters as `[name declaration]`, then the backend, then the
/// `where` clause.
#[doc(hidden)]
#[macro_export]
macro_rules! __module {
    (@parameters $Name:ident [$($all:tt)*] > $($rest:tt)*) => {
        $crate::__module!(@backend $Name [$($all)*] $($rest)*);
    };
    (@parameters $Name:ident [$($all:tt)*] const $N:ident: $T:ty, $($rest:tt)*) => {
        $crate::__module!(@parameters $Name [$($all)* [$N const $N: $T]] $($rest)*);
    };
    (@parameters $Name:ident [$($all:tt)*] const $N:ident: $T:ty > $($rest:tt)*) => {
        $crate::__module!(@backend $Name [$($all)* [$N const $N: $T]] $($rest)*);
    };
    (@parameters $Name:ident [$($all:tt)*] $P:ident, $($rest:tt)*) => {
        $crate::__module!(@parameters $Name [$($all)* [$P $P]] $($rest)*);
    };
    (@parameters $Name:ident [$($all:tt)*] $P:ident > $($rest:tt)*) => {
        $crate::__module!(@backend $Name [$($all)* [$P $P]] $($rest)*);
    };
    (@parameters $Name:ident [$($all:tt)*] $P:ident: $Bound:path, $($rest:tt)*) => {
        $crate::__module!(@parameters $Name [$($all)* [$P $P: $Bound]] $($rest)*);
    };
    (@parameters $Name:ident [$($all:tt)*] $P:ident: $Bound:path > $($rest:tt)*) => {
        $crate::__module!(@backend $Name [$($all)* [$P $P: $Bound]] $($rest)*);
    };

    (@parameters $Name:ident $all:tt $($rest:tt)*) => {
        compile_error!(concat!(
            "module!: expected parameters of ", stringify!($Name), " such as <B, M: Module<B>, const N: usize>; ",
            "further bounds go into a `where` clause after the list",
        ));
    };

    (@backend $Name:ident $all:tt : $B:ty where $($rest:tt)*) => {
        $crate::__module!(@where $Name $all [$B] [] $($rest)*);
    };
    (@backend $Name:ident $all:tt : $B:ty { $($fields:tt)* }) => {
        $crate::__module!(@where $Name $all [$B] [] { $($fields)* });
    };
    (@backend $Name:ident [[$B:ident $same:ident $(: $bound:path)?] $($all:tt)*] where $($rest:tt)*) => {
        $crate::__module!(@where $Name [[$B $B: $crate::Backend $(+ $bound)?] $($all)*] [$B] [] $($rest)*);
    };
    (@backend $Name:ident [[$B:ident $same:ident $(: $bound:path)?] $($all:tt)*] { $($fields:tt)* }) => {
        $crate::__module!(@where $Name [[$B $B: $crate::Backend $(+ $bound)?] $($all)*] [$B] [] { $($fields)* });
    };

    (@where $Name:ident [$([$P:ident $($declared:tt)+])*] [$B:ty] [$($clause:tt)*] {
        $($part:ident $(: $role:ident)?),* $(,)? $(; skip $($other:ident),+ $(,)?)?
    }) => {
        impl<$($($declared)+),*> $crate::nn::Visit<$B> for $Name<$($P),*>
        where
            $($clause)*
        {
            fn visit(&self, visitor: &mut dyn $crate::nn::Visitor<$B>) {
                visitor.part($crate::nn::PartId::of(self));
                // Never called: a field that is not listed is missing here, in an error that names it.
                #[allow(unreachable_code)]
                let _ = |never: ::std::convert::Infallible| -> Self {
                    $Name { $($part: match never {},)* $($($other: match never {},)+)? }
                };
                $(
                    visitor.enter(stringify!($part));
                    $crate::__module!(@visit visit [$($role)?] $B, &self.$part, visitor);
                    visitor.leave();
                )*
            }
            fn visit_mut(&mut self, visitor: &mut dyn $crate::nn::VisitorMut<$B>) {
                $(
                    visitor.enter(stringify!($part));
                    $crate::__module!(@visit visit_mut [$($role)?] $B, &mut self.$part, visitor);
                    visitor.leave();
                )*
                let _ = visitor;
            }
        }
    };
    (@where $Name:ident $all:tt $B:tt [$($clause:tt)*] $next:tt $($rest:tt)+) => {
        $crate::__module!(@where $Name $all $B [$($clause)* $next] $($rest)+);
    };

    (@visit $visit:ident [] $B:ty, $part:expr, $visitor:ident) => {
        $crate::nn::Visit::<$B>::$visit($part, $visitor);
    };
    (@visit $visit:ident [parameter] $B:ty, $part:expr, $visitor:ident) => {
        $crate::nn::Visit::<$B>::$visit($part, &mut $crate::nn::role::Parameters(&mut *$visitor));
    };
    (@visit $visit:ident [counter] $B:ty, $part:expr, $visitor:ident) => {
        $crate::nn::Visit::<$B>::$visit($part, &mut $crate::nn::role::Counters(&mut *$visitor));
    };
    (@visit $visit:ident [$role:ident] $($rest:tt)*) => {
        compile_error!(concat!(
            "module!: unknown role `", stringify!($role), "`, expected `parameter` or `counter`",
        ));
    };
}
