//! Tests of the simulated directory.

use super::*;

#[test]
fn data_of_a_failed_sync_is_readable_until_overwritten_and_may_be_lost_in_a_crash() {
    let directory = SimulatedDirectory::default();
    let file = directory.create("file").unwrap();
    directory.sync().unwrap();
    file.write(b"abcdef", 0).unwrap();
    directory.fail_next_sync();
    file.sync().unwrap_err();
    file.sync().unwrap();
    let read = || directory.files()[0].1.clone();
    assert_eq!(read(), b"abcdef");
    let after_crashes = || {
        let crash = |seed| directory.crash(&mut Random::new(seed)).files()[0].1.clone();
        (0..40).map(crash).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(after_crashes().contains(&b""[..]) && after_crashes().contains(&b"abcdef"[..]));
    file.write(b"CD", 2).unwrap();
    file.sync().unwrap();
    assert_eq!(read(), b"abCDef");
    assert!(after_crashes().iter().all(|bytes| &bytes[2..4] == b"CD"));
    file.cut(3).unwrap();
    file.sync().unwrap();
    assert_eq!(read(), b"abC");
    assert!(after_crashes().iter().all(|bytes| bytes.len() == 3));
}

#[test]
fn a_planned_fault_fails_one_call_only() {
    for (fault, left) in [(Fault::Device, 0), (Fault::Full, 2), (Fault::Short, 2)] {
        let directory = SimulatedDirectory::default();
        let file = directory.create("file").unwrap();
        directory.fail_at(Some((2, fault)));
        let error = file.write(b"1234", 0).unwrap_err();
        assert_eq!(error.kind() == io::ErrorKind::StorageFull, fault == Fault::Full);
        assert_eq!(file.length().unwrap(), left);
        file.write(b"1234", 0).unwrap();
        file.sync().unwrap();
        assert_eq!((directory.failed(), file.length().unwrap()), (1, 4));
    }
}
