//! [`MpiTransport`]: messages between processes that `mpirun` started.

use std::sync::Once;

use super::transport::Transport;
use crate::backend::cpu::{CpuBackend, CpuTensor};
use crate::backend::{Backend, TensorData};
use crate::dtype::{DType, Scalar, for_dtype};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// A tensor whose bytes MPI sends or receives.
struct Message(CpuTensor);

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        for_dtype!(self.0.dtype(), T => {
            bytemuck::cast_slice(self.0.as_slice::<T>().expect("`send` has made it contiguous"))
        })
    }
}

impl AsMut<[u8]> for Message {
    fn as_mut(&mut self) -> &mut [u8] {
        for_dtype!(self.0.dtype(), T => {
            bytemuck::cast_slice_mut(self.0.as_slice_mut::<T>().expect("`receive` has allocated it"))
        })
    }
}

/// The endpoint of one rank of an MPI job.
pub(super) struct MpiTransport {
    /// `None` after `finish`.
    mpi: Option<swath_mpi::Mpi<Message>>,
    rank: usize,
    size: usize,
    name: String,
}

fn failed(error: swath_mpi::Error) -> Error {
    match error {
        swath_mpi::Error::WrongLauncher { launched, size } => {
            Error::WrongLauncher { launched, size }
        }
        error => Error::Transport { op: "mpi", reason: error.to_string() },
    }
}

impl MpiTransport {
    /// Starts MPI. From then on, a panic of any thread ends the process, so that the launcher ends the job.
    pub fn start() -> Result<Self> {
        let mpi = swath_mpi::Mpi::start().map_err(failed)?;
        if mpi.size() > 1 {
            static HOOK: Once = Once::new();
            let rank = mpi.rank();
            HOOK.call_once(|| {
                let before = std::panic::take_hook();
                std::panic::set_hook(Box::new(move |panic| {
                    before(panic);
                    eprintln!("swath: rank {rank} panicked; the job ends");
                    std::process::abort();
                }));
            });
        }
        let (rank, size, name) = (mpi.rank(), mpi.size(), mpi.library().to_owned());
        Ok(MpiTransport { mpi: Some(mpi), rank, size, name })
    }

    fn mpi(&mut self) -> Result<&mut swath_mpi::Mpi<Message>> {
        let finished =
            || Error::Transport { op: "mpi", reason: "MPI is already finished".to_owned() };
        self.mpi.as_mut().ok_or_else(finished)
    }
}

impl Transport for MpiTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn send(&mut self, to: usize, message: CpuTensor) -> Result<()> {
        let message = CpuBackend::contiguous(&message)?;
        self.mpi()?.send(to, Message(message)).map_err(failed)
    }

    fn receive(&mut self, from: usize, dtype: DType, len: usize) -> Result<()> {
        if dtype == DType::Bool {
            let shape = Shape::from(len);
            return Err(Error::UnsupportedDType { op: "receive", dtype, shape });
        }
        let message = CpuBackend::full(Shape::from(len), Scalar::Int(0), dtype)?;
        self.mpi()?.receive(from, Message(message)).map_err(failed)
    }

    fn test(&mut self) -> Result<bool> {
        self.mpi()?.test().map_err(failed)
    }

    fn take(&mut self) -> Vec<CpuTensor> {
        let messages = self.mpi.as_mut().map(swath_mpi::Mpi::take).unwrap_or_default();
        messages.into_iter().map(|Message(message)| message).collect()
    }

    fn waiting_for(&self) -> Option<usize> {
        self.mpi.as_ref()?.waiting_for()
    }

    fn finish(&mut self) -> Result<()> {
        self.mpi.take().map_or(Ok(()), |mpi| mpi.finish().map_err(failed))
    }

    fn abort(&mut self) {
        if let Some(mpi) = &mut self.mpi {
            mpi.abort(1);
        }
    }
}
