//! Calls of all public functions on slices as data, except the functions of one and two arguments
//! that `functions/` lists. Tests of bounds, lengths, offsets and bits run over them.
//!
//! A call holds the slices that its function takes, with their contents. A test chooses their
//! addresses, or removes an element from one of them. `every_public_function_is_called` of
//! `lengths.rs` fails for functions without a call.

#![allow(clippy::type_complexity, reason = "tables of functions are written where they are read")]

mod blocks;
mod element_wise;
mod images;
mod moves;
pub mod paths;
mod products;
mod reductions;
mod rows;

use std::sync::LazyLock;

use half::{bf16, f16};
use swath_kernels::Isa;
use swath_kernels::testing::{special_values_f64, with_isa};

/// A call of a function with slices of given lengths and contents.
pub struct Call {
    /// The function's public name.
    pub function: &'static str,
    /// The element type, or both.
    pub dtype: String,
    /// Distinguishes the call from others of the function.
    pub variant: String,
    pub slots: Vec<Slot>,
    /// Element i of the outputs depends only on elements up to i: a shorter call gives the first
    /// elements of a longer one.
    pub is_prefix: bool,
    /// The call gives the outputs of the one before it in the list.
    pub repeats: bool,
    /// The call moves memory by code that is the same on every level.
    pub is_portable: bool,
    run: Box<Run>,
}

type Run = dyn Fn(&mut [Part<'_>]);

/// A slice that a function takes.
#[derive(Clone)]
pub struct Slot {
    pub kind: Kind,
    pub role: Role,
    pub lengths: Lengths,
    /// The bytes of its elements.
    pub content: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    Input,
    /// Written completely and not read.
    Output,
    /// Read and written, or written in part.
    Changed,
}

/// The lengths that a function accepts if all other slices stay as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lengths {
    Exact,
    AtLeast,
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    F16,
    Bf16,
    F32,
    F64,
    Integer(usize),
}

impl Kind {
    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            Kind::F16 | Kind::Bf16 => 2,
            Kind::F32 => 4,
            Kind::F64 => 8,
            Kind::Integer(size) => size,
        }
    }

    fn is_nan(self, x: &[u8]) -> bool {
        match self {
            Kind::F16 => f16::from_le_bytes([x[0], x[1]]).is_nan(),
            Kind::Bf16 => bf16::from_le_bytes([x[0], x[1]]).is_nan(),
            Kind::F32 => f32::from_le_bytes([x[0], x[1], x[2], x[3]]).is_nan(),
            Kind::F64 => f64::from_le_bytes(x.try_into().expect("8 bytes")).is_nan(),
            Kind::Integer(_) => false,
        }
    }
}

/// The memory of a slot, aligned for its elements.
pub struct Part<'a>(pub &'a mut [u8]);

impl Part<'_> {
    pub fn of<T: Cell>(&mut self) -> &mut [T] {
        let (first, bytes) = (self.0.as_mut_ptr().cast::<T>(), self.0.len());
        assert!(first.is_aligned() && bytes.is_multiple_of(size_of::<T>()));
        // SAFETY: that many elements, aligned, borrowed as `self` is; any bytes are a `Cell`.
        unsafe { std::slice::from_raw_parts_mut(first, bytes / size_of::<T>()) }
    }
}

/// An element type; every bit pattern of its size is a value.
pub trait Cell: Copy + 'static {
    const KIND: Kind;
    const NAME: &'static str;
    /// An ordinary number, determined by index and seed.
    fn number(i: usize, seed: usize) -> Self;
    /// Any number: special values and bit patterns among ordinary ones.
    fn any(i: usize, seed: usize) -> Self;
}

static SPECIAL: LazyLock<Vec<f64>> = LazyLock::new(special_values_f64);

fn hash(i: usize, seed: usize) -> u64 {
    let x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 31 ^ (seed as u64) << 17).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ x >> 29
}

/// Between −4 and 4.
fn uniform(i: usize, seed: usize) -> f64 {
    (hash(i, seed) >> 11) as f64 / (1u64 << 50) as f64 - 4.0
}

macro_rules! cells {
    ($($t:ident $bits:ident $kind:expr, $from_f64:expr, $from_bits:expr;)*) => {$(
        impl Cell for $t {
            const KIND: Kind = $kind;
            const NAME: &'static str = stringify!($t);
            fn number(i: usize, seed: usize) -> $t {
                let from_f64: fn(f64) -> $t = $from_f64;
                from_f64(uniform(i, seed))
            }
            fn any(i: usize, seed: usize) -> $t {
                let (from_f64, from_bits): (fn(f64) -> $t, fn($bits) -> $t) = ($from_f64, $from_bits);
                let bits = hash(i, seed + 100);
                match bits >> 60 {
                    0..3 => {
                        from_f64(SPECIAL[bits as usize % SPECIAL.len()])
                    }
                    3..9 => from_bits(bits as $bits),
                    9..12 => from_f64(uniform(i, seed) * 100.0),
                    _ => Self::number(i, seed),
                }
            }
        }
    )*};
}
cells! {
    // Through f32 on every machine, because conversions from f64 may round twice.
    f16 u16 Kind::F16, |x| f16::from_f32(x as f32), f16::from_bits;
    bf16 u16 Kind::Bf16, bf16::from_f64, bf16::from_bits;
    f32 u32 Kind::F32, |x| x as f32, f32::from_bits;
    f64 u64 Kind::F64, |x| x, f64::from_bits;
    i64 u64 Kind::Integer(8), |x| x as i64, |x| x as i64;
    i32 u32 Kind::Integer(4), |x| x as i32, |x| x as i32;
    u32 u32 Kind::Integer(4), |x| x as u32, |x| x;
    u8 u8 Kind::Integer(1), |x| x as u8, |x| x;
    i8 u8 Kind::Integer(1), |x| x as i8, |x| x as i8;
    u16 u16 Kind::Integer(2), |x| x as u16, |x| x;
    u64 u64 Kind::Integer(8), |x| x as u64, |x| x;
}

fn numbers<T: Cell>(len: usize, seed: usize) -> Vec<T> {
    (0..len).map(|i| T::number(i, seed)).collect()
}

fn any<T: Cell>(len: usize, seed: usize) -> Vec<T> {
    (0..len).map(|i| T::any(i, seed)).collect()
}

fn slot<T: Cell>(role: Role, x: &[T]) -> Slot {
    // SAFETY: the elements have no padding.
    let bytes = unsafe { std::slice::from_raw_parts(x.as_ptr().cast::<u8>(), size_of_val(x)) };
    Slot { kind: T::KIND, role, lengths: Lengths::Exact, content: bytes.to_vec() }
}

/// A slice that is read.
fn input<T: Cell>(x: &[T]) -> Slot {
    slot(Role::Input, x)
}

/// A slice that is read and written.
fn changed<T: Cell>(x: &[T]) -> Slot {
    slot(Role::Changed, x)
}

/// A slice that is written.
fn output<T: Cell>(len: usize) -> Slot {
    slot(Role::Output, &any::<T>(len, 77))
}

impl Slot {
    fn at_least(self) -> Slot {
        Slot { lengths: Lengths::AtLeast, ..self }
    }

    fn any_length(self) -> Slot {
        Slot { lengths: Lengths::Any, ..self }
    }

    pub fn len(&self) -> usize {
        self.content.len() / self.kind.size()
    }

    /// Bytes with a single NaN for all NaNs.
    pub fn canonical(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let elements = bytes.chunks_exact_mut(self.kind.size());
        elements.filter(|x| self.kind.is_nan(x)).for_each(|x| x.fill(0xff));
        bytes
    }
}

fn call<T: Cell, const N: usize>(
    function: &'static str,
    variant: impl Into<String>,
    slots: [Slot; N],
    run: impl Fn([&mut Part<'_>; N]) + 'static,
) -> Call {
    let run = move |parts: &mut [Part<'_>]| {
        let parts: Vec<&mut Part<'_>> = parts.iter_mut().collect();
        run(parts.try_into().ok().expect("a part for each slot"));
    };
    Call {
        function,
        dtype: T::NAME.into(),
        variant: variant.into(),
        slots: slots.into(),
        is_prefix: false,
        repeats: false,
        is_portable: false,
        run: Box::new(run),
    }
}

impl Call {
    fn prefix(self) -> Call {
        Call { is_prefix: true, ..self }
    }

    fn again(self) -> Call {
        Call { repeats: true, ..self }
    }

    fn portable(self) -> Call {
        Call { is_portable: true, ..self }
    }

    pub fn name(&self) -> String {
        format!("{} {} {}", self.function, self.dtype, self.variant)
    }

    pub fn run(&self, parts: &mut [Part<'_>]) {
        (self.run)(parts);
    }

    /// Runs on a level, and panics if another level ran. If there may be nothing to do, another
    /// kernel is called beside it.
    pub fn run_on(&self, isa: Isa, parts: &mut [Part<'_>]) {
        let may_be_nothing = self.is_portable || self.slots.iter().any(|slot| slot.len() == 0);
        let ran = with_isa(isa, || {
            self.run(parts);
            if may_be_nothing {
                swath_kernels::neg(&[0f32], &mut [0f32]);
            }
        });
        ran.expect("the level is available");
    }

    /// The bytes written on a level, with a single NaN for all NaNs. Slices begin `offset` elements
    /// after a cache line, each differently; the old contents of outputs depend on `offset` too.
    pub fn outputs(&self, isa: Isa, offset: usize) -> Vec<Vec<u8>> {
        let bytes = self.slots.iter().map(|slot| slot.content.len()).max().unwrap_or(0);
        let mut memory = Memory::new(bytes + OFFSETS * 8, self.slots.len());
        memory.place(&self.slots, offset);
        let mut parts = memory.parts(&self.slots, offset);
        for (slot, part) in self.slots.iter().zip(&mut parts) {
            if slot.role == Role::Output {
                part.0.fill(0x3c ^ offset as u8);
            }
        }
        self.run_on(isa, &mut parts);
        let both = self.slots.iter().zip(parts).filter(|(slot, _)| slot.role != Role::Input);
        both.map(|(slot, part)| slot.canonical(part.0)).collect()
    }
}

/// Number of offsets of a slice, in elements after a cache line.
pub const OFFSETS: usize = 16;

/// Memory for each slot of a call, aligned to cache lines.
pub struct Memory {
    lines: Vec<Vec<Line>>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "reached as bytes")] [u8; 64]);

impl Memory {
    pub fn new(bytes: usize, slots: usize) -> Memory {
        Memory { lines: vec![vec![Line([0x5a; 64]); bytes.div_ceil(64)]; slots] }
    }

    /// Writes the slots' contents.
    pub fn place(&mut self, slots: &[Slot], offset: usize) {
        for (part, slot) in self.parts(slots, offset).into_iter().zip(slots) {
            part.0.copy_from_slice(&slot.content);
        }
    }

    pub fn parts(&mut self, slots: &[Slot], offset: usize) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        for (i, (lines, slot)) in self.lines.iter_mut().zip(slots).enumerate() {
            let first = (offset + 3 * i) % OFFSETS * slot.kind.size();
            let bytes = lines.len() * size_of::<Line>();
            assert!(first + slot.content.len() <= bytes);
            // SAFETY: the slice is inside the lines, which are plain bytes and borrowed as long as
            // `self` is.
            parts.push(Part(unsafe {
                let first = lines.as_mut_ptr().cast::<u8>().add(first);
                std::slice::from_raw_parts_mut(first, slot.content.len())
            }));
        }
        parts
    }
}

/// Every call with slices of `len` elements, or with matrices of that many rows or columns.
pub fn every(len: usize) -> Vec<Call> {
    let mut calls = element_wise::calls(len);
    calls.extend(blocks::calls(len));
    calls.extend(reductions::calls(len));
    calls.extend(rows::calls(len));
    calls.extend(moves::calls(len));
    calls.extend(images::calls(len));
    calls.extend(products::calls(len));
    calls
}

/// Shapes with `len` columns and with `len` rows.
fn shapes(len: usize) -> [[usize; 2]; 2] {
    [[3, len], [len, 5]]
}
