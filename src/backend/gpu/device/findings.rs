//! Deferred errors of the dispatches a tensor depends on, as a bit set. Merging two sets is one OR.

use std::sync::{Arc, OnceLock};

use crate::error::Error;

/// Number of slots: dispatches that may have a fault before the faults must be read.
pub const FAULTS: usize = 256;

/// The dispatches between two reads of the faults.
#[derive(Debug, Default)]
pub struct Epoch {
    /// Sequence number, which orders the faults of different epochs.
    number: u64,
    /// The slots with a fault, in order, and their errors. Set when the faults have been read.
    errors: OnceLock<Vec<(usize, Error)>>,
}

impl Epoch {
    /// Returns the epoch after this one.
    pub fn next(&self) -> Epoch {
        Epoch { number: self.number + 1, errors: OnceLock::new() }
    }

    /// Sets the errors. Later calls have no effect.
    pub fn set_errors(&self, errors: Vec<(usize, Error)>) {
        let _ = self.errors.set(errors);
    }
}

/// The known and the possible faults of the dispatches that a tensor depends on.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The first known fault, with its epoch and slot.
    first: Option<Arc<(u64, usize, Error)>>,
    /// The dispatches of an epoch that may have found a fault.
    open: Option<(Arc<Epoch>, Slots)>,
}

/// A bit for each slot.
type Slots = [u64; FAULTS / 64];

impl Findings {
    /// Adds the faults of `other`. At most one epoch has not been read, so one bit set is enough.
    pub fn add(&mut self, other: &Findings) {
        if let Some(fault) = &other.first {
            self.add_fault(fault);
        }
        let Some((epoch, slots)) = &other.open else { return };
        match epoch.errors.get() {
            None => {
                let (_, all) =
                    self.open.get_or_insert_with(|| (Arc::clone(epoch), Slots::default()));
                all.iter_mut().zip(slots).for_each(|(all, slots)| *all |= slots);
            }
            Some(errors) => {
                let has = |slot: usize| slots[slot / 64] >> (slot % 64) & 1 == 1;
                if let Some((slot, error)) = errors.iter().find(|(slot, _)| has(*slot)) {
                    self.add_fault(&Arc::new((epoch.number, *slot, error.clone())));
                }
            }
        }
    }

    fn add_fault(&mut self, fault: &Arc<(u64, usize, Error)>) {
        let order = |fault: &(u64, usize, Error)| (fault.0, fault.1);
        if self.first.as_ref().is_none_or(|first| order(fault) < order(first)) {
            self.first = Some(Arc::clone(fault));
        }
    }

    /// Adds a dispatch, by its slot.
    pub fn add_slot(&mut self, epoch: &Arc<Epoch>, slot: usize) {
        let (_, slots) = self.open.get_or_insert_with(|| (Arc::clone(epoch), Slots::default()));
        slots[slot / 64] |= 1 << (slot % 64);
    }

    /// Returns a copy in which the slots of an epoch that has been read are replaced by its errors.
    pub fn resolved(&self) -> Findings {
        let mut known = Findings::default();
        known.add(self);
        known
    }

    /// True if the faults must be read before the result is known.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The first known fault.
    pub fn error(&self) -> Option<Error> {
        self.first.as_ref().map(|fault| fault.2.clone())
    }
}
