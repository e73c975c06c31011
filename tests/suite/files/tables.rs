//! Arrays of MNIST's format, tables and images, written and read, and malformed ones.

use std::fs;

use swath::io::csv::{self, CsvOptions, Table};
use swath::io::idx;
use swath::io::image::{self, Channels};
use swath::prelude::*;

use super::T;
use crate::support::files::Scratch;

#[test]
fn arrays_of_the_idx_format_are_written_and_read() {
    let folder = Scratch::new("idx");
    for name in ["a.idx", "a.gz"] {
        for dtype in [DType::U8, DType::I8, DType::I16, DType::I32, DType::F32, DType::F64] {
            for dims in [&[][..], &[0, 3], &[2, 3], &[1, 1, 1, 1]] {
                let x =
                    T::arange_as(0.0, dims.iter().product::<usize>() as f64, 1.0, dtype).unwrap();
                let x = x.reshape(dims).unwrap();
                idx::save(folder.0.join(name), &x).unwrap();
                let again: T = idx::load(folder.0.join(name)).unwrap();
                assert_eq!(
                    (again.dtype(), again.dims(), again.as_bytes().unwrap()),
                    (dtype, dims, x.as_bytes().unwrap())
                );
            }
        }
    }
    let error =
        idx::save(folder.0.join("a"), &T::zeros(2, DType::I64).unwrap()).unwrap_err().to_string();
    assert!(error.contains("i64"), "{error}");
    let file = [0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9];
    let read = |bytes: &[u8]| {
        fs::write(folder.0.join("b"), bytes).unwrap();
        idx::load::<CpuBackend>(folder.0.join("b")).map_err(|error| error.to_string())
    };
    assert_eq!(read(&file).unwrap().to_vec::<u8>().unwrap(), [7, 8, 9]);
    for len in 0..file.len() {
        assert!(read(&file[..len]).unwrap_err().contains("idx::load"), "{len}");
    }
    assert!(read(&[&file[..], &[0]].concat()).unwrap_err().contains("more"));
    let huge = [0, 0, 0x0E, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255];
    assert!(read(&huge).unwrap_err().contains("more elements than"), "{:?}", read(&huge));
    assert!(read(&[0, 0, 0x0E, 1, 255, 255, 255, 255, 1]).unwrap_err().contains("the file has 1"));
    assert!(read(&[0, 0, 7, 0]).unwrap_err().contains("number 7"));
    assert!(read(&[0, 0, 8, 9, 0, 0]).unwrap_err().contains("9 axes"));
    assert!(read(&[1, 0, 8, 0]).unwrap_err().contains("two zeros"));
}

#[test]
fn tables_are_written_and_read() {
    let folder = Scratch::new("csv");
    let path = folder.0.join("t.csv");
    for dtype in DType::ALL {
        let x = T::arange_as(0.0, 6.0, 1.0, DType::I64)
            .unwrap()
            .reshape((3, 2))
            .unwrap()
            .to_dtype(dtype)
            .unwrap();
        csv::save(&path, &["x", "y, z"], &x).unwrap();
        let again: Table<CpuBackend> = csv::load(&path, dtype, &CsvOptions::default()).unwrap();
        assert_eq!(
            (again.values.dims(), again.values.as_bytes().unwrap()),
            (&[3, 2][..], x.as_bytes().unwrap())
        );
        assert_eq!(again.names, ["x", "y, z"]);
    }
    let edges = [f64::MIN_POSITIVE, -0.0, f64::MAX, f64::INFINITY, 1.0 / 3.0, 5e-324];
    csv::save(&path, &[], &T::from_slice(&edges, 6).unwrap()).unwrap();
    let bare = CsvOptions { has_header: false, ..CsvOptions::default() };
    let again: Table<CpuBackend> = csv::load(&path, DType::F64, &bare).unwrap();
    let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!((again.values.dims(), again.names.len()), (&[6, 1][..], 0));
    assert_eq!(bits(&again.values.to_vec::<f64>().unwrap()), bits(&edges));
    assert!(csv::save(&path, &["x"], &T::zeros((2, 2), DType::F32).unwrap()).is_err());
    assert!(csv::save(&path, &[], &T::zeros((), DType::F32).unwrap()).is_err());
}

#[test]
fn cells_that_are_no_numbers_are_named() {
    let folder = Scratch::new("csv-errors");
    let path = folder.0.join("t.csv");
    let read = |text: &str, dtype, options: &CsvOptions| {
        fs::write(&path, text).unwrap();
        csv::load::<CpuBackend>(&path, dtype, options).map_err(|error| error.to_string())
    };
    let plain = CsvOptions::default();
    let error = read("a,b\n1,2\n3,x\n", DType::F32, &plain).unwrap_err();
    assert!(error.contains("line 3, column `b`: `x` is no f32"), "{error}");
    // Rounded once: half's own reading goes through f32.
    let halves = read("a\n1.00048828218\n65519.9999999\n", DType::F16, &plain).unwrap().values;
    assert_eq!(halves.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap(), [1.0009766, 65504.0]);
    assert!(read("a\n256\n", DType::U8, &plain).unwrap_err().contains("`256` is no u8"));
    assert!(read("a,b\n1\n", DType::F32, &plain).unwrap_err().contains("line: 2"));
    assert!(read("a,b\n1,\n", DType::F32, &plain).unwrap_err().contains("column `b`"));
    let options =
        CsvOptions { delimiter: b';', missing: Some("nan".to_owned()), has_header: false };
    let table = read(" 1 ;\n-inf;1e3\n", DType::F32, &options).unwrap();
    let values = table.values.to_vec::<f32>().unwrap();
    assert!(
        values[1].is_nan() && values[..1] == [1.0] && values[2..] == [f32::NEG_INFINITY, 1000.0]
    );
    assert_eq!(read("", DType::F32, &plain).unwrap().values.dims(), [0, 0]);
    assert_eq!(read("a,b\n", DType::F32, &plain).unwrap().values.dims(), [0, 2]);
    let table = read("a,b,a\n1,2,3\n", DType::I64, &plain).unwrap();
    assert_eq!(table.columns(&["b", "a"]).unwrap().to_vec::<i64>().unwrap(), [2, 1]);
    assert!(table.columns(&["c"]).unwrap_err().to_string().contains("a, b, a"));
}

#[test]
fn images_are_written_and_read() {
    let folder = Scratch::new("image");
    for channels in [1, 3, 4] {
        let x = T::arange_as(0.0, (channels * 6) as f64, 1.0, DType::U8).unwrap();
        let x = x.reshape((channels, 2, 3)).unwrap();
        let path = folder.0.join(format!("{channels}.png"));
        image::save(&path, &x).unwrap();
        let kind = [Channels::Gray, Channels::Gray, Channels::Gray, Channels::Rgb, Channels::Rgba]
            [channels];
        assert_eq!(
            image::load::<CpuBackend>(&path, kind).unwrap().to_vec::<u8>().unwrap(),
            x.to_vec::<u8>().unwrap()
        );
    }
    let path = folder.0.join("x.jpg");
    image::save(&path, &T::full((3, 8, 8), 77u8).unwrap()).unwrap();
    let again: T = image::load(&path, Channels::Rgb).unwrap();
    assert!(again.to_vec::<u8>().unwrap().iter().all(|pixel| pixel.abs_diff(77) < 3));
    for x in [
        T::zeros((2, 2, 2), DType::U8),
        T::zeros((3, 2, 2), DType::F32),
        T::zeros((2, 2), DType::U8),
    ] {
        let error = image::save(&path, &x.unwrap()).unwrap_err().to_string();
        assert!(error.contains("image::save") && error.contains("of shape"), "{error}");
    }
    assert!(image::save(folder.0.join("x.txt"), &T::zeros((1, 1, 1), DType::U8).unwrap()).is_err());
    fs::write(&path, b"no image").unwrap();
    assert!(
        image::load::<CpuBackend>(&path, Channels::Rgb).unwrap_err().to_string().contains("x.jpg")
    );
    // A name in another format than the file's.
    fs::copy(folder.0.join("3.png"), &path).unwrap();
    assert_eq!(image::load::<CpuBackend>(&path, Channels::Rgb).unwrap().dims(), [3, 2, 3]);
}
