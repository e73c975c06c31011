//! Models of ONNX: ONNX's node tests with bytes that are changed, and any bytes. They are opened, rewritten and run.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use swath_onnx::{Model, Value, cases};

type Models = Vec<(Vec<u8>, Vec<Option<Value>>)>;

fn models() -> &'static Models {
    static MODELS: OnceLock<Models> = OnceLock::new();
    MODELS.get_or_init(|| cases::models(include_bytes!("../../onnx/tests/data/node.bin")).unwrap())
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let (bytes, inputs) = match models().get(usize::from(first)) {
        // Each three bytes change one: its place and its value.
        Some((model, inputs)) => {
            let mut model = model.clone();
            for change in rest.as_chunks::<3>().0 {
                let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % model.len();
                model[at] = change[2];
            }
            (model, inputs.clone())
        }
        None => (rest.to_vec(), Vec::new()),
    };
    let Ok(model) = Model::from_owner(bytes) else { return };
    let _ = model.plan().to_string();
    if let Ok(graph) = model.prepared::<swath::CpuBackend>() {
        let _ = graph.run_values(inputs);
    }
});
