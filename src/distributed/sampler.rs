//! [`DistributedSampler`]: the order of a data set's items.

use super::tree::part;
use super::world::World;
use crate::error::{Error, Result};
use crate::rng::Rng;

/// The indices of a data set, batch by batch: the same on every rank and for any number of ranks.
/// [`DataParallel::mean_gradients`](super::DataParallel::mean_gradients) gives each rank its rows of a batch, so that
/// a rank reads these items only.
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
    /// Batches of `batch` of the items 0 to `len - 1`, in this order, the last one with the rest.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for batches of no items.
    pub fn new(len: usize, batch: usize) -> Result<Self> {
        if batch == 0 {
            let reason = "a batch has at least one item".to_owned();
            return Err(Error::InvalidArgument { op: "DistributedSampler", reason });
        }
        Ok(DistributedSampler { len, batch, seed: None, drops_last: false })
    }

    /// Puts the items in random order, another one in each epoch.
    #[must_use]
    pub fn shuffled(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Leaves out a last batch that is not full: it may have fewer rows than there are micro-batches.
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

    /// The batches of an epoch. To go on within one, skip those that are done.
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

    /// This rank's items of an epoch, for an evaluation; of the ranks' parts, in their order, the epoch consists.
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
