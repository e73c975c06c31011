use super::pool::{CLASSES, LAZY_BYTES, LOCAL_CLASSES, LOCAL_MAX_BYTES, class_bytes};
use super::*;

fn bytes(n: usize) -> Buffer {
    Buffer::new("test", &Shape::from(n), DType::U8).unwrap()
}

#[test]
fn blocks_of_a_class_are_large_enough_and_waste_at_most_a_quarter() {
    for class in 0..LOCAL_CLASSES + 80 {
        assert_eq!(class_of(class_bytes(class)), class);
        assert_eq!(class_of(class_bytes(class) + 1), class + 1);
    }
    for bytes in (256..1 << 20).step_by(if cfg!(miri) { 3701 } else { 37 }) {
        let held = class_bytes(class_of(bytes));
        assert!(held >= bytes && (held - bytes) * 4 <= bytes + 4 * ALIGNMENT, "{bytes} {held}");
    }
    assert_eq!(class_bytes(class_of(0)), ALIGNMENT);
    assert!(class_of(isize::MAX as usize / 2) < CLASSES);
}

#[test]
fn a_freed_buffer_is_reused_for_the_next_of_its_size() {
    for n in [1, 100, LOCAL_MAX_BYTES, LAZY_BYTES + 1, 3 << 20] {
        let first = bytes(n);
        let address = first.as_slice::<u8>().as_ptr();
        assert_eq!(address.addr() % ALIGNMENT, 0);
        let before = stats();
        drop(first);
        let second = bytes(n);
        // Other tests may take a large block from the shelf; small blocks stay with this thread.
        if n <= LOCAL_MAX_BYTES {
            assert_eq!(second.as_slice::<u8>().as_ptr(), address);
            assert!(stats().reused > before.reused);
        }
    }
}

#[test]
fn buffers_may_be_freed_on_another_thread() {
    let buffers: Vec<_> =
        (0..if cfg!(miri) { 300 } else { 3000 }).map(|i| bytes(1 + i % 4000)).collect();
    std::thread::spawn(move || drop(buffers)).join().unwrap();
    let held = stats().held_bytes;
    assert!(held > 0 && held <= stats().system_bytes);
}

#[test]
fn an_exact_buffer_has_no_spare_memory() {
    for n in [0, 1, 100, if cfg!(miri) { 4097 } else { (1 << 20) + 1 }] {
        let shape = Shape::from(n);
        let mut buffer = Buffer::exact("test", &shape, DType::U8).unwrap();
        assert_eq!(buffer.bytes(), n);
        buffer.as_slice_mut::<u8>().fill(7);
        assert!(buffer.as_slice::<u8>().iter().all(|&byte| byte == 7));
        assert_eq!(buffer.as_slice::<u8>().as_ptr().addr() % ALIGNMENT, 0);
        assert!(exact_bytes(n) < n + ALIGNMENT + 1);
    }
    let huge = Shape::from(isize::MAX as usize / 2 + 1);
    assert!(Buffer::exact("test", &huge, DType::U8).is_err());
}

#[test]
fn large_vectors_are_adopted_and_others_returned() {
    // Miri aligns a vector to its elements only, and by chance as the system's allocator does.
    fn adopt(values: impl Fn() -> HostData) -> Option<Buffer> {
        (0..1000).find_map(|_| Buffer::adopt(values()).unwrap().ok())
    }
    let bits: Vec<bool> = (0..30_000).map(|i| i % 3 == 0).collect();
    let expected: Vec<u8> = bits.iter().copied().map(u8::from).collect();
    let with_spare_memory = || {
        let mut spare = Vec::with_capacity(100_000);
        spare.extend_from_slice(&bits);
        HostData::Bool(spare)
    };
    let mut buffer = adopt(with_spare_memory).expect("30,000 bytes are adopted");
    assert_eq!(buffer.as_slice::<u8>(), expected);
    buffer.as_slice_mut::<u8>().fill(1);
    let copied = HostData::F64(vec![0.5; LOCAL_MAX_BYTES / 8]);
    assert_eq!(Buffer::adopt(copied.clone()).unwrap().err(), Some(copied));
    let large = || HostData::F64(vec![0.5; LOCAL_MAX_BYTES / 8 + 1]);
    let buffer = adopt(large).expect("one element more is adopted");
    // Freed on another thread, by the layout of the vector.
    std::thread::spawn(move || assert_eq!(buffer.as_slice::<f64>().last(), Some(&0.5)))
        .join()
        .unwrap();
}
