//! Fused operations.

use super::*;

#[test]
fn fused_operations() {
    use swath::{
        Attention, ConvOptions as Conv, ConvTransposeOptions as Transposed, Padding,
        PoolOptions as Pool,
    };
    check!(case("softmax", vec![randn((3, 4, 5))]), |x, B| [
        x[0].softmax(-1)?,
        x[0].softmax(1)?,
        x[0].log_softmax(0)?,
        x[0].log_softmax(2)?
    ]);
    check!(case("norms", vec![randn((3, 4, 5)), randn(5), randn(5)]), |x, B| [
        x[0].layer_norm(Some(&x[1]), Some(&x[2]), 1e-5)?,
        x[0].layer_norm(None, None, 1e-3)?,
        x[0].rms_norm(Some(&x[1]), 1e-6)?,
        x[0].rms_norm(None, 1e-6)?,
    ]);
    let channels = || randn(4).abs().unwrap().add(0.5).unwrap();
    check!(case("channel_norms", vec![randn((3, 4, 5)), randn(4), channels()]), |x, B| [
        x[0].batch_norm(&x[1], &x[2], Some(&x[2]), Some(&x[1]), 1e-5)?,
        x[0].batch_norm(&x[1], &x[2], None, None, 1e-3)?,
        x[0].group_norm(2, Some(&x[1]), Some(&x[2]), 1e-5)?,
        x[0].batch_norm_training(None, Some(&x[1]), 1e-5)?.0,
    ]);
    check!(
        case("linear", vec![randn((3, 5)), randn((4, 5)), randn(4), randn((2, 3, 5))]),
        |x, B| [
            x[0].linear(&x[1], Some(&x[2]))?,
            x[0].linear_activation(&x[1], None, Activation::Relu)?,
            x[3].linear_activation(&x[1], Some(&x[2]), Activation::GeluTanh)?,
            x[3].linear(&x[1], None)?.bias_activation(&x[2], Activation::Silu)?,
        ]
    );
    check!(case("conv1d", vec![randn((2, 4, 9)), randn((6, 2, 3)), randn(6)]), |x, B| [
        x[0].conv1d(
            &x[1],
            Some(&x[2]),
            Conv {
                groups: 2,
                stride: [2],
                padding: Padding::Uneven([[2, 1]]),
                ..Default::default()
            }
        )?,
        x[0].conv1d_activation(
            &x[1],
            None,
            Conv { groups: 2, dilation: [3], ..Default::default() },
            Activation::Tanh
        )?,
    ]);
    check!(
        case(
            "conv2d",
            vec![randn((2, 3, 9, 8)), randn((4, 3, 3, 2)), randn(4), randn((3, 2, 2, 3))]
        ),
        |x, B| [
            x[0].conv2d(
                &x[1],
                Some(&x[2]),
                Conv {
                    stride: [2, 1],
                    dilation: [1, 2],
                    padding: Padding::Same,
                    ..Default::default()
                }
            )?,
            x[0].conv2d(&x[1], None, Conv::default())?,
            x[0].conv_transpose2d(
                &x[3],
                None,
                Transposed {
                    stride: [2, 3],
                    padding: [1, 0],
                    output_padding: [1, 2],
                    ..Default::default()
                }
            )?,
        ]
    );
    check!(case("conv3d", vec![randn((1, 2, 4, 5, 6)), randn((2, 2, 2, 3, 2))]), |x, B| [
        x[0].conv3d(&x[1], None, Conv { stride: [1, 2, 1], ..Default::default() })?,
        x[0].conv_transpose3d(&x[1], None, Transposed::default())?,
    ]);
    check!(case("conv_transpose1d", vec![randn((2, 4, 5)), randn((4, 3, 4)), randn(6)]), |x, B| [
        x[0].conv_transpose1d(
            &x[1],
            Some(&x[2]),
            Transposed {
                groups: 2,
                stride: [2],
                dilation: [2],
                padding: [1],
                ..Default::default()
            }
        )?,
    ]);
    check!(case("max_pool", vec![randn((2, 3, 7, 8)), randn((1, 2, 9))]), |x, B| {
        let pool =
            Pool { stride: Some([2, 3]), padding: [1, 0], dilation: [2, 1], ..Pool::new([3, 2]) };
        let (a, b) = x[0].max_pool2d_with_positions(pool)?;
        [
            a,
            b,
            x[1].max_pool1d(Pool { ceil_mode: true, ..Pool::new([2]) })?,
            x[0].max_pool2d(Pool { padding_after: Some([1, 1]), ..Pool::new([3, 3]) })?,
        ]
    });
    check!(case("avg_pool", vec![randn((2, 3, 7, 8))]), |x, B| [
        x[0].avg_pool2d(Pool { stride: Some([2, 3]), padding: [1, 0], ..Pool::new([3, 2]) })?,
        x[0].avg_pool2d(Pool {
            padding: [1, 1],
            count_include_pad: true,
            stride: Some([2, 2]),
            ..Pool::new([3, 3])
        })?,
        x[0].avg_pool2d(Pool { ceil_mode: true, ..Pool::new([2, 3]) })?,
        x[0].adaptive_avg_pool2d([1, 3])?,
    ]);
    check!(case("avg_pool_padded", vec![randn((2, 3, 7, 8))]), |x, B| [
        x[0].avg_pool2d(Pool {
            ceil_mode: true,
            count_include_pad: true,
            padding: [1, 1],
            stride: Some([3, 2]),
            ..Pool::new([3, 2])
        })?,
        x[0].avg_pool2d(Pool {
            dilation: [2, 2],
            count_include_pad: true,
            padding: [1, 1],
            ..Pool::new([3, 2])
        })?,
    ]);
    let qkv = || {
        vec![
            randn((2, 4, 5, 3)),
            randn((2, 4, 6, 3)),
            randn((2, 4, 6, 2)),
            ints((5, 6), 2).to_dtype(DType::Bool).unwrap(),
        ]
    };
    check!(case("attention", qkv()), |x, B| [
        x[0].scaled_dot_product_attention(&x[1], &x[2], Attention::default())?,
        x[0].scaled_dot_product_attention(
            &x[1],
            &x[2],
            Attention { causal: true, scale: Some(0.3), ..Default::default() }
        )?,
        x[0].scaled_dot_product_attention(
            &x[1],
            &x[2],
            Attention { mask: Some(&x[3]), ..Default::default() }
        )?,
        x[0].scaled_dot_product_attention(
            &x[1],
            &x[2],
            Attention { mask: Some(&x[3].to_dtype(DType::F32)?.log()?), ..Default::default() }
        )?,
    ]);
    check!(case("grouped_attention", qkv()), |x, B| [
        x[0].scaled_dot_product_attention(
            &x[1].narrow(1, 1, 2)?,
            &x[2].narrow(1, 0, 2)?,
            Attention { causal: true, ..Default::default() }
        )?,
        x[1].scaled_dot_product_attention(
            &x[0],
            &x[0],
            Attention { causal: true, ..Default::default() }
        )?,
    ]);
    check!(case("losses", vec![randn((3, 5)), ints(3, 5), randn((3, 5))]), |x, B| [
        x[0].cross_entropy(&x[1], CrossEntropy::default())?,
        x[0].mul(&x[2])?.sum_all()?,
        x[0].cosine_similarity(&x[2], 1, 1e-8)?,
    ]);
}
