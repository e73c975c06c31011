//! Tensors of a file, in its memory where they can be.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use swath::io::MappedFile;
use swath::{CpuBackend, DType, Tensor};

use crate::error::{Error, Result};
use crate::proto;

/// The bytes of a model's file, and the folder of those that it names.
#[derive(Clone)]
pub struct Source {
    bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
    folder: Option<PathBuf>,
    external: Arc<Mutex<HashMap<PathBuf, MappedFile>>>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes().len())
    }
}

impl Source {
    pub fn open(path: &Path) -> Result<Self> {
        let folder = path.parent().map(Path::to_path_buf);
        Ok(Source { folder, ..Self::from_owner(MappedFile::open(path)?) })
    }

    pub fn from_owner(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Source { bytes: Arc::new(bytes), folder: None, external: Arc::default() }
    }

    pub fn bytes(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    /// Maps a file beside that of the model.
    fn external(&self, name: &str) -> Result<MappedFile> {
        let failed = |reason: &str| Error::File { path: name.into(), reason: reason.to_owned() };
        let is_inside = |path: &Path| {
            path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        };
        let folder = self
            .folder
            .as_ref()
            .ok_or_else(|| failed("a model in memory has no files beside it"))?;
        if !is_inside(Path::new(name)) {
            return Err(failed("the model names a file that is not in its folder"));
        }
        let path = folder.join(name);
        // A link may lead elsewhere.
        let real = |path: &Path| path.canonicalize().map_err(|error| failed(&error.to_string()));
        let own = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if !real(&path)?.starts_with(real(own)?) {
            return Err(failed("the model names a file that is not in its folder"));
        }
        let mut files = self.external.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(file) = files.get(&path) {
            return Ok(file.clone());
        }
        let file = MappedFile::open(&path)?;
        files.insert(path, file.clone());
        Ok(file)
    }

    /// The bytes of a tensor, as the owner of a part of a file.
    fn part(&self, tensor: &proto::Tensor<'_>, bytes: usize) -> Result<Part> {
        if tensor.location == 1 {
            let entry = |key| {
                tensor.external.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
            };
            let number = |key| entry(key).map_or(Some(0), |text| text.parse::<usize>().ok());
            let name = entry("location")
                .ok_or_else(|| Error::operator("external data have no location"))?;
            let file = self.external(name)?;
            let range = number("offset").and_then(|start| Some(start..start.checked_add(bytes)?));
            let range = range.filter(|range| range.end <= file.as_ref().len());
            let range = range.ok_or_else(|| {
                Error::operator(format!("external data {name:?} have no such bytes"))
            })?;
            return Ok(Part { owner: Arc::new(file), range });
        }
        let start = tensor.raw.as_ptr().addr().wrapping_sub(self.bytes().as_ptr().addr());
        let range = start..start.wrapping_add(tensor.raw.len());
        Ok(match self.bytes().get(range.clone()) {
            Some(own) if own.as_ptr() == tensor.raw.as_ptr() => {
                Part { owner: self.bytes.clone(), range }
            }
            _ => Part { owner: Arc::new(tensor.raw.to_vec()), range: 0..tensor.raw.len() },
        })
    }
}

struct Part {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.range.clone()]
    }
}

/// The name of a type of elements, `TensorProto.DataType`.
pub fn type_name(code: i64) -> &'static str {
    const NAMES: [&str; 27] = [
        "undefined",
        "float",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "int32",
        "int64",
        "string",
        "bool",
        "float16",
        "double",
        "uint32",
        "uint64",
        "complex64",
        "complex128",
        "bfloat16",
        "float8e4m3fn",
        "float8e4m3fnuz",
        "float8e5m2",
        "float8e5m2fnuz",
        "uint4",
        "int4",
        "float4e2m1",
        "float8e8m0",
        "uint2",
        "int2",
    ];
    usize::try_from(code).ok().and_then(|code| NAMES.get(code)).copied().unwrap_or("unknown")
}

/// The dtype of a type of elements. Integers of 2 and 4 bits have one byte each.
pub fn dtype(code: i64) -> Option<DType> {
    Some(match code {
        1 => DType::F32,
        2 | 21 | 25 => DType::U8,
        3 | 22 | 26 => DType::I8,
        4 => DType::U16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        16 => DType::BF16,
        _ => return None,
    })
}

/// The code of a dtype.
pub fn code(dtype: DType) -> i64 {
    (1..17).find(|&code| self::dtype(code) == Some(dtype)).expect("every dtype has a code")
}

/// Reads a tensor.
pub fn read(tensor: &proto::Tensor<'_>, source: &Source) -> Result<Tensor> {
    let dtype = dtype(tensor.dtype).ok_or_else(|| {
        Error::Unsupported(vec![format!("tensors of type {}", type_name(tensor.dtype))])
    })?;
    let dims: Option<Vec<usize>> =
        tensor.dims.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let dims = dims.ok_or_else(|| {
        Error::operator(format!("a shape has a negative extent: {:?}", tensor.dims))
    })?;
    let count = dims.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent));
    let bits = match tensor.dtype {
        21 | 22 => 4,
        25 | 26 => 2,
        _ => 8 * dtype.size(),
    };
    let bytes = count.and_then(|count| Some(count.checked_mul(bits)?.div_ceil(8)));
    let (Some(count), Some(bytes)) = (count, bytes) else {
        return Err(Error::operator(format!("a shape has too many elements: {dims:?}")));
    };
    if bits < 8 {
        let packed: Vec<u8> = match tensor.ints.is_empty() {
            true => source.part(tensor, bytes)?.as_ref().to_vec(),
            false => tensor.ints.iter().map(|&byte| byte as u8).collect(),
        };
        if packed.len() != bytes {
            return Err(Error::operator(format!(
                "{} bytes are not {count} numbers of {bits} bits",
                packed.len()
            )));
        }
        let per_byte = 8 / bits;
        let field =
            |i: usize| packed[i / per_byte] >> (bits * (i % per_byte)) & (0xff >> (8 - bits));
        let unsigned = (0..count).map(field);
        return Ok(match dtype {
            DType::U8 => Tensor::from_vec(unsigned.collect::<Vec<u8>>(), dims)?,
            // The sign is the highest bit of the field.
            _ => {
                let signed = unsigned.map(|x| ((x << (8 - bits)) as i8) >> (8 - bits));
                Tensor::from_vec(signed.collect::<Vec<i8>>(), dims)?
            }
        });
    }
    if tensor.location == 1 || !tensor.raw.is_empty() || count == 0 {
        return Ok(Tensor::from_owner_bytes(source.part(tensor, bytes)?, dtype, dims)?);
    }
    let x = match dtype {
        DType::F32 => Tensor::<CpuBackend>::from_slice(&tensor.floats, dims)?,
        DType::F64 => Tensor::from_slice(&tensor.doubles, dims)?,
        DType::I64 => Tensor::from_slice(&tensor.longs, dims)?,
        DType::U64 => Tensor::from_slice(&tensor.unsigned, dims)?,
        DType::U32 => {
            let values: Vec<u32> = tensor.unsigned.iter().map(|&x| x as u32).collect();
            Tensor::from_vec(values, dims)?
        }
        DType::F16 | DType::BF16 => {
            let bytes: Vec<u8> =
                tensor.ints.iter().flat_map(|&bits| (bits as u16).to_le_bytes()).collect();
            Tensor::from_bytes(dtype, dims, &bytes)?
        }
        _ => Tensor::from_slice(&tensor.ints, dims)?.to_dtype(dtype)?,
    };
    Ok(x)
}

/// The message of a tensor.
pub fn write<'a>(name: &'a str, x: &Tensor) -> Result<proto::Tensor<'a>> {
    Ok(proto::Tensor {
        name: name.into(),
        dims: x.dims().iter().map(|&extent| extent as i64).collect(),
        dtype: code(x.dtype()),
        raw: x.contiguous()?.as_bytes()?.to_vec().into(),
        ..proto::Tensor::default()
    })
}
