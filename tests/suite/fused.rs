//! Fused ops and optimizer steps: a backend's kernels, or its composites, against the composites on the
//! reference backend in `f64`, and against PyTorch. Derivatives are checked against finite differences in
//! `gradcheck.rs`, and by mutation in `mutation.rs`.

mod behaviour;
mod bounds;
mod columns;
pub mod conv;
mod definitions;
mod dot;
pub mod pool;
pub mod reference;
pub mod sincos;
pub mod update;
mod vectors;

pub(crate) use crate::attention;

/// Expands to a test of every fused op for a backend.
macro_rules! fused_tests {
    ($backend:ty) => {
        $crate::backends::tests_of! {
            fused, $backend;
            reference: softmax_and_log_softmax_agree, cross_entropy_agrees, norms_agree,
                bias_activation_agrees, linear_agrees_with_and_without_activation,
                dropout_of_every_probability_agrees, inner_products_agree, im2col_agrees,
                col2im_agrees, gradients_of_sine_and_cosine_agree;
            attention: forward_and_gradients_agree_in_every_layout,
                queries_without_visible_keys_give_zeros_and_zero_gradients,
                nan_and_infinite_scores_give_nan_in_their_rows_alone,
                dropout_counts_weights_in_row_major_order;
            conv: convolutions_agree, transposed_convolutions_agree;
            pool: poolings_agree;
            sincos: sincos_matches_sin_and_cos_bitwise;
            update: steps_match_their_formulas;
        }
    };
}
pub(crate) use fused_tests;

mod cpu {
    crate::fused::fused_tests!(swath::CpuBackend);
}
