//! Products of square matrices beside those of other crates and of BLAS libraries.
//!
//! A and C are row-major; B is so too (NN) or transposed (NT), and each peer is told where its elements
//! lie. Crates and libraries write to memory that is there, tensors of swath, candle and burn make a new
//! one a call. Results are compared with swath's before anything is timed.

mod library;

use std::hint::black_box;

use swath::prelude::Element;
use swath::prelude::{CpuBackend, DType, Tensor};
use swath_kernels::{Gemm, MatMut, MatRef, Workspace};

use crate::race::{Plan, Rival, race};
use crate::values::values;
use library::Library;

/// What the products of all peers take.
pub trait Real:
    Element
    + swath_kernels::Float
    + swath_kernels::Factor<Sum = Self>
    + faer::traits::ComplexField
    + candle_core::WithDType
    + burn_tensor::Element
{
    const NAME: &str;
    /// Results differ by at most this much a term.
    const TOLERANCE: f64;
    /// The function of matrixmultiply.
    const MATRIXMULTIPLY: MatrixMultiply<Self>;
    /// `cblas_sgemm` or `cblas_dgemm`.
    fn blas(library: &Library) -> library::Gemm<Self>;
}

type MatrixMultiply<E> = unsafe fn(
    usize,
    usize,
    usize,
    E,
    *const E,
    isize,
    isize,
    *const E,
    isize,
    isize,
    E,
    *mut E,
    isize,
    isize,
);

impl Real for f32 {
    const NAME: &str = "f32";
    const TOLERANCE: f64 = 1e-4;
    const MATRIXMULTIPLY: MatrixMultiply<f32> = matrixmultiply::sgemm;
    fn blas(library: &Library) -> library::Gemm<f32> {
        library.sgemm
    }
}

impl Real for f64 {
    const NAME: &str = "f64";
    const TOLERANCE: f64 = 1e-12;
    const MATRIXMULTIPLY: MatrixMultiply<f64> = matrixmultiply::dgemm;
    fn blas(library: &Library) -> library::Gemm<f64> {
        library.dgemm
    }
}

/// A product: computes it and, if asked to, hands out the result.
type Product<'a, E> = Box<dyn FnMut(Option<&mut Vec<E>>) + 'a>;

/// The operands of all peers.
struct Operands<E> {
    size: usize,
    a: Vec<E>,
    b: Vec<E>,
    is_transposed: bool,
}

impl<E: Real> Operands<E> {
    fn new(size: usize, is_transposed: bool) -> Self {
        let numbers = |from: usize| {
            let all = values(size * size + from);
            all[from..].iter().map(|&x| <E as swath_kernels::Float>::from_f64(x.into())).collect()
        };
        Operands { size, a: numbers(0), b: numbers(1), is_transposed }
    }

    /// From a row of B to the next, and from a column.
    fn strides_of_b(&self) -> [isize; 2] {
        let size = self.size as isize;
        if self.is_transposed { [1, size] } else { [size, 1] }
    }

    fn shape(&self) -> [usize; 2] {
        [self.size; 2]
    }

    fn result(&self) -> Vec<E> {
        vec![<E as swath_kernels::Float>::from_f64(0.0); self.size * self.size]
    }
}

/// Times the wanted cases, the libraries at these paths beside the others.
pub fn products(wanted: &dyn Fn(&str) -> bool, libraries: &[String], plan: &Plan) {
    let libraries: Vec<Library> =
        libraries.iter().map(|path| Library::open(path, plan.threads)).collect();
    swath::runtime::set_threads(plan.threads).expect("so many threads are allowed");
    of_type::<f32>(&[4, 16, 64, 128, 256, 512, 1024, 2048], wanted, &libraries, plan);
    of_type::<f64>(&[64, 256, 1024], wanted, &libraries, plan);
}

fn of_type<E: Real>(
    sizes: &[usize],
    wanted: &dyn Fn(&str) -> bool,
    libraries: &[Library],
    plan: &Plan,
) {
    for (layout, is_transposed) in [("NN", false), ("NT", true)] {
        for &size in sizes {
            let name = format!("product {} {layout} {size}", E::NAME);
            if wanted(&name) {
                let operands = Operands::<E>::new(size, is_transposed);
                product(&name, &operands, libraries, plan);
            }
        }
    }
}

fn product<E: Real>(
    name: &str,
    operands: &Operands<E>,
    libraries: &[Library],
    &Plan { threads, alone, once }: &Plan,
) {
    let mut peers: Vec<(&str, Product<'_, E>)> = Vec::new();
    // swath's slices, and the crate matrixmultiply without its feature, stay on the calling thread.
    if threads == 1 && !alone {
        peers.push(("swath", own(operands)));
    }
    peers.push((if threads == 1 { "tensor" } else { "swath" }, tensor(operands)));
    if !alone {
        peers.push(("gemm", gemm(operands, threads)));
        if threads == 1 {
            peers.push(("matrixmultiply", matrixmultiply(operands)));
        }
        peers.push(("faer", faer(operands, threads)));
        peers.push(("candle", candle(operands)));
        peers.push(("burn", burn(operands)));
        for library in libraries {
            peers.push((&library.name, blas(operands, library)));
        }
    }
    // A rival that computes something else is no rival.
    let (mut want, mut got) = (Vec::new(), Vec::new());
    peers[0].1(Some(&mut want));
    for (peer, product) in &mut peers[1..] {
        product(Some(&mut got));
        let bound = E::TOLERANCE * operands.size as f64;
        let near = |(x, y): (&E, &E)| {
            let of = |x: &E| swath_kernels::Float::to_f64(*x);
            (of(x) - of(y)).abs() <= bound
        };
        assert!(want.len() == got.len() && want.iter().zip(&got).all(near), "{name} of {peer}");
    }
    let rivals = peers
        .into_iter()
        .map(|(peer, mut product)| -> Rival<'_> { (peer, Box::new(move || product(None))) });
    race(name, rivals.collect(), once);
}

fn own<E: Real>(operands: &Operands<E>) -> Product<'_, E> {
    let (shape, mut c) = (operands.shape(), operands.result());
    let mut workspace = Workspace::new();
    Box::new(move |out| {
        let a = MatRef::row_major(black_box(&operands.a), shape).expect("a square matrix");
        let b = MatRef::row_major(&operands.b, shape).expect("a square matrix");
        let b = if operands.is_transposed { b.t() } else { b };
        let result = MatMut::row_major(&mut c, shape).expect("a square matrix");
        swath_kernels::gemm(Gemm::new(a, b), result, &mut workspace).expect("shapes fit");
        out.into_iter().for_each(|out| out.clone_from(&c));
    })
}

fn tensor<E: Real>(operands: &Operands<E>) -> Product<'static, E> {
    let make = |x: &[E]| Tensor::<CpuBackend>::from_slice(x, operands.shape());
    let (a, b) = (make(&operands.a).expect("shapes fit"), make(&operands.b).expect("shapes fit"));
    let b = if operands.is_transposed { b.t().expect("a matrix") } else { b };
    Box::new(move |out| {
        let c = black_box(&a).matmul(&b).expect("shapes fit");
        out.into_iter().for_each(|out| *out = c.to_vec().expect("a tensor of E"));
    })
}

fn gemm<E: Real>(operands: &Operands<E>, threads: usize) -> Product<'_, E> {
    let (n, mut c) = (operands.size, operands.result());
    let [row, column] = operands.strides_of_b();
    let of = <E as swath_kernels::Float>::from_f64;
    let parallelism = match threads {
        1 => gemm::Parallelism::None,
        threads => gemm::Parallelism::Rayon(threads),
    };
    Box::new(move |out| {
        let (a, b, stride) = (black_box(&operands.a).as_ptr(), operands.b.as_ptr(), n as isize);
        let (zero, one) = (of(0.0), of(1.0));
        // SAFETY: the vectors hold n² elements, laid out as the strides say; `c` is borrowed mutably.
        unsafe {
            let c = c.as_mut_ptr();
            #[rustfmt::skip]
            gemm::gemm(
                n, n, n, c, 1, stride, false, a, 1, stride, b, column, row, zero, one, false, false,
                false, parallelism,
            );
        }
        out.into_iter().for_each(|out| out.clone_from(&c));
    })
}

fn matrixmultiply<E: Real>(operands: &Operands<E>) -> Product<'_, E> {
    let (n, mut c) = (operands.size, operands.result());
    let [row, column] = operands.strides_of_b();
    let of = <E as swath_kernels::Float>::from_f64;
    Box::new(move |out| {
        let (a, b, stride) = (black_box(&operands.a).as_ptr(), operands.b.as_ptr(), n as isize);
        let (zero, one) = (of(0.0), of(1.0));
        // SAFETY: the vectors hold n² elements, laid out as the strides say; `c` is borrowed mutably.
        unsafe {
            let c = c.as_mut_ptr();
            E::MATRIXMULTIPLY(n, n, n, one, a, stride, 1, b, row, column, zero, c, stride, 1);
        }
        out.into_iter().for_each(|out| out.clone_from(&c));
    })
}

fn faer<E: Real>(operands: &Operands<E>, threads: usize) -> Product<'_, E> {
    let (n, mut c) = (operands.size, operands.result());
    let parallelism = if threads == 1 { faer::Par::Seq } else { faer::Par::rayon(threads) };
    Box::new(move |out| {
        let a = faer::MatRef::from_row_major_slice(black_box(&operands.a), n, n);
        let b = faer::MatRef::from_row_major_slice(&operands.b, n, n);
        let b = if operands.is_transposed { b.transpose() } else { b };
        let result = faer::MatMut::from_row_major_slice_mut(&mut c, n, n);
        let one = <E as swath_kernels::Float>::from_f64(1.0);
        faer::linalg::matmul::matmul(result, faer::Accum::Replace, a, b, one, parallelism);
        out.into_iter().for_each(|out| out.clone_from(&c));
    })
}

fn candle<E: Real>(operands: &Operands<E>) -> Product<'static, E> {
    let n = operands.size;
    let make = |x: &[E]| candle_core::Tensor::from_slice(x, (n, n), &candle_core::Device::Cpu);
    let (a, b) = (make(&operands.a).expect("shapes fit"), make(&operands.b).expect("shapes fit"));
    let b = if operands.is_transposed { b.t().expect("a matrix") } else { b };
    Box::new(move |out| {
        let c = black_box(&a).matmul(&b).expect("shapes fit");
        let read = || c.flatten_all()?.to_vec1();
        out.into_iter().for_each(|out| *out = read().expect("a tensor of E"));
    })
}

fn burn<E: Real>(operands: &Operands<E>) -> Product<'static, E> {
    let device = burn_tensor::Device::flex();
    let dtype = match <E as Element>::DTYPE {
        DType::F64 => burn_tensor::DType::F64,
        _ => burn_tensor::DType::F32,
    };
    let make = |x: &[E]| {
        let data = burn_tensor::TensorData::new(x.to_vec(), operands.shape());
        burn_tensor::Tensor::<2>::from_data(data, (&device, dtype))
    };
    let (a, b) = (make(&operands.a), make(&operands.b));
    let b = if operands.is_transposed { b.transpose() } else { b };
    Box::new(move |out| {
        let c = black_box(&a).clone().matmul(b.clone());
        let read = |c: burn_tensor::Tensor<2>| c.into_data().try_into_vec().expect("a tensor of E");
        out.into_iter().for_each(|out| *out = read(c.clone()));
    })
}

fn blas<'a, E: Real>(operands: &'a Operands<E>, library: &'a Library) -> Product<'a, E> {
    let (n, mut c) = (operands.size as i32, operands.result());
    let b_is = if operands.is_transposed { library::TRANSPOSED } else { library::PLAIN };
    let of = <E as swath_kernels::Float>::from_f64;
    Box::new(move |out| {
        let (a, b) = (black_box(&operands.a).as_ptr(), operands.b.as_ptr());
        let (zero, one) = (of(0.0), of(1.0));
        // SAFETY: the function is `cblas_?gemm`; the vectors hold n² elements, rows n apart; `c` is
        // borrowed mutably.
        unsafe {
            let (order, a_is, c) = (library::ROW_MAJOR, library::PLAIN, c.as_mut_ptr());
            E::blas(library)(order, a_is, b_is, n, n, n, one, a, n, b, n, zero, c, n);
        }
        out.into_iter().for_each(|out| out.clone_from(&c));
    })
}
