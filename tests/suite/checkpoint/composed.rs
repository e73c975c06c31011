//! Checkpoints within derivatives of functions and the reverse, on several threads, in long chains.

use swath::prelude::*;

use super::{T, bits, both_orders, leaf, total};

/// Derivatives of functions of checkpointed functions, and the reverse.
#[test]
fn derivatives_of_functions_go_through_checkpoints() {
    let x = tensor![f64; 0.4, -0.9, 1.3];
    let w = tensor![f64; 1.5, 0.5, -0.7].requires_grad();
    let plain = |x: &T, w: &T| x.square()?.mul(x)?.mul(w)?.add(x.matmul(w)?.sin()?);
    let w1 = w.clone();
    let checkpointed = move |x: &T| {
        let w = w1.clone();
        checkpoint_with(&[x], move |xs: &[T]| plain(&xs[0], &w))
    };
    let w1 = &w;
    let expected = jacobian(|x| plain(x, w1), &x).unwrap();
    let found = jacobian(&checkpointed, &x).unwrap();
    assert_eq!(both_orders(&found, &[&w]), both_orders(&expected, &[&w]));
    let expected = hessian(|x| plain(x, w1)?.sum(None, false), &x).unwrap();
    let found = hessian(|x| checkpointed(x)?.sum(None, false), &x).unwrap();
    assert_eq!(both_orders(&found, &[&w]), both_orders(&expected, &[&w]));
    let (_, expected) = jvp(|x| plain(x, w1), &x, &w).unwrap();
    let (_, found) = jvp(&checkpointed, &x, &w).unwrap();
    assert_eq!(both_orders(&found, &[&w]), both_orders(&expected, &[&w]));

    // Inside: its result goes on through an operation, and is returned as it is.
    let x = x.requires_grad();
    let inside = move |x: &T, w: &T| vjp(|x| plain(&x.mul(w)?, w), x, &x.exp()?);
    for squared in [false, true] {
        let f = move |x: &T, w: &T| match squared {
            true => inside(x, w)?.square(),
            false => inside(x, w),
        };
        let expected = f(&x, &w).unwrap();
        let w1 = w.clone();
        let found = checkpoint_with(&[&x], move |xs: &[T]| f(&xs[0], &w1)).unwrap();
        assert_eq!(bits(&found), bits(&expected));
        assert_eq!(both_orders(&found, &[&x, &w]), both_orders(&expected, &[&x, &w]));
    }
    // By a tensor that only the function inside uses.
    let one = tensor![f64; 0.7].requires_grad();
    let w1 = w.narrow(0, 0, 1).unwrap().detach().requires_grad();
    let expected = grad(&inside(&one, &w1).unwrap(), &[&w1], false).unwrap().remove(0);
    let held = w1.clone();
    let y = checkpoint_with(&[&one], move |xs: &[T]| inside(&xs[0], &held)).unwrap();
    assert_eq!(bits(&grad(&y, &[&w1], false).unwrap()[0]), bits(&expected));
    // Checkpointed again in the function of a vjp, in the first run and the replay of an outer one.
    let deep = move |x: &T, w: &T| {
        let inner = |x: &T| {
            let w = w.clone();
            checkpoint_with(&[x], move |xs: &[T]| plain(&xs[0], &w))
        };
        vjp(inner, x, &x.exp()?)?.sin()
    };
    let flat = vjp(|x| plain(x, &w), &x, &x.exp().unwrap()).unwrap().sin().unwrap();
    let w1 = w.clone();
    let found = checkpoint_with(&[&x], move |xs: &[T]| deep(&xs[0], &w1)).unwrap();
    assert_eq!(both_orders(&found, &[&x, &w]), both_orders(&flat, &[&x, &w]));
    let w1 = w.clone();
    let f = move |xs: &[T]| vjp(|x| plain(x, &w1), &xs[0], &xs[0].exp()?)?.sum(None, false);
    let w1 = w.clone();
    let y = checkpoint_with(&[&x], f).unwrap();
    let expected = vjp(|x| plain(x, &w1), &x, &x.exp().unwrap()).unwrap();
    let expected = grad(&total(&expected), &[&w], false).unwrap();
    assert_eq!(bits(&grad(&y, &[&w], false).unwrap()[0]), bits(&expected[0]));
}

/// Ids of nodes that threads record at once are interleaved.
#[test]
fn threads_record_and_walk_side_by_side() {
    let x = leaf(&[0.5, -0.25]);
    let f = |x: &T| (0..200).try_fold(x.clone(), |y, _| y.sin()?.mul(x)?.add(x));
    let expected = total(&f(&x).unwrap()).backward().unwrap();
    let make = || checkpoint_with(&[&x], move |xs: &[T]| f(&xs[0])).unwrap();
    let ys: Vec<T> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let all = ys.iter().skip(1).fold(total(&ys[0]), |sum, y| &sum + &total(y));
    let retain = Backward { retain_graph: true, ..Backward::default() };
    let of_all = all.backward_opts(retain).unwrap();
    let pairs = bits(of_all.wrt(&x).unwrap()).into_iter().zip(bits(expected.wrt(&x).unwrap()));
    for (found, expected) in pairs {
        let (found, expected) = (f64::from_bits(found), 4.0 * f64::from_bits(expected));
        assert!((found - expected).abs() <= 1e-5 * expected.abs(), "{found} and {expected}");
    }
    std::thread::scope(|scope| {
        for y in &ys {
            scope.spawn(|| {
                let found = total(y).backward().unwrap();
                assert_eq!(bits(found.wrt(&x).unwrap()), bits(expected.wrt(&x).unwrap()));
            });
        }
    });
}

#[test]
fn long_chains_of_checkpoints_need_no_stack() {
    let work = || {
        let x = leaf(&[1.0]);
        let mut y = x.clone();
        for _ in 0..20_000 {
            y = checkpoint_with(&[&y], |xs: &[T]| xs[0].mul(0.5)?.add(0.5)).unwrap();
        }
        let dropped = y.exp().unwrap();
        let retain = Backward { retain_graph: true, ..Backward::default() };
        assert_eq!(dropped.backward_opts(retain).unwrap().len(), 1);
        drop((y, dropped));
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap().join().unwrap();
}
