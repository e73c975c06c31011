//! The tests of a backend, and what a backend says of itself to them.
//!
//! The files are compiled as `crate::testing::suite` of the library, under the feature `testing-suite`, and of the
//! programs `tests/suite` and `tests/gpu`. Were they part of the library whenever this crate's tests are built, its examples would be built
//! with them too, which takes a second more. So they name the library `swath`.

pub mod agree;
pub mod backends;
pub mod effort;
pub mod fused;
pub mod inputs;
pub mod oracle;
pub mod ulp;

pub use crate::__backend_suite as backend_suite;
pub use effort::{is_full, is_sampled};

use swath::{AnyBackend, Backend, CpuBackend, DType, ReferenceBackend};

/// A backend that [`backend_suite!`](crate::testing::backend_suite) tests.
pub trait Tested: Backend {
    /// The dtypes that the backend supports; tests draw no others.
    const DTYPES: &'static [DType] = &DType::ALL;

    /// Factor on the bounds of inexact results. With 1 they are those of this crate's kernels, a unit in the last
    /// place or two, which round a result once. Composites round after each step, and devices have functions of
    /// their own: 4 allows for that. Results that are exact, such as sums of two tensors, must agree in every bit
    /// whatever the factor.
    const SLACK: f64 = 1.0;

    /// What the machine lacks to run the tests, if anything: they are skipped then.
    fn missing() -> Option<&'static str> {
        None
    }
}

impl Tested for CpuBackend {}
impl Tested for ReferenceBackend {}
impl Tested for AnyBackend {}

#[cfg(any(feature = "wgpu", feature = "metal"))]
impl<D: swath::backend::gpu::Driver> Tested for swath::backend::gpu::Gpu<D> {
    const DTYPES: &'static [DType] =
        &[DType::F16, DType::F32, DType::I64, DType::I32, DType::U32, DType::U8, DType::Bool];
    /// Functions have errors of a few ULP.
    const SLACK: f64 = 4.0;

    fn missing() -> Option<&'static str> {
        D::missing()
    }
}

/// Expands to the tests of a backend, one `#[test]` for each: every operation × dtype × shape × layout, compared with
/// [`ReferenceBackend`]. The type must implement [`Tested`](crate::testing::Tested).
///
/// The tests are in three modules: `required`, of the methods without a default; `provided`, of those with one; and
/// `fused`, of fused operations, their gradients and steps of optimizers. Methods that a backend leaves to their
/// defaults, and fused operations without a kernel, are tested as they are composed.
///
/// ```
/// # type MyBackend = swath::CpuBackend;
/// # fn main() {}
/// // In a file of `tests/`, or in a module with `#[cfg(test)]`:
/// mod my_backend {
///     swath::testing::backend_suite!(super::MyBackend);
/// }
/// ```
///
/// `cargo test my_backend::required` runs one of the modules, and with the environment variable `SWATH_FULL` set,
/// every combination of shapes and layouts rather than a fixed sample that has each of them.
///
/// # Reading a failure
///
/// A test compares all its cases before it fails, and prints a few of each kind. This one says that a `gather` of an
/// `f64` tensor along axis 1 by an index of shape `[3, 9]` with reversed axes is wrong, first in element 0 of the
/// result in row-major order, by more than the 0 units in the last place that are allowed:
///
/// ```text
/// 512 of 4896 cases disagree:
/// gather f64 ([3, 5], 1, [3, 9]) Contiguous Permuted: element 0: expected 88, got 88.000044,
///     3096224744 ULP apart; allowed: 0 ULP
/// ```
///
/// Layouts are named `Contiguous`, `Permuted` (axes in reverse order), `RepeatedRows` and `RepeatedColumns` (stride 0
/// on the first or last axis), `Narrowed` (a window), `Stepped` (every second element along every axis), `Flipped`
/// (all axes reversed) and `Mixed` (permuted axes of a window, the first of them reversed).
#[macro_export]
#[doc(hidden)]
macro_rules! __backend_suite {
    (@tests $group:ident; $($file:ident: $($test:ident),+;)+) => {
        $(mod $file {
            $(
                #[test]
                fn $test() {
                    type Backend = super::super::BackendUnderTest;
                    match <Backend as $crate::testing::Tested>::missing() {
                        Some(missing) => eprintln!("skipped {}: {missing}", stringify!($test)),
                        None => $crate::testing::suite::$group::$file::$test::<Backend>(),
                    }
                }
            )+
        })+
    };
    ($backend:ty) => {
        type BackendUnderTest = $backend;

        mod required {
            $crate::__backend_suite! {
                @tests backends;
                elementwise: unary_ops_agree, binary_ops_on_16_bit_floats_agree,
                    binary_ops_on_floats_agree, binary_ops_on_integers_agree, scalar_operands_agree,
                    comparisons_of_tensors_agree;
                errors: divisions_that_fail_are_errors, indices_out_of_range_are_errors,
                    the_first_index_out_of_range_is_the_error;
                half: unary_ops_agree_on_every_16_bit_float,
                    every_16_bit_float_converts_to_every_type;
                large: large_contiguous_tensors_agree, large_permuted_tensors_agree,
                    large_tensors_of_mixed_arrangement_agree, cat_of_narrow_tensors_agrees;
                matmul: products_agree_for_every_inner_extent, products_agree_for_every_storage,
                    products_agree_around_tile_edges, products_agree_for_batches,
                    products_with_special_values_agree, products_of_integers_agree;
                mixes: functions_of_one_and_two_operands_agree, functions_of_three_operands_agree,
                    where_cond_agrees_in_every_mix_of_layouts;
                movement: views_and_copies_agree, permutes_of_many_axes_agree,
                    copies_larger_than_the_caches_agree, host_values_come_back,
                    filled_tensors_agree, casts_between_all_dtypes_agree, gather_agrees,
                    scatter_add_agrees, sums_of_16_bit_floats_do_not_stagnate, cat_agrees;
                owned: unary_ops_on_owned_operands, binary_ops_on_owned_operands,
                    chains_of_owned_results_agree;
                reduce: sums_agree, products_agree, means_agree, variances_agree, deviations_agree,
                    norms_agree, logarithms_of_sums_of_powers_agree, maxima_agree, minima_agree,
                    indices_of_extrema_agree, any_and_all_agree, sums_of_floats_accumulate_in_f64,
                    reductions_agree_at_the_edges;
            }
        }

        mod provided {
            $crate::__backend_suite! {
                @tests backends;
                assign: scatter_agrees, the_last_element_of_a_target_remains,
                    scatters_out_of_range_are_errors, slice_assign_agrees, assemble_agrees;
                elementwise: number_tests_agree;
                movement: where_cond_agrees;
                order: orders_agree, running_extrema_agree, searches_agree,
                    equal_elements_keep_their_order;
                owned: accumulate_grad_leaves_copies_unchanged;
                provided: provided_functions_agree, edges_are_as_documented;
                scan: running_sums_agree, running_products_agree,
                    running_products_of_special_values_match_a_sequential_loop,
                    scans_overflow_only_where_a_sequential_loop_does,
                    sums_of_one_sign_are_within_five_eighths_of_an_ulp,
                    every_axis_gives_the_same_bits, wrong_axes_are_errors;
                ternary: ternary_ops_agree, ternary_ops_on_owned_operands;
            }
        }

        mod fused {
            $crate::__backend_suite! {
                @tests fused;
                reference: softmax_and_log_softmax_agree, cross_entropy_agrees, norms_agree,
                    bias_activation_agrees, linear_agrees_with_and_without_activation,
                    dropout_of_every_probability_agrees, inner_products_agree, im2col_agrees,
                    col2im_agrees, gradients_of_sine_and_cosine_agree;
                attention: forward_and_gradients_agree_in_every_layout,
                    queries_without_visible_keys_give_zeros_and_zero_gradients,
                    nan_and_infinite_scores_give_nan_in_their_rows_alone,
                    dropout_counts_weights_in_row_major_order;
                conv: convolutions_agree, transposed_convolutions_agree, volumes_agree;
                pool: poolings_agree;
                sincos: sincos_matches_sin_and_cos_bitwise;
                update: steps_match_their_formulas;
            }
        }
    };
}
