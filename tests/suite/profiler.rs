//! The backend of the example `profiler`, which is outside the library: it agrees on everything with the backend that
//! it forwards to, and counts what a reader of its table counts.

#[path = "../../examples/profiler/backend.rs"]
mod backend;

use crate::testing::Tested;
use backend::{Profiled, Tally, take};
use swath::prelude::*;

use crate::support::alone;

impl Tested for Profiled {}

crate::testing::backend_suite!(Profiled);

type T = Tensor<Profiled>;

/// Operations, and bytes in floats of 4 bytes, of the only call of an op.
fn only(op: &str) -> (u64, u64) {
    let Tally { calls, operations, bytes, time } = take()[op];
    assert_eq!((calls, time.is_zero()), (1, false), "{op}");
    (operations, bytes / 4)
}

#[test]
fn operations_and_bytes_are_those_counted_by_hand() {
    alone("profiler::operations_and_bytes_are_those_counted_by_hand", || {
        let randn = |shape: &[usize]| T::randn(shape, &mut Rng::seed(1)).unwrap();
        let [a, b] = [randn(&[2, 3, 5]), randn(&[5, 7])];
        take();
        a.matmul(&b).unwrap();
        // 2·3·7 elements of 5 products each; the second factor is read once for both matrices.
        assert_eq!(only("matmul"), (2 * 5 * 42, 30 + 35 + 42));

        // Windows at 4 × 4 places, for 6 channels; each multiplies 2 channels of 3 × 3 pixels.
        let [x, weight, bias] = [randn(&[1, 2, 6, 6]), randn(&[6, 2, 3, 3]), randn(&[6])];
        let (x, weight) = (x.requires_grad(), weight.requires_grad());
        take();
        let y = x.conv2d(&weight, Some(&bias), ConvOptions::default()).unwrap();
        let (products, pixels, filters) = (4 * 4 * 6 * 2 * 3 * 3, 2 * 6 * 6, 6 * 2 * 3 * 3);
        assert_eq!(only("conv"), (2 * products, pixels + filters + 6 + 96));
        let g = randn(&[1, 6, 4, 4]);
        take();
        y.backward_with(&g).unwrap();
        let tallies = take();
        for op in ["conv_transpose", "conv_weight_grad"] {
            assert_eq!(tallies[op].operations, 2 * products, "{op}");
        }

        let x = randn(&[4, 5]);
        let [weight, bias] = [randn(&[3, 5]), randn(&[3])];
        take();
        x.linear(&weight, Some(&bias)).unwrap();
        assert_eq!(only("linear"), (2 * 4 * 3 * 5, 20 + 15 + 3 + 12));

        // Queries 0, 1 and 2 of either head see 1, 2 and 3 keys; products of 4 and of 5.
        let [q, k, v] = [randn(&[2, 3, 4]), randn(&[2, 3, 4]), randn(&[2, 3, 5])];
        take();
        let causal = Attention { causal: true, ..Default::default() };
        q.scaled_dot_product_attention(&k, &v, causal).unwrap();
        assert_eq!(only("scaled_dot_product_attention").0, 2 * 2 * (1 + 2 + 3) * (4 + 5));

        let index = Tensor::from_vec(vec![0i64, 2, 2], 3).unwrap();
        let x = randn(&[4, 5]);
        take();
        x.index_select(0, &index).unwrap();
        // Three rows are read and written; their numbers, of 8 bytes, are repeated along the rows.
        assert_eq!(only("gather"), (0, 15 + 15 + 6));
    });
}
