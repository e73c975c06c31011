//! Runs a pickle as far as it builds tensors: see the parent module.

use std::collections::BTreeMap;

use crate::io::Problem;
use crate::io::stored::Stored;
use crate::layout::Layout;
use crate::shape::{MAX_RANK, Shape, Strides};

/// Deepest nesting of dictionaries.
const MAX_DEPTH: usize = 16;

/// The types that tensors may have: PyTorch's names of the dtype and of its storage, if it has one of its own, and the
/// name in other files.
const TYPES: [(&str, &str, &str); 18] = [
    ("float16", "HalfStorage", "F16"),
    ("bfloat16", "BFloat16Storage", "BF16"),
    ("float32", "FloatStorage", "F32"),
    ("float64", "DoubleStorage", "F64"),
    ("int64", "LongStorage", "I64"),
    ("int32", "IntStorage", "I32"),
    ("int16", "ShortStorage", "I16"),
    ("int8", "CharStorage", "I8"),
    ("uint64", "", "U64"),
    ("uint32", "", "U32"),
    ("uint16", "", "U16"),
    ("uint8", "ByteStorage", "U8"),
    ("bool", "BoolStorage", "BOOL"),
    ("complex64", "ComplexFloatStorage", "C64"),
    ("complex128", "ComplexDoubleStorage", "C128"),
    ("float8_e4m3fn", "", "F8_E4M3"),
    ("float8_e5m2", "", "F8_E5M2"),
    ("float8_e8m0fnu", "", "F8_E8M0"),
];

/// A tensor and its name, or why there is none.
type Found<'a> = (String, Result<Tensor<'a>, String>);

/// Returns the tensors of a pickle by the keys of the dictionaries that hold them, at most `most` of them.
pub(super) fn tensors(program: &[u8], most: usize) -> Result<Vec<Found<'_>>, Problem> {
    let (values, root) = Machine::new(program, most).run()?;
    let (visits, text) = (2 * values.0.len() + 2, program.len() + 1024);
    let mut search = Search { values: &values, visits, text, found: Vec::new() };
    search.visit(root, "", 0)?;
    Ok(search.found)
}

/// A value of a pickle.
#[derive(Clone, Debug)]
enum Value<'a> {
    /// A number, a truth, nothing, or whatever else cannot hold a tensor.
    Other,
    Int(i64),
    Text(&'a str),
    Function(Function<'a>),
    /// Of tuples and lists.
    Items(Vec<usize>),
    Dictionary(Vec<(usize, usize)>),
    /// A key, and the type of the elements, if the storage has one of its own.
    Storage(&'a str, Option<Stored>),
    Tensor(Box<Tensor<'a>>),
    /// What a call of a function that is not known would return: its module and name.
    Unknown(&'a str, &'a str),
}

/// The functions that a pickle may call.
#[derive(Clone, Copy, Debug)]
enum Function<'a> {
    OrderedDict,
    /// Of a storage, an offset, a shape and strides, and after three other values the dtype, if the storage has none.
    RebuildTensor,
    RebuildParameter,
    /// Not called: the type of a storage, or a dtype.
    Type(Option<Stored>, &'a str),
    /// Not called either.
    Unknown(&'a str, &'a str),
}

#[derive(Clone, Debug)]
pub(super) struct Tensor<'a> {
    pub stored: Stored,
    /// The storage.
    pub key: &'a str,
    pub layout: Layout,
}

/// All values, which refer to each other by number.
struct Values<'a>(Vec<Value<'a>>);

/// Lists the tensors in a value by the keys that lead to them.
struct Search<'v, 'a> {
    values: &'v Values<'a>,
    /// How many more values are visited: those that share others would be listed as often.
    visits: usize,
    /// How many more bytes the names may have together.
    text: usize,
    found: Vec<Found<'a>>,
}

impl Search<'_, '_> {
    fn visit(&mut self, at: usize, name: &str, depth: usize) -> Result<(), Problem> {
        let less =
            |rest: usize, count| rest.checked_sub(count).ok_or("its dictionaries are shared");
        self.visits = less(self.visits, 1).map_err(str::to_owned)?;
        if depth > MAX_DEPTH {
            return Err(Problem::with(name, "dictionaries are nested too deep"));
        }
        let tensor = match &self.values.0[at] {
            Value::Tensor(tensor) => Ok((**tensor).clone()),
            &Value::Unknown(module, name) => Err(format!("`{module}.{name}` is not known")),
            Value::Dictionary(items) => {
                for &(key, value) in items {
                    let key = match &self.values.0[key] {
                        Value::Text(text) => (*text).to_owned(),
                        Value::Int(number) => number.to_string(),
                        _ => continue,
                    };
                    let name = if name.is_empty() { key } else { format!("{name}.{key}") };
                    self.visit(value, &name, depth + 1)?;
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.text = less(self.text, name.len()).map_err(str::to_owned)?;
        self.found.push((name.to_owned(), tensor));
        Ok(())
    }
}

/// Runs a pickle.
struct Machine<'a> {
    program: &'a [u8],
    at: usize,
    values: Vec<Value<'a>>,
    stack: Vec<usize>,
    /// How many more values, marks and references such a pickle may need: each takes up to 50 bytes of memory.
    room: usize,
    /// Heights of the stack at the marks.
    marks: Vec<usize>,
    memo: BTreeMap<u32, usize>,
}

type Step<T> = Result<T, String>;

impl<'a> Machine<'a> {
    fn new(program: &'a [u8], most: usize) -> Self {
        let (values, stack, marks, memo) = (vec![], vec![], vec![], BTreeMap::new());
        Machine {
            program,
            at: 0,
            values,
            stack,
            room: 32 * most.min(program.len() / 100 + 1000),
            marks,
            memo,
        }
    }

    /// Returns all values and the number of the last one.
    fn run(mut self) -> Step<(Values<'a>, usize)> {
        loop {
            let at = self.at;
            match self.step() {
                Ok(true) => {
                    let root = self.pop()?;
                    return Ok((Values(self.values), root));
                }
                Ok(false) => {}
                Err(reason) => return Err(format!("pickle, byte {at}: {reason}")),
            }
        }
    }

    fn take(&mut self, count: usize) -> Step<&'a [u8]> {
        let bytes = self.program[self.at..].get(..count).ok_or("it is cut off")?;
        self.at += count;
        Ok(bytes)
    }

    fn number(&mut self, bytes: usize) -> Step<u64> {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(self.take(bytes)?);
        Ok(u64::from_le_bytes(number))
    }

    fn text(&mut self, bytes: usize) -> Step<&'a str> {
        let length = usize::try_from(self.number(bytes)?).map_err(|error| error.to_string())?;
        std::str::from_utf8(self.take(length)?).map_err(|error| error.to_string())
    }

    /// The rest of a line.
    fn line(&mut self) -> Step<&'a str> {
        let rest = &self.program[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\n').ok_or("it is cut off")?;
        self.at += end + 1;
        std::str::from_utf8(&rest[..end]).map_err(|error| error.to_string())
    }

    fn push(&mut self, value: Value<'a>) -> Step<()> {
        self.refer(self.values.len())?;
        self.values.push(value);
        Ok(())
    }

    fn refer(&mut self, value: usize) -> Step<()> {
        self.spend()?;
        self.stack.push(value);
        Ok(())
    }

    fn spend(&mut self) -> Step<()> {
        self.room = self.room.checked_sub(1).ok_or("more values than such a file needs")?;
        Ok(())
    }

    fn pop(&mut self) -> Step<usize> {
        match self.marks.last() {
            Some(&mark) if self.stack.len() <= mark => Err("the stack is empty".to_owned()),
            _ => self.stack.pop().ok_or_else(|| "the stack is empty".to_owned()),
        }
    }

    fn pop_to_mark(&mut self) -> Step<Vec<usize>> {
        let mark = self.marks.pop().ok_or("there is no mark")?;
        Ok(self.stack.split_off(mark))
    }

    fn top(&mut self) -> Step<&mut Value<'a>> {
        let top = *self.stack.last().ok_or("the stack is empty")?;
        Ok(&mut self.values[top])
    }

    /// Runs an instruction; true at the end.
    fn step(&mut self) -> Step<bool> {
        match self.take(1)?[0] {
            b'.' => return Ok(true),
            // PROTO, FRAME
            0x80 => drop(self.take(1)?),
            0x95 => drop(self.take(8)?),
            b'(' => {
                self.spend()?;
                self.marks.push(self.stack.len());
            }
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_to_mark()?),
            b'N' | 0x88 | 0x89 => self.push(Value::Other)?,
            b'G' => {
                self.take(8)?;
                self.push(Value::Other)?;
            }
            b'K' => self.integer(1)?,
            b'M' => self.integer(2)?,
            b'J' => self.integer(4)?,
            // LONG1
            0x8A => {
                let length = self.number(1)? as usize;
                let bytes = self.take(length)?;
                let sign = if bytes.last().is_some_and(|&byte| byte > 127) { 0xFF } else { 0 };
                let mut number = [sign; 8];
                let value = match number.get_mut(..length) {
                    Some(low) => {
                        low.copy_from_slice(bytes);
                        Value::Int(i64::from_le_bytes(number))
                    }
                    None => Value::Other,
                };
                self.push(value)?;
            }
            b'X' => self.push_text(4)?,
            0x8C => self.push_text(1)?,
            0x8D => self.push_text(8)?,
            // BINBYTES, SHORT_BINBYTES
            b'B' => self.skip(4)?,
            b'C' => self.skip(1)?,
            b')' | b']' => self.push(Value::Items(vec![]))?,
            b'}' => self.push(Value::Dictionary(vec![]))?,
            b't' => {
                let items = self.pop_to_mark()?;
                self.push(Value::Items(items))?;
            }
            count @ 0x85..=0x87 => {
                let mut items = (0..count - 0x84).map(|_| self.pop()).collect::<Step<Vec<_>>>()?;
                items.reverse();
                self.push(Value::Items(items))?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.append(items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.insert(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.insert(&items)?;
            }
            b'q' => self.memoize(1)?,
            b'r' => self.memoize(4)?,
            // MEMOIZE
            0x94 => self.memoize_as(self.memo.len() as u32)?,
            b'h' => self.recall(1)?,
            b'j' => self.recall(4)?,
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.function(module, name)?;
            }
            // STACK_GLOBAL
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (&Value::Text(name), &Value::Text(module)) =
                    (&self.values[name], &self.values[module])
                else {
                    return Err("the name of a function is no text".to_owned());
                };
                self.function(module, name)?;
            }
            b'Q' => self.storage()?,
            // REDUCE, NEWOBJ
            b'R' | 0x81 => self.call()?,
            // BUILD sets attributes, of which none is read.
            b'b' => drop(self.pop()?),
            byte => {
                return Err(format!(
                    "the instruction {byte:#04x} is not one of those that tensors need"
                ));
            }
        }
        Ok(false)
    }

    fn integer(&mut self, bytes: usize) -> Step<()> {
        let number = self.number(bytes)?;
        let number = if bytes == 4 { i64::from(number as u32 as i32) } else { number as i64 };
        self.push(Value::Int(number))
    }

    fn push_text(&mut self, bytes: usize) -> Step<()> {
        let text = self.text(bytes)?;
        self.push(Value::Text(text))
    }

    fn skip(&mut self, bytes: usize) -> Step<()> {
        let length = usize::try_from(self.number(bytes)?).map_err(|error| error.to_string())?;
        self.take(length)?;
        self.push(Value::Other)
    }

    fn append(&mut self, items: Vec<usize>) -> Step<()> {
        match self.top()? {
            Value::Items(list) => list.extend(items),
            Value::Unknown(..) => {}
            _ => return Err("it appends to no list".to_owned()),
        }
        Ok(())
    }

    fn insert(&mut self, items: &[usize]) -> Step<()> {
        let (pairs, rest) = items.as_chunks();
        match self.top()? {
            Value::Dictionary(dictionary) if rest.is_empty() => {
                dictionary.extend(pairs.iter().map(|&[key, value]| (key, value)));
            }
            Value::Unknown(..) => {}
            _ => return Err("it inserts into no dictionary".to_owned()),
        }
        Ok(())
    }

    fn memoize(&mut self, bytes: usize) -> Step<()> {
        let number = self.number(bytes)? as u32;
        self.memoize_as(number)
    }

    fn memoize_as(&mut self, number: u32) -> Step<()> {
        self.spend()?;
        self.memo.insert(number, *self.stack.last().ok_or("the stack is empty")?);
        Ok(())
    }

    fn recall(&mut self, bytes: usize) -> Step<()> {
        let number = self.number(bytes)? as u32;
        let value =
            self.memo.get(&number).ok_or_else(|| format!("no value has the number {number}"))?;
        let value = *value;
        self.refer(value)
    }

    fn function(&mut self, module: &'a str, name: &'a str) -> Step<()> {
        let function = match (module, name) {
            ("collections", "OrderedDict") => Function::OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2" | "_rebuild_tensor_v3") => {
                Function::RebuildTensor
            }
            ("torch._utils", "_rebuild_parameter") => Function::RebuildParameter,
            ("torch.storage", "UntypedStorage") => Function::Type(None, ""),
            ("torch", _) => {
                let mut known = TYPES.iter();
                let known = known.find(|(dtype, storage, _)| [dtype, storage].contains(&&name));
                Function::Type(known.and_then(|(.., name)| Stored::named(name)), name)
            }
            _ => Function::Unknown(module, name),
        };
        self.push(Value::Function(function))
    }

    /// A storage: ("storage", type, key, device, number of elements).
    fn storage(&mut self) -> Step<()> {
        let id = self.pop()?;
        let Value::Items(items) = &self.values[id] else {
            return Err("a storage has no parts".to_owned());
        };
        let parts = items.iter().take(6).map(|&item| &self.values[item]);
        let parts: Vec<&Value<'_>> = parts.collect();
        let storage = match parts[..] {
            [
                Value::Text("storage"),
                &Value::Function(Function::Type(stored, name)),
                &Value::Text(key),
                _,
                _,
            ] => match stored {
                None if !name.is_empty() => Value::Unknown("torch", name),
                _ => Value::Storage(key, stored),
            },
            _ => return Err("a storage of an unknown form".to_owned()),
        };
        self.push(storage)
    }

    fn call(&mut self) -> Step<()> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let (&Value::Function(function), Value::Items(items)) =
            (&self.values[function], &self.values[arguments])
        else {
            return Err("it calls no function".to_owned());
        };
        // The first arguments of any function that is known.
        let parts = items.iter().take(8).map(|&item| &self.values[item]);
        let parts: Vec<&Value<'_>> = parts.collect();
        let result = match (function, &parts[..]) {
            (Function::OrderedDict, []) => Value::Dictionary(vec![]),
            (Function::RebuildParameter, [Value::Tensor(tensor), ..]) => {
                Value::Tensor(tensor.clone())
            }
            (Function::Unknown(module, name), _) => Value::Unknown(module, name),
            (_, [Value::Unknown(module, name), ..]) => Value::Unknown(module, name),
            (
                Function::RebuildTensor,
                [
                    Value::Storage(key, stored),
                    Value::Int(offset),
                    Value::Items(dims),
                    Value::Items(strides),
                    rest @ ..,
                ],
            ) => {
                let dims: Vec<usize> = self.integers(dims, "extent")?;
                let strides: Vec<isize> = self.integers(strides, "stride")?;
                let offset =
                    usize::try_from(*offset).map_err(|_| format!("an offset of {offset}"))?;
                let shape = Shape::from(dims);
                let fits = strides.len() == shape.ndim();
                let layout = fits.then(|| Layout::new(shape, Strides::new(&strides), offset));
                let layout = layout
                    .flatten()
                    .ok_or_else(|| format!("strides {strides:?} do not fit shape {shape}"))?;
                let dtype = match rest {
                    [_, _, Value::Function(Function::Type(dtype, name)), ..] => (*dtype, *name),
                    _ => (None, "a dtype"),
                };
                match stored.or(dtype.0) {
                    Some(stored) => Value::Tensor(Box::new(Tensor { stored, key, layout })),
                    None => Value::Unknown("torch", dtype.1),
                }
            }
            _ => return Err("it calls a function with other arguments than PyTorch".to_owned()),
        };
        self.push(result)
    }

    fn integers<N: TryFrom<i64>>(&self, items: &[usize], what: &str) -> Step<Vec<N>> {
        if items.len() > MAX_RANK {
            return Err(format!("more than {MAX_RANK} axes"));
        }
        let number = |&item: &usize| match self.values[item] {
            Value::Int(number) => N::try_from(number).map_err(|_| format!("an {what} of {number}")),
            _ => Err(format!("an {what} is no number")),
        };
        items.iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests;
