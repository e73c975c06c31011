//! Cross-entropy and likelihood with weights, ignored rows, label smoothing and probabilities, against PyTorch's
//! `cross_entropy` and `nll_loss`.

use super::{T, assert_close, check, gradients, of};
use swath::prelude::*;
use swath::{CrossEntropy, Reduction};

fn logits() -> T {
    of(&[0.5, -1.0, 2.0, 1.5, 0.25, -0.75, 0.0, 3.0, -2.0, -1.25, 0.5, 0.75])
        .reshape((4, 3))
        .unwrap()
}

fn targets() -> T {
    tensor![i64; 2, 0, 1, 2]
}

fn weight() -> T {
    of(&[0.5, 2.0, 1.25])
}

fn probabilities() -> T {
    of(&[0.2, 0.3, 0.5, 1.0, 0.0, 0.0, 0.1, 0.6, 0.3, 0.0, 0.75, 0.25]).reshape((4, 3)).unwrap()
}

#[test]
fn weights_of_classes_match_torch() {
    let (x, w) = (logits(), weight());
    let plain = CrossEntropy { weight: Some(&w), ..Default::default() };
    let ignoring = |index| CrossEntropy { ignore_index: Some(index), ..plain };
    let rows: [(CrossEntropy, &[f64]); 6] = [
        (plain, &[0.27770577438813904]),
        (CrossEntropy { reduction: Reduction::Sum, ..plain }, &[1.3885288719406952]),
        (
            CrossEntropy { reduction: Reduction::None, ..plain },
            &[0.3016391208214463, 0.16533630470361205, 0.10997047075429446, 0.8115829756613425],
        ),
        (ignoring(2), &[0.1101227101831626]),
        (CrossEntropy { label_smoothing: 0.2, ..plain }, &[0.570143062275708]),
        (CrossEntropy { label_smoothing: 0.2, ..ignoring(0) }, &[0.5070247663549284]),
    ];
    for (options, want) in rows {
        let loss = x.cross_entropy(&targets(), options).unwrap();
        assert_close(&loss, want);
        // The same by way of log-probabilities.
        let log_p = x.log_softmax(1).unwrap();
        assert_close(&log_p.nll(&targets(), options).unwrap(), want);
        check(&[&x, &w], |xs| {
            xs[0].cross_entropy(&targets(), CrossEntropy { weight: Some(&xs[1]), ..options })
        });
    }
    let each = CrossEntropy { label_smoothing: 0.2, reduction: Reduction::None, ..ignoring(0) };
    let losses = x.cross_entropy(&targets(), each).unwrap();
    assert_close(&losses, &[0.7516391208214462, 0.0, 0.6183893521143891, 0.9115829756613425]);
    let g = gradients(&[&x], |xs| xs[0].cross_entropy(&targets(), plain));
    let want = [
        0.04382259803500917,
        0.009778143317671862,
        -0.05360074135268103,
        -0.02815596588489351,
        0.020583660399765155,
        0.007572305485128352,
        0.01884936660986566,
        -0.02140035097884252,
        0.002550984368976919,
        0.017675765795694864,
        0.10171700914835621,
        -0.1193927749440511,
    ];
    assert_close(&g[0], &want);
}

#[test]
fn likelihoods_match_torch() {
    let (log_p, w) = (logits().log_softmax(1).unwrap(), weight());
    let ignoring = CrossEntropy { weight: Some(&w), ignore_index: Some(1), ..Default::default() };
    assert_close(&log_p.nll(&targets(), ignoring).unwrap(), &[0.42618613372880026]);
    let g = gradients(&[&log_p], |xs| xs[0].nll(&targets(), ignoring));
    let want = [
        0.0,
        0.0,
        -0.41666666666666663,
        -0.16666666666666666,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        -0.41666666666666663,
    ];
    let distance = g[0].sub(of(&want).reshape((4, 3)).unwrap()).unwrap().abs().unwrap();
    assert!(distance.max(None, false).unwrap().item::<f64>().unwrap() < 1e-15);
    // Without options it is the mean of the picked ones.
    let plain = log_p.nll(&targets(), CrossEntropy::default()).unwrap();
    let picked = log_p.gather(1, &targets().unsqueeze(1).unwrap()).unwrap();
    assert_close(&plain, &[-picked.mean(None, false).unwrap().item::<f64>().unwrap()]);
    // Ignored rows may hold anything.
    let hole = T::where_cond(
        &tensor![bool; [false], [false], [true], [false]],
        &of(&[f64::NAN]).reshape((1, 1)).unwrap(),
        &logits(),
    );
    for f in [T::nll, T::cross_entropy] {
        let got = gradients(&[hole.as_ref().unwrap(), &w], |xs| {
            f(
                &xs[0],
                &targets(),
                CrossEntropy { weight: Some(&xs[1]), label_smoothing: 0.1, ..ignoring },
            )
        });
        for g in got {
            assert!(g.isfinite().unwrap().all(None, false).unwrap().item::<bool>().unwrap());
        }
    }
    // All rows ignored: no number.
    let none = CrossEntropy { ignore_index: Some(0), ..ignoring };
    let zeros = tensor![i64; 0, 0, 0, 0];
    assert!(log_p.nll(&zeros, none).unwrap().item::<f64>().unwrap().is_nan());
}

#[test]
fn probabilities_as_targets_match_torch() {
    let (x, p, w) = (logits(), probabilities(), weight());
    let with = |reduction| CrossEntropy { reduction, ..Default::default() };
    let none = [1.441311296657157, 0.3306726094072241, 1.8549852353771472, 0.836766380529074];
    assert_close(&x.cross_entropy(&p, with(Reduction::None)).unwrap(), &none);
    assert_close(&x.cross_entropy(&p, with(Reduction::Sum)).unwrap(), &[4.4637355219706025]);
    assert_close(&x.cross_entropy(&p, with(Reduction::Mean)).unwrap(), &[1.1159338804926506]);
    let options = CrossEntropy { weight: Some(&w), label_smoothing: 0.1, ..Default::default() };
    assert_close(&x.cross_entropy(&p, options).unwrap(), &[1.5902610480967583]);
    let g = gradients(&[&x, &p], |xs| xs[0].cross_entropy(&xs[1], options));
    let of_p = [
        0.19589752087393017,
        1.4585900834957208,
        0.06786880218482541,
        0.037200668558312715,
        0.7113026742332509,
        0.7258141713957817,
        0.3436858389799291,
        0.024743355919716253,
        1.4217145974498226,
        0.2980424678095208,
        0.40466987123808335,
        0.18260616952380207,
    ];
    assert_close(&g[1], &of_p);
    check(&[&x, &p, &w], |xs| {
        xs[0].cross_entropy(&xs[1], CrossEntropy { weight: Some(&xs[2]), ..options })
    });
    // Certain targets are class indices, and three axes are rows too.
    let certain =
        tensor![f64; [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]];
    let cube = x.reshape((2, 2, 3)).unwrap();
    let by_class =
        cube.cross_entropy(&targets().reshape((2, 2)).unwrap(), with(Reduction::None)).unwrap();
    let by_p = cube.cross_entropy(&certain, with(Reduction::None)).unwrap();
    assert_eq!(by_p.dims(), [2, 2]);
    assert_close(&by_p, &by_class.to_vec::<f64>().unwrap());
    // An impossible class of probability 0 adds nothing.
    let masked = tensor![f64; [0.0, f64::NEG_INFINITY]];
    let loss = masked.cross_entropy(&tensor![f64; [1.0, 0.0]], with(Reduction::Sum)).unwrap();
    assert_eq!(loss.item::<f64>().unwrap(), 0.0);
}

#[test]
fn wrong_targets_and_weights_are_errors() {
    let (x, p, w) = (logits(), probabilities(), weight());
    let with = |weight| CrossEntropy { weight: Some(weight), ..Default::default() };
    let short = of(&[1.0, 2.0]);
    let single = w.to_dtype(DType::F32).unwrap();
    let plain = CrossEntropy::default();
    let ignoring = CrossEntropy { ignore_index: Some(0), ..plain };
    let cases: Vec<(Result<T>, &[&str])> = vec![
        (x.cross_entropy(&targets(), with(&short)), &["cross_entropy", "[4, 3]", "[2]"]),
        (x.cross_entropy(&targets(), with(&single)), &["cross_entropy", "f64", "f32"]),
        (
            x.cross_entropy(&p.narrow(0, 0, 2).unwrap(), plain),
            &["cross_entropy", "[4, 3]", "[2, 3]"],
        ),
        (
            x.cross_entropy(&p.to_dtype(DType::F32).unwrap(), plain),
            &["cross_entropy", "f64", "f32"],
        ),
        (x.cross_entropy(&p, ignoring), &["cross_entropy", "ignore_index"]),
        (x.cross_entropy(&tensor![i64; 0, 3, 0, 0], with(&w)), &["cross_entropy", "index 3"]),
        (x.nll(&tensor![i64; 0, -1, 0, 0], plain), &["nll", "index -1"]),
        (x.nll(&p, plain), &["nll", "i64"]),
        (x.nll(&tensor![i64; 0], plain), &["nll", "[4, 3]", "[1]"]),
        (
            of(&[]).sum(None, false).unwrap().cross_entropy(&tensor![i64; 0], plain),
            &["cross_entropy", "[]"],
        ),
    ];
    for (result, parts) in cases {
        let text = result.unwrap_err().to_string();
        for part in parts {
            assert!(text.contains(part), "\"{text}\" should contain \"{part}\"");
        }
    }
}
