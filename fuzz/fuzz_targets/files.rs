//! Files of other programs with drawn changes: an error that names the file, or tensors that the file holds. Opening
//! one takes at most the memory of its size and a MiB, apart from archives and texts.

#![no_main]

mod input;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use swath::io::csv::{self, CsvOptions};
use swath::io::image::{self, Channels};
use swath::io::{File, Files, gguf, idx};
use swath::{CpuBackend, DType, Error};

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

static FILES: [(&str, &[u8]); 13] = [
    file!("types.pt"),
    file!("arrays.npz"),
    file!("compressed.npz"),
    file!("rgb-gray.npy"),
    file!("small.gguf"),
    file!("gpt2-output.safetensors"),
    file!("gpt2/model-00002-of-00003.safetensors"),
    file!("images.idx3-ubyte.gz"),
    file!("doubles.idx"),
    file!("table.csv"),
    file!("rgb.png"),
    file!("rgb.jpg"),
    file!("gpt2/model.safetensors.index.json"),
];

/// A folder of shards, to which an index is added.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("swath-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the folder of temporary files");
    let shards: [(&str, &[u8]); 3] = [
        file!("gpt2/model-00001-of-00003.safetensors"),
        file!("gpt2/model-00002-of-00003.safetensors"),
        file!("gpt2/model-00003-of-00003.safetensors"),
    ];
    for (name, bytes) in shards {
        let name = Path::new(name).file_name().expect("a file");
        fs::write(folder.join(name), bytes).expect("the folder of temporary files");
    }
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let mut u = Unstructured::new(bytes);
    let at = input::below(&mut u, FILES.len());
    let (name, start) = FILES[at];
    let mut file = start.to_vec();
    for _ in 0..input::below(&mut u, 6) {
        change(&mut file, &mut u).expect("zeros follow the last byte");
    }
    let end = Path::new(name).extension().and_then(|end| end.to_str()).expect("an ending");
    if matches!(end, "pt" | "npz" | "npy" | "gguf" | "safetensors") {
        return open(file, name);
    }
    let path = FOLDER.join(format!("file.{end}"));
    fs::write(&path, &file).expect("the folder of temporary files");
    read(end, &path);
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
    // The crate zip takes some five times the directory of an archive.
    let times = if name.ends_with(".npz") || name.ends_with(".pt") { 6 } else { 1 };
    assert!(most <= times * size + (1 << 20), "{most} bytes to open {size}");
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

fn read(end: &str, path: &Path) {
    let name = path.display().to_string();
    let options = CsvOptions { missing: Some("0".to_owned()), ..CsvOptions::default() };
    let size = fs::metadata(path).expect("a file that was written").len() as usize;
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let most = || MOST.load(Relaxed) - before;
    match end {
        "csv" => {
            let table = named(csv::load::<CpuBackend>(path, DType::F32, &options), &name);
            assert!(table.is_none_or(|table| table.values.rank() == 2));
            assert!(most() <= 100 * size + (1 << 20), "{} bytes to read {size}", most());
        }
        "png" | "jpg" => drop(named(image::load::<CpuBackend>(path, Channels::Rgb), &name)),
        "json" => {
            // A shard that is missing is named, and not the index.
            let folder = FOLDER.display().to_string();
            let files = named(Files::open(path), &folder);
            assert!(most() <= size + (1 << 20), "{} bytes to open {size}", most());
            for file in files.iter().flat_map(|files| files.as_ref().iter()) {
                file.names().for_each(|tensor| assert!(file.info(tensor).is_ok()));
            }
        }
        _ => {
            drop(named(idx::load::<CpuBackend>(path), &name));
            // Gzip packs at most 1,032 bytes into one; a vector that grows has two copies.
            let unpacked = if end == "gz" { 1032 * size } else { size };
            assert!(most() <= 4 * unpacked + (1 << 20), "{} bytes to read {size}", most());
        }
    }
    // As a file of any other format.
    drop(named(gguf::metadata(path), &name));
    drop(named(File::open(path), &name));
}

/// One change: a byte or a number is overwritten, or bytes are taken out, repeated, moved or put in.
fn change(file: &mut Vec<u8>, u: &mut Unstructured<'_>) -> Result<()> {
    const NUMBERS: [u64; 8] = [0, 1, 2, 1 << 31, 1 << 32, 1 << 62, u64::MAX / 2, u64::MAX];
    if file.is_empty() {
        return Ok(());
    }
    let from = input::below(u, file.len());
    let most = if u.ratio(1, 8)? { file.len() } else { 40 };
    let to = (from + 1 + input::below(u, most)).min(file.len());
    match u.int_in_range(0..=7)? {
        0 => file[from] = u.arbitrary()?,
        1 => {
            let width = to.min(from + [1, 2, 4, 8][input::below(u, 4)]);
            let number = NUMBERS[input::below(u, 8)].to_le_bytes();
            let bytes = &mut file[from..width];
            bytes.copy_from_slice(&number[..bytes.len()]);
        }
        2 => drop(file.drain(from..to)),
        3 => {
            let times = [1, 1, 1, 2, 2, 3, 100, 30_000][input::below(u, 8)];
            let part = file[from..to].repeat(times.min((1 << 17) / (to - from)).max(1));
            file.splice(from..from, part);
        }
        4 => {
            let part = u.bytes(u.len().min(to - from))?.to_vec();
            file.splice(from..to, part);
        }
        5 => {
            let part = file[from..to].to_vec();
            let at = input::below(u, file.len());
            let over = if u.arbitrary()? { (at + part.len()).min(file.len()) } else { at };
            file.splice(at..over, part);
        }
        // A number in a text.
        6 => {
            let Some(at) = file[from..].iter().position(u8::is_ascii_digit) else { return Ok(()) };
            let at = from + at;
            let digits = file[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = NUMBERS[input::below(u, 8)].to_string();
            file.splice(at..at + digits, number.into_bytes());
        }
        _ => file.truncate(from),
    }
    Ok(())
}
