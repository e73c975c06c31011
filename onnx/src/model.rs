//! [`Model`]: a file, and [`Outputs`].

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use swath::{Backend, CpuBackend, IntoBackend, Tensor};

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::prepare::{self, Prepare};
use crate::program::{self, Attribute, Extent, Kind, Port, Program};
use crate::proto::{self, Message as _};
use crate::run::{self, Value};
use crate::weights::Source;

/// A model of a file: parsed and checked.
///
/// ```no_run
/// use swath::cpu::prelude::*;
/// let model = swath_onnx::Model::open("det.onnx")?;
/// println!("{}", model.summary());
/// let outputs = model.run([("x", Tensor::zeros((1, 3, 640, 640), DType::F32)?)])?;
/// println!("{}", outputs[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Model {
    program: Arc<Program>,
    producer: String,
    metadata: Vec<(String, String)>,
    prepare: Prepare,
    /// The model on the CPU, for [`Model::run`].
    graph: OnceLock<Graph<CpuBackend>>,
}

impl Model {
    /// Opens a file and those that it names.
    ///
    /// The file is mapped: nobody may change or shorten it while the model or tensors of it live.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::Swath`] for a file that cannot be read, [`Error::Invalid`] and [`Error::Node`] for one
    /// that is no valid model, [`Error::Unsupported`] with all that is not supported.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::read(&Source::open(path.as_ref())?)
    }

    /// Reads a model in memory, such as that of `include_bytes!`.
    ///
    /// # Errors
    /// Those of [`open`](Model::open).
    pub fn from_owner(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Self> {
        Self::read(&Source::from_owner(bytes))
    }

    fn read(source: &Source) -> Result<Self> {
        let model = proto::Model::read(proto::Reader::new(source.bytes()));
        let model = model.map_err(|reason| Error::Invalid(reason.to_owned()))?;
        let program = program::read(&model, source)?;
        let unsupported = run::unsupported(&program);
        if !unsupported.is_empty() {
            return Err(Error::Unsupported(unsupported));
        }
        let producer = format!("{} {}", model.producer, model.producer_version);
        let metadata = model
            .metadata
            .iter()
            .map(|entry| (entry.key.to_string(), entry.value.to_string()))
            .collect();
        Ok(Model {
            program: Arc::new(program),
            producer,
            metadata,
            prepare: Prepare::all(),
            graph: OnceLock::new(),
        })
    }

    /// The inputs, of which those that an initializer gives a value may be left out.
    pub fn inputs(&self) -> &[Port] {
        &self.program.inputs
    }

    /// What the file says beside the model, such as the names of classes.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(own, _)| own == key).map(|(_, value)| &**value)
    }

    /// The outputs.
    pub fn outputs(&self) -> &[Port] {
        &self.program.outputs
    }

    /// Computes the outputs on the CPU.
    ///
    /// # Errors
    /// [`Error::Input`] for inputs that do not fit; [`Error::Node`] for a node that cannot be computed.
    pub fn run<'n>(&self, inputs: impl IntoIterator<Item = (&'n str, Tensor)>) -> Result<Outputs> {
        if self.graph.get().is_none() {
            let _ = self.graph.set(self.prepared()?);
        }
        self.graph.get().expect("it was made").run(inputs)
    }

    /// Says which rewrites [`run`](Model::run) and [`prepared`](Model::prepared) make; all by default.
    #[must_use]
    pub fn with(self, prepare: Prepare) -> Self {
        Model { prepare, graph: OnceLock::new(), ..self }
    }

    /// The nodes that [`run`](Model::run) computes, one to a line, after the rewrites that were made.
    pub fn plan(&self) -> Plan {
        let (program, used) = prepare::prepare(&self.program, &self.prepare);
        Plan { program, used }
    }

    /// The model as a module for inference, rewritten: its parameters have no gradients.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn prepared<B: Backend>(&self) -> Result<Graph<B>>
    where
        CpuBackend: IntoBackend<B>,
    {
        Graph::new(Arc::new(self.plan().program), false)
    }

    /// The model as a module of a backend, as it is in the file, whose parameters are tracked.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn module<B: Backend>(&self) -> Result<Graph<B>>
    where
        CpuBackend: IntoBackend<B>,
    {
        Graph::new(self.program.clone(), true)
    }

    /// Inputs, outputs and numbers of operators and parameters, as text.
    pub fn summary(&self) -> Summary<'_> {
        Summary(self)
    }
}

/// See [`Model::summary`].
pub struct Summary<'m>(&'m Model);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = &self.0.program;
        writeln!(f, "made by {}", self.0.producer)?;
        for (what, ports) in [("input", &program.inputs), ("output", &program.outputs)] {
            for port in ports {
                writeln!(f, "{what} {}", port)?;
            }
        }
        let mut ops = std::collections::BTreeMap::<&str, usize>::new();
        program.nodes.iter().for_each(|node| *ops.entry(&node.op).or_default() += 1);
        let ops: Vec<String> = ops.iter().map(|(op, count)| format!("{count} {op}")).collect();
        writeln!(f, "{} nodes: {}", program.nodes.len(), ops.join(", "))?;
        let constants = program.constants.iter().filter(|constant| constant.is_initializer);
        let (count, numbers) = constants.fold((0, 0), |(n, sum), c| (n + 1, sum + c.value.numel()));
        write!(f, "{count} initializers of {numbers} numbers")
    }
}

/// See [`Model::plan`].
#[derive(Debug)]
pub struct Plan {
    program: Program,
    used: Vec<(&'static str, usize)>,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used: Vec<String> =
            self.used.iter().map(|(name, count)| format!("{name} {count}")).collect();
        write!(
            f,
            "rewrites: {}",
            if used.is_empty() { "none".to_owned() } else { used.join(", ") }
        )?;
        let name = |id: &Option<usize>| id.map_or("-", |id| &self.program.names[id]);
        for node in &self.program.nodes {
            let list = |ids: &[Option<usize>]| ids.iter().map(name).collect::<Vec<_>>().join(", ");
            let domain =
                if node.domain.is_empty() { String::new() } else { format!("{}.", node.domain) };
            write!(f, "\n{} = {domain}{}({})", list(&node.outputs), node.op, list(&node.inputs))?;
            for (name, value) in &node.attributes {
                match value {
                    Attribute::Float(x) => write!(f, " {name}={x}")?,
                    Attribute::Int(x) => write!(f, " {name}={x}")?,
                    Attribute::Text(x) => write!(f, " {name}={x}")?,
                    Attribute::Ints(x) => write!(f, " {name}={x:?}")?,
                    Attribute::Floats(x) => write!(f, " {name}={x:?}")?,
                    Attribute::Texts(x) => write!(f, " {name}={x:?}")?,
                    Attribute::Tensor(x) => write!(f, " {name}={} {}", x.dtype(), x.shape())?,
                    Attribute::Graph(body) => write!(f, " {name}={} nodes", body.nodes.len())?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        match &self.kind {
            Kind::Unknown => write!(f, "of any type"),
            Kind::Sequence => write!(f, "a list of tensors"),
            Kind::Tensor(dtype, None) => write!(f, "{dtype}, of any shape"),
            Kind::Tensor(dtype, Some(extents)) => {
                let extent = |extent: &Extent| match extent {
                    Extent::Known(extent) => extent.to_string(),
                    Extent::Named(name) if name.is_empty() => "?".to_owned(),
                    Extent::Named(name) => name.clone(),
                };
                write!(f, "{dtype} [{}]", extents.iter().map(extent).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// The outputs of a run, in the order of the model's.
#[derive(Clone, Debug)]
pub struct Outputs<B: Backend = CpuBackend>(pub(crate) Vec<(String, Value<B>)>);

impl<B: Backend> Outputs<B> {
    /// The tensor of this name, if an output that is a tensor has it.
    pub fn get(&self, name: &str) -> Option<&Tensor<B>> {
        self.0.iter().find(|(own, _)| own == name)?.1.as_tensor()
    }

    /// All outputs by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value<B>)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

/// # Panics
/// If there is no such output, or if it is a list of tensors.
impl<B: Backend> std::ops::Index<usize> for Outputs<B> {
    type Output = Tensor<B>;

    fn index(&self, at: usize) -> &Tensor<B> {
        self.0[at].1.as_tensor().expect("the output is a tensor, not a list of tensors")
    }
}
