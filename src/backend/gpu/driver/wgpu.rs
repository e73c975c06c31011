//! The driver for wgpu, on Vulkan and DX12.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ::wgpu::{
    Backends, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindGroupLayoutDescriptor,
    BindGroupLayoutEntry, BindingType, Buffer, BufferBindingType, BufferDescriptor, BufferUsages,
    CommandEncoder, ComputePass, ComputePipeline, ComputePipelineDescriptor, DeviceDescriptor,
    Features, Instance, InstanceDescriptor, MapMode, PipelineCompilationOptions,
    PipelineLayoutDescriptor, PollType, PowerPreference, RequestAdapterOptions,
    ShaderModuleDescriptor, ShaderSource, ShaderStages,
};

use super::super::device::Context;
use super::super::shader::{Module, WORDS};
use super::{Capabilities, Driver, Failure};
use crate::error::{Error, Result};

/// Bytes of the smallest staging buffer, and of the largest that is kept for the next read.
const SMALL_STAGING: u64 = 64 << 10;
const LARGE_STAGING: u64 = 16 << 20;

/// The device, and the commands that are not submitted yet.
#[derive(Debug)]
pub struct WgpuDriver {
    device: ::wgpu::Device,
    queue: ::wgpu::Queue,
    encoder: Option<CommandEncoder>,
    /// The open pass. Dispatches share it until a copy, because a pass costs as much as a dispatch.
    pass: Option<ComputePass<'static>>,
    /// The buffer that the host reads values from.
    staging: Option<Buffer>,
    /// The failure of a submission. Later values may depend on it, so later submissions fail too.
    lost: Option<Failure>,
    /// The first error that a call reported.
    error: Arc<Mutex<Option<Failure>>>,
}

/// A compiled kernel.
#[derive(Debug)]
pub struct WgpuPipeline {
    pipeline: ComputePipeline,
    layout: BindGroupLayout,
}

static DEVICE: OnceLock<Result<Context<WgpuDriver>>> = OnceLock::new();

/// Waits for a future of wgpu. On native devices it is ready at once.
fn ready<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::yield_now();
    }
}

fn open() -> Result<Context<WgpuDriver>> {
    let failed = |reason: String| Error::Device { op: "open", backend: WgpuDriver::NAME, reason };
    let mut descriptor = InstanceDescriptor::new_without_display_handle();
    descriptor.backends = Backends::VULKAN | Backends::DX12;
    let instance = Instance::new(descriptor);
    let options = RequestAdapterOptions {
        power_preference: PowerPreference::HighPerformance,
        ..Default::default()
    };
    let adapter = ready(instance.request_adapter(&options))
        .map_err(|error| failed(format!("no device: {error}")))?;
    let features = adapter.features();
    if !features.contains(Features::IMMEDIATES) {
        return Err(failed("the device does not support immediate data".to_owned()));
    }
    let wanted = Features::IMMEDIATES | Features::SHADER_F16 | Features::SHADER_INT64;
    let limits = adapter.limits();
    let descriptor = DeviceDescriptor {
        label: Some("swath"),
        required_features: features & wanted,
        required_limits: limits.clone(),
        ..Default::default()
    };
    let (device, queue) = ready(adapter.request_device(&descriptor))
        .map_err(|error| failed(format!("the device cannot be opened: {error}")))?;
    let error = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&error);
    device.on_uncaptured_error(Arc::new(move |error| {
        let failure = match error {
            ::wgpu::Error::OutOfMemory { .. } => Failure::OutOfMemory,
            error => Failure::Device(error.to_string()),
        };
        noted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }));
    let noted = Arc::clone(&error);
    device.set_device_lost_callback(move |reason, message| {
        let failure = Failure::Device(format!("the device is lost ({reason:?}): {message}"));
        noted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    });
    let about = adapter.get_info();
    let capabilities = Capabilities {
        rounds: if about.device_type == ::wgpu::DeviceType::Cpu { 65_535 } else { usize::MAX },
        name: about.name,
        f16: features.contains(Features::SHADER_F16),
        i64: features.contains(Features::SHADER_INT64),
        max_buffer: limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size)
            .try_into()
            .unwrap_or(usize::MAX)
            / 4
            * 4,
        working_set: usize::MAX,
    };
    let driver =
        WgpuDriver { device, queue, encoder: None, pass: None, staging: None, lost: None, error };
    Ok(Context::new(driver, capabilities))
}

impl WgpuDriver {
    /// Returns `value`, or the first error that calls have reported since the last check.
    fn checked<T>(&self, value: T) -> Result<T, Failure> {
        match self.error.lock().unwrap_or_else(PoisonError::into_inner).take() {
            None => Ok(value),
            Some(failure) => Err(failure),
        }
    }

    /// Waits for all submitted commands.
    fn wait(&self) -> Result<(), Failure> {
        let waited = self.device.poll(PollType::wait_indefinitely());
        waited.map_err(|error| Failure::Device(error.to_string()))?;
        self.checked(())
    }

    fn encoder(&mut self) -> &mut CommandEncoder {
        let device = &self.device;
        self.encoder.get_or_insert_with(|| device.create_command_encoder(&Default::default()))
    }

    fn pass(&mut self) -> &mut ComputePass<'static> {
        match self.pass.take() {
            Some(pass) => self.pass.insert(pass),
            None => {
                let pass = self.encoder().begin_compute_pass(&Default::default()).forget_lifetime();
                self.pass.insert(pass)
            }
        }
    }
}

impl Driver for WgpuDriver {
    const NAME: &'static str = "wgpu";

    type Buffer = Buffer;
    type Pipeline = WgpuPipeline;

    fn device() -> Result<&'static Context<Self>> {
        DEVICE.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    fn allocate(&mut self, bytes: usize) -> Result<Buffer, Failure> {
        let buffer = self.device.create_buffer(&BufferDescriptor {
            label: None,
            size: bytes as u64,
            usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        self.checked(buffer)
    }

    fn upload(&mut self, content: &[u8], bytes: usize) -> Result<Buffer, Failure> {
        let buffer = self.device.create_buffer(&BufferDescriptor {
            label: None,
            size: bytes as u64,
            usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        });
        let buffer = self.checked(buffer)?;
        match buffer.slice(..).get_mapped_range_mut() {
            Ok(mut view) => view.slice(..content.len()).copy_from_slice(content),
            Err(error) => return Err(Failure::Device(error.to_string())),
        }
        buffer.unmap();
        self.checked(buffer)
    }

    fn pipeline(&mut self, module: &Module) -> Result<WgpuPipeline, Failure> {
        let entries =
            module.writes.iter().zip(0..).map(|(&writes, binding)| BindGroupLayoutEntry {
                binding,
                visibility: ShaderStages::COMPUTE,
                ty: BindingType::Buffer {
                    ty: BufferBindingType::Storage { read_only: !writes },
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            });
        let entries: Vec<_> = entries.collect();
        let layout = self.device.create_bind_group_layout(&BindGroupLayoutDescriptor {
            label: Some(&module.name),
            entries: &entries,
        });
        let pipeline_layout = self.device.create_pipeline_layout(&PipelineLayoutDescriptor {
            label: Some(&module.name),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: (4 * WORDS) as u32,
        });
        let shader = self.device.create_shader_module(ShaderModuleDescriptor {
            label: Some(&module.name),
            source: ShaderSource::Wgsl(module.text.as_str().into()),
        });
        let pipeline = self.device.create_compute_pipeline(&ComputePipelineDescriptor {
            label: Some(&module.name),
            layout: Some(&pipeline_layout),
            module: &shader,
            entry_point: Some("main"),
            compilation_options: PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        });
        self.checked(WgpuPipeline { pipeline, layout })
    }

    fn dispatch(
        &mut self,
        pipeline: &WgpuPipeline,
        buffers: &[&Buffer],
        words: &[u32],
        grid: [u32; 3],
    ) -> Result<(), Failure> {
        let entries = buffers.iter().zip(0..).map(|(buffer, binding)| BindGroupEntry {
            binding,
            resource: buffer.as_entire_binding(),
        });
        let entries: Vec<_> = entries.collect();
        let group = self.device.create_bind_group(&BindGroupDescriptor {
            label: None,
            layout: &pipeline.layout,
            entries: &entries,
        });
        let pass = self.pass();
        pass.set_pipeline(&pipeline.pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.set_immediates(0, bytemuck::cast_slice(words));
        pass.dispatch_workgroups(grid[0], grid[1], grid[2]);
        self.checked(())
    }

    fn submit(&mut self) -> Result<(), Failure> {
        self.pass = None;
        if let Some(failure) = &self.lost {
            return Err(failure.clone());
        }
        if let Some(encoder) = self.encoder.take() {
            self.queue.submit([encoder.finish()]);
        }
        let submitted = self.checked(());
        self.lost = submitted.clone().err();
        submitted
    }

    fn download(&mut self, parts: &mut [(&Buffer, &mut [u8])]) -> Result<(), Failure> {
        let bytes = parts.iter().map(|(_, to)| to.len() as u64).sum();
        if bytes == 0 {
            self.submit()?;
            return self.wait();
        }
        let staging = match self.staging.take().filter(|staging| staging.size() >= bytes) {
            Some(staging) => staging,
            None => {
                let staging = self.device.create_buffer(&BufferDescriptor {
                    label: Some("staging"),
                    size: bytes.max(SMALL_STAGING),
                    usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                });
                self.checked(staging)?
            }
        };
        self.pass = None;
        let mut at = 0;
        for (buffer, to) in &*parts {
            self.encoder().copy_buffer_to_buffer(buffer, 0, &staging, at, to.len() as u64);
            at += to.len() as u64;
        }
        self.submit()?;
        let slice = staging.slice(..bytes);
        let (send, receive) = std::sync::mpsc::channel();
        slice.map_async(MapMode::Read, move |result| {
            let _ = send.send(result);
        });
        self.wait()?;
        let mapped = receive.recv().map_err(|error| Failure::Device(error.to_string()))?;
        mapped.map_err(|error| Failure::Device(error.to_string()))?;
        match slice.get_mapped_range() {
            Ok(view) => {
                let mut rest = &view[..];
                for (_, to) in parts {
                    let (part, after) = rest.split_at(to.len());
                    to.copy_from_slice(part);
                    rest = after;
                }
            }
            Err(error) => return Err(Failure::Device(error.to_string())),
        }
        staging.unmap();
        self.staging = Some(staging).filter(|staging| staging.size() <= LARGE_STAGING);
        self.checked(())
    }
}
