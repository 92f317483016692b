//! What is written is read, and mistakes are named.

use super::*;

fn written(change: impl Fn(&mut Written)) -> Written {
    let node =
        |name: &str, port: u16| Node { name: name.parse().unwrap(), address: format!("127.0.0.1:{port}") };
    let owner = |name: &str, port: u16, ranges: &[u16]| Tier1Node {
        name: name.parse().unwrap(),
        address: format!("127.0.0.1:{port}"),
        ranges: ranges.iter().copied().map(RangeId).collect(),
    };
    let mut written = Written {
        cluster: "0123456789abcdef0123456789abcdef".to_owned(),
        secret: "cluster.secret".into(),
        tau: Tau::DEFAULT,
        shards: 16,
        ranges: 2,
        winners: WinnerOrder::DEFAULT,
        tier1: vec![owner("record", 1, &[1]), owner("other", 4, &[0])],
        tier2: vec![node("index-1", 2), node("index-2", 3)],
    };
    change(&mut written);
    written
}

#[test]
fn what_is_written_is_read_and_is_not_replaced() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("deep/cluster.toml");
    let secret = "s".repeat(64);
    written(|_| {}).create(&path, &secret).unwrap();
    let cluster = Cluster::read(&path).unwrap();
    assert_eq!(cluster.router().name.as_str(), "other");
    assert_eq!(cluster.owners(), [[1; 8], [0; 8]].concat());
    let (id, node) = cluster.tier2_node(&"index-2".parse().unwrap()).unwrap();
    assert_eq!((id, node.address.as_str()), (NodeId(1), "127.0.0.1:3"));
    let unknown = cluster.tier2_node(&"index-3".parse().unwrap()).unwrap_err().to_string();
    assert_eq!(unknown, "there is no tier-2 node index-3 in the cluster; it has index-1, index-2");
    let again = written(|_| {}).create(&path, &secret).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(home.path().join("deep/cluster.secret")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
}

#[test]
fn mistakes_are_named() {
    for (change, says) in [
        ((|w| w.cluster = "x".to_owned()) as fn(&mut Written), "32 hex digits"),
        (|w| w.tier1.clear(), "tier1: 1 to 64"),
        (|w| w.tier1[0].ranges.clear(), "record: ranges: at least one"),
        (|w| w.tier1[0].ranges.push(RangeId(0)), "range 0 is at record and at other"),
        (|w| w.tier1[0].ranges[0] = RangeId(2), "no range 2; they are 0 to 1"),
        (|w| w.ranges = 3, "no node has range 2"),
        (|w| w.tier2.clear(), "tier2: 1 to 128"),
        (|w| w.tier2[1].name = w.tier1[0].name.clone(), "same name or address"),
        (|w| w.tier2[0].address = "127.0.0.1:1".to_owned(), "same name or address"),
        (|w| w.tier2[0].address = "127.0.0.1".to_owned(), "is no address"),
        (|w| w.tier2[0].address = "127.0.0.1:0".to_owned(), "is no address"),
        (|w| w.tier2[0].address = "::1:7801".to_owned(), "is no address"),
        (|w| w.tier2[0].address = "host/path:81".to_owned(), "is no address"),
        (|w| w.tier2[0].address = "user@host:81".to_owned(), "is no address"),
    ] {
        let reason = written(change).check().unwrap_err();
        assert!(reason.contains(says), "{reason}");
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("cluster.toml");
    fs::write(&path, "cluster = 'a'\nsecret = 's'\nunknown = 1\n").unwrap();
    let error = Cluster::read(&path).unwrap_err().to_string();
    assert!(error.contains("line 3: unknown field `unknown`"), "{error}");
}
