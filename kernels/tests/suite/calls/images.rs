//! Convolutions as products with windows, and poolings.

use half::{bf16, f16};
use swath_kernels as k;
use swath_kernels::{
    Factor, Gemm, GemmError, Geometry, Indirect, MatMut, MatRef, Right, Sliding, Windows, Workspace,
};

use super::{Call, Cell, Part, call, input, numbers, output};

pub fn calls(len: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    products::<f32>(&mut calls, len);
    products::<f64>(&mut calls, len);
    products::<f16>(&mut calls, len);
    products::<bf16>(&mut calls, len);
    indirect::<f32>(&mut calls, len);
    indirect::<f64>(&mut calls, len);
    indirect::<f16>(&mut calls, len);
    indirect::<bf16>(&mut calls, len);
    pools::<f32>(&mut calls, len);
    pools::<f64>(&mut calls, len);
    calls
}

/// Windows of images `[1, 3, len]`, with strides, dilations and padding.
fn geometries(len: usize) -> impl Iterator<Item = Geometry> {
    [(1, 1, 1), (2, 1, 0), (1, 2, 2), (3, 1, 1)].into_iter().filter_map(
        move |(stride, dilation, padding)| {
            let room = (len + 2 * padding).checked_sub(2 * dilation + 1)?;
            let down = Sliding { padding: [1; 2], windows: 4, ..Sliding::new(3, 2) };
            let (padding, windows) = ([padding as isize; 2], room / stride + 1);
            let across = Sliding { image: len, kernel: 3, stride, dilation, padding, windows };
            Geometry::new([Sliding::default(), down, across]).ok()
        },
    )
}

fn products<T: Cell + Factor<Sum: Cell>>(calls: &mut Vec<Call>, len: usize) {
    const COUNTS: [usize; 2] = [2, 2];
    const FILTERS: usize = 3;
    for geometry in geometries(len) {
        let columns = COUNTS[0] * geometry.windows().iter().product::<usize>();
        let plane = 3 * len as isize;
        let strides = [2 * plane, plane, plane, len as isize, 1];
        let x = input(&numbers::<T>(12 * len, 1)).at_least();
        let filters = input(&numbers::<T>(FILTERS * 12, 2)).at_least();
        let variant = format!("{geometry:?}");
        let place = output::<T::Sum>(FILTERS * columns).at_least();
        let run = move |[w, x, c]: [&mut Part<'_>; 3]| {
            let windows =
                Windows::new(x.of::<T>(), 0, COUNTS, strides, geometry).unwrap_or_else(refused);
            let w = MatRef::row_major(w.of::<T>(), [FILTERS, 12]).unwrap_or_else(refused);
            let c = MatMut::row_major(c.of(), [FILTERS, columns]).unwrap_or_else(refused);
            k::gemm(Gemm::new(w, &windows), c, &mut Workspace::new()).unwrap_or_else(refused);
        };
        calls.push(call::<T, 3>("gemm_windows", &*variant, [filters, x.clone(), place], run));
        let run = move |[x, c]: [&mut Part<'_>; 2]| {
            let windows =
                Windows::new(x.of::<T>(), 0, COUNTS, strides, geometry).unwrap_or_else(refused);
            let c = MatMut::row_major(c.of(), [12, 12]).unwrap_or_else(refused);
            let workspace = &mut Workspace::new();
            k::gemm(Gemm::new(&windows, Right::WindowsTransposed(&windows)), c, workspace)
                .unwrap_or_else(refused);
        };
        let place = output::<T::Sum>(144).at_least();
        calls.push(call::<T, 2>("gemm_windows_transposed", &*variant, [x, place], run));
    }
}

/// Products with rows that overlap, of one block of k and of more.
fn indirect<T: Cell + Factor<Sum: Cell>>(calls: &mut Vec<Call>, len: usize) {
    for depth in [3, 9, 300] {
        let offsets: Vec<usize> = (0..depth).map(|p| p * 7 % 5).collect();
        let slots = [
            input(&numbers::<T>(4 * depth, 1)).at_least(),
            input(&numbers::<T::Sum>(len + 4, 2)).at_least(),
            output::<T::Sum>(4 * len).at_least(),
        ];
        let run = move |[a, b, c]: [&mut Part<'_>; 3]| {
            let b = Indirect::new(b.of::<T::Sum>(), &offsets, len).unwrap_or_else(refused);
            let a = MatRef::row_major(a.of::<T>(), [4, depth]).unwrap_or_else(refused);
            let c = MatMut::row_major(c.of(), [4, len]).unwrap_or_else(refused);
            k::gemm(Gemm::new(a, &b), c, &mut Workspace::new()).unwrap_or_else(refused);
        };
        calls.push(call::<T, 3>("gemm_indirect", format!("k {depth}"), slots, run));
    }
}

fn refused<V>(error: GemmError) -> V {
    panic!("{error}")
}

fn pools<T: Cell + k::Float>(calls: &mut Vec<Call>, len: usize) {
    for geometry in geometries(len) {
        let windows: usize = 2 * geometry.windows().iter().product::<usize>();
        let (x, g) = (input(&numbers::<T>(6 * len, 1)), input(&numbers::<T>(windows, 2)));
        for counts_padding in [false, true] {
            let variant = format!("{geometry:?} {counts_padding}");
            let run = move |[x, y]: [&mut Part<'_>; 2]| {
                k::avg_pool(x.of::<T>(), geometry, counts_padding, y.of());
            };
            calls.push(call::<T, 2>("avg_pool", &*variant, [x.clone(), output::<T>(windows)], run));
            let run = move |[g, y]: [&mut Part<'_>; 2]| {
                k::avg_pool_grad(g.of::<T>(), geometry, counts_padding, y.of());
            };
            let slots = [g.clone(), output::<T>(6 * len)];
            calls.push(call::<T, 2>("avg_pool_grad", &*variant, slots, run));
        }
        let run = move |[x, y, positions]: [&mut Part<'_>; 3]| {
            k::max_pool(x.of::<T>(), geometry, y.of(), positions.of());
        };
        let slots = [x.clone(), output::<T>(windows), output::<i64>(windows)];
        calls.push(call::<T, 3>("max_pool", format!("{geometry:?}"), slots, run));
        let run = move |[x, y]: [&mut Part<'_>; 2]| {
            k::max_pool(x.of::<T>(), geometry, y.of(), &mut []);
        };
        let slots = [x, output::<T>(windows)];
        calls.push(call::<T, 2>("max_pool", format!("{geometry:?} values"), slots, run));
    }
}
