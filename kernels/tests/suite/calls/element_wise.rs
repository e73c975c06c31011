//! Functions of three arguments, conversions, comparisons, optimizer steps, random numbers.

use half::{bf16, f16};
use swath_kernels::{
    Adam, Angle, Arg, Compare, Comparison, Convert, Drawn, Dropout, Function, NumberTest, Rows,
    Select, Sgd, Stored, Truth, Uniform, adam, compare, convert, draw_normal, draw_uniform,
    dropout, dropout_factors, math, nonzero, philox_words, select, sgd, sincos, test_numbers,
    with_place,
};

use super::{Call, Cell, any, call, changed, input, numbers, output};

pub fn calls(len: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    of_real::<f32>(&mut calls, len);
    of_real::<f64>(&mut calls, len);
    conversions(&mut calls, len);
    selections::<u8>(&mut calls, len);
    selections::<u16>(&mut calls, len);
    selections::<f32>(&mut calls, len);
    selections::<i64>(&mut calls, len);
    for first in [0, 1, 3, 70] {
        let slots = [output::<u32>(len).any_length()];
        let run = move |[y]: [&mut super::Part<'_>; 1]| philox_words(7, 3, first, y.of());
        calls.push(call::<u32, 1>("philox_words", format!("from {first}"), slots, run).prefix());
    }
    draws::<f32>(&mut calls, len);
    draws::<f64>(&mut calls, len);
    calls
}

fn draws<E: Cell + Drawn>(calls: &mut Vec<Call>, len: usize) {
    let words = any::<u32>(E::WORDS * len, 4);
    let range = Uniform { from: -2.0, half_width: 1.5, largest: E::from_f64(0.875) };
    let run: [(&str, fn(&[u32], Uniform<E>, &mut [E])); 2] =
        [("draw_uniform", draw_uniform), ("draw_normal", |words, _, y| draw_normal(words, y))];
    for (name, run) in run {
        let slots = [input(&words), output::<E>(len)];
        calls.push(
            call::<E, 2>(name, "", slots, move |[words, y]| run(words.of(), range, y.of()))
                .prefix(),
        );
    }
}

fn of_real<E: Cell + Rows + Stored + Angle>(calls: &mut Vec<Call>, len: usize) {
    ternary::<E, math::MulAdd>(calls, "mul_add", len);
    ternary::<E, math::Clamp>(calls, "clamp", len);
    ternary::<E, math::Lerp>(calls, "lerp", len);
    ternary::<E, math::Huber>(calls, "huber", len);
    ternary::<E, math::LeakyReluGrad>(calls, "leaky_relu_grad", len);
    ternary::<E, math::EluGrad>(calls, "elu_grad", len);
    let x = any::<E>(len, 1);
    let slots = [input(&x), output::<E>(len), output::<E>(len)];
    calls.push(
        call::<E, 3>("sincos", "", slots, |[x, s, c]| {
            sincos(x.of::<E>(), s.of::<E>(), c.of::<E>())
        })
        .prefix(),
    );
    // With non-temporal stores.
    let slots = [input(&x), output::<E>(len)];
    calls.push(
        call::<E, 2>("with_place", "exp", slots, |[x, y]| {
            with_place(y.of(), 1 << 30, |mut y| {
                math::Exp::KERNEL.run([Arg::Slice(x.of::<E>())], &mut y)
            });
        })
        .prefix(),
    );
    let slots = [input(&numbers::<E>(len, 3)), output::<E>(len)];
    calls.push(
        call::<E, 2>("with_place", "exp of ordinary numbers", slots, |[x, y]| {
            with_place(y.of(), 1 << 30, |mut y| {
                math::Exp::KERNEL.run([Arg::Slice(x.of::<E>())], &mut y)
            });
        })
        .prefix(),
    );
    let slots = [input(&x), input(&any::<E>(len, 2)), output::<E>(len)];
    calls.push(
        call::<E, 3>("with_place", "mul_add", slots, |[x, z, y]| {
            let (x, z) = (Arg::Slice(x.of::<E>()), Arg::Slice(z.of::<E>()));
            with_place(y.of(), 1 << 30, |mut y| {
                math::MulAdd::KERNEL.run([x, Arg::Scalar(E::ONE), z], &mut y)
            });
        })
        .prefix(),
    );
    let dropped = Dropout { p: 0.4, seed: 5, stream: 1, first: 8 };
    calls.push(
        call::<E, 2>("dropout", "", [input(&x), output::<E>(len)], move |[x, y]| {
            dropout(dropped, x.of::<E>(), y.of::<E>())
        })
        .prefix(),
    );
    for first in [8, 7] {
        let dropped = Dropout { first, ..dropped };
        let run = move |[y]: [&mut super::Part<'_>; 1]| dropout_factors(dropped, y.of::<E>());
        let variant = format!("from {first}");
        let slots = [output::<E>(len).any_length()];
        calls.push(call::<E, 1>("dropout_factors", variant, slots, run).prefix());
    }
    steps::<E>(calls, len);
}

fn ternary<E: Cell + Rows + Stored, F: Function<3>>(
    calls: &mut Vec<Call>,
    name: &'static str,
    len: usize,
) {
    let content = [1, 2, 3].map(|seed| any::<E>(len, seed));
    let number = [4, 5, 6].map(|seed| E::number(0, seed));
    for mix in 0..8usize {
        let is_slice = move |k: usize| mix >> k & 1 == 1;
        let slots = [0, 1, 2].map(|k| match is_slice(k) {
            true => input(&content[k]),
            false => input(&content[k]).any_length(),
        });
        let [a, b, c] = slots.clone();
        let written = if mix == 0 { output::<E>(len).any_length() } else { output::<E>(len) };
        let run = move |[a, b, c, y]: [&mut super::Part<'_>; 4]| {
            let given = [(0, a), (1, b), (2, c)].map(|(k, x)| match is_slice(k) {
                true => Arg::Slice(&*x.of::<E>()),
                false => Arg::Scalar(number[k]),
            });
            F::KERNEL.run(given, y.of::<E>());
        };
        let variant = format!("mix {mix:03b}");
        calls.push(call::<E, 4>(name, &*variant, [a, b, c, written], run).prefix());
        for place in (0..3).filter(|&k| is_slice(k)) {
            let mut slots = slots.clone();
            slots[place] = changed(&content[place]);
            if mix == 1 << place {
                slots[place] = changed(&content[place]).any_length();
            }
            let run = move |parts: [&mut super::Part<'_>; 3]| {
                let mut y: &mut [E] = &mut [];
                let mut given = [None; 3];
                for (k, part) in parts.into_iter().enumerate() {
                    if k == place {
                        y = part.of();
                    } else {
                        given[k] = Some(match is_slice(k) {
                            true => Arg::Slice(&*part.of::<E>()),
                            false => Arg::Scalar(number[k]),
                        });
                    }
                }
                F::KERNEL.run_in_place(given, y);
            };
            let variant = format!("{variant} into {place}");
            calls.push(call::<E, 3>(name, variant, slots, run).prefix().again());
        }
    }
}

fn steps<E: Cell + Rows>(calls: &mut Vec<Call>, len: usize) {
    let [p, g, m] = [1, 2, 3].map(|seed| numbers::<E>(len, seed));
    let v: Vec<E> = numbers::<E>(len, 4).into_iter().map(|x| x * x).collect();
    let plain = Sgd {
        rate: 0.1,
        momentum: 0.9,
        dampening: 0.1,
        weight_decay: 0.01,
        nesterov: false,
        first: false,
    };
    calls.push(
        call::<E, 2>("sgd", "without momentum", [changed(&p), input(&g)], move |[p, g]| {
            sgd(plain, p.of::<E>(), g.of(), None)
        })
        .prefix(),
    );
    for (nesterov, first) in [(false, false), (true, false), (false, true)] {
        let step = Sgd { nesterov, first, ..plain };
        let slots = [changed(&p), input(&g), changed(&m)];
        let run = move |[p, g, b]: [&mut super::Part<'_>; 3]| {
            sgd(step, p.of::<E>(), g.of(), Some(b.of()))
        };
        calls.push(call::<E, 3>("sgd", format!("{nesterov} {first}"), slots, run).prefix());
    }
    for decoupled in [false, true] {
        let step = Adam {
            rate: 0.1,
            betas: [0.9, 0.999],
            eps: 1e-8,
            weight_decay: 0.01,
            decoupled,
            step: 3,
        };
        let slots = [changed(&p), input(&g), changed(&m), changed(&v)];
        let run = move |[p, g, m, v]: [&mut super::Part<'_>; 4]| {
            adam(step, p.of::<E>(), g.of(), m.of(), v.of())
        };
        calls.push(call::<E, 4>("adam", format!("{decoupled}"), slots, run).prefix());
    }
}

fn selections<T: Cell + Select>(calls: &mut Vec<Call>, len: usize) {
    let mask: Vec<u8> = any::<u8>(len, 9).into_iter().map(|x| x & 3).collect();
    let number = T::any(3, 8);
    for mix in 0..4usize {
        let [a, b] = [1, 2].map(|seed| input(&any::<T>(len, seed)));
        let a = if mix & 1 == 1 { a } else { a.any_length() };
        let b = if mix & 2 == 2 { b } else { b.any_length() };
        let run = move |[mask, a, b, y]: [&mut super::Part<'_>; 4]| {
            let a = if mix & 1 == 1 { Arg::Slice(&*a.of()) } else { Arg::Scalar(number) };
            let b = if mix & 2 == 2 { Arg::Slice(&*b.of()) } else { Arg::Scalar(number) };
            select(mask.of(), a, b, y.of::<T>());
        };
        let slots = [input(&mask), a, b, output::<T>(len)];
        calls.push(call::<T, 4>("select", format!("mix {mix:02b}"), slots, run).prefix());
    }
}

fn comparisons<T: Cell + Compare + Truth>(calls: &mut Vec<Call>, len: usize) {
    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    let x = any::<T>(len, 1);
    // Equal to the other operand in every third element.
    let z: Vec<T> = (0..len).map(|i| T::any(i, if i % 3 == 0 { 1 } else { 2 })).collect();
    let number = T::number(1, 3);
    for op in [Eq, Ne, Lt, Le, Gt, Ge] {
        for mix in 1..4usize {
            let [a, b] = [input(&x), input(&z)];
            let a = if mix & 1 == 1 { a } else { a.any_length() };
            let b = if mix & 2 == 2 { b } else { b.any_length() };
            let run = move |[a, b, y]: [&mut super::Part<'_>; 3]| {
                let a = if mix & 1 == 1 { Arg::Slice(&*a.of()) } else { Arg::Scalar(number) };
                let b = if mix & 2 == 2 { Arg::Slice(&*b.of()) } else { Arg::Scalar(number) };
                compare::<T>(op, a, b, y.of());
            };
            let slots = [a, b, output::<u8>(len)];
            calls.push(call::<T, 3>("compare", format!("{op:?} {mix:02b}"), slots, run).prefix());
        }
    }
    for test in [NumberTest::IsNan, NumberTest::IsInf, NumberTest::IsFinite] {
        let run = move |[x, y]: [&mut super::Part<'_>; 2]| test_numbers::<T>(test, x.of(), y.of());
        let slots = [input(&x), output::<u8>(len)];
        let of_integers = matches!(T::KIND, super::Kind::Integer(_));
        let one = call::<T, 2>("test_numbers", format!("{test:?}"), slots, run).prefix();
        calls.push(if of_integers { one.portable() } else { one });
    }
    calls.push(
        call::<T, 2>("nonzero", "", [input(&x), output::<u8>(len)], |[x, y]| {
            nonzero::<T>(x.of(), y.of())
        })
        .prefix(),
    );
}

fn conversion<A: Cell + Convert<B>, B: Cell>(calls: &mut Vec<Call>, len: usize) {
    let slots = [input(&any::<A>(len, 1)), output::<B>(len)];
    let mut one = call::<A, 2>("convert", "", slots, |[x, y]| convert(x.of::<A>(), y.of::<B>()));
    one.dtype = format!("{}-{}", A::NAME, B::NAME);
    calls.push(if A::KIND == B::KIND { one.portable() } else { one }.prefix());
}

macro_rules! pairs {
    ($calls:ident $len:ident: $($from:ident)*) => {$(
        comparisons::<$from>($calls, $len);
        pairs!(@to $calls $len $from f16 bf16 f32 f64 i64 i32 u32 u8);
    )*};
    (@to $calls:ident $len:ident $from:ident $($to:ident)*) => {
        $(conversion::<$from, $to>($calls, $len);)*
    };
}

fn conversions(calls: &mut Vec<Call>, len: usize) {
    pairs!(calls len: f16 bf16 f32 f64 i64 i32 u32 u8);
}
