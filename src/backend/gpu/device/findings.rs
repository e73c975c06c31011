//! What dispatches found that a tensor depends on: a bit for each, so that it costs nothing to depend on many.

use std::sync::{Arc, OnceLock};

use crate::error::Error;

/// Maximum number of dispatches that may have faults before they are looked at.
pub const FAULTS: usize = 256;

/// The dispatches between two looks at the faults.
#[derive(Debug, Default)]
pub struct Epoch {
    /// Its number, which orders faults.
    number: u64,
    /// The slots of those that found a fault, in order, with the errors. Not set until the device was asked.
    errors: OnceLock<Vec<(usize, Error)>>,
}

impl Epoch {
    /// The one after this.
    pub fn next(&self) -> Epoch {
        Epoch { number: self.number + 1, errors: OnceLock::new() }
    }

    /// Sets what was found, once.
    pub fn set_errors(&self, errors: Vec<(usize, Error)>) {
        let _ = self.errors.set(errors);
    }
}

/// What the dispatches found that a tensor depends on.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The first fault, with its number and slot.
    first: Option<Arc<(u64, usize, Error)>>,
    /// The dispatches of an epoch that may have found one, a bit for each slot.
    open: Option<(Arc<Epoch>, Slots)>,
}

/// A bit for each slot.
type Slots = [u64; FAULTS / 64];

impl Findings {
    /// Adds those of `other`. Of all epochs only one was not looked at.
    pub fn add(&mut self, other: &Findings) {
        if let Some(fault) = &other.first {
            self.found(fault);
        }
        let Some((epoch, slots)) = &other.open else { return };
        match epoch.errors.get() {
            None => {
                let (_, all) =
                    self.open.get_or_insert_with(|| (Arc::clone(epoch), Slots::default()));
                all.iter_mut().zip(slots).for_each(|(all, slots)| *all |= slots);
            }
            Some(errors) => {
                let is_there = |slot: usize| slots[slot / 64] >> (slot % 64) & 1 == 1;
                if let Some((slot, error)) = errors.iter().find(|(slot, _)| is_there(*slot)) {
                    self.found(&Arc::new((epoch.number, *slot, error.clone())));
                }
            }
        }
    }

    fn found(&mut self, fault: &Arc<(u64, usize, Error)>) {
        let place = |fault: &(u64, usize, Error)| (fault.0, fault.1);
        if self.first.as_ref().is_none_or(|first| place(fault) < place(first)) {
            self.first = Some(Arc::clone(fault));
        }
    }

    /// Adds the dispatch of a slot.
    pub fn add_slot(&mut self, epoch: &Arc<Epoch>, slot: usize) {
        let (_, slots) = self.open.get_or_insert_with(|| (Arc::clone(epoch), Slots::default()));
        slots[slot / 64] |= 1 << (slot % 64);
    }

    /// Those that are known by now.
    pub fn looked_at(&self) -> Findings {
        let mut known = Findings::default();
        known.add(self);
        known
    }

    /// True if the device must be asked.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The first fault that is known.
    pub fn error(&self) -> Option<Error> {
        self.first.as_ref().map(|fault| fault.2.clone())
    }
}
