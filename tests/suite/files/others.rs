//! Files that other programs wrote: `tests/vectors/make_files.py`.

use std::path::PathBuf;

use swath::io::csv::{self, CsvOptions};
use swath::io::image::{self, Channels};
use swath::io::{File, Files, Load, gguf, idx, npy};
use swath::nn::*;
use swath::prelude::*;

use super::T;

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/vectors/files", name].iter().collect()
}

fn open(name: &str) -> File {
    File::open(path(name)).unwrap()
}

fn numbers(file: &File, name: &str) -> Vec<f64> {
    file.get_as::<CpuBackend>(name, DType::F64).unwrap().to_vec::<f64>().unwrap()
}

#[track_caller]
fn assert_near(found: &T, expected: &T) {
    assert_eq!(found.dims(), expected.dims());
    let expected = expected.to_vec::<f32>().unwrap();
    for (found, expected) in found.to_vec::<f32>().unwrap().iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{found} {expected}");
    }
}

struct Layers {
    linear: Linear,
    embedding: Embedding,
    layer_norm: LayerNorm,
    rms_norm: RmsNorm,
    group_norm: GroupNorm,
    batch_norm1d: BatchNorm1d,
    batch_norm2d: BatchNorm2d,
    batch_norm3d: BatchNorm3d,
    conv1d: Conv1d,
    conv2d: Conv2d,
    conv3d: Conv3d,
    conv_transpose1d: ConvTranspose1d,
    conv_transpose2d: ConvTranspose2d,
    attention: MultiHeadAttention,
    block: TransformerBlock,
}
swath::module!(Layers: CpuBackend {
    linear, embedding, layer_norm, rms_norm, group_norm, batch_norm1d, batch_norm2d, batch_norm3d, conv1d, conv2d, conv3d,
    conv_transpose1d, conv_transpose2d, attention, block
});

fn layers() -> Result<Layers> {
    let rng = &mut Rng::seed(1);
    let block = TransformerBlockOptions::new().hidden(8).activation(Activation::Gelu);
    Ok(Layers {
        linear: Linear::new(3, 2, rng)?,
        embedding: Embedding::new(5, 3, rng)?,
        layer_norm: LayerNorm::new(4)?,
        rms_norm: RmsNorm::new(4)?,
        group_norm: GroupNorm::new(2, 4)?,
        batch_norm1d: BatchNorm1d::new(4)?,
        batch_norm2d: BatchNorm2d::new(4)?,
        batch_norm3d: BatchNorm3d::new(2)?,
        conv1d: Conv1d::new(4, 2, 3, rng)?,
        conv2d: Conv2d::new(4, 3, 3, rng)?,
        conv3d: Conv3d::new(2, 3, 2, rng)?,
        conv_transpose1d: ConvTranspose1d::new(4, 2, 3, rng)?,
        conv_transpose2d: ConvTranspose2d::new(4, 3, 2, rng)?,
        attention: MultiHeadAttention::new(4, 2, rng)?,
        block: TransformerBlock::with_options(4, 2, block, rng)?,
    })
}

#[test]
fn layers_have_the_names_and_values_of_pytorchs() {
    let file = open("layers.pt");
    let (mut model, report) =
        Load::new(&file).prefix("model.").fill(empty(layers).unwrap()).unwrap();
    assert!(report.missing.is_empty() && report.unused.is_empty(), "{report}");
    model.batch_norm1d.set_training(false);
    model.batch_norm2d.set_training(false);
    model.batch_norm3d.set_training(false);
    let check = |name: &str, layer: &dyn Module<CpuBackend>| {
        let [x, y] = ["inputs", "outputs"].map(|of| file.get(&format!("{of}.{name}")).unwrap());
        assert_near(&layer.forward(&x).unwrap(), &y);
    };
    check("linear", &model.linear);
    check("embedding", &model.embedding);
    check("layer_norm", &model.layer_norm);
    check("rms_norm", &model.rms_norm);
    check("group_norm", &model.group_norm);
    check("batch_norm1d", &model.batch_norm1d);
    check("batch_norm2d", &model.batch_norm2d);
    check("batch_norm3d", &model.batch_norm3d);
    check("conv1d", &model.conv1d);
    check("conv2d", &model.conv2d);
    check("conv3d", &model.conv3d);
    check("conv_transpose1d", &model.conv_transpose1d);
    check("conv_transpose2d", &model.conv_transpose2d);
    check("attention", &model.attention);
    check("block", &model.block);
}

struct Gpt2 {
    wte: Embedding,
    wpe: Embedding,
    h: Vec<TransformerBlock>,
    ln_f: LayerNorm,
}
swath::module!(Gpt2: CpuBackend { wte, wpe, h, ln_f });

impl Gpt2 {
    fn new(
        width: usize,
        heads: usize,
        layers: usize,
        words: usize,
        context: usize,
    ) -> Result<Self> {
        let rng = &mut Rng::seed(1);
        let options = TransformerBlockOptions::new().causal(true);
        let mut block = || TransformerBlock::with_options(width, heads, options, rng);
        let h = (0..layers).map(|_| block()).collect::<Result<_>>()?;
        let (wte, wpe) = (Embedding::new(words, width, rng)?, Embedding::new(context, width, rng)?);
        Ok(Gpt2 { wte, wpe, h, ln_f: LayerNorm::new(width)? })
    }

    fn forward(&self, ids: &T) -> Result<T> {
        let positions = T::arange_as(0.0, ids.numel() as f64, 1.0, DType::I64)?;
        let x = self.wte.forward(ids)?.add(&self.wpe.forward(&positions)?)?.unsqueeze(0)?;
        let x = self.h.iter().try_fold(x, |x, block| block.forward(&x))?;
        self.ln_f.forward(&x)?.squeeze(0)
    }
}

#[test]
fn a_checkpoint_of_gpt2_in_shards_is_loaded() {
    let files = Files::open(path("gpt2")).unwrap();
    let names = [
        ("ln_1", "norm1"),
        ("attn.c_attn.", "self_attn.in_proj_"),
        ("attn.c_proj", "self_attn.out_proj"),
        ("ln_2", "norm2"),
        ("mlp.c_fc", "linear1"),
        ("mlp.c_proj", "linear2"),
    ];
    let rename = |name: &str| names.iter().fold(name.to_owned(), |name, (a, b)| name.replace(a, b));
    let load = Load::new(&files).prefix("transformer.").rename(rename).convert(DType::F32);
    let load = load
        .transpose("h.*.in_proj_weight")
        .transpose("h.*.out_proj.weight")
        .transpose("h.*.linear*.weight");
    let (model, report) = load.fill(empty(|| Gpt2::new(8, 2, 2, 16, 6)).unwrap()).unwrap();
    assert_eq!((report.loaded.len(), report.converted.len()), (28, 28));
    let file = open("gpt2-output.safetensors");
    assert_near(&model.forward(&file.get("ids").unwrap()).unwrap(), &file.get("output").unwrap());
}

#[test]
fn tensors_of_pytorch_have_their_types_and_layouts() {
    let file = open("types.pt");
    let floats = ["float16", "bfloat16", "float32", "float64"];
    let integers = ["int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"];
    for name in floats.into_iter().chain(integers) {
        assert_eq!(numbers(&file, name), [0.0, 1.0, 100.0], "{name}");
    }
    assert_eq!(file.info("uint16").unwrap().dtype(), Some(DType::U16));
    assert_eq!(
        file.get::<CpuBackend>("bool").unwrap().to_vec::<bool>().unwrap(),
        [false, true, true]
    );
    assert_eq!(numbers(&file, "float8_e4m3fn"), [0.5, -448.0]);
    assert_eq!(file.info("complex64").unwrap().dtype_name(), "C64");
    assert_eq!(numbers(&file, "matrix"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(numbers(&file, "transposed"), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(numbers(&file, "column"), [1.0, 4.0]);
    assert_eq!(numbers(&file, "expanded"), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    assert_eq!(numbers(&file, "scalar"), [2.5]);
    assert_eq!(file.info("empty").unwrap().shape().dims(), [0, 3]);
    assert_eq!(
        (numbers(&file, "parameter"), numbers(&file, "nested.deep.0")),
        (vec![1.0; 2], vec![1.0])
    );
    assert!(file.is_in_place("matrix").unwrap());
    assert_eq!(file.names().filter(|name| name.starts_with("nested")).count(), 1);
}

#[test]
fn arrays_of_numpy_that_are_no_tensors_do_not_stand_in_the_way() {
    let file = open("arrays.npz");
    for name in ["f4", "fortran", "big"] {
        assert_eq!(file.get::<CpuBackend>(name).unwrap().dims(), [2, 3]);
        assert_eq!(numbers(&file, name), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "{name}");
    }
    assert_eq!(
        (numbers(&file, "one"), file.bytes("u2").unwrap().to_vec()),
        (vec![2.5], vec![0, 0, 255, 255])
    );
    assert_eq!(file.info("empty").unwrap().shape().dims(), [0, 3]);
    let unreadable: Vec<_> = file.unreadable().collect();
    assert!(
        matches!(unreadable[..], [("records", a), ("texts", b)] if a.contains("records") && b.contains("<U2"))
    );
    let error = file.get::<CpuBackend>("texts").unwrap_err().to_string();
    assert!(error.contains("`texts`") && error.contains("<U2"), "{error}");
    let table: csv::Table<CpuBackend> =
        csv::load(path("table.csv"), DType::F32, &CsvOptions::default()).unwrap();
    assert_eq!(table.names, ["a", "b", "c"]);
    assert_eq!(table.values.to_vec::<f32>().unwrap(), [0.0, 0.125, 0.25, 0.375, 0.5, 0.625]);
}

#[test]
fn quantised_files_are_listed() {
    let file = open("small.gguf");
    assert_eq!(file.metadata()["general.name"], "small");
    assert_eq!(gguf::metadata(file.path()).unwrap()["llama.block_count"].to_string(), "2");
    assert_eq!(file.get::<CpuBackend>("blk.0.half").unwrap().dims(), [2, 64]);
    assert_eq!(numbers(&file, "blk.0.weight")[127], 127.0);
    assert_eq!(file.names().filter(|name| name.starts_with("blk.1")).count(), 5);
}

#[test]
fn pictures_are_tensors_of_channels() {
    let pixels: Vec<u8> = (0..24).map(|i| i * 10).collect();
    let channel = |c: usize| pixels.iter().skip(c).step_by(3).copied().collect::<Vec<_>>();
    let rgb: T = image::load(path("rgb.png"), Channels::Rgb).unwrap();
    assert_eq!(
        (rgb.dims(), rgb.to_vec::<u8>().unwrap()),
        (&[3, 2, 4][..], [0, 1, 2].map(channel).concat())
    );
    let alpha: T = image::load(path("rgb.png"), Channels::Rgba).unwrap();
    assert_eq!(alpha.to_vec::<u8>().unwrap()[24..], [255; 8]);
    let gray: T = image::load(path("gray.png"), Channels::Gray).unwrap();
    assert_eq!((gray.dims(), gray.to_vec::<u8>().unwrap()), (&[1, 2, 4][..], channel(0)));
    // Other programs have another formula of the brightness, and round JPEG's transforms otherwise.
    let pictures = [
        ("rgb.png", Channels::Gray, "rgb-gray.npy", 6),
        ("rgb.jpg", Channels::Rgb, "rgb-jpg.npy", 2),
    ];
    for (name, channels, other, most) in pictures {
        let x: T = image::load(path(name), channels).unwrap();
        let x = x.permute(&[1, 2, 0]).unwrap().to_vec::<u8>().unwrap();
        let other: T = npy::load(path(other)).unwrap();
        let other = other.to_vec::<u8>().unwrap();
        assert_eq!(x.len(), other.len(), "{name}");
        for (a, b) in x.into_iter().zip(other) {
            assert!(a.abs_diff(b) <= most, "{name}: {a} {b}");
        }
    }
    let array: T = idx::load(path("images.idx3-ubyte.gz")).unwrap();
    assert_eq!((array.dims(), array.to_vec::<u8>().unwrap()), (&[2, 4, 3][..], pixels));
    let doubles: T = idx::load(path("doubles.idx")).unwrap();
    assert_eq!(doubles.to_vec::<f64>().unwrap(), [0.5, -1.0, 1e300]);
}
