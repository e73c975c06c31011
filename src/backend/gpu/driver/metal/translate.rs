//! Translates kernels from WGSL to Metal's language, with `naga`.
//!
//! ```text
//! buffer(i)        binding i
//! buffer(n)        the immediate words, after n bindings
//! buffer(n + 1)    the sizes in bytes of the bindings in [`Translation::sizes`], one word each
//! ```

use naga::back::msl;
use naga::front::wgsl;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, GlobalUse, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, GlobalVariable, Handle, ShaderStage, StorageAccess};

use super::super::super::shader::Module;
use super::super::Failure;

/// Language version of macOS 12 and iOS 15, the first with 64-bit integers.
pub const LANGUAGE: (u8, u8) = (2, 4);

/// Maximum number of buffers of a kernel.
const SLOTS: usize = 31;

/// A kernel in Metal's language.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// Name of the kernel, for messages.
    pub name: String,
    /// Source text.
    pub text: String,
    /// Name of the entry point.
    pub entry: String,
    /// Threads of a group along each axis.
    pub threads: [u32; 3],
    /// For each binding, true if the kernel may write it.
    pub writes: Vec<bool>,
    /// The bindings whose sizes the kernel needs.
    pub sizes: Vec<usize>,
}

impl Translation {
    /// Index of the buffer of immediate words.
    pub fn words_at(&self) -> usize {
        self.writes.len()
    }

    /// Index of the buffer of sizes.
    pub fn sizes_at(&self) -> usize {
        self.writes.len() + 1
    }
}

/// Translates a module.
///
/// # Errors
/// [`Failure::Device`] with naga's reason.
pub fn translate(module: &Module) -> Result<Translation, Failure> {
    let failed = |reason: String| Failure::Device(format!("the kernel {}: {reason}", module.name));
    let capabilities =
        Capabilities::IMMEDIATES | Capabilities::SHADER_FLOAT16 | Capabilities::SHADER_INT64;
    let options = wgsl::Options { capabilities, ..wgsl::Options::new() };
    let parsed = wgsl::Frontend::new_with_options(options)
        .parse(&module.text)
        .map_err(|error| failed(error.emit_to_string(&module.text)))?;
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .validate(&parsed)
        .map_err(|error| failed(error.emit_to_string(&module.text)))?;
    let [entry_point] = &*parsed.entry_points else {
        return Err(failed(format!("expected one entry point, got {}", parsed.entry_points.len())));
    };
    let count = module.writes.len();
    if count + 2 > SLOTS {
        return Err(failed(format!("expected at most {} bindings, got {count}", SLOTS - 2)));
    }

    let Bindings { writes, sizes, resources } = bindings(&parsed, count).map_err(failed)?;
    let unchecked = BoundsCheckPolicies {
        index: BoundsCheckPolicy::Unchecked,
        buffer: BoundsCheckPolicy::Unchecked,
        image_load: BoundsCheckPolicy::Unchecked,
        binding_array: BoundsCheckPolicy::Unchecked,
    };
    let entry = entry_point.name.clone();
    // No checks by naga: kernels check positions and divisors, bound their loops, and write workgroup memory before
    // they read it.
    let options = msl::Options {
        lang_version: LANGUAGE,
        per_entry_point_map: [(entry.clone(), resources)].into_iter().collect(),
        fake_missing_bindings: false,
        bounds_check_policies: unchecked,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..Default::default()
    };
    let pipeline = msl::PipelineOptions {
        entry_point: Some((ShaderStage::Compute, entry)),
        ..Default::default()
    };
    let (text, translated) = msl::write_string(&parsed, &info, &options, &pipeline)
        .map_err(|error| failed(error.to_string()))?;
    let entry = match translated.entry_point_names.into_iter().next() {
        Some(Ok(entry)) => entry,
        Some(Err(error)) => return Err(failed(error.to_string())),
        None => return Err(failed("expected one entry point, got 0".to_owned())),
    };

    let shared = shared_variables(&parsed, &info);
    let text = with_static_threadgroup_memory(&text, &entry, shared).map_err(failed)?;
    let name = module.name.clone();
    Ok(Translation { name, text, entry, threads: entry_point.workgroup_size, writes, sizes })
}

/// The buffers of a kernel.
struct Bindings {
    writes: Vec<bool>,
    sizes: Vec<usize>,
    resources: msl::EntryPointResources,
}

/// Assigns the bindings to the first `count` buffers, and the words and sizes to the next two.
fn bindings(module: &naga::Module, count: usize) -> Result<Bindings, String> {
    let mut writes = vec![false; count];
    let mut sizes = Vec::new();
    let mut resources = msl::EntryPointResources {
        immediates_buffer: Some(count as u8),
        sizes_buffer: Some(count as u8 + 1),
        ..Default::default()
    };
    for (_, variable) in module.global_variables.iter() {
        let Some(binding) = variable.binding else { continue };
        let at = binding.binding as usize;
        if binding.group != 0 || at >= count {
            return Err(format!("expected a binding of group 0 below {count}, got {binding:?}"));
        }
        writes[at] = matches!(
            variable.space,
            AddressSpace::Storage { access } if access.contains(StorageAccess::STORE)
        );
        if module.types[variable.ty].inner.needs_host_buffer_byte_size(&module.types) {
            sizes.push(at);
        }
        let target =
            msl::BindTarget { buffer: Some(at as u8), mutable: writes[at], ..Default::default() };
        resources.resources.insert(binding, target);
    }
    Ok(Bindings { writes, sizes, resources })
}

/// Number of variables in workgroup memory that the entry point uses.
fn shared_variables(module: &naga::Module, info: &ModuleInfo) -> usize {
    let is_used =
        |handle: Handle<GlobalVariable>| info.get_entry_point(0)[handle] != GlobalUse::empty();
    let variables = module.global_variables.iter();
    variables.filter(|(handle, x)| x.space == AddressSpace::WorkGroup && is_used(*handle)).count()
}

/// Replaces the entry point's parameters in threadgroup memory by variables in its body.
///
/// Parameters would need memory from each dispatch, and Apple's compiler is reported to move accesses to such memory
/// across barriers.
fn with_static_threadgroup_memory(
    text: &str,
    entry: &str,
    expected: usize,
) -> Result<String, String> {
    let start = text
        .find(&format!("kernel void {entry}("))
        .ok_or_else(|| format!("the translation has no function {entry}"))?;
    let (before, function) = text.split_at(start);
    let (signature, body) = function
        .split_once(") {\n")
        .ok_or_else(|| format!("the translation of {entry} has no body"))?;
    let mut parameters = Vec::new();
    let mut variables = String::new();
    let mut moved = 0;
    let mut lines = signature.lines();
    let head = lines.next().unwrap_or_default();
    for line in lines {
        // naga writes each parameter on its own line, with the comma in front.
        let parameter = line.trim_start().trim_start_matches(',').trim_start();
        match parameter.strip_prefix("threadgroup ").and_then(|x| x.split_once("& ")) {
            Some((kind, name)) => {
                variables.push_str(&format!("    threadgroup {kind} {name};\n"));
                moved += 1;
            }
            None => parameters.push(parameter),
        }
    }
    if moved != expected {
        let reason = format!("expected {expected} parameters in threadgroup memory, got {moved}");
        return Err(reason);
    }
    let parameters = parameters.join("\n, ");
    Ok(format!("{before}{head}\n  {parameters}\n) {{\n{variables}{body}"))
}
