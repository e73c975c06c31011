//! [`Kernel`]: the key under which a kernel's pipeline is cached.

use super::plan::attention::Attention;
use super::plan::conv::Conv;
use super::plan::elementwise::Function;
use super::plan::index::Index;
use super::plan::matmul::Product;
use super::plan::pool::Pool;
use super::plan::reduce::Reduction;
use super::plan::rows::Rows;
use super::plan::update::Update;
use super::shader::Module;

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    Elementwise(Function),
    Reduce(Reduction),
    Matmul(Product),
    Index(Index),
    Rows(Rows),
    Attention(Attention),
    Conv(Conv),
    Pool(Pool),
    Update(Update),
}

impl Kernel {
    /// Returns the kernel's text.
    pub fn module(self) -> Module {
        match self {
            Kernel::Elementwise(function) => function.module(),
            Kernel::Reduce(reduction) => reduction.module(),
            Kernel::Matmul(product) => product.module(),
            Kernel::Index(index) => index.module(),
            Kernel::Rows(rows) => rows.module(),
            Kernel::Attention(attention) => attention.module(),
            Kernel::Conv(conv) => conv.module(),
            Kernel::Pool(pool) => pool.module(),
            Kernel::Update(update) => update.module(),
        }
    }

    /// True if the kernel can report faults.
    pub fn has_faults(self) -> bool {
        match self {
            Kernel::Elementwise(function) => function.has_faults(),
            Kernel::Index(index) => index.has_faults(),
            Kernel::Rows(rows) => rows.has_faults(),
            Kernel::Reduce(_) | Kernel::Matmul(_) | Kernel::Attention(_) => false,
            Kernel::Conv(_) | Kernel::Pool(_) | Kernel::Update(_) => false,
        }
    }
}

macro_rules! kinds {
    ($($Kind:ident: $Type:ty),* $(,)?) => {$(
        impl From<$Type> for Kernel {
            fn from(kernel: $Type) -> Kernel {
                Kernel::$Kind(kernel)
            }
        }
    )*};
}
kinds! {
    Elementwise: Function, Reduce: Reduction, Matmul: Product, Index: Index, Rows: Rows,
    Attention: Attention, Conv: Conv, Pool: Pool, Update: Update,
}
