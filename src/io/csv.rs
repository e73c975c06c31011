//! Tables of numbers as [comma-separated values](https://www.rfc-editor.org/rfc/rfc4180).

use std::fs;
use std::path::Path;
use std::str::FromStr;

use csv::{ReaderBuilder, StringRecord};

use super::Place;
use super::atomic::replace;
use crate::backend::Backend;
use crate::dtype::{DType, Element, for_dtype};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// The byte between cells.
    pub delimiter: u8,
    /// The first line has the names of the columns.
    pub has_header: bool,
    /// The text that stands for an empty cell, such as `nan` or `0`; without it an empty cell is an error.
    pub missing: Option<String>,
}

impl Default for CsvOptions {
    /// Commas and a header, no empty cells.
    fn default() -> Self {
        CsvOptions { delimiter: b',', has_header: true, missing: None }
    }
}

/// A table of numbers.
#[derive(Debug)]
pub struct Table<B: Backend> {
    /// The names of the columns; none if the file has no header.
    pub names: Vec<String>,
    /// The numbers, of shape `[rows, columns]`.
    pub values: Tensor<B>,
}

impl<B: Backend> Table<B> {
    /// The columns of these names, in this order, of shape `[rows, names]`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a name that the table lacks.
    pub fn columns(&self, names: &[&str]) -> Result<Tensor<B>> {
        let at = names.iter().map(|name| {
            let at = self.names.iter().position(|known| known == name).ok_or_else(|| {
                let reason = format!("no column `{name}` among {}", self.names.join(", "));
                Error::InvalidArgument { op: "columns", reason }
            });
            at.map(|at| at as i64)
        });
        let at = at.collect::<Result<Vec<_>>>()?;
        self.values.index_select(1, &Tensor::from_vec(at, names.len())?)
    }
}

/// Reads a table whose cells are all numbers of `dtype`.
///
/// ```
/// use swath::io::csv;
/// use swath::prelude::*;
/// # let path = std::env::temp_dir().join("swath-iris.csv");
/// std::fs::write(&path, "length,width\n5.1,3.5\n4.9,3.0\n").unwrap();
/// let table: csv::Table<CpuBackend> = csv::load(&path, DType::F32, &Default::default())?;
/// assert_eq!(table.names, ["length", "width"]);
/// assert_eq!(table.columns(&["width"])?.to_vec::<f32>()?, [3.5, 3.0]);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), Error>(())
/// ```
///
/// Floats are rounded to the nearest of `dtype`; `nan` and `inf` are numbers too. Spaces around a number are skipped, and so
/// are empty lines.
///
/// # Errors
/// [`Error::File`] for a file that cannot be read, for rows of different lengths, and for a cell that is no number of
/// `dtype`: it names line and column.
pub fn load<B: Backend>(
    path: impl AsRef<Path>,
    dtype: DType,
    options: &CsvOptions,
) -> Result<Table<B>> {
    let place = Place { op: "csv::load", path: path.as_ref() };
    let file = fs::File::open(place.path).map_err(|error| place.cannot_read(error))?;
    let mut reader = ReaderBuilder::new();
    reader.delimiter(options.delimiter).has_headers(options.has_header);
    let mut reader = reader.from_reader(file);
    let failed = |error| place.error(None, error);
    let mut names = Vec::new();
    if options.has_header {
        names.extend(reader.headers().map_err(failed)?.iter().map(str::to_owned));
    }
    let (mut row, mut rows, mut columns) = (StringRecord::new(), 0, names.len());
    let mut next = |parse: &mut dyn FnMut(&str) -> std::result::Result<(), String>| loop {
        if !reader.read_record(&mut row).map_err(failed)? {
            return Ok((rows, columns));
        }
        (rows, columns) = (rows + 1, row.len());
        for (i, cell) in row.iter().enumerate() {
            let cell = match (cell.trim(), &options.missing) {
                ("", Some(missing)) => missing,
                (cell, _) => cell,
            };
            parse(cell).map_err(|reason| {
                let line = row.position().map_or(0, csv::Position::line);
                let column =
                    names.get(i).map_or_else(|| (i + 1).to_string(), |name| format!("`{name}`"));
                let cell = super::shortened(cell);
                let reason =
                    format!("line {line}, column {column}: `{cell}` is no {dtype}: {reason}");
                place.error(None, reason)
            })?;
        }
    };
    let values = for_dtype!(dtype, T => {
        let mut values: Vec<T> = Vec::new();
        let shape = next(&mut |cell| {
            let number = match T::DTYPE {
                // half reads them by way of f32, which rounds twice.
                DType::F16 | DType::BF16 => {
                    let number = f64::from_str(cell).map(<T as Element>::from_f64);
                    number.map_err(|e| e.to_string())
                }
                _ => T::from_str(cell).map_err(|e| e.to_string()),
            };
            values.push(number?);
            Ok(())
        })?;
        Tensor::from_vec(values, shape)
    })?;
    Ok(Table { names, values })
}

/// Writes a tensor of shape `[rows, columns]` or `[rows]`, with a header if there are `names`. The file is replaced
/// atomically. Numbers are read again as they were.
///
/// # Errors
/// [`Error::File`] if the file cannot be written; [`Error::InvalidArgument`] for a tensor of more axes, or names that
/// are not as many as the columns.
pub fn save<B: Backend>(path: impl AsRef<Path>, names: &[&str], x: &Tensor<B>) -> Result<()> {
    let place = Place { op: "csv::save", path: path.as_ref() };
    let columns = match *x.dims() {
        [_] => 1,
        [_, columns] => columns,
        _ => 0,
    };
    if x.rank() == 0 || x.rank() > 2 || !names.is_empty() && names.len() != columns {
        let reason = format!("{} names for a tensor of shape {}", names.len(), x.shape());
        return Err(Error::InvalidArgument { op: place.op, reason });
    }
    let host = B::to_host(x.data())?;
    replace(place, |file| {
        let failed = |error| place.error(None, format_args!("cannot write: {error}"));
        let mut writer = csv::Writer::from_writer(file);
        if !names.is_empty() {
            writer.write_record(names).map_err(failed)?;
        }
        for_dtype!(host.dtype(), T => {
            for row in T::host_slice(&host).unwrap_or(&[]).chunks(columns.max(1)) {
                writer.write_record(row.iter().map(T::to_string)).map_err(failed)?;
            }
        });
        writer.flush().map_err(|error| place.cannot_write(error))
    })
}
