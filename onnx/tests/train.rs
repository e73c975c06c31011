//! An imported model is trained, saved, loaded and exported again.

use std::env;

use swath::cpu::prelude::*;
use swath::io::safetensors;
use swath::nn::{self, Linear, Sequential};
use swath::ops::Activation;
use swath::optim::{AdamW, AdamWOptions};
use swath::{CrossEntropy, optim::Optimizer};
use swath_onnx::{Export, Graph, Model, Trace};

/// Points in a plane, of which one of three classes is the angle.
fn points(count: usize) -> Result<(Tensor, Tensor)> {
    let x = Tensor::randn((count, 2), &mut Rng::seed(2))?;
    let angle = x.narrow(1, 1, 1)?.atan2(&x.narrow(1, 0, 1)?)?.squeeze(1)?;
    let classes = angle.affine(3.0 / std::f64::consts::TAU, 1.5)?.floor()?.clamp(0.0, 2.0)?;
    Ok((x, classes.to_dtype(DType::I64)?))
}

#[test]
fn the_head_of_an_imported_network_is_trained()
-> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut rng = Rng::seed(1);
    let net: Sequential<Trace> = Sequential::new()
        .push(Linear::new(2, 32, &mut rng)?)
        .push(Activation::Relu)
        .push(Linear::new(32, 3, &mut rng)?);
    let (x, classes) = points(256)?;
    let file = Export::new().model(&net).dynamic("x", &[(0, "batch")]);
    let file =
        file.trace(&[("x", x.clone())], |x| Ok(vec![("y", nn::Module::forward(&net, &x[0])?)]))?;
    let mut graph: Graph = Model::from_owner(file.into_bytes())?.module()?;

    // The body keeps its values, the head learns.
    nn::freeze(&mut graph, |path, _| path.starts_with("0."))?;
    let value_of = |graph: &Graph, wanted: &str| {
        let mut found = None;
        nn::for_each_tensor(graph, |path, x, _| {
            if path == wanted {
                found = Some(x.to_vec::<f32>().unwrap());
            }
        });
        found.unwrap()
    };
    let (body, head) = (value_of(&graph, "0.weight"), value_of(&graph, "2.weight"));
    let mut optimizer =
        AdamW::new(AdamWOptions { learning_rate: 0.02, ..AdamWOptions::default() })?;
    let mut losses = Vec::new();
    for _ in 0..100 {
        let loss = graph.forward(&x)?.cross_entropy(&classes, CrossEntropy::default())?;
        losses.push(loss.item::<f32>()?);
        optimizer.step(&mut graph, &loss.backward()?)?;
    }
    assert!(losses[99] < 0.4 * losses[0], "{} to {}", losses[0], losses[99]);
    assert_eq!(value_of(&graph, "0.weight"), body);
    assert_ne!(value_of(&graph, "2.weight"), head);

    // Saved, loaded into the graph of the same file, and exported from a graph on the recording backend.
    let folder = env::temp_dir().join(format!("swath-onnx-train-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let weights = folder.join("weights.safetensors");
    safetensors::save_module(&weights, &graph)?;
    let mut loaded: Graph<Trace> = {
        let file = Export::new()
            .model(&net)
            .trace(&[("x", x.clone())], |x| Ok(vec![("y", nn::Module::forward(&net, &x[0])?)]))?;
        Model::from_owner(file.into_bytes())?.module()?
    };
    safetensors::load_module(&weights, &mut loaded)?;
    let again = Export::new()
        .model(&loaded)
        .trace(&[("x", x.clone())], |x| Ok(vec![("y", nn::Module::forward(&loaded, &x[0])?)]))?;
    let outputs = Model::from_owner(again.into_bytes())?.run([("x", x.clone())])?;
    assert!(outputs[0].allclose(&graph.forward(&x)?, 1e-5, 1e-6)?);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
