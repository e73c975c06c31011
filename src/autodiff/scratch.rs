//! Collections kept between backward passes, so that a pass like the one before allocates none.

use std::any::Any;
use std::cell::RefCell;

/// Largest number of collections kept per type: for a pass, one nested in it, and the gradients of
/// a few more.
const KEPT: usize = 8;

thread_local! {
    /// One `Vec<T>` per type of collection.
    static SHELF: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Takes a kept collection, or makes a new one.
pub(crate) fn take<T: Default + 'static>() -> T {
    let found = SHELF.try_with(|shelf| {
        shelf.borrow_mut().iter_mut().find_map(|kept| kept.downcast_mut::<Vec<T>>()?.pop())
    });
    found.ok().flatten().unwrap_or_default()
}

/// Keeps an emptied collection. It is dropped if enough are kept or the thread ends.
pub(crate) fn give<T: 'static>(collection: T) {
    let mut collection = Some(collection);
    let _ = SHELF.try_with(|shelf| {
        let mut shelf = shelf.borrow_mut();
        match shelf.iter_mut().find_map(|kept| kept.downcast_mut::<Vec<T>>()) {
            Some(kept) if kept.len() < KEPT => kept.extend(collection.take()),
            Some(_) => {}
            None => shelf.push(Box::new(Vec::from_iter(collection.take()))),
        }
    });
}
