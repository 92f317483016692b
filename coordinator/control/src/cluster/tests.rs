//! Files and descriptions of clusters are read back as they were written, and mistakes in them are named.

use std::path::Path;
use std::{fs, io};

use doppel_protocol::Settlement;

use super::*;
use crate::description::file::{ClusterFileContents, LogLocation, NewFiles};

/// A cluster without a log: two nodes of tier 1 with a range each, and two nodes of tier 2.
fn alone(change: impl Fn(&mut Description)) -> Description {
    let node = |name: &str, port: u16| Tier2Node {
        name: name.parse().unwrap(),
        address: format!("127.0.0.1:{port}"),
    };
    let owner = |name: &str, port: u16, ranges: &[u16]| Tier1Node {
        name: name.parse().unwrap(),
        address: format!("127.0.0.1:{port}"),
        ranges: ranges.iter().copied().map(RangeId).collect(),
        standby: Vec::new(),
    };
    let mut written = Description {
        cluster: "0123456789abcdef0123456789abcdef".to_owned(),
        secret_mark: None,
        policy: Policy::default(),
        tables: None,
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

/// Like [`alone`], but with a log, and with each range on both nodes.
pub(crate) fn replicated(change: impl Fn(&mut Description)) -> Description {
    alone(|written| {
        written.log = Some(LogSettings {
            monitors: Vec::new(),
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

fn log(written: &mut Description) -> &mut LogSettings {
    written.log.as_mut().unwrap()
}

#[test]
fn written_files_are_read_back_and_never_replaced() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("deep/cluster.toml");
    let secret = "s".repeat(64);
    let contents = ClusterFileContents::All(alone(|_| {}));
    let files = NewFiles { path: &path, secret: Path::new("cluster.secret") };
    let id = alone(|_| {}).cluster;
    files.create(&id, &contents, &secret).unwrap();
    let file = ClusterFile::read(&path).unwrap();
    assert_eq!((&*file.id, &file.contents, file.servers()), (&*id, &contents, None));
    let cluster = Cluster::new(&file, alone(|_| {})).unwrap();
    assert_eq!(cluster.router().name.as_str(), "other");
    assert_eq!(cluster.owners(), [[1; 8], [0; 8]].concat());
    let (number, node) = cluster.tier2_node(&"index-2".parse().unwrap()).unwrap();
    assert_eq!((number, node.address.as_str()), (NodeId(1), "127.0.0.1:3"));
    let unknown = cluster.tier2_node(&"index-3".parse().unwrap()).unwrap_err().to_string();
    assert_eq!(unknown, "there is no tier-2 node index-3 in the cluster; it has index-1, index-2");
    let again = files.create(&id, &contents, &secret).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(home.path().join("deep/cluster.secret")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
}

#[test]
fn a_description_refuses_the_secret_of_another_cluster() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("cluster.toml");
    let contents = ClusterFileContents::LogLocation(LogLocation {
        servers: vec!["nats://10.0.0.1:4222".to_owned()],
        ..LogLocation::default()
    });
    let files = NewFiles { path: &path, secret: Path::new("cluster.secret") };
    let secret = "s".repeat(64);
    files.create(&alone(|_| {}).cluster, &contents, &secret).unwrap();
    let marked = replicated(|written| written.secret_mark = Some(Secret::new(&secret).unwrap().mark()));
    Cluster::new(&ClusterFile::read(&path).unwrap(), marked.clone()).unwrap();
    fs::write(home.path().join("cluster.secret"), "t".repeat(64)).unwrap();
    let refused = Cluster::new(&ClusterFile::read(&path).unwrap(), marked).unwrap_err().to_string();
    assert!(refused.contains("the secret beside the file is not that of the cluster"), "{refused}");
}

#[test]
fn mistakes_are_named() {
    for (change, says) in [
        ((|w| w.cluster = "x".to_owned()) as fn(&mut Description), "32 hex digits"),
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
        (|w| w.tier2[0].address = ":secret@host:81".to_owned(), "is no address"),
    ] {
        let reason = alone(change).check().unwrap_err();
        assert!(reason.contains(says), "{reason}");
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("cluster.toml");
    fs::write(&path, "cluster = 'a'\nsecret = 's'\nunknown = 1\n").unwrap();
    let error = ClusterFile::read(&path).unwrap_err().to_string();
    assert!(error.contains("line 3: unknown field `unknown`"), "{error}");
    // The error for a mistyped table of the log names the right table.
    fs::write(&path, "cluster = 'a'\nsecret = 's'\n[lgo]\nservers = ['nats://a:1']\n").unwrap();
    let error = ClusterFile::read(&path).unwrap_err().to_string();
    assert!(error.contains("unknown field `lgo`") && error.contains("`log`"), "{error}");
}

#[test]
fn with_a_log_the_file_says_only_how_to_reach_it() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("cluster.toml");
    let id = "0123456789abcdef0123456789abcdef";
    let write = |text: &str| {
        fs::write(&path, format!("cluster = '{id}'\nsecret = 'cluster.secret'\n{text}")).unwrap();
        ClusterFile::read(&path)
    };
    let way = LogLocation { servers: vec!["nats://10.0.0.1:4222".to_owned()], ..LogLocation::default() };
    let files = NewFiles { path: &path, secret: Path::new("cluster.secret") };
    files.create(id, &ClusterFileContents::LogLocation(way.clone()), &"s".repeat(64)).unwrap();
    let file = ClusterFile::read(&path).unwrap();
    assert_eq!(
        (&file.contents, file.servers()),
        (&ClusterFileContents::LogLocation(way.clone()), Some(&*way.servers))
    );
    let reached = write("[log]\nservers = ['nats://a:1']\n[reach]\nrecord = '10.9.9.9:1'\n").unwrap();
    let cluster = Cluster::new(&reached, replicated(|_| {})).unwrap();
    assert_eq!(cluster.reach[&"record".parse::<NodeName>().unwrap()], "10.9.9.9:1");
    assert_eq!(cluster.idle_reach(), None);
    // A removed node or a mistyped name does not prevent a start.
    let idle =
        write("[log]\nservers = ['nats://a:1']\n[reach]\nindex-2 = '10.9.9.9:1'\ngone = '10.9.9.9:2'\n")
            .unwrap();
    let cluster = Cluster::new(&idle, replicated(|_| {})).unwrap();
    let said = cluster.idle_reach().unwrap().what;
    assert!(said.contains("names gone, and the cluster has no such node; it has record, other"), "{said}");
    for (text, says) in [
        // An old copy of a description that is now in META.
        ("policy = 'jaccard'\n[log]\nservers = ['nats://a:1']\n", "line 3: unknown field `policy`"),
        ("[log]\nservers = []\n", "log: servers: 1 to 16"),
        ("[log]\nservers = ['http://a:1']\n", "servers: URL 1: a URL such as nats://"),
        ("[log]\nservers = ['nats://']\n", "URL 1: a URL such as"),
        ("[log]\nservers = ['nats://a:1/x']\n", "URL 1: a URL such as"),
        ("[log]\nservers = ['nats://a:0']\n", "URL 1: a URL such as"),
        ("[log]\nservers = ['nats://me:hidden@a:1']\n", "URL 1: credentials are not taken"),
        ("[log]\nservers = ['nats://a:1', 'nats://a:1']\n", "nats://a:1 is listed twice"),
        ("[log]\nservers = ['nats://a:1']\n[reach]\nrecord = 'a'\n", "reach: record: \"a\" is no address"),
    ] {
        let error = write(text).unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("hidden"), "{error}");
    }
}

#[test]
fn the_description_determines_replicas_and_streams() {
    let names = |names: Vec<NodeName>| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let at = |text: &str| text.parse::<NodeName>().unwrap();
    let none = alone(|_| {});
    assert_eq!(names(none.replicas_of(RangeId(0))), ["other"]);
    assert_eq!(none.ranges_of(&at("record")), [RangeId(1)]);
    let wanted = replicated(|written| {
        // A node between the two that only follows.
        let mut third = written.tier1[0].clone();
        (third.name, third.address) = (at("third"), "127.0.0.1:5".to_owned());
        (third.ranges, third.standby) = (Vec::new(), vec![RangeId(1), RangeId(0)]);
        written.tier1.insert(1, third);
    });
    wanted.check().unwrap();
    assert_eq!(names(wanted.replicas_of(RangeId(0))), ["other", "record", "third"]);
    assert_eq!(names(wanted.replicas_of(RangeId(1))), ["record", "third", "other"]);
    assert_eq!(names(wanted.replicas_of(RangeId(2))), [""; 0]);
    assert_eq!(wanted.ranges_of(&at("third")), [RangeId(0), RangeId(1)]);
    assert_eq!(wanted.ranges_of(&at("unknown")), []);
    let id = &wanted.cluster;
    assert_eq!(log::streams(id, 2)[1], "doppel-0123456789ab-range-1");
    assert_eq!(log::meta(id), "doppel-0123456789ab-meta");
    assert_eq!(log::beats(id), "doppel-0123456789ab.beats");
}

#[test]
fn missing_settings_of_a_log_have_defaults() {
    let log: LogSettings = toml::from_str("settlement = 'log'").unwrap();
    assert_eq!((log.replicas, log.max_bytes), (3, 8 << 30));
    let error = toml::from_str::<LogSettings>("settlement = 'log'\ncopies = 3").unwrap_err().to_string();
    assert!(error.contains("unknown field `copies`"), "{error}");
}

#[test]
fn mistakes_of_a_log_are_named() {
    for (change, says) in [
        (
            (|w| log(w).settlement = Settlement::Log) as fn(&mut Description),
            "log: monitors: with settlement `log` one",
        ),
        (|w| log(w).monitors = vec!["nats://a:1".to_owned()], "monitors: URL 1: a URL such as http://"),
        (|w| log(w).monitors = vec!["http://a:1/x".to_owned()], "monitors: URL 1: a URL such as http://"),
        (|w| log(w).monitors = vec!["http://:pw@a:1".to_owned()], "monitors: URL 1: a URL such as http://"),
        (|w| log(w).monitors = vec!["http://a:1".to_owned(); 2], "http://a:1 is listed twice"),
        (|w| w.tier1[0].standby.clear(), "range 0 is on one node alone"),
        (|w| log(w).replicas = 2, "log: replicas: 1, 3 or 5"),
        (
            |w| {
                let monitors = (1..4).map(|n| format!("http://a:{n}")).collect();
                *log(w) =
                    LogSettings { replicas: 1, settlement: Settlement::Log, monitors, ..log(w).clone() };
            },
            "log: replicas: with settlement `log`",
        ),
        (|w| log(w).max_bytes = 1, "log: max_bytes: at least"),
        (|w| log(w).window_minutes = 1_441, "log: window_minutes: at most"),
        (|w| w.tier1[0].standby[0] = RangeId(2), "record: standby: there is no range 2"),
        (|w| w.tier1[0].standby.push(RangeId(0)), "record: standby: range 0 is listed twice"),
        (|w| w.tier1[0].standby.push(RangeId(1)), "record: standby: range 1 is among its own"),
        (|w| w.tier1[0].ranges.clear(), "no node has range 1"),
        (|w| w.tier1[0].ranges = w.tier1[0].standby.split_off(0), "range 0 is at record and at other"),
    ] {
        let reason = replicated(change).check().unwrap_err();
        assert!(reason.contains(says), "{reason}");
    }
    let idle = replicated(|written| {
        let mut third = written.tier1[0].clone();
        third.name = "third".parse().unwrap();
        (third.ranges, third.standby) = (Vec::new(), Vec::new());
        written.tier1.push(third);
    });
    assert_eq!(idle.check().unwrap_err(), "third: ranges or standby: at least one range is expected");
}
