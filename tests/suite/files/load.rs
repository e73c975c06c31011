//! Values of files for models.

use swath::io::{File, Load, safetensors};
use swath::nn::{self, Linear, LinearOptions, Visit, for_each_tensor};
use swath::prelude::*;

use super::T;
use crate::support::files::Scratch;

struct Net {
    head: Linear,
    body: Linear,
}
swath::module!(Net: CpuBackend { head, body });

fn net(seed: u64) -> Result<Net> {
    let rng = &mut Rng::seed(seed);
    Ok(Net { head: Linear::new(3, 2, rng)?, body: Linear::new(2, 3, rng)? })
}

fn values(model: &impl Visit<CpuBackend>) -> Vec<(String, Vec<f32>)> {
    let mut values = Vec::new();
    for_each_tensor(model, |name, x, _| {
        values.push((name.to_owned(), x.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap()));
    });
    values
}

fn saved(folder: &Scratch, tensors: Vec<(&str, T)>) -> File {
    safetensors::save(folder.file(), tensors, &Default::default()).unwrap();
    File::open(folder.file()).unwrap()
}

fn filled(shape: &[usize], value: f32) -> T {
    let numbers = (0..shape.iter().product()).map(|i| value + i as f32).collect::<Vec<_>>();
    T::from_vec(numbers, shape).unwrap()
}

#[test]
fn names_types_and_layouts_are_mapped() {
    let folder = Scratch::new("load-mapped");
    let file = saved(
        &folder,
        vec![
            ("m.top.w", filled(&[2, 3], 10.0).to_dtype(DType::BF16).unwrap()),
            ("m.top.b", filled(&[2], 1.0)),
            ("m.body.w", filled(&[2, 3], 0.0)),
            ("m.body.b", filled(&[3], 5.0).to_dtype(DType::F64).unwrap()),
            ("optimizer.step", filled(&[1], 9.0)),
        ],
    );
    let load = || {
        Load::new(&file)
            .prefix("m.")
            .rename(|name| {
                name.replace("top", "head")
                    .replace(".w", ".weight")
                    .replace(".b", ".bias")
                    .replace(".biasody", ".body")
            })
            .transpose("body.*t")
            .convert(DType::F32)
    };
    let mut model = net(1).unwrap();
    let kept = model.head.weight.clone();
    let report = load().into(&mut model).unwrap();
    assert_eq!(report.loaded, ["body.bias", "body.weight", "head.bias", "head.weight"]);
    assert_eq!(report.converted, ["body.bias", "head.weight"]);
    assert_eq!(report.to_string(), "4 tensors loaded, 2 of them converted");
    assert_eq!(model.body.weight.to_vec::<f32>().unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(model.head.weight.to_vec::<f32>().unwrap()[5], 15.0);
    // The same leaf, so that an optimizer goes on.
    assert!(model.head.weight.is_tracked() && model.head.weight.dims() == kept.dims());
    // A model without values gets them, and is the same.
    let (full, again) = load().fill(nn::empty(|| net(2)).unwrap()).unwrap();
    assert_eq!((values(&full), again), (values(&model), report));
}

#[test]
fn every_misfit_is_named_and_nothing_changes() {
    let folder = Scratch::new("load-misfits");
    let file = saved(
        &folder,
        vec![
            ("head.weight", filled(&[3, 2], 0.0)),
            ("head.bias", filled(&[2], 0.0).to_dtype(DType::F16).unwrap()),
            ("body.weight", filled(&[3, 2], 0.0)),
            ("extra", filled(&[1], 0.0)),
        ],
    );
    let mut model = net(1).unwrap();
    let before = values(&model);
    let error = Load::new(&file).into(&mut model).unwrap_err().to_string();
    for part in
        ["`head.weight`: it has shape [3, 2]", "`head.bias`: it is f16", "`body.bias`", "`extra`"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!error.contains("`body.weight`"), "{error}");
    // Shapes are errors whatever is strict.
    let error = Load::new(&file).strict(false).convert(DType::F32).into(&mut model).unwrap_err();
    assert!(
        error.to_string().contains("`head.weight`") && !error.to_string().contains("extra"),
        "{error}"
    );
    let twice = Load::new(&file).rename(|_| "same".to_owned()).into(&mut model).unwrap_err();
    assert!(twice.to_string().contains("are both named `same`"), "{twice}");
    assert_eq!(values(&model), before);
    let load = || Load::new(&file).transpose("head.weight").convert(DType::F32).strict(false);
    let report = load().into(&mut model).unwrap();
    assert_eq!(
        (&report.missing[..], &report.unused[..]),
        (&["body.bias".to_owned()][..], &["extra".to_owned()][..])
    );
    assert_eq!(report.to_string().matches(';').count(), 2, "{report}");
    // A model without values lacks one still.
    let error = load().fill(nn::empty(|| net(2)).unwrap()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("no values for body.bias"), "{error}");
}

#[test]
fn a_model_without_values_takes_no_memory() {
    let options = LinearOptions { bias: false, ..LinearOptions::default() };
    let large = || Linear::<CpuBackend>::with_options(1 << 29, 1 << 29, options, &mut Rng::seed(1));
    let model = nn::empty(large).unwrap().to_dtype(DType::BF16).unwrap();
    let [(name, shape, dtype)] = &model.tensors()[..] else { panic!("one tensor") };
    assert_eq!((name.as_str(), shape.numel(), *dtype), ("weight", 1 << 58, DType::BF16));
    // Afterwards initializers draw again, after an error of the model too.
    assert!(nn::empty(|| Linear::<CpuBackend>::new(usize::MAX, 2, &mut Rng::seed(1))).is_err());
    assert!(net(1).unwrap().head.weight.to_vec::<f32>().unwrap().iter().all(|x| x.is_finite()));
}

/// Two layers with one weight.
fn tied() -> Result<Net> {
    let mut net = net(3)?;
    net.body = Linear::new(3, 2, &mut Rng::seed(4))?;
    net.body.weight = net.head.weight.clone();
    Ok(net)
}

#[test]
fn a_weight_that_is_tied_may_be_in_the_file_once() {
    let folder = Scratch::new("load-tied");
    for name in ["head.weight", "body.weight"] {
        let biases = [("head.bias", filled(&[2], 1.0)), ("body.bias", filled(&[2], 2.0))];
        let all = biases.into_iter().chain([(name, filled(&[2, 3], 7.0))]).collect();
        let file = saved(&folder, all);
        let mut model = tied().unwrap();
        let report = Load::new(&file).into(&mut model).unwrap();
        assert_eq!((report.loaded.len(), report.unused.len()), (4, 0), "{name}");
        for (weight, x) in [("head", &model.head.weight), ("body", &model.body.weight)] {
            assert_eq!(x.to_vec::<f32>().unwrap()[0], 7.0, "{name} {weight}");
        }
        assert!(Load::new(&file).fill(nn::empty(tied).unwrap()).is_ok());
    }
    let both = vec![("head.weight", filled(&[2, 3], 7.0)), ("body.weight", filled(&[2, 3], 8.0))];
    let file = saved(&folder, both);
    let error = Load::new(&file).strict(false).into(&mut tied().unwrap()).unwrap_err().to_string();
    assert!(error.contains("ties it to"), "{error}");
}

#[test]
fn misfits_say_what_helps() {
    let folder = Scratch::new("load-help");
    let file = saved(
        &folder,
        vec![
            ("m.head.weight", filled(&[3, 2], 0.0)),
            ("m.head.bias", filled(&[2], 0.0).to_dtype(DType::F16).unwrap()),
            ("m.body.weight", filled(&[3, 2], 0.0)),
            ("m.body.bias", filled(&[3], 0.0)),
            ("m.body.mask", filled(&[3], 0.0)),
        ],
    );
    let load = || Load::new(&file).prefix("m.");
    let message = |load: Load<'_>| load.into(&mut net(1).unwrap()).unwrap_err().to_string();
    let error = message(load());
    assert!(error.contains("in the model: call transpose"), "{error}");
    assert!(error.contains("in the model: call convert"), "{error}");
    assert!(error.contains("`body.mask` of the file is not in the model"), "{error}");
    let error = message(load().transpose("head.*").convert(DType::F32).ignore("*.mask"));
    assert!(
        error.contains("`head.bias`: it has shape [2]: transpose asks for two axes"),
        "{error}"
    );
    assert!(!error.contains("mask"), "{error}");
    let load = load().transpose("head.weight").convert(DType::F32).ignore("*.mask");
    assert!(load.into(&mut net(1).unwrap()).unwrap().unused.is_empty());
    let error = message(Load::new(&file).prefix("model.").strict(false));
    assert!(error.contains("no tensor begins with `model.`; the file has m.body.bias"), "{error}");
    // A value that is NaN is one.
    let nan = T::full((1, 1), f32::NAN).unwrap();
    let file = saved(&folder, vec![("weight", nan), ("bias", filled(&[1], 0.0))]);
    let model = nn::empty(|| Linear::<CpuBackend>::new(1, 1, &mut Rng::seed(1))).unwrap();
    assert!(Load::new(&file).fill(model).is_ok());
    let scaled = nn::empty(|| {
        let mut layer = Linear::<CpuBackend>::new(2, 2, &mut Rng::seed(1))?;
        layer.weight = layer.weight.mul(0.5)?.detach().requires_grad();
        Ok(layer)
    });
    let error =
        Load::new(&file).ignore("*").strict(false).fill(scaled.unwrap()).map(drop).unwrap_err();
    assert!(error.to_string().contains("no values for weight, bias"), "{error}");
}
