//! Gradients of parts of a tensor, of `split`, `chunk`, `unbind`, `narrow` and `slice`.

use swath::SplitSizes;

use super::{T, text, values};
use swath::prelude::*;

/// The parts of an axis by each of the methods that cut one.
fn cut(x: &T, count: usize) -> Vec<(&'static str, Vec<T>)> {
    let each = SplitSizes::Each(vec![1; count]);
    vec![
        ("split", x.split(1, 1).unwrap()),
        ("each", x.split(each, 1).unwrap()),
        ("chunk", x.chunk(count, 1).unwrap()),
        ("unbind", x.unbind(1).unwrap()),
    ]
}

#[test]
fn parts_can_be_differentiated_one_after_the_other() -> Result<()> {
    for count in [1, 2, 8, 9, 30, 65] {
        let x = T::arange_as(1., 1. + 2. * count as f64, 1., DType::F64)?;
        let x = x.reshape((2, count))?.requires_grad();
        for (name, parts) in cut(&x, count) {
            assert_eq!(parts.len(), count, "{name}");
            for (i, part) in parts.iter().enumerate() {
                let grads = part.square()?.sum_all()?.backward()?;
                let mut expected = vec![0.0; 2 * count];
                for at in [i, count + i] {
                    expected[at] = 2.0 * (at as f64 + 1.0);
                }
                assert_eq!(values(grads.wrt(&x)?), expected, "{name} {i} of {count}");
            }
        }
    }
    Ok(())
}

#[test]
fn parts_have_one_gradient_to_every_order() -> Result<()> {
    for count in [2, 9, 30] {
        let w = T::randn((2, count), &mut Rng::seed(5))?.to_dtype(DType::F64)?;
        let x = T::randn((2, count), &mut Rng::seed(4))?.to_dtype(DType::F64)?.requires_grad();
        let cubes = |y: &T, w: &T| y.square()?.mul(y)?.mul(w)?.sum_all();
        for (name, parts) in cut(&x, count) {
            let weights = &cut(&w, count).into_iter().find(|(n, _)| *n == name).unwrap().1;
            let mut y = T::zeros((), DType::F64)?;
            for (part, w) in parts.iter().zip(weights) {
                y = y.add(cubes(part, w)?)?;
            }
            let first = grad(&y, &[&x], true)?.remove(0);
            let expected = x.detach().square()?.mul(3.0)?.mul(&w)?;
            assert!(first.detach().allclose(&expected, 1e-14, 0.0)?, "{name}");
            let second = grad(&first.sum_all()?, &[&x], true)?.remove(0);
            let expected = x.detach().mul(6.0)?.mul(&w)?;
            assert!(second.detach().allclose(&expected, 1e-14, 0.0)?, "{name}");
            let third = grad(&second.sum_all()?, &[&x], false)?.remove(0);
            assert!(third.allclose(&w.mul(6.0)?, 1e-14, 0.0)?, "{name}");
        }
    }
    Ok(())
}

/// A range of an axis of `g` in zeros of the shape of the whole, by another operation than the engine's.
fn padded(g: &T, axis: usize, start: usize, dim: usize) -> T {
    let mut pads = vec![(0, 0); 2];
    pads[axis] = (start as isize, (dim - start - g.dims()[axis]) as isize);
    g.pad(&pads, PadMode::Constant(0.0)).unwrap()
}

/// Narrows that are disjoint, overlap, of two axes, repeated, and beside other uses: the bits of the sum of padded
/// gradients, added from the last use to the first.
#[test]
fn gradients_of_ranges_have_the_bits_of_padded_sums() -> Result<()> {
    let dims = [6usize, 7];
    let mut rng = Rng::seed(9);
    let x = T::randn(dims, &mut rng)?.requires_grad();
    for draw in 0..300 {
        let (mut uses, mut loss) = (Vec::new(), T::zeros((), DType::F32)?);
        for _ in 0..1 + rng.below(6) {
            let axis = rng.below(3) as usize;
            if axis == 2 {
                let w = T::randn(dims, &mut rng)?;
                loss = loss.add(x.mul(&w)?.sum_all()?)?;
                uses.push(w);
                continue;
            }
            let start = rng.below(dims[axis] as u64) as usize;
            let len = 1 + rng.below((dims[axis] - start) as u64) as usize;
            let part = x.narrow(axis, start, len)?;
            // Zeros of both signs, as a relu has them.
            let w = T::randn(part.dims(), &mut rng)?.relu()?.mul(-1.0)?;
            loss = loss.add(part.mul(&w)?.sum_all()?)?;
            uses.push(padded(&w, axis, start, dims[axis]));
        }
        let bits = |x: &T| -> Result<Vec<u32>> {
            Ok(x.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
        };
        let found = bits(loss.backward()?.wrt(&x)?)?;
        let sum = uses.iter().rev().try_fold(None::<T>, |sum, g| match sum {
            Some(sum) => sum.add(g).map(Some),
            None => Ok(Some(g.clone())),
        })?;
        assert_eq!(found, bits(&sum.unwrap())?, "draw {draw}");
    }
    Ok(())
}

#[test]
fn a_part_alone_is_zero_elsewhere() -> Result<()> {
    let x = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].requires_grad();
    let grads = x.slice(s![1, 1..])?.sum_all()?.backward()?;
    assert_eq!(values(grads.wrt(&x)?), [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
    let grads = x.narrow(1, 2, 0)?.sum_all()?.backward()?;
    assert_eq!(values(grads.wrt(&x)?), [0.0; 6]);
    let kept = x.square()?;
    kept.retain_grad();
    let parts = kept.split(1, 1)?;
    let loss = parts[2].sum_all()?.add(parts[0].mul(2.0)?.sum_all()?)?;
    let grads = loss.backward()?;
    assert_eq!(values(grads.wrt(&kept)?), [2.0, 0.0, 1.0, 2.0, 0.0, 1.0]);
    assert_eq!(values(grads.wrt(&x)?), [4.0, 0.0, 6.0, 16.0, 0.0, 12.0]);
    Ok(())
}

#[test]
fn too_many_parts_are_an_error() -> Result<()> {
    let x = tensor![1.0].broadcast_to(1 << 46)?;
    for result in [x.split(1, 0), x.unbind(0), x.chunk(1 << 46, 0), x.chunk(usize::MAX, 0)] {
        let text = text(result);
        assert!(
            text.contains("split") || text.contains("unbind") || text.contains("chunk"),
            "{text}"
        );
    }
    assert_eq!(x.split(1 << 45, 0)?.len(), 2);
    assert_eq!(x.chunk(3, 0)?.len(), 3);
    Ok(())
}
