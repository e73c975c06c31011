//! Every operation of a backend against the reference backend, at the level of the [`swath::Backend`]
//! trait: operation × dtype × shape × layout.
//!
//! The tests are functions of the backend. [`required_tests`] expands to tests of the required methods and of
//! all combinations of layouts; [`provided_tests`] to tests of the methods that have a default. A new backend
//! invokes both, and `fused_tests` of `fused.rs`.

pub mod elementwise;
pub mod errors;
pub mod half;
pub mod large;
pub mod matmul;
pub mod mixes;
pub mod movement;
pub mod owned;
pub mod provided;
pub mod reduce;
pub mod scan;
pub mod ternary;

/// Expands to a test for each function, called for the backend.
macro_rules! tests_of {
    ($suite:ident, $backend:ty; $($file:ident: $($test:ident),*;)*) => {
        $(mod $file {
            $(
                #[test]
                fn $test() {
                    if let Some(missing) = <$backend as $crate::support::agree::Tested>::missing() {
                        eprintln!("skipped {}: {missing}", stringify!($test));
                        return;
                    }
                    crate::$suite::$file::$test::<$backend>();
                }
            )*
        })*
    };
}
pub(crate) use tests_of;

macro_rules! required_tests {
    ($backend:ty) => {
        $crate::backends::tests_of! {
            backends, $backend;
            elementwise: unary_ops_agree, binary_ops_on_16_bit_floats_agree, binary_ops_on_floats_agree,
                binary_ops_on_integers_agree, scalar_operands_agree, comparisons_of_tensors_agree;
            errors: divisions_that_fail_are_errors, indices_out_of_range_are_errors,
                the_first_index_out_of_range_is_the_error;
            half: unary_ops_agree_on_every_16_bit_float,
                every_16_bit_float_converts_to_every_type;
            large: large_contiguous_tensors_agree, large_permuted_tensors_agree,
                large_tensors_of_mixed_arrangement_agree, cat_of_narrow_tensors_agrees;
            matmul: products_agree_for_every_inner_extent, products_agree_for_every_storage,
                products_agree_around_tile_edges, products_agree_for_batches,
                products_with_special_values_agree, products_of_integers_are_errors;
            mixes: functions_of_one_and_two_operands_agree, functions_of_three_operands_agree,
                where_cond_agrees_in_every_mix_of_layouts;
            movement: views_and_copies_agree, permutes_of_many_axes_agree,
                copies_larger_than_the_caches_agree, host_values_come_back, filled_tensors_agree,
                casts_between_all_dtypes_agree, gather_agrees, scatter_add_agrees,
                sums_of_16_bit_floats_do_not_stagnate, cat_agrees;
            owned: unary_ops_on_owned_operands, binary_ops_on_owned_operands,
                chains_of_owned_results_agree;
            reduce: sums_agree, products_agree, means_agree, variances_agree, deviations_agree,
                norms_agree, logarithms_of_sums_of_powers_agree, maxima_agree, minima_agree,
                indices_of_extrema_agree, any_and_all_agree, sums_of_floats_accumulate_in_f64,
                reductions_agree_at_the_edges;
        }
    };
}
pub(crate) use required_tests;

macro_rules! provided_tests {
    ($backend:ty) => {
        $crate::backends::tests_of! {
            backends, $backend;
            elementwise: number_tests_agree;
            movement: where_cond_agrees;
            owned: accumulate_grad_leaves_copies_unchanged;
            provided: provided_functions_agree, edges_are_as_documented;
            scan: running_sums_agree, running_products_agree,
                running_products_of_special_values_match_a_sequential_loop,
                scans_overflow_only_where_a_sequential_loop_does,
                sums_of_one_sign_are_within_five_eighths_of_an_ulp, every_axis_gives_the_same_bits,
                wrong_axes_and_dtypes_are_errors;
            ternary: ternary_ops_agree, ternary_ops_on_owned_operands;
        }
    };
}
pub(crate) use provided_tests;

mod cpu {
    mod required {
        crate::backends::required_tests!(swath::CpuBackend);
    }
    mod provided {
        crate::backends::provided_tests!(swath::CpuBackend);
    }
}
