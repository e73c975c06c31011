//! [`Load`]: gives a model the values of files.

use std::collections::BTreeMap;
use std::fmt;

use super::module::{Wanted, check_tied, set_values, tied_names};
use super::{File, Place};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::Result;
use crate::nn::Empty;
use crate::nn::{Visit, for_each_tensor};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// A function from names to names.
type Rename<'a> = Box<dyn Fn(&str) -> String + 'a>;

/// Gives the parameters and buffers of a model the values of files, by name.
///
/// ```
/// use swath::io::{File, Load, safetensors};
/// use swath::nn::Linear;
/// use swath::prelude::*;
/// # let folder = std::env::temp_dir();
/// let path = folder.join("swath-load.safetensors");
/// let weight = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].to_dtype(DType::F16)?;
/// let tensors = [("model.head.weight", weight), ("model.head.bias", tensor![0.5, 0.25]), ("step", tensor![9.0])];
/// safetensors::save(&path, tensors, &Default::default())?;
///
/// let mut model: Linear = Linear::new(3, 2, &mut Rng::seed(1))?;
/// let file = File::open(&path)?;
/// let report = Load::new(&file).prefix("model.head.").convert(DType::F32).into(&mut model)?;
/// assert_eq!(report.loaded, ["bias", "weight"]);
/// assert_eq!(report.converted, ["weight"]);
/// assert_eq!(model.weight.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), Error>(())
/// ```
///
/// A tensor of a file is named for the model by taking off the prefix and then by [`rename`](Load::rename). Tensors of
/// other prefixes are not looked at. Values stay in the memory of the file where [`File::get`] leaves them there: the
/// first step of an optimizer copies them.
pub struct Load<'a> {
    files: &'a [File],
    prefix: &'a str,
    rename: Option<Rename<'a>>,
    transposed: Vec<&'a str>,
    ignored: Vec<&'a str>,
    dtype: Option<DType>,
    is_strict: bool,
}

impl fmt::Debug for Load<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Load").field("files", &self.files).finish_non_exhaustive()
    }
}

/// What [`Load`] did: names of the model's tensors, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Tensors of the model that have values of the file now.
    pub loaded: Vec<String>,
    /// Those of `loaded` that have another dtype in the file.
    pub converted: Vec<String>,
    /// Tensors of the model that the file lacks, other than counters and seeds.
    pub missing: Vec<String>,
    /// Tensors of the file, as they are renamed, that the model lacks.
    pub unused: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [self.loaded.len(), self.converted.len()];
        write!(f, "{} tensors loaded, {} of them converted", counts[0], counts[1])?;
        for (what, names) in [("missing", &self.missing), ("unused", &self.unused)] {
            if !names.is_empty() {
                write!(f, "; {} {what}: {}", names.len(), names.join(", "))?;
            }
        }
        Ok(())
    }
}

impl<'a> Load<'a> {
    /// Takes values from a [`File`] or from [`Files`](super::Files).
    pub fn new(files: &'a impl AsRef<[File]>) -> Self {
        let files = files.as_ref();
        Load {
            files,
            prefix: "",
            rename: None,
            transposed: vec![],
            ignored: vec![],
            dtype: None,
            is_strict: true,
        }
    }

    /// Takes the tensors whose names begin with `prefix`, which is not part of the model's names.
    pub fn prefix(self, prefix: &'a str) -> Self {
        Load { prefix, ..self }
    }

    /// Names the tensor `name` of the file `f(name)` in the model.
    pub fn rename(self, f: impl Fn(&str) -> String + 'a) -> Self {
        Load { rename: Some(Box::new(f)), ..self }
    }

    /// Swaps the last two axes of the tensors whose names in the model are like `pattern`, in which each `*` stands for
    /// any text: `*.attn.weight`. For weights that are stored `[inputs, outputs]`. May be called several times.
    pub fn transpose(mut self, pattern: &'a str) -> Self {
        self.transposed.push(pattern);
        self
    }

    /// Does not look at the tensors whose names in the file, without the prefix, are like `pattern`: `*.attn.bias`. For
    /// masks and other constants that a checkpoint holds and the model makes itself. May be called several times.
    pub fn ignore(mut self, pattern: &'a str) -> Self {
        self.ignored.push(pattern);
        self
    }

    /// Converts floats of another dtype than `dtype` to it. Without this a model has the dtypes of the file, or there is
    /// an error.
    pub fn convert(self, dtype: DType) -> Self {
        Load { dtype: Some(dtype), ..self }
    }

    /// With `false`, tensors that the model or the file lacks are reported and not an error.
    pub fn strict(self, is_strict: bool) -> Self {
        Load { is_strict, ..self }
    }

    /// Loads the values. Parameters remain the same leaves, and frozen ones remain frozen.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File), which lists all tensors that do not fit: by name, shape or dtype, or because
    /// the model ties them and the file does not; [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a part
    /// of the model that more than one [`Arc`](std::sync::Arc) holds. The model is then unchanged.
    pub fn into<B: Backend>(self, model: &mut (impl Visit<B> + ?Sized)) -> Result<Report> {
        let place = self.place();
        let wanted = Wanted::of(model, "")?;
        let (mut sources, mut misfits) = self.sources();
        // A parameter with several names may be in the file under one of them.
        for names in tied_names(model).values() {
            let found = names.iter().find_map(|name| sources.get(name).copied());
            for name in names {
                found.map(|found| *sources.entry(name.clone()).or_insert(found));
            }
        }
        let mut report = Report::default();
        let mut values = BTreeMap::new();
        for (name, (shape, dtype)) in &wanted.tensors {
            let Some(&(file, stored)) = sources.get(name) else {
                if !wanted.optional.contains(name) {
                    report.missing.push(name.clone());
                    if self.is_strict {
                        misfits.push(format!("`{name}` ({dtype} of shape {shape}) is missing"));
                    }
                }
                continue;
            };
            let info = file.info(stored)?;
            let (is_transposed, mut found) = (self.is_transposed(name), *info.shape());
            if is_transposed && found.ndim() < 2 {
                misfits
                    .push(format!("`{name}`: it has shape {found}: transpose asks for two axes"));
                continue;
            }
            if is_transposed {
                found = transposed(&found);
            }
            let is_float = info.dtype().is_none_or(DType::is_float);
            let target = self.dtype.filter(|_| is_float).or(info.dtype());
            let target_name = target.map_or(info.dtype_name(), DType::name);
            if let Some(reason) = wanted.misfit(name, &found, target_name) {
                let help = match () {
                    _ if found != *shape && transposed(&found) == *shape => ": call transpose",
                    _ if found == *shape && self.dtype.is_none() => ": call convert",
                    _ => "",
                };
                misfits.push(format!("`{name}`: {reason}{help}"));
                continue;
            }
            if target != info.dtype() {
                report.converted.push(name.clone());
            }
            report.loaded.push(name.clone());
            values.insert(name.clone(), (file, stored, *dtype));
        }
        report.unused =
            sources.keys().filter(|name| !wanted.tensors.contains_key(*name)).cloned().collect();
        if self.is_strict {
            let lacks = |name: &String| format!("`{name}` of the file is not in the model");
            misfits.extend(report.unused.iter().map(lacks));
        }
        if !misfits.is_empty() {
            return Err(place.error(None, misfits.join("; ")));
        }
        let load = |(name, (file, stored, dtype)): (String, (&File, &str, DType))| {
            let x = file.get_as::<B>(stored, dtype)?;
            let x = if self.is_transposed(&name) { x.t()?.contiguous()? } else { x };
            Ok((name, x))
        };
        let values = values.into_iter().map(load).collect::<Result<BTreeMap<_, Tensor<B>>>>()?;
        check_tied(place, model, &values, "")?;
        set_values(model, |name| values.get(name).map(|x| x.data().clone()))?;
        Ok(report)
    }

    /// Loads the values of a model that [`nn::empty`](crate::nn::empty) has made.
    ///
    /// # Errors
    /// Those of [`into`](Load::into); [`Error::File`](crate::Error::File) for parameters that have no values still, which it lists.
    pub fn fill<B: Backend, M: Visit<B>>(self, model: Empty<M>) -> Result<(M, Report)> {
        let (mut model, place) = (model.0, self.place());
        let report = self.into(&mut model)?;
        let (mut lacking, mut result) = (Vec::new(), Ok(()));
        for_each_tensor(&model, |name, tensor, _| {
            if report.missing.iter().any(|missing| missing == name) {
                match begins_with_nan(tensor) {
                    Ok(true) => lacking.push(name.to_owned()),
                    Ok(false) => {}
                    Err(error) => result = Err(error),
                }
            }
        });
        result?;
        match lacking.is_empty() {
            true => Ok((model, report)),
            false => Err(place.error(None, format!("no values for {}", lacking.join(", ")))),
        }
    }

    fn place(&self) -> Place<'a> {
        let path = self.files.first().map_or("no file".as_ref(), File::path);
        Place { op: "Load", path }
    }

    /// The tensors of the files by their names in the model, and what is wrong with the names.
    fn sources(&self) -> (BTreeMap<String, (&'a File, &'a str)>, Vec<String>) {
        let (mut sources, mut misfits) = (BTreeMap::new(), Vec::new());
        let all = || self.files.iter().flat_map(File::names);
        if !all().any(|name| name.starts_with(self.prefix)) {
            let some = all().take(3).collect::<Vec<_>>().join(", ");
            misfits.push(format!("no tensor begins with `{}`; the file has {some} …", self.prefix));
        }
        for file in self.files {
            for stored in file.names() {
                let Some(name) = stored.strip_prefix(self.prefix) else { continue };
                if self.ignored.iter().any(|pattern| is_like(pattern, name)) {
                    continue;
                }
                let name = self.rename.as_ref().map_or_else(|| name.to_owned(), |f| f(name));
                if let Some((_, other)) = sources.insert(name.clone(), (file, stored)) {
                    misfits.push(format!("`{other}` and `{stored}` are both named `{name}`"));
                }
            }
        }
        (sources, misfits)
    }

    fn is_transposed(&self, name: &str) -> bool {
        self.transposed.iter().any(|pattern| is_like(pattern, name))
    }
}

/// True for what an initializer returns within [`nn::empty`](crate::nn::empty), and what has been computed of it.
fn begins_with_nan<B: Backend>(x: &Tensor<B>) -> Result<bool> {
    if !x.dtype().is_float() || x.numel() == 0 {
        return Ok(false);
    }
    let first = (0..x.rank()).try_fold(x.detach(), |x, axis| x.narrow(axis as isize, 0, 1))?;
    Ok(B::item(first.data())?.to_f64().is_nan())
}

/// The shape with its last two axes swapped.
fn transposed(shape: &Shape) -> Shape {
    let mut dims = shape.dims().to_vec();
    if let [.., a, b] = &mut dims[..] {
        std::mem::swap(a, b);
    }
    Shape::from(dims)
}

/// Whether `name` is `pattern` with a text in place of each `*`.
fn is_like(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(start) else { return false };
    match rest.rsplit_once('*') {
        None => name.ends_with(rest),
        Some((middle, end)) => {
            let Some(mut name) = name.strip_suffix(end) else { return false };
            // Each text at its first occurrence leaves the most for the next one.
            middle.split('*').all(|part| match name.find(part) {
                Some(at) => {
                    name = &name[at + part.len()..];
                    true
                }
                None => false,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn patterns_with_stars() {
        let rows = [
            ("a.b", "a.b", true),
            ("a.b", "a.bc", false),
            ("*", "", true),
            ("*.weight", "h.0.weight", true),
            ("*.weight", "weight", false),
            ("h.*.attn.*.weight", "h.12.attn.c.weight", true),
            ("h.*.attn.*.weight", "h.12.attn.weight", false),
            ("a*ab", "ab", false),
            ("a*b*b", "ab", false),
            ("*a*a*", "aa", true),
            ("*ab*ab*", "aab", false),
        ];
        for (pattern, name, expected) in rows {
            assert_eq!(is_like(pattern, name), expected, "{pattern} {name}");
        }
    }
}
