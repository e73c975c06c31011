//! The sections of the page. Written by `tests/vectors/check_page.py`.

mod arithmetic_functions_comparisons;
mod images;
mod indices;
mod linear_algebra;
mod looking_at_tensors;
mod making_tensors;
mod order_and_counts;
mod reductions;
mod shapes_and_views;
mod spectra;

use swath::prelude::*;

pub fn all() -> Result<()> {
    making_tensors::rows()?;
    looking_at_tensors::rows()?;
    shapes_and_views::rows()?;
    arithmetic_functions_comparisons::rows()?;
    reductions::rows()?;
    linear_algebra::rows()?;
    indices::rows()?;
    order_and_counts::rows()?;
    images::rows()?;
    spectra::rows()?;
    Ok(())
}
