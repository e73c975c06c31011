//! For tests only: the trait of Metal's calls, to be mocked, and all kernels.

pub use super::driver::metal::translate::{LANGUAGE, Translation, translate};
pub use super::driver::metal::{Api, CommandError, MetalDriver, Properties, Status};
pub use super::shader::WORDS;

use super::kernel::Kernel;
use super::plan::attention::{Attention, Part};
use super::plan::conv::{Conv, Kind};
use super::plan::elementwise::Function;
use super::plan::index::{self, Index};
use super::plan::matmul::{Product, Tiles};
use super::plan::pool::Pool;
use super::plan::reduce::Reduction;
use super::plan::rows::Rows;
use super::plan::update::Update;
use super::shader::{Module, Store};
use crate::backend::reduced_dtype;
use crate::dtype::DType;
use crate::layout::Layout;
use crate::ops::{
    Activation, BinaryOp, CompareOp, NumberTest, ReduceOp, ScanOp, TernaryOp, UnaryOp,
};
use crate::shape::Shape;

/// Concatenates a list for each variant of an enum. A missing variant does not compile.
macro_rules! listed {
    ($Type:ident { $($Variant:ident => $list:expr),* $(,)? }) => {{
        let _ = |x: $Type| match x {
            $($Type::$Variant { .. } => (),)*
        };
        let mut all: Vec<$Type> = Vec::new();
        $(all.extend($list);)*
        all
    }};
}

const FLOATS: [Store; 2] = [Store::F32, Store::F16];

fn stores() -> Vec<Store> {
    listed!(Store {
        F32 => [Store::F32],
        F16 => [Store::F16],
        I64 => [Store::I64],
        I32 => [Store::I32],
        U32 => [Store::U32],
        U8 => [Store::U8],
        Bool => [Store::Bool],
    })
}

/// The dtypes that have a store, with their stores.
fn dtypes() -> impl Iterator<Item = (DType, Store)> {
    DType::ALL.into_iter().filter_map(|x| Some((x, Store::of("kernels", "gpu", x).ok()?)))
}

/// The stores of dtypes with arithmetic.
fn numbers() -> Vec<Store> {
    dtypes().filter(|(dtype, _)| dtype.has_arithmetic()).map(|(_, store)| store).collect()
}

/// All pairs.
fn pairs<A: Copy, B: Copy>(a: &[A], b: &[B]) -> Vec<(A, B)> {
    a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b))).collect()
}

/// `f` of all pairs.
fn of<A: Copy, B: Copy, K>(a: &[A], b: &[B], f: impl Fn(A, B) -> K) -> Vec<K> {
    pairs(a, b).into_iter().map(|(a, b)| f(a, b)).collect()
}

fn functions() -> Vec<Function> {
    let (stores, numbers) = (stores(), numbers());
    let mut all = listed!(Function {
        Unary => of(UnaryOp::ALL, &numbers, Function::Unary),
        Binary => of(BinaryOp::ALL, &numbers, Function::Binary),
        Ternary => of(TernaryOp::ALL, &numbers, Function::Ternary),
        Compare => of(&CompareOp::ALL, &stores, Function::Compare),
        Test => of(&NumberTest::ALL, &stores, Function::Test),
        Select => of(&stores, &stores, Function::Select),
        Cast => of(&stores, &stores, Function::Cast),
        Copy => stores.iter().copied().map(Function::Copy),
        Fill => stores.iter().copied().map(Function::Fill),
        Dropout => FLOATS.map(Function::Dropout),
    });
    // The backend does not cast to the same dtype.
    all.retain(|x| x.is_defined() && !matches!(x, Function::Cast(from, to) if from == to));
    all
}

/// Layouts with lines of three lengths. One thread, one workgroup, or several workgroups compute a line.
fn lines() -> [Layout; 3] {
    [4, 300, 1 << 16].map(|n| Layout::contiguous(Shape::new([3, n])))
}

fn reductions() -> Vec<Reduction> {
    let mut all = Vec::new();
    for op in ReduceOp::ALL {
        for (dtype, store) in dtypes() {
            for x in lines() {
                let is_defined = reduced_dtype(op, dtype, *x.shape()).is_ok();
                let plans = Reduction::plans(op, store, &x, &[1]).ok().filter(|_| is_defined);
                all.extend(plans.into_iter().flatten().map(|plan| plan.kernel));
            }
        }
    }
    all
}

fn scans() -> Vec<Index> {
    let mut all = Vec::new();
    for (op, store) in pairs(&ScanOp::ALL, &numbers()) {
        // The backend casts other integers to `I64`.
        if store.is_float() || store == Store::I64 {
            let plans = lines().map(|x| index::scan(op, store, &x, 1));
            all.extend(plans.into_iter().flatten().map(|plan| plan.kernel));
        }
    }
    all
}

fn indices() -> Vec<Index> {
    let stores = stores();
    let words: Vec<Store> = stores.iter().copied().filter(|x| x.per_thread() == 1).collect();
    // The backend casts other dtypes to one of these.
    let added = [Store::F32, Store::I64, Store::U32];
    listed!(Index {
        Gather => stores.iter().copied().map(Index::Gather),
        ScatterAdd => added.map(Index::ScatterAdd),
        CopyInto => words.iter().copied().map(Index::CopyInto),
        Scan => scans(),
    })
}

fn rows() -> Vec<Rows> {
    let both = [false, true];
    listed!(Rows {
        Softmax => of(&FLOATS, &both, |store, log| Rows::Softmax { store, log }),
        SoftmaxGrad => of(&FLOATS, &both, |store, log| Rows::SoftmaxGrad { store, log }),
        Norm => of(&FLOATS, &both, |store, is_centered| Rows::Norm { store, is_centered }),
        NormGrad => of(&FLOATS, &both, |store, is_centered| Rows::NormGrad { store, is_centered }),
        CrossEntropy => FLOATS.map(|store| Rows::CrossEntropy { store }),
        CrossEntropyGrad => FLOATS.map(|store| Rows::CrossEntropyGrad { store }),
        Dot => FLOATS.map(|store| Rows::Dot { store }),
    })
}

fn attentions() -> Vec<Attention> {
    let mut all = Vec::new();
    for (part, store) in pairs(&[Part::Forward, Part::Queries, Part::Keys], &FLOATS) {
        for (mask, drops) in pairs(&[None, Some(Store::Bool), Some(store)], &[false, true]) {
            all.push(Attention { part, store, mask, drops });
        }
    }
    all
}

fn convolutions() -> Vec<Conv> {
    let functions = Activation::ALL.into_iter().filter_map(Activation::op).map(Some);
    let functions = [None].into_iter().chain(functions).collect::<Vec<_>>();
    let kinds = listed!(Kind {
        Forward => functions.iter().copied().map(Kind::Forward),
        Transpose => [Kind::Transpose],
        Weight => [Kind::Weight],
    });
    let each = of(&kinds, &FLOATS, |kind, store| {
        // Only gradients of filters are computed in parts, whose store is `F32`.
        let results = if kind == Kind::Weight { vec![store, Store::F32] } else { vec![store] };
        of(&results, &[Tiles::Small, Tiles::Large], |result, tiles| Conv {
            kind,
            store,
            result,
            tiles,
        })
    });
    each.into_iter().flatten().collect()
}

fn pools() -> Vec<Pool> {
    let both = [false, true];
    listed!(Pool {
        Max => of(&FLOATS, &both, |store, with_positions| Pool::Max { store, with_positions }),
        Avg => FLOATS.map(Pool::Avg),
        AvgGrad => FLOATS.map(Pool::AvgGrad),
    })
}

fn updates() -> Vec<Update> {
    let both = [false, true];
    let mut momenta = of(&both, &both, |nesterov, first| [true, nesterov, first]);
    momenta.push([false; 3]);
    let sgd = |store, [has_momentum, nesterov, first]: [bool; 3]| Update::Sgd {
        store,
        has_momentum,
        nesterov,
        first,
    };
    listed!(Update {
        Sgd => of(&FLOATS, &momenta, sgd),
        Adam => of(&FLOATS, &both, |store, decoupled| Update::Adam { store, decoupled }),
    })
}

/// The text of every kernel once: each op with each store that it is defined for.
pub fn kernels() -> Vec<Module> {
    let tiles = [Tiles::Small, Tiles::Large];
    let products = [(Store::F32, Store::F32), (Store::F16, Store::F16), (Store::F16, Store::F32)];
    let products = of(&products, &tiles, |(store, result), tiles| Product { store, result, tiles });
    let all = listed!(Kernel {
        Elementwise => functions().into_iter().map(Kernel::from),
        Reduce => reductions().into_iter().map(Kernel::from),
        Matmul => products.into_iter().map(Kernel::from),
        Index => indices().into_iter().map(Kernel::from),
        Rows => rows().into_iter().map(Kernel::from),
        Attention => attentions().into_iter().map(Kernel::from),
        Conv => convolutions().into_iter().map(Kernel::from),
        Pool => pools().into_iter().map(Kernel::from),
        Update => updates().into_iter().map(Kernel::from),
    });
    let mut seen = std::collections::HashSet::new();
    all.into_iter().filter(|&kernel| seen.insert(kernel)).map(Kernel::module).collect()
}
