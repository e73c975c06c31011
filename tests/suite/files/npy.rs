//! Arrays of NumPy.

use swath::io::{File, npy};
use swath::prelude::*;

use super::{T, opened};
use crate::support::files::Scratch;

/// Three arrays, one in Fortran's order and big-endian, as `tests/vectors/make_files.py` compresses them.
const ARCHIVE: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/files/compressed.npz"));

#[test]
fn an_archive_of_numpy_is_read() {
    let folder = Scratch::new("npy-archive");
    let file = opened(&folder, "arrays.npz", ARCHIVE).unwrap();
    assert!(file.names().eq(["a", "f", "s"]));
    let a = file.get::<CpuBackend>("a").unwrap();
    assert_eq!(
        (a.dims(), a.to_vec::<f32>().unwrap()),
        (&[2, 3][..], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    );
    let f = file.get::<CpuBackend>("f").unwrap();
    assert_eq!((f.dims(), f.to_vec::<i32>().unwrap()), (&[2, 3][..], vec![0, 1, 2, 3, 4, 5]));
    assert_eq!(file.get_as::<CpuBackend>("s", DType::F32).unwrap().item::<f32>().unwrap(), 2.5);
    assert!(!file.is_in_place("a").unwrap());
    for len in 0..ARCHIVE.len() {
        let _ = opened(&folder, "cut.npz", &ARCHIVE[..len]);
    }
}

#[test]
fn arrays_of_every_dtype_are_written_and_read() {
    let folder = Scratch::new("npy-dtypes");
    let x = T::arange_as(0.0, 6.0, 1.0, DType::I64).unwrap().reshape((2, 3)).unwrap();
    let mut all = Vec::new();
    for dtype in DType::ALL {
        let x = x.to_dtype(dtype).unwrap();
        let path = folder.0.join(format!("{dtype}.npy"));
        npy::save(&path, &x).unwrap();
        let again: T = npy::load(&path).unwrap();
        assert_eq!((again.dtype(), again.as_bytes().unwrap()), (dtype, x.as_bytes().unwrap()));
        assert!(File::open(&path).unwrap().is_in_place(npy::ARRAY).unwrap());
        all.push((dtype.name(), x.t().unwrap()));
    }
    all.push(("empty", T::zeros((0, 3), DType::F32).unwrap()));
    all.push(("one", T::zeros((), DType::F32).unwrap()));
    let path = folder.0.join("all.npz");
    npy::save_all(&path, all.clone()).unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(file.names().count(), all.len());
    for (name, x) in &all {
        let again = file.get::<CpuBackend>(name).unwrap();
        let x = x.contiguous().unwrap();
        assert_eq!(
            (again.dims(), again.as_bytes().unwrap()),
            (x.dims(), x.as_bytes().unwrap()),
            "{name}"
        );
    }
    let twice = npy::save_all(&path, [("x", x.clone()), ("x", x)]).unwrap_err();
    assert!(twice.to_string().contains("`x`"), "{twice}");
    assert!(File::open(&path).is_ok());
}

fn array(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let length = header.len() as u32;
    let length = if version == 1 {
        length.to_le_bytes()[..2].to_vec()
    } else {
        length.to_le_bytes().to_vec()
    };
    [b"\x93NUMPY", &[version, 0][..], &length, header.as_bytes(), data].concat()
}

#[test]
fn headers_of_other_writers_are_read() {
    let folder = Scratch::new("npy-headers");
    let data: Vec<u8> = (0..4i16).flat_map(|x| (f32::from(x)).to_be_bytes()).collect();
    for (version, header) in [
        (1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }"),
        (2, "{\"shape\":(2L,2L),\"fortran_order\":False,\"descr\":\">f4\"}\n"),
        (3, "{ 'descr' : '>f4' , 'fortran_order' : False , 'shape' : ( 2 , 2 ) }   "),
    ] {
        let file = opened(&folder, "x.npy", &array(version, header, &data)).unwrap();
        let x = file.get::<CpuBackend>(npy::ARRAY).unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0], "{header}");
    }
    let little: Vec<u8> = (0..4i16).flat_map(|x| (f32::from(x)).to_le_bytes()).collect();
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }";
    let file = opened(&folder, "f.npy", &array(1, fortran, &little)).unwrap();
    let x = file.get::<CpuBackend>(npy::ARRAY).unwrap();
    assert_eq!(
        (x.to_vec::<f32>().unwrap(), x.layout().strides()),
        (vec![0.0, 2.0, 1.0, 3.0], &[1, 2][..])
    );
}

#[test]
fn invalid_arrays_are_errors() {
    let folder = Scratch::new("npy-invalid");
    let of = |text: &str| array(1, text, &[0; 16]);
    let with = |descr: &str, shape: &str| {
        of(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"))
    };
    for (bytes, part) in [
        (b"\x93NUMPY".to_vec(), "no .npy"),
        (b"\x93NUMPY\x01\x00\x05".to_vec(), "cut off"),
        (b"\x93NUMPY\x09\x00\x05\x00\x00\x00\x00\x00".to_vec(), "version 9"),
        (array(2, &" ".repeat(20_000), &[]), "too long"),
        (with("'<f4'", "(2, 3)"), "truncated"),
        (with("'<U5'", "(1,)"), "<U5"),
        (with("'|O'", "(1,)"), "|O"),
        (with("[('a', '<f4')]", "(1,)"), "structured"),
        (with("'>'", "(1,)"), "`>`"),
        (with("''", "(1,)"), "``"),
        (with("'<f4'", "(18446744073709551615,)"), "elements"),
        (with("'<f4'", "(99999999999999999999,)"), "extent"),
        (with("'<f4'", "(4294967296, 4294967296)"), "shape"),
        (with("'<f4'", "(1,1,1,1,1,1,1,1,1)"), "more than 8 axes"),
        (with("'<f4'", "(-1,)"), "extent"),
        (of("{'descr': '<f4', 'shape': (1,), }"), "fortran_order"),
        (of("{'descr': '<f4', 'descr': '<f4', }"), "occurs twice"),
        (of("{'x': 1}"), "`x`"),
        (of("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x"), "after the header"),
        (of("{"), "expected"),
        (of("'"), "expected"),
    ] {
        let error = opened(&folder, "x.npy", &bytes).map(|_| ()).unwrap_err();
        assert!(error.contains(part), "{part}: {error}");
    }
}
