//! What is written is read, and mistakes are named.

use std::fs;

use doppel_tier1::Settlement;

use super::*;

fn written(change: impl Fn(&mut Written)) -> Written {
    let node =
        |name: &str, port: u16| Node { name: name.parse().unwrap(), address: format!("127.0.0.1:{port}") };
    let owner = |name: &str, port: u16, ranges: &[u16]| Tier1Node {
        name: name.parse().unwrap(),
        address: format!("127.0.0.1:{port}"),
        ranges: ranges.iter().copied().map(RangeId).collect(),
        standby: Vec::new(),
    };
    let mut written = Written {
        cluster: "0123456789abcdef0123456789abcdef".to_owned(),
        secret: "cluster.secret".into(),
        tau: Tau::DEFAULT,
        shards: 16,
        ranges: 2,
        winners: WinnerOrder::DEFAULT,
        log: None,
        tier1: vec![owner("record", 1, &[1]), owner("other", 4, &[0])],
        tier2: vec![node("index-1", 2), node("index-2", 3)],
    };
    change(&mut written);
    written
}

/// The same with a log, and each range on both nodes.
fn replicated(change: impl Fn(&mut Written)) -> Written {
    written(|written| {
        written.log = Some(LogSettings {
            servers: vec!["nats://10.0.0.1:4222".to_owned(), "nats://[::1]:4223".to_owned()],
            replicas: 3,
            settlement: Settlement::Standby,
            max_bytes: 1 << 30,
            window_minutes: 60,
        });
        written.tier1[0].standby = vec![RangeId(0)];
        written.tier1[1].standby = vec![RangeId(1)];
        change(written);
    })
}

fn log(written: &mut Written) -> &mut LogSettings {
    written.log.as_mut().unwrap()
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
        (|w| w.tier1[0].standby.push(RangeId(0)), "record: standby: without a table [log]"),
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

#[test]
fn replicas_and_streams_are_told_by_the_file() {
    let home = tempfile::tempdir().unwrap();
    let read = |name: &str, written: &Written| {
        let path = home.path().join(format!("{name}/cluster.toml"));
        written.create(&path, &"s".repeat(64)).unwrap();
        Cluster::read(&path).unwrap()
    };
    let names = |names: Vec<NodeName>| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let at = |text: &str| text.parse::<NodeName>().unwrap();

    let alone = read("alone", &written(|_| {}));
    assert_eq!(alone.log(), None);
    assert_eq!(names(alone.replicas_of(RangeId(0))), ["other"]);
    assert_eq!(alone.ranges_of(&at("record")), [RangeId(1)]);

    let wanted = replicated(|written| {
        // A node that follows only, between the two.
        let mut third = written.tier1[0].clone();
        (third.name, third.address) = (at("third"), "127.0.0.1:5".to_owned());
        (third.ranges, third.standby) = (Vec::new(), vec![RangeId(1), RangeId(0)]);
        written.tier1.insert(1, third);
    });
    let cluster = read("replicated", &wanted);
    assert_eq!(cluster.log(), wanted.log.as_ref());
    assert_eq!(names(cluster.tier1_names()), ["record", "third", "other"]);
    assert_eq!(names(cluster.replicas_of(RangeId(0))), ["other", "record", "third"]);
    assert_eq!(names(cluster.replicas_of(RangeId(1))), ["record", "third", "other"]);
    assert_eq!(names(cluster.replicas_of(RangeId(2))), [""; 0]);
    assert_eq!(cluster.ranges_of(&at("third")), [RangeId(0), RangeId(1)]);
    assert_eq!(cluster.ranges_of(&at("unknown")), []);
    assert_eq!(cluster.router().name.as_str(), "other");
    assert_eq!(cluster.stream(RangeId(1)), "doppel-0123456789ab-range-1");
    assert_eq!(cluster.streams(), wanted.streams());
    assert_eq!(cluster.beats(), "doppel-0123456789ab.beats");
}

#[test]
fn what_is_left_out_of_a_log_has_a_default() {
    let log: LogSettings = toml::from_str("servers = ['nats://a']").unwrap();
    assert_eq!((log.replicas, log.max_bytes), (3, 8 << 30));
    let error = toml::from_str::<LogSettings>("servers = []\ncopies = 3").unwrap_err().to_string();
    assert!(error.contains("unknown field `copies`"), "{error}");
}

#[test]
fn mistakes_of_a_log_are_named() {
    for (change, says) in [
        ((|w| log(w).servers.clear()) as fn(&mut Written), "log: servers: 1 to 16"),
        (|w| log(w).servers[1] = "http://a:4222".to_owned(), "log: servers: URL 2: a URL such as nats://"),
        (|w| log(w).servers[0] = "nats://".to_owned(), "URL 1: a URL such as"),
        (|w| log(w).servers[0] = "nats://a:4222/x".to_owned(), "URL 1: a URL such as"),
        (|w| log(w).servers[0] = "nats://a:0".to_owned(), "URL 1: a URL such as"),
        (|w| log(w).servers[0] = "nats://me:hidden@a:4222".to_owned(), "URL 1: credentials are not taken"),
        (|w| log(w).servers[1] = "nats://10.0.0.1:4222".to_owned(), "nats://10.0.0.1:4222 is there twice"),
        (|w| log(w).replicas = 2, "log: replicas: 1, 3 or 5"),
        (|w| log(w).max_bytes = 1, "log: max_bytes: at least"),
        (|w| log(w).window_minutes = 1_441, "log: window_minutes: at most"),
        (|w| w.tier1[0].standby[0] = RangeId(2), "record: standby: there is no range 2"),
        (|w| w.tier1[0].standby.push(RangeId(0)), "record: standby: range 0 is there twice"),
        (|w| w.tier1[0].standby.push(RangeId(1)), "record: standby: range 1 is among its own"),
        (|w| w.tier1[0].ranges.clear(), "no node has range 1"),
        (|w| w.tier1[0].ranges = w.tier1[0].standby.split_off(0), "range 0 is at record and at other"),
    ] {
        let reason = replicated(change).check().unwrap_err();
        assert!(reason.contains(says) && !reason.contains("hidden"), "{reason}");
    }
    let idle = replicated(|written| {
        let mut third = written.tier1[0].clone();
        third.name = "third".parse().unwrap();
        (third.ranges, third.standby) = (Vec::new(), Vec::new());
        written.tier1.push(third);
    });
    assert_eq!(idle.check().unwrap_err(), "third: ranges or standby: at least one range is expected");
}
