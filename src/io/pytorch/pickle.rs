//! Runs a pickle as far as it builds tensors: see the parent module.

use std::collections::BTreeMap;

use crate::dtype::DType;
use crate::io::Problem;
use crate::layout::Layout;
use crate::shape::{MAX_RANK, Shape, Strides};

/// Deepest nesting of dictionaries.
const MAX_DEPTH: usize = 16;

/// The storages that tensors may have, and the types of those in storages without a type.
const STORAGES: [(&str, &str, DType); 13] = [
    ("HalfStorage", "F16", DType::F16),
    ("BFloat16Storage", "BF16", DType::BF16),
    ("FloatStorage", "F32", DType::F32),
    ("DoubleStorage", "F64", DType::F64),
    ("LongStorage", "I64", DType::I64),
    ("IntStorage", "I32", DType::I32),
    ("uint32", "U32", DType::U32),
    ("ByteStorage", "U8", DType::U8),
    ("CharStorage", "I8", DType::I8),
    ("ShortStorage", "I16", DType::I16),
    ("uint16", "U16", DType::U16),
    ("uint64", "U64", DType::U64),
    ("BoolStorage", "BOOL", DType::Bool),
];

/// Returns the tensors of a pickle by the keys of the dictionaries that hold them.
pub(super) fn tensors(program: &[u8]) -> Result<Vec<(String, Tensor<'_>)>, Problem> {
    let (values, root) = Machine::new(program).run()?;
    let mut found = Vec::new();
    values.tensors(root, "", 0, &mut found)?;
    Ok(found)
}

/// A value of a pickle.
#[derive(Clone, Debug)]
enum Value<'a> {
    /// A number, a truth, nothing, or whatever else cannot hold a tensor.
    Other,
    Int(i64),
    Text(&'a str),
    Function(Function),
    /// Of tuples and lists.
    Items(Vec<usize>),
    Dictionary(Vec<(usize, usize)>),
    Storage(&'static str, DType, &'a str),
    Tensor(Tensor<'a>),
}

/// The functions that a pickle may call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Function {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    Storage(&'static str, DType),
}

#[derive(Clone, Debug)]
pub(super) struct Tensor<'a> {
    /// The name of its type in other files.
    pub name: &'static str,
    pub dtype: DType,
    /// The storage.
    pub key: &'a str,
    pub layout: Layout,
}

/// All values, which refer to each other by number.
struct Values<'a>(Vec<Value<'a>>);

impl<'a> Values<'a> {
    /// Lists the tensors in a value by the keys that lead to them.
    fn tensors(
        &self,
        at: usize,
        name: &str,
        depth: usize,
        found: &mut Vec<(String, Tensor<'a>)>,
    ) -> Result<(), Problem> {
        if depth > MAX_DEPTH {
            return Err(Problem::with(name, "dictionaries are nested too deep"));
        }
        match &self.0[at] {
            Value::Tensor(tensor) => {
                // A dictionary that occurs in many others would be listed as often.
                if found.len() > self.0.len() {
                    return Err("the dictionaries share tensors".to_owned().into());
                }
                found.push((name.to_owned(), tensor.clone()));
            }
            Value::Dictionary(items) => {
                for &(key, value) in items {
                    let key = match &self.0[key] {
                        Value::Text(text) => (*text).to_owned(),
                        Value::Int(number) => number.to_string(),
                        _ => continue,
                    };
                    let name = if name.is_empty() { key } else { format!("{name}.{key}") };
                    self.tensors(value, &name, depth + 1, found)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Runs a pickle.
struct Machine<'a> {
    program: &'a [u8],
    at: usize,
    values: Vec<Value<'a>>,
    stack: Vec<usize>,
    /// Heights of the stack at the marks.
    marks: Vec<usize>,
    memo: BTreeMap<u32, usize>,
}

type Step<T> = Result<T, String>;

impl<'a> Machine<'a> {
    fn new(program: &'a [u8]) -> Self {
        let (values, stack, marks, memo) = (vec![], vec![], vec![], BTreeMap::new());
        Machine { program, at: 0, values, stack, marks, memo }
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

    fn push(&mut self, value: Value<'a>) {
        self.stack.push(self.values.len());
        self.values.push(value);
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
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_to_mark()?),
            b'N' | 0x88 | 0x89 => self.push(Value::Other),
            b'G' => {
                self.take(8)?;
                self.push(Value::Other);
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
                self.push(value);
            }
            b'X' => self.push_text(4)?,
            0x8C => self.push_text(1)?,
            0x8D => self.push_text(8)?,
            // BINBYTES, SHORT_BINBYTES
            b'B' => self.skip(4)?,
            b'C' => self.skip(1)?,
            b')' | b']' => self.push(Value::Items(vec![])),
            b'}' => self.push(Value::Dictionary(vec![])),
            b't' => {
                let items = self.pop_to_mark()?;
                self.push(Value::Items(items));
            }
            count @ 0x85..=0x87 => {
                let mut items = (0..count - 0x84).map(|_| self.pop()).collect::<Step<Vec<_>>>()?;
                items.reverse();
                self.push(Value::Items(items));
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
            0x94 => {
                let (number, top) =
                    (self.memo.len() as u32, *self.stack.last().ok_or("the stack is empty")?);
                self.memo.insert(number, top);
            }
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
            b'R' => self.call()?,
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
        self.push(Value::Int(number));
        Ok(())
    }

    fn push_text(&mut self, bytes: usize) -> Step<()> {
        let text = self.text(bytes)?;
        self.push(Value::Text(text));
        Ok(())
    }

    fn skip(&mut self, bytes: usize) -> Step<()> {
        let length = usize::try_from(self.number(bytes)?).map_err(|error| error.to_string())?;
        self.take(length)?;
        self.push(Value::Other);
        Ok(())
    }

    fn append(&mut self, items: Vec<usize>) -> Step<()> {
        match self.top()? {
            Value::Items(list) => list.extend(items),
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
            _ => return Err("it inserts into no dictionary".to_owned()),
        }
        Ok(())
    }

    fn memoize(&mut self, bytes: usize) -> Step<()> {
        let (number, top) =
            (self.number(bytes)? as u32, *self.stack.last().ok_or("the stack is empty")?);
        self.memo.insert(number, top);
        Ok(())
    }

    fn recall(&mut self, bytes: usize) -> Step<()> {
        let number = self.number(bytes)? as u32;
        let value =
            self.memo.get(&number).ok_or_else(|| format!("no value has the number {number}"))?;
        self.stack.push(*value);
        Ok(())
    }

    fn function(&mut self, module: &str, name: &str) -> Step<()> {
        let storage = || STORAGES.iter().find(|(known, ..)| *known == name);
        let function = match (module, name) {
            ("collections", "OrderedDict") => Function::OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2" | "_rebuild_tensor_v3") => {
                Function::RebuildTensor
            }
            ("torch.storage", "UntypedStorage") => Function::Storage("U8", DType::U8),
            ("torch._utils", "_rebuild_parameter") => Function::RebuildParameter,
            ("torch", _) => match storage() {
                Some(&(_, name, dtype)) => Function::Storage(name, dtype),
                None => return Err(format!("tensors cannot have the storage `{name}`")),
            },
            _ => {
                return Err(format!(
                    "it calls `{module}.{name}`, which is not a tensor: save a state_dict with safetensors instead"
                ));
            }
        };
        self.push(Value::Function(function));
        Ok(())
    }

    /// A storage: ("storage", type, key, device, number of elements).
    fn storage(&mut self) -> Step<()> {
        let id = self.pop()?;
        let Value::Items(items) = &self.values[id] else {
            return Err("a storage has no parts".to_owned());
        };
        let parts: Vec<&Value<'_>> = items.iter().map(|&item| &self.values[item]).collect();
        let storage = match parts[..] {
            [
                Value::Text("storage"),
                &Value::Function(Function::Storage(name, dtype)),
                &Value::Text(key),
                _,
                _,
            ] => Value::Storage(name, dtype, key),
            _ => return Err("a storage of an unknown form".to_owned()),
        };
        self.push(storage);
        Ok(())
    }

    fn call(&mut self) -> Step<()> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let (&Value::Function(function), Value::Items(items)) =
            (&self.values[function], &self.values[arguments])
        else {
            return Err("it calls no function".to_owned());
        };
        let parts: Vec<&Value<'_>> = items.iter().map(|&item| &self.values[item]).collect();
        let result = match (function, parts.as_slice()) {
            (Function::OrderedDict, []) => Value::Dictionary(vec![]),
            (Function::RebuildParameter, [Value::Tensor(tensor), ..]) => {
                Value::Tensor(tensor.clone())
            }
            (
                Function::RebuildTensor,
                [
                    Value::Storage(name, dtype, key),
                    Value::Int(offset),
                    Value::Items(dims),
                    Value::Items(strides),
                    rest @ ..,
                ],
            ) => {
                // Behind two arguments is the type of elements in a storage without one.
                let (name, dtype) = match rest {
                    [_, _, Value::Function(Function::Storage(name, dtype)), ..] => (name, dtype),
                    _ => (name, dtype),
                };
                let dims: Vec<usize> = self.integers(dims, "extent")?;
                let strides: Vec<isize> = self.integers(strides, "stride")?;
                let offset =
                    usize::try_from(*offset).map_err(|_| format!("an offset of {offset}"))?;
                let shape = Shape::from(dims);
                let layout = Layout::new(shape, Strides::new(&strides), offset)
                    .ok_or_else(|| format!("strides {strides:?} do not fit shape {shape}"))?;
                Value::Tensor(Tensor { name, dtype: *dtype, key, layout })
            }
            _ => return Err("it calls a function with other arguments than PyTorch".to_owned()),
        };
        self.push(result);
        Ok(())
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
