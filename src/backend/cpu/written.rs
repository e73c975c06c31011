//! Counts of the elements that an op writes in parts, in debug builds. In others, the type and its functions are empty.

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Number of elements of a result that were written in parts, on any thread. By default a result is written as a whole
/// and not counted.
#[derive(Debug, Default)]
pub(super) struct Written {
    #[cfg(debug_assertions)]
    parts: Option<(&'static str, AtomicUsize)>,
}

impl Written {
    /// A result that parts of `op` write.
    #[inline(always)]
    pub fn in_parts_of(_op: &'static str) -> Self {
        Written {
            #[cfg(debug_assertions)]
            parts: Some((_op, AtomicUsize::new(0))),
        }
    }

    /// Counts elements that a part has written.
    #[inline(always)]
    pub fn add(&self, _elements: usize) {
        #[cfg(debug_assertions)]
        if let Some((_, count)) = &self.parts {
            count.fetch_add(_elements, Relaxed);
        }
    }

    /// Checks that parts have written all elements.
    ///
    /// # Panics
    /// In debug builds, if they have written another number.
    #[inline(always)]
    pub fn check(&self, _all: usize) {
        #[cfg(debug_assertions)]
        if let Some((op, count)) = &self.parts {
            let count = count.load(Relaxed);
            assert!(count == _all, "{op}: wrote {count} elements of a result of {_all}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Written;

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "conv2d: wrote 5 elements of a result of 6")]
    fn a_missing_element_panics_with_the_name_of_the_op() {
        let written = Written::in_parts_of("conv2d");
        written.add(2);
        written.add(3);
        written.check(6);
    }
}
