//! The WGSL text of kernels.
//!
//! The method `module` of a [`Kernel`](super::kernel::Kernel) writes its text, with one entry point, `main`:
//!
//! ```text
//! words          var<immediate> p: 32 words that differ between dispatches, by name
//! bindings       operands, then results, then faults if the kernel can report any
//! math.wgsl      functions of f32, for the kernels that need them
//! op             an expression for an element-wise op, otherwise a file of `shaders/`
//! main           calls the op for each element, row or tile
//! ```
//!
//! Kernels read operands with functions `a`, `b`, `c` and write results with functions such as `write_y`. These convert
//! from and to the working type, f32 for floats. A word holds four bytes, so one thread writes four elements of bytes.

use std::fmt::Write as _;

use crate::dtype::DType;
use crate::error::{Error, Result};

/// The type of a tensor's elements in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Store {
    /// 32-bit floats.
    F32,
    /// 16-bit floats, where the device has them.
    F16,
    /// 64-bit integers.
    I64,
    /// 32-bit integers.
    I32,
    /// Unsigned 32-bit integers.
    U32,
    /// Four unsigned bytes in a word.
    U8,
    /// Four booleans in a word.
    Bool,
}

impl Store {
    /// Returns the store of a dtype.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for those that shaders do not have, and for integers that kernels are not written for.
    pub fn of(op: &'static str, backend: &'static str, dtype: DType) -> Result<Store> {
        Ok(match dtype {
            DType::F32 => Store::F32,
            DType::F16 => Store::F16,
            DType::I64 => Store::I64,
            DType::I32 => Store::I32,
            DType::U32 => Store::U32,
            DType::U8 => Store::U8,
            DType::Bool => Store::Bool,
            _ => return Err(Error::Unsupported { op, backend }),
        })
    }

    /// True for floats.
    pub fn is_float(self) -> bool {
        matches!(self, Store::F32 | Store::F16)
    }

    /// Elements that a thread writes: those of one word.
    pub fn per_thread(self) -> usize {
        if matches!(self, Store::U8 | Store::Bool) { 4 } else { 1 }
    }

    /// Type of the array's items.
    fn item(self) -> &'static str {
        match self {
            Store::F32 => "f32",
            Store::F16 => "f16",
            Store::I64 => "i64",
            Store::I32 => "i32",
            Store::U32 | Store::U8 | Store::Bool => "u32",
        }
    }

    /// Type that kernels compute in.
    pub fn working(self) -> &'static str {
        match self {
            Store::F16 => "f32",
            store => store.item(),
        }
    }

    /// The name of the store within names of kernels.
    pub fn name(self) -> &'static str {
        match self {
            Store::U8 => "u8",
            Store::Bool => "bool",
            store => store.item(),
        }
    }

    /// Returns the expression that reads element `i` of the array `data`, in the working type.
    fn load(self, data: &str, i: &str) -> String {
        match self {
            Store::F16 => format!("f32({data}[{i}])"),
            Store::U8 | Store::Bool => {
                format!("((({data}[({i}) / 4u]) >> (8u * (({i}) % 4u))) & 255u)")
            }
            _ => format!("{data}[{i}]"),
        }
    }
}

/// A finished module.
#[derive(Clone, Debug)]
pub struct Module {
    /// Name of the kernel, for messages.
    pub name: String,
    /// The text.
    pub text: String,
    /// For each binding, true if the kernel writes it.
    pub writes: Vec<bool>,
}

impl Module {
    /// True if the device must have 16-bit floats.
    pub fn needs_f16(&self) -> bool {
        self.text.starts_with("enable f16;")
    }

    /// True if the device must have 64-bit integers.
    pub fn needs_i64(&self) -> bool {
        self.text.contains("i64")
    }
}

/// The text of a module under construction.
pub struct Source {
    /// The fields of `p`, without the last ones.
    fields: Vec<&'static str>,
    text: String,
    writes: Vec<bool>,
    needs_math: bool,
}

/// Names of operands.
pub const OPERANDS: [&str; 3] = ["a", "b", "c"];

impl Source {
    /// A module with these words, whose bindings are operands, `a` first.
    pub fn new(words: &[&[&'static str]], operands: &[Store]) -> Source {
        let (fields, text) = (words.concat(), String::new());
        let mut source = Source { fields, text, writes: Vec::new(), needs_math: false };
        for (name, &store) in OPERANDS.iter().zip(operands) {
            source.operand(name, store);
        }
        if let Some(store) = operands.first() {
            source.add(&format!("alias A = {};", store.working()));
        }
        source
    }

    /// Adds an operand and the function `name` that reads it.
    pub fn operand(&mut self, name: &str, store: Store) {
        let (item, working) = (store.item(), store.working());
        self.bind(&format!("{name}_data"), "read", item);
        let load = store.load(&format!("{name}_data"), "i");
        self.add(&format!("fn {name}(i: u32) -> {working} {{ return {load}; }}"));
    }

    /// Adds a result and the function `write_name` that writes element `i`, or for bytes the four elements of word `i`.
    pub fn result(&mut self, name: &str, store: Store) {
        self.bind(&format!("{name}_data"), "read_write", store.item());
        let data = format!("{name}_data");
        self.add(&match store {
            Store::U8 | Store::Bool => format!(
                "fn write_{name}(i: u32, x: vec4<u32>) {{\n    \
                 let bytes = (x & vec4(255u)) << vec4(0u, 8u, 16u, 24u);\n    \
                 {data}[i] = bytes.x | bytes.y | bytes.z | bytes.w;\n}}"
            ),
            Store::F16 => format!("fn write_{name}(i: u32, x: f32) {{ {data}[i] = f16(x); }}"),
            _ => {
                let working = store.working();
                format!("fn write_{name}(i: u32, x: {working}) {{ {data}[i] = x; }}")
            }
        });
    }

    /// Adds a tensor that is updated in place, with the functions `name` and `write_name`. Not for bytes.
    pub fn changed(&mut self, name: &str, store: Store) {
        self.result(name, store);
        let (working, load) = (store.working(), store.load(&format!("{name}_data"), "i"));
        self.add(&format!("fn {name}(i: u32) -> {working} {{ return {load}; }}"));
    }

    /// Adds an `I64` result of indices and the function `write_name`. The device needs no 64-bit integers.
    pub fn index_result(&mut self, name: &str) {
        self.bind(&format!("{name}_data"), "read_write", "vec2<u32>");
        self.add(&format!("fn write_{name}(i: u32, x: u32) {{ {name}_data[i] = vec2(x, 0u); }}"));
    }

    /// Adds an `I64` operand of indices and the function `name`, which gives 2³² - 1 for an index that does not fit a
    /// word. The device needs no 64-bit integers.
    pub fn indices(&mut self, name: &str) {
        self.bind(&format!("{name}_data"), "read", "vec2<u32>");
        self.add(&format!(
            "fn {name}(i: u32) -> u32 {{\n    let x = {name}_data[i];\n    \
             return select(0xffffffffu, x.x, x.y == 0u);\n}}"
        ));
    }

    /// Adds an entry point that writes `f(i)` for every element `i < p.count` of the result.
    pub fn each_word(&mut self, store: Store, f: &str) {
        let (first, write) = match store.per_thread() {
            1 => ("i", format!("write_y(i, {f}(i));")),
            _ => (
                "4u * i",
                format!(
                    "let last = p.count - 1u;\n    let at = min(vec4(4u * i) + vec4(0u, 1u, 2u, 3u), vec4(last));\n    \
                     write_y(i, vec4({f}(at.x), {f}(at.y), {f}(at.z), {f}(at.w)));"
                ),
            ),
        };
        self.each_thread(first, &write);
    }

    /// Adds an entry point that runs `body` in every thread `i` for which the expression `first` is below `p.count`.
    pub fn each_thread(&mut self, first: &str, body: &str) {
        self.add(&format!(
            "@compute @workgroup_size({GROUP})\n\
             fn main(@builtin(global_invocation_id) thread: vec3<u32>) {{\n    \
             let i = thread.x + thread.y * p.across;\n    \
             if {first} >= p.count {{ return; }}\n    {body}\n}}"
        ));
    }

    /// Adds an entry point that runs `body` in every thread of workgroup `i` if the expression `first` is below
    /// `p.count`.
    pub fn each_group(&mut self, first: &str, body: &str) {
        self.add(&format!(
            "@compute @workgroup_size({GROUP})\n\
             fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {{\n    \
             let i = group.x + group.y * p.across;\n    \
             if {first} >= p.count {{ return; }}\n    {body}\n}}"
        ));
    }

    /// Adds the buffer of faults, which keeps the lowest position of each.
    pub fn faults(&mut self) {
        self.bind("faults", "read_write", "atomic<u32>");
        self.add("fn fault(position: u32) { atomicMin(&faults[p.fault], position); }");
    }

    /// Adds a binding.
    pub fn bind(&mut self, name: &str, access: &str, item: &str) {
        let i = self.writes.len();
        self.writes.push(access == "read_write");
        let line = format!("@group(0) @binding({i}) var<storage, {access}> {name}: array<{item}>;");
        self.add(&line);
    }

    /// Adds the functions of `math.wgsl`.
    pub fn math(&mut self) {
        self.needs_math = true;
    }

    /// Adds text.
    pub fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Returns the module.
    pub fn finish(self, name: String) -> Module {
        let mut text = String::new();
        if self.text.contains("f16") {
            text.push_str("enable f16;\n");
        }
        let _ = writeln!(
            text,
            "struct P {{ {}, axes: array<u32, {}>, zero: u32, fault: u32 }}\nvar<immediate> p: P;",
            self.fields.join(", "),
            WORDS - 2 - self.fields.len()
        );
        if self.needs_math {
            text.push_str(include_str!("shaders/math.wgsl"));
            text.push_str(include_str!("shaders/sums.wgsl"));
        }
        Module { name, text: text + &self.text, writes: self.writes }
    }
}

/// Number of immediate words: 128 bytes, which every device supports. After those that a kernel names come
/// those of its axes. The last two are 0 and the slot of the fault.
pub const WORDS: usize = 32;

/// Threads of a workgroup. With 32, Apple's compiler moves accesses across barriers.
pub const GROUP: usize = 256;
