//! Pickles that call, are cut off, or are small and ask for much.

use super::tensors;

/// Names of the tensors of a program, and why others are none.
fn listed(program: &[u8]) -> Result<Vec<String>, String> {
    let found = tensors(program, 20_000).map_err(|problem| problem.reason)?;
    let text = |(name, tensor): super::Found<'_>| match tensor {
        Ok(tensor) => format!("{name} {}", tensor.layout.shape()),
        Err(reason) => format!("{name}: {reason}"),
    };
    Ok(found.into_iter().map(text).collect())
}

/// A dictionary of the text `k`, whose value these instructions build.
fn under(value: &[u8]) -> Vec<u8> {
    [b"}(X\x01\0\0\0k", value, b"u."].concat()
}

#[test]
fn nothing_is_called() {
    let call = b"cposix\nsystem\n(X\x04\0\0\0exittR";
    assert_eq!(listed(&under(call)).unwrap(), ["k: `posix.system` is not known"]);
    // Not as an argument of a known function either, nor with state, items or a new object.
    let order = [&b"ccollections\nOrderedDict\n("[..], call, b"tR"].concat();
    assert!(listed(&under(&order)).unwrap()[0].contains("posix.system"));
    for rest in [&b"}b"[..], b"(NNu", b"(NNe"] {
        let built = [&call[..], rest].concat();
        assert_eq!(listed(&under(&built)).unwrap().len(), 1, "{rest:?}");
    }
    assert_eq!(listed(&under(b"ca\nB\n)\x81")).unwrap(), ["k: `a.B` is not known"]);
    for unknown in [&b"i"[..], b"o", b"\x92", b"P0\n"] {
        assert!(listed(&under(unknown)).unwrap_err().contains("is not one of those"));
    }
}

#[test]
fn programs_that_are_cut_off_or_confused_are_errors() {
    let good = under(
        b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpu\
          K\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89NtR",
    );
    assert_eq!(listed(&good).unwrap(), ["k [2, 3]"]);
    for len in 0..good.len() {
        assert!(listed(&good[..len]).is_err(), "{len}");
    }
    for at in 0..good.len() {
        for byte in [0, b'.', b'0', b'R', b't', b'Q', 0xFF] {
            let mut changed = good.clone();
            changed[at] = byte;
            let _ = listed(&changed);
        }
    }
}

#[test]
fn small_programs_take_neither_time_nor_memory() {
    // Each of 30 dictionaries holds the one before 40 times.
    let mut program = b"}q\0".to_vec();
    for level in 0..30 {
        program.extend(b"}(");
        (0..40).for_each(|key| program.extend([b'K', key, b'h', level]));
        program.extend([b'u', b'q', level + 1]);
    }
    program.push(b'.');
    assert!(listed(&program).is_err());
    // A dictionary in itself, and a long key of many tensors.
    assert!(listed(b"}q\0(K\x00h\0u.").is_err());
    let tensor = b"ca\nB\n)R";
    let inner: Vec<u8> = (0..200u8).flat_map(|key| [&[b'K', key][..], tensor].concat()).collect();
    let key = [&b"X\0\0\x01\0"[..], &vec![b'a'; 1 << 16]].concat();
    let program = [&b"}("[..], &key, b"}(", &inner, b"uu."].concat();
    assert!(listed(&program).unwrap_err().contains("shared"));
    for flood in [&b"}"[..], b"N", b"(", b"\x94", b"h\0", b"q\0", b")"] {
        let program = [b"}q\0", &flood.repeat(1 << 18)[..], b"."].concat();
        assert!(listed(&program).unwrap_err().contains("more values"), "{flood:?}");
    }
}
