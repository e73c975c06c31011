//! Files of other programs with drawn changes: an error that names the file, or tensors that the file holds. Opening
//! one takes at most the memory of its size and a MiB.

#![no_main]

mod input;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use swath::io::csv::{self, CsvOptions};
use swath::io::image::{self, Channels};
use swath::io::{File, gguf, idx};
use swath::{CpuBackend, DType, Error, Tensor};

/// Counts the bytes that are in use, and the most that were.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

macro_rules! file {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../tests/vectors/files/", $name)))
    };
}

static FILES: [(&str, &[u8]); 10] = [
    file!("types.pt"),
    file!("arrays.npz"),
    file!("rgb-gray.npy"),
    file!("small.gguf"),
    file!("gpt2-output.safetensors"),
    file!("gpt2/model-00002-of-00003.safetensors"),
    file!("images.idx3-ubyte.gz"),
    file!("doubles.idx"),
    file!("table.csv"),
    file!("rgb.png"),
];

fuzz_target!(|bytes: &[u8]| {
    let mut u = Unstructured::new(bytes);
    let at = input::below(&mut u, FILES.len());
    let (name, start) = FILES[at];
    let mut file = start.to_vec();
    for _ in 0..input::below(&mut u, 6) {
        change(&mut file, &mut u).expect("zeros follow the last byte");
    }
    let path = std::env::temp_dir().join(format!("swath-fuzz-{}", std::process::id()));
    match Path::new(name).extension().and_then(|end| end.to_str()) {
        Some("gz" | "idx" | "csv" | "png") => {
            fs::write(&path, &file).expect("the folder of temporary files");
            read(at, &path);
        }
        _ => open(file, name),
    }
});

fn named<T>(result: std::result::Result<T, Error>, name: &str) -> Option<T> {
    result
        .map_err(|error| assert!(error.to_string().contains(name), "{error} does not name {name}"))
        .ok()
}

fn open(bytes: Vec<u8>, name: &str) {
    let size = bytes.len();
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let file = named(File::from_owner(name, bytes), name);
    let most = MOST.load(Relaxed) - before;
    assert!(most <= size + (1 << 20), "{most} bytes to open {size}");
    let Some(file) = file else { return };
    for tensor in file.names() {
        let info = file.info(tensor).expect("a name of the file");
        // An archive may unpack to a thousand times its size, and a view repeat an element.
        if info.bytes().max(info.shape().numel()) > 1 << 20 {
            continue;
        }
        let held = named(file.bytes(tensor), name);
        assert!(held.is_none_or(|held| held.len() == info.bytes()));
        for x in [file.get::<CpuBackend>(tensor), file.get_as(tensor, DType::F32)] {
            let Some(x) = named(x, name) else { continue };
            assert_eq!(x.dims(), info.shape().dims());
            let sum = x
                .contiguous()
                .and_then(|x| x.to_dtype(DType::F64))
                .and_then(|x| x.sum(None, false));
            sum.expect("the elements of a tensor");
        }
    }
    for (tensor, _) in file.unreadable() {
        assert!(file.get::<CpuBackend>(tensor).is_err());
    }
}

fn read(at: usize, path: &Path) {
    let name = path.display().to_string();
    let options = CsvOptions { missing: Some("0".to_owned()), ..CsvOptions::default() };
    match FILES[at].0 {
        "table.csv" => {
            let table = named(csv::load::<CpuBackend>(path, DType::F32, &options), &name);
            assert!(table.is_none_or(|table| table.values.rank() == 2));
        }
        "rgb.png" => drop(named(image::load::<CpuBackend>(path, Channels::Rgb), &name)),
        _ => drop(
            named(idx::load::<CpuBackend>(path), &name)
                .map(|x: Tensor<CpuBackend>| x.to_dtype(DType::F32)),
        ),
    }
    // As a file of any other format.
    drop(named(gguf::metadata(path), &name));
    drop(named(File::open(path), &name));
}

/// One change: a byte or a number is overwritten, or bytes are taken out, repeated or put in.
fn change(file: &mut Vec<u8>, u: &mut Unstructured<'_>) -> Result<()> {
    const NUMBERS: [u64; 8] = [0, 1, 2, 1 << 31, 1 << 32, 1 << 62, u64::MAX / 2, u64::MAX];
    if file.is_empty() {
        return Ok(());
    }
    let from = input::below(u, file.len());
    let to = (from + 1 + input::below(u, 40)).min(file.len());
    match u.int_in_range(0..=5)? {
        0 => file[from] = u.arbitrary()?,
        1 => {
            let width = to.min(from + [1, 2, 4, 8][input::below(u, 4)]);
            let number = NUMBERS[input::below(u, 8)].to_le_bytes();
            let bytes = &mut file[from..width];
            bytes.copy_from_slice(&number[..bytes.len()]);
        }
        2 => drop(file.drain(from..to)),
        3 => {
            let part = file[from..to].to_vec();
            file.splice(from..from, part);
        }
        4 => {
            let part = u.bytes(u.len().min(to - from))?.to_vec();
            file.splice(from..to, part);
        }
        _ => file.truncate(from),
    }
    Ok(())
}
