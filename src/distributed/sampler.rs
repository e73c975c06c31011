//! [`DistributedSampler`]: the order of a data set for all ranks.

use super::tree::part;
use super::world::World;
use crate::error::{Error, Result};
use crate::rng::Rng;

/// Indices of a data set, batch by batch. Every rank gets the same batches, for any number of ranks.
/// [`DataParallel::mean_gradients`](super::DataParallel::mean_gradients) then gives each rank its rows of a batch, so
/// a rank reads only these items.
///
/// ```
/// use swath::distributed::DistributedSampler;
/// let sampler = DistributedSampler::new(10, 4)?.shuffled(1);
/// let batches: Vec<Vec<usize>> = sampler.batches(0)?.collect();
/// assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
/// assert_ne!(batches, sampler.batches(1)?.collect::<Vec<_>>());
/// # Ok::<(), swath::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DistributedSampler {
    len: usize,
    batch: usize,
    seed: Option<u64>,
    drops_last: bool,
}

impl DistributedSampler {
    /// Splits the items 0 to `len - 1`, in this order, into batches of `batch`. The last batch has the remainder.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `batch` is 0.
    pub fn new(len: usize, batch: usize) -> Result<Self> {
        if batch == 0 {
            let reason = "expected at least one item in a batch, got 0".to_owned();
            return Err(Error::InvalidArgument { op: "DistributedSampler", reason });
        }
        Ok(DistributedSampler { len, batch, seed: None, drops_last: false })
    }

    /// Shuffles the items, differently in each epoch.
    #[must_use]
    pub fn shuffled(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Drops the last batch if it is not full, because it may have fewer rows than there are micro-batches.
    #[must_use]
    pub fn without_rest(mut self) -> Self {
        self.drops_last = true;
        self
    }

    /// The number of batches of an epoch.
    pub fn len(&self) -> usize {
        match self.drops_last {
            true => self.len / self.batch,
            false => self.len.div_ceil(self.batch),
        }
    }

    /// True if an epoch has no batch.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the batches of an epoch. To resume within an epoch, skip the batches already used.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn batches(&self, epoch: u64) -> Result<impl Iterator<Item = Vec<usize>> + use<>> {
        let (order, size, count) = (self.order(epoch)?, self.batch, self.len());
        Ok((0..count).map(move |i| {
            let end = order.len().min((i + 1) * size);
            order[i * size..end].iter().map(|&index| index as usize).collect()
        }))
    }

    /// Returns this rank's share of an epoch. Concatenated in rank order, the shares are the whole epoch.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn shard(&self, world: &World, epoch: u64) -> Result<Vec<usize>> {
        let own = part(world.rank(), world.size(), self.len);
        Ok(self.order(epoch)?[own].iter().map(|&index| index as usize).collect())
    }

    fn order(&self, epoch: u64) -> Result<Vec<i64>> {
        match self.seed {
            Some(seed) => Rng::seed(seed).stream(epoch).permutation(self.len),
            None => {
                let mut order = crate::error::reserved("DistributedSampler", self.len)?;
                order.extend((0..self.len).map(|i| i as i64));
                Ok(order)
            }
        }
    }
}
