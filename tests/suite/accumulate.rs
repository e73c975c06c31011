//! Gradients of a tensor that several products use are added in place.

use swath::prelude::*;

use crate::support::{alone_with, counting};

type T = Tensor<CpuBackend>;

fn randn<S: Into<Shape>>(shape: S, seed: u64, dtype: DType) -> T {
    T::randn(shape, &mut Rng::seed(seed)).unwrap().to_dtype(dtype).unwrap()
}

/// Random small integers, so that sums are exact in any order.
fn whole<S: Into<Shape>>(shape: S, seed: u64, dtype: DType) -> T {
    randn(shape, seed, dtype).mul_scalar(2.0).unwrap().round().unwrap()
}

fn bits(x: &T) -> Vec<u64> {
    let values = x.detach().to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    values.into_iter().map(f64::to_bits).collect()
}

/// A product of a tracked tensor with another one, which the number seeds.
type Product<'a> = &'a dyn Fn(&T, u64) -> Result<T>;

/// Checks the gradient of `x` through all of `products` against the sum of the gradients through each alone,
/// added from the last to the first.
#[track_caller]
fn check(name: &str, x: &T, products: &[Product<'_>]) {
    check_with(randn::<Shape>, name, x, products);
}

#[track_caller]
fn check_with(upstream: fn(Shape, u64, DType) -> T, name: &str, x: &T, products: &[Product<'_>]) {
    let gradient = |of: &dyn Fn(&T) -> Vec<T>| {
        let x = x.requires_grad();
        let sums = of(&x).into_iter().enumerate().map(|(i, y)| {
            let g = upstream(*y.shape(), 70 + i as u64, y.dtype());
            y.mul(&g).unwrap().sum(None, false).unwrap()
        });
        let sum = sums.reduce(|total, y| total.add(&y).unwrap()).unwrap();
        sum.backward().unwrap().remove(&x).unwrap()
    };
    let all =
        gradient(&|x| products.iter().enumerate().map(|(i, f)| f(x, i as u64).unwrap()).collect());
    let each = products.iter().enumerate().rev().map(|(i, f)| {
        let y = |x: &T| f(x, i as u64).unwrap();
        // Detached results in place of the others keep the seeds of the upstream gradients.
        gradient(&|x| (0..=i).map(|j| if j == i { y(x) } else { y(x).detach() }).collect())
    });
    let expected = each.reduce(|total, g| total.add(&g).unwrap()).unwrap();
    assert!(bits(&all) == bits(&expected), "{name}");
}

#[test]
fn gradients_added_in_place_have_the_bits_of_separate_sums() {
    for dtype in [DType::F32, DType::F64, DType::F16] {
        for k in [5, 40, 300] {
            let name = format!("{dtype} {k}");
            let w = randn([30, k], 1, dtype);
            let weight: Product<'_> = &|w, i| randn([40, k], 10 + i, dtype).linear(w, None);
            let stack: Product<'_> = &|w, i| randn([3, 40, k], 20 + i, dtype).linear(w, None);
            let vector: Product<'_> = &|w, i| randn([k], 25 + i, dtype).linear(w, None);
            let swapped: Product<'_> =
                &|w, i| randn([40, 3, k], 30 + i, dtype).permute(&[1, 0, 2])?.linear(w, None);
            let left: Product<'_> = &|w, i| w.matmul(&randn([k, 50], 40 + i, dtype));
            let right: Product<'_> = &|w, i| randn([600, 30], 50 + i, dtype).matmul(w);
            let other: Product<'_> = &|w, _| w.square();
            let all = [weight, stack, vector, swapped, left, right, other];
            for f in all {
                check(&name, &w, &[f, f, f]);
            }
            check(&name, &w, &all);
            check(&name, &w, &[other, weight, other, right, left]);

            // The same input under several layers, and a batch of products.
            let x = randn([3, 40, k], 2, dtype);
            let layer: Product<'_> = &|x, i| x.linear(&randn([20, k], 60 + i, dtype), None);
            let batch: Product<'_> = &|x, i| x.matmul(&randn([3, k, 20], 65 + i, dtype));
            // A weight large enough to be packed for a batch whose rows cannot be stacked.
            let transposed: Product<'_> =
                &|x, i| x.linear(&randn([250, k], 68 + i, dtype), None)?.swap_axes(1, 2);
            check(&name, &x, &[layer, layer, batch, other, layer, batch]);
            check(&name, &x, &[transposed, other, transposed, layer]);
        }
    }
}

/// A random product with `x`, `[…, m, k]`, followed by a random view, which permutes its upstream gradient.
fn random_use(x: &[usize], dtype: DType, rng: &mut Rng) -> impl Fn(&T, u64) -> Result<T> + use<> {
    let (lead, mut stack) = (x.len() - 2, x.to_vec());
    let [m, k] = [x[lead], x[lead + 1]];
    let [n, left] = [[1, 7, 120, 250], [1, 7, 60, 90]].map(|all| all[rng.below(4) as usize]);
    (stack[lead], stack[lead + 1]) = (k, n);
    let (kind, turn) = (rng.below(6), rng.below(4));
    move |x, i| {
        let weight = || randn([n, k], 100 + i, dtype);
        let y = match kind {
            0 => x.linear(&weight(), None)?,
            1 => x.linear_activation(&weight(), None, swath::ops::Activation::Tanh)?,
            2 => x.matmul(&weight().t()?)?,
            3 => randn([left, m], 100 + i, dtype).matmul(x)?,
            4 => x.matmul(&randn(&stack[..], 100 + i, dtype))?,
            _ => T::einsum("...mk,nk->...mn", &[x, &weight()])?,
        };
        match turn {
            0 => Ok(y),
            1 => y.swap_axes(-1, -2),
            2 => y.flip(0),
            _ => y.permute(&(0..y.rank()).rev().collect::<Vec<_>>()),
        }
    }
}

#[test]
fn gradients_of_random_products_add_up() {
    let mut rng = Rng::seed(5);
    for round in 0..60 {
        let dtype = [DType::F32, DType::F64][round % 2];
        let mut pick = |all: [usize; 4]| all[rng.below(4) as usize];
        let mut dims: Vec<usize> =
            [pick([0, 2, 3, 5]), pick([0, 0, 1, 4])].into_iter().filter(|&dim| dim > 0).collect();
        dims.extend([pick([1, 9, 40, 130]), pick([1, 16, 90, 270])]);
        let mut x = randn(&dims[..], 6 + round as u64, dtype);
        if pick([0, 1, 0, 1]) == 1 {
            x = x.t().unwrap().contiguous().unwrap().t().unwrap();
        }
        let uses: Vec<_> = (0..3).map(|_| random_use(&dims, dtype, &mut rng)).collect();
        let uses: Vec<Product<'_>> = uses.iter().map(|f| f as Product<'_>).collect();
        check(&format!("round {round}: {dtype} {dims:?}"), &x, &uses);
    }
}

/// A product of a tensor with itself adds two gradients, in another order than the products above.
#[test]
fn a_product_with_itself_adds_both_gradients() {
    for dtype in [DType::F32, DType::F64] {
        let square = whole([30, 30], 3, dtype);
        let itself: Product<'_> = &|x, _| x.matmul(x);
        let transposed: Product<'_> = &|x, _| x.matmul(&x.t()?);
        let layer: Product<'_> = &|x, _| x.linear(x, None);
        let by: Product<'_> = &|x, i| x.matmul(&whole([30, 30], 80 + i, dtype));
        let all = [itself, by, transposed, itself, layer, by, layer, itself];
        check_with(whole::<Shape>, "both sides", &square, &all);
    }
}

#[test]
fn shared_gradients_are_not_overwritten() {
    let [x, w, g] = [1, 2, 3].map(|seed| randn([20, 20], seed, DType::F32));
    let given = bits(&g);
    let x = x.requires_grad();
    let h = x.mul_scalar(1.0).unwrap();
    let y = h.add(h.matmul(&w).unwrap()).unwrap();
    y.retain_grad();
    h.retain_grad();
    let grads = y.backward_with(&g).unwrap();
    // The total of h begins as the gradient of y, which is kept, and which the caller holds.
    assert_eq!(bits(grads.wrt(&y).unwrap()), given);
    assert_eq!(bits(&g), given);
    let expected = g.add(g.matmul(&w.t().unwrap()).unwrap()).unwrap();
    assert_eq!(bits(grads.wrt(&h).unwrap()), bits(&expected));
    assert_eq!(bits(grads.wrt(&x).unwrap()), bits(&expected));
}

#[test]
fn second_order_gradients_agree_with_differences() {
    let [x, w] = [1, 2].map(|seed| randn([4, 4], seed, DType::F64));
    let f = |xs: &[T]| xs[0].linear(&xs[1], None)?.matmul(&xs[1])?.linear(&xs[1], None);
    let options = GradCheck { order: 2, ..Default::default() };
    check_gradients(f, &[&x, &w], options).unwrap();
}

#[test]
fn a_weight_of_many_products_has_one_gradient_in_memory() {
    if swath::blas::info().provider != "embedded" {
        println!("SKIPPED: gradients of a library's products are not added in place");
        return;
    }
    let name = "accumulate::a_weight_of_many_products_has_one_gradient_in_memory";
    alone_with(name, &[("SWATH_POOL_BYTES", "0")], || {
        swath::runtime::set_threads(1).unwrap();
        for (rows, width) in [(8, 1024), (300, 2048)] {
            let w = randn([width, width], 1, DType::F32).requires_grad();
            let step = || {
                let mut h = randn([rows, width], 2, DType::F32);
                for _ in 0..4 {
                    h = h.linear(&w, None).unwrap();
                }
                let y = h.sum(None, false).unwrap();
                counting::peak_of(|| y.backward().unwrap().remove(&w).unwrap())
            };
            drop(step());
            let (gradient, peak) = step();
            let of = |count: usize| count * size_of::<f32>();
            let (size, upstream) = (of(gradient.numel()), of(rows * width));
            let most = size + 3 * upstream + (1 << 20);
            assert!(peak <= most, "{peak} bytes for a gradient of {size}, at most {most}");
        }
    });
}
