//! No access outside of the operands: each adjoins a protected page. Gaps between the elements of A
//! and B are NaN and must not reach C; those of C must not change.
#![cfg(all(target_os = "linux", not(miri)))]

use crate::guarded::{Against, Guarded};
use half::{bf16, f16};
use swath_kernels::testing::{levels_for, with_isa};
use swath_kernels::{
    Bias, Epilogue, Factor, Float, Gemm, GemmPath, Isa, MatMut, MatRef, PackedB, Workspace, gemm,
    testing,
};

/// Layouts of a matrix, whose elements and gaps fill its memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    Rows,
    Columns,
    /// Rows or columns with gaps between them.
    Wider,
    WiderColumns,
    EveryOther,
    /// Every third element.
    Spread,
    /// From the last row to the first, or from the last element to the first.
    RowsUp,
    /// From the last element of a row to the first.
    RowsBack,
    Backwards,
    BackwardsColumns,
    /// One row or one column, broadcast; only for operands that are read.
    OneRow,
    OneColumn,
}

use Layout::*;

impl Layout {
    fn strides(self, [rows, cols]: [usize; 2]) -> [isize; 2] {
        let [rows, cols] = [rows as isize, cols as isize];
        match self {
            Rows => [cols, 1],
            Columns => [1, rows],
            Wider => [cols + 7, 1],
            WiderColumns => [1, rows + 7],
            EveryOther => [2 * cols, 2],
            Spread => [3 * cols, 3],
            RowsUp => [-cols, 1],
            RowsBack => [cols, -1],
            Backwards => [-cols, -1],
            BackwardsColumns => [-1, -rows],
            OneRow => [0, 1],
            OneColumn => [1, 0],
        }
    }
}

/// A matrix whose memory adjoins a protected page.
struct Matrix<E> {
    memory: Guarded<E>,
    offset: usize,
    shape: [usize; 2],
    strides: [isize; 2],
}

/// Element types of matrices.
trait Number: Copy {
    fn from_f64(x: f64) -> Self;
}

macro_rules! numbers {
    ($($t:ident)*) => {$(
        impl Number for $t {
            fn from_f64(x: f64) -> Self {
                $t::from_f64(x)
            }
        }
    )*};
}
numbers!(f16 bf16);

impl Number for f32 {
    fn from_f64(x: f64) -> Self {
        x as f32
    }
}

impl Number for f64 {
    fn from_f64(x: f64) -> Self {
        x
    }
}

impl<E: Number> Matrix<E> {
    /// Makes a matrix whose elements are set by row and column, with `gap` between them.
    fn new(shape: [usize; 2], layout: Layout, against: Against, gap: E) -> Self {
        let strides = layout.strides(shape);
        let reach = |axis: usize| (shape[axis] as isize - 1) * strides[axis];
        let low: isize = (0..2).map(|axis| reach(axis).min(0)).sum();
        let high: isize = (0..2).map(|axis| reach(axis).max(0)).sum();
        let mut memory = Guarded::new((high - low + 1) as usize, against);
        memory.elements().fill(gap);
        Matrix { memory, offset: low.unsigned_abs(), shape, strides }
    }

    fn filled(mut self, value: impl Fn(usize, usize) -> f64) -> Self {
        for at in 0..self.shape[0] * self.shape[1] {
            let (i, j) = (at / self.shape[1], at % self.shape[1]);
            let index = self.index(i, j);
            self.memory.elements()[index] = E::from_f64(value(i, j));
        }
        self
    }

    fn index(&self, i: usize, j: usize) -> usize {
        let [down, right] = self.strides;
        (self.offset as isize + i as isize * down + j as isize * right) as usize
    }

    fn replace(&mut self, i: usize, j: usize, by: E) -> E {
        let index = self.index(i, j);
        std::mem::replace(&mut self.memory.elements()[index], by)
    }

    fn view(&mut self) -> MatRef<'_, E> {
        let Matrix { memory, offset, shape, strides } = self;
        MatRef::new(memory.elements(), *offset, *shape, *strides).unwrap()
    }

    fn view_mut(&mut self) -> MatMut<'_, E> {
        let Matrix { memory, offset, shape, strides } = self;
        MatMut::new(memory.elements(), *offset, *shape, *strides).unwrap()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    /// The product with beta.
    Gemm(f64),
    Packed(f64),
    Bias,
    /// The product with a bias and [`negate`], whose inputs are kept.
    Epilogue(Layout),
}

fn negate<E: Float>(x: &mut [E]) {
    x.iter_mut().for_each(|x| *x = -*x);
}

/// Rotates the levels of a test's checks: by default the portable level, a hundred times slower, is used in
/// every fifth check; five is coprime to the numbers of calls and layouts.
#[derive(Default)]
struct Turns(usize);

impl Turns {
    fn levels(&mut self) -> Vec<Isa> {
        self.0 += 1;
        levels_for(self.0 - 1, 5)
    }
}

/// Elements of A are 2 in even rows and 1 in odd ones, of B 3 in even columns and 1 in odd ones, so that the
/// sums are exact. Returns the paths taken.
fn check<T: Factor<Sum: Number> + Number>(
    turns: &mut Turns,
    [m, k, n]: [usize; 3],
    [a_layout, b_layout, c_layout]: [Layout; 3],
    call: Call,
) -> Vec<GemmPath> {
    let (mut paths, levels) = (Vec::new(), turns.levels());
    let nan = T::from_f64(f64::NAN);
    // A broadcast row or column has the same value everywhere.
    let of_a = |i: usize| if matches!(a_layout, OneRow) || i % 2 == 1 { 1.0 } else { 2.0 };
    let of_b = |j: usize| if matches!(b_layout, OneColumn) || j % 2 == 1 { 1.0 } else { 3.0 };
    let number = <T::Sum as Number>::from_f64;
    let gap = number(-77.0);
    for against in Against::BOTH {
        let mut a = Matrix::<T>::new([m, k], a_layout, against, nan).filled(|i, _| of_a(i));
        let mut b = Matrix::<T>::new([k, n], b_layout, against, nan).filled(|_, j| of_b(j));
        let mut bias = Guarded::<T::Sum>::new(n, against);
        bias.elements().iter_mut().enumerate().for_each(|(j, x)| *x = number(j as f64));
        for &isa in &levels {
            // A C that must not be read is NaN.
            let beta = if let Call::Gemm(beta) | Call::Packed(beta) = call { beta } else { 0.0 };
            let old = if beta == 0.0 { f64::NAN } else { 5.0 };
            let mut c = Matrix::new([m, n], c_layout, against, gap).filled(|_, _| old);
            let sums_layout = if let Call::Epilogue(layout) = call { layout } else { Rows };
            let mut sums = Matrix::new([m, n], sums_layout, against, gap).filled(|_, _| f64::NAN);
            let (view, workspace) = (a.view(), &mut Workspace::new());
            let run = || match call {
                Call::Gemm(beta) => {
                    let (alpha, beta) = (T::Sum::ONE, number(beta));
                    gemm(Gemm { alpha, beta, ..Gemm::new(view, b.view()) }, c.view_mut(), workspace)
                }
                Call::Packed(beta) => {
                    let mut buffer = Workspace::new();
                    let b = &PackedB::pack(b.view(), &mut buffer);
                    let (alpha, beta) = (T::Sum::ONE, number(beta));
                    gemm(Gemm { alpha, beta, ..Gemm::new(view, b) }, c.view_mut(), workspace)
                }
                Call::Bias => gemm(
                    Gemm {
                        epilogue: Bias::PerColumn(bias.elements()).into(),
                        ..Gemm::new(view, b.view())
                    },
                    c.view_mut(),
                    workspace,
                ),
                Call::Epilogue(_) => {
                    let sums = Some(sums.view_mut());
                    let bias = Some(Bias::PerColumn(bias.elements()));
                    let epilogue = Epilogue { bias, function: Some(&negate::<T::Sum>), sums };
                    gemm(Gemm { epilogue, ..Gemm::new(view, b.view()) }, c.view_mut(), workspace)
                }
            };
            paths.push(with_isa(isa, run).unwrap().unwrap());
            let layout = [a_layout, b_layout, c_layout];
            let at = || format!("{isa}, {against:?}, [{m}, {k}, {n}], {layout:?}, {call:?}");
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let more = match call {
                    Call::Bias | Call::Epilogue(_) => j as f64,
                    _ if beta == 0.0 => 0.0,
                    _ => beta * old,
                };
                let expected = number(k as f64 * of_a(i) * of_b(j) + more);
                let (got, kept) = (c.replace(i, j, gap), sums.replace(i, j, gap));
                if matches!(call, Call::Epilogue(_)) {
                    assert!(got == -expected, "{}: ({i}, {j}) is {got:?}", at());
                    assert!(kept == expected, "{}: ({i}, {j}) of the sums is {kept:?}", at());
                } else {
                    assert!(got == expected, "{}: ({i}, {j}) is {got:?}", at());
                }
            }
            for (name, matrix) in [("C", &mut c), ("the sums", &mut sums)] {
                let untouched = matrix.memory.elements().iter().all(|&x| x == gap);
                assert!(untouched, "{}: memory between the elements of {name}", at());
            }
        }
    }
    paths
}

#[test]
fn products_access_no_memory_outside_of_their_operands() {
    let (mut seen, turns) = (Vec::new(), &mut Turns::default());
    for m in [1, 2, 6, 7, 13, 20] {
        for n in [1, 3, 8, 17, 33, 64, 71] {
            for k in [1, 6, 17, 300] {
                if testing::is_quick() && k == 300 && n > 17 {
                    continue;
                }
                for a in [Rows, Columns] {
                    for b in [Rows, Columns] {
                        let paths = check::<f32>(turns, [m, k, n], [a, b, Rows], Call::Gemm(0.0));
                        seen.extend(paths);
                        check::<f64>(turns, [m, k, n], [a, b, Columns], Call::Gemm(1.0));
                        check::<f16>(turns, [m, k, n], [a, b, Rows], Call::Gemm(0.0));
                        check::<f32>(turns, [m, k, n], [a, b, Rows], Call::Bias);
                        check::<f32>(turns, [m, k, n], [a, b, Rows], Call::Epilogue(Rows));
                    }
                }
                check::<f64>(turns, [m, k, n], [Rows, Columns, Columns], Call::Epilogue(Columns));
                check::<bf16>(turns, [m, k, n], [Rows, Rows, Wider], Call::Epilogue(Rows));
                check::<f64>(turns, [m, k, n], [Rows, Columns, Wider], Call::Bias);
                check::<f32>(turns, [m, k, n], [Rows, Rows, Rows], Call::Packed(0.0));
                check::<f64>(turns, [m, k, n], [Rows, Columns, Rows], Call::Packed(1.0));
                check::<bf16>(turns, [m, k, n], [Rows, Columns, Rows], Call::Packed(0.0));
            }
        }
    }
    for path in [GemmPath::Small, GemmPath::Columns, GemmPath::InPlace, GemmPath::Blocked] {
        assert!(seen.contains(&path), "{path}");
    }
    for b in [Rows, Columns] {
        for a in [Rows, Columns] {
            check::<f32>(turns, [4, 4, 4], [a, b, Rows], Call::Gemm(0.0));
            check::<f32>(turns, [4, 4, 4], [a, b, Rows], Call::Bias);
        }
        check::<f32>(turns, [20, 300, 1100], [Columns, b, Rows], Call::Gemm(1.0));
        check::<f32>(turns, [20, 300, 1100], [Rows, b, Rows], Call::Packed(0.0));
        check::<f32>(turns, [20, 300, 1100], [Rows, b, Wider], Call::Bias);
        check::<f32>(turns, [20, 300, 1100], [Rows, b, Rows], Call::Epilogue(Wider));
    }
}

#[test]
fn gaps_between_elements_are_not_read_or_written() {
    let turns = &mut Turns::default();
    let read = [
        Rows,
        Columns,
        Wider,
        WiderColumns,
        Spread,
        RowsUp,
        RowsBack,
        Backwards,
        BackwardsColumns,
        OneRow,
        OneColumn,
    ];
    let written =
        [Rows, Wider, WiderColumns, Spread, RowsUp, RowsBack, Backwards, BackwardsColumns];
    let mut outputs = written.into_iter().cycle();
    for shape in [[1, 40, 70], [9, 300, 37], [50, 20, 130]] {
        for a in read {
            for b in read {
                let c = outputs.next().expect("a cycle");
                check::<f32>(turns, shape, [a, b, c], Call::Gemm(0.0));
                check::<f64>(turns, shape, [a, b, c], Call::Gemm(-0.5));
                check::<bf16>(turns, shape, [a, b, c], Call::Gemm(1.0));
                check::<f64>(turns, shape, [a, b, c], Call::Packed(0.0));
                check::<f32>(turns, shape, [a, b, c], Call::Bias);
                let sums = outputs.next().expect("a cycle");
                check::<f64>(turns, shape, [a, b, c], Call::Epilogue(sums));
            }
        }
    }
}

/// B exceeds the half MiB from which it is streamed. By default two of the six calls for each number of rows
/// and layout of B, rotating with the layout.
#[test]
fn few_rows_by_a_streamed_b_access_no_memory_outside_of_it() {
    type Check = fn(&mut Turns, usize, Layout) -> Vec<GemmPath>;
    let checks: [Check; 6] = [
        |on, m, b| check::<f32>(on, [m, 270, 491], [Rows, b, Rows], Call::Gemm(0.0)),
        |on, m, b| check::<f64>(on, [m, 270, 245], [Columns, b, Wider], Call::Gemm(1.0)),
        |on, m, b| check::<f32>(on, [m, 270, 491], [Wider, b, Rows], Call::Bias),
        |on, m, b| check::<f16>(on, [m, 270, 979], [Columns, b, Rows], Call::Gemm(0.0)),
        |on, m, b| check::<bf16>(on, [m, 270, 979], [Wider, b, Rows], Call::Bias),
        |on, m, b| check::<f32>(on, [m, 270, 491], [Rows, b, Wider], Call::Epilogue(Rows)),
    ];
    let turns = &mut Turns::default();
    for (turn, m) in (1..=13).chain([19, 24, 25]).enumerate() {
        for (i, b) in
            [Rows, Columns, Wider, WiderColumns, EveryOther, RowsBack].into_iter().enumerate()
        {
            let mut paths = Vec::new();
            for (of_check, check) in checks.iter().enumerate() {
                if testing::is_sampled(turn + i + of_check, 3) {
                    paths.extend(check(turns, m, b));
                }
            }
            let expected = match (b, m) {
                (Rows | Wider, ..=24) => GemmPath::Rows,
                (Columns | WiderColumns, ..=4) => GemmPath::Columns,
                _ => continue,
            };
            assert!(paths.iter().all(|path| *path == expected), "{m} rows: {paths:?}");
        }
        check::<f64>(turns, [m, 270, 245], [Rows, Rows, Rows], Call::Packed(1.0));
    }
}

/// A view with a stride of 0 may have more elements than memory holds; packing it must not wrap
/// around.
#[test]
#[should_panic(expected = "capacity overflow")]
fn packing_more_than_memory_panics() {
    let x = [1.0f32];
    let b = MatRef::new(&x, 0, [1 << 31, 1 << 31], [0, 0]).unwrap();
    PackedB::pack(b, &mut Workspace::new());
}
