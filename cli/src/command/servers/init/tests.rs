//! Options that are not given have defaults, and contradictory options are refused.

use super::*;

fn init(nodes: u16, log: &[&str]) -> Init {
    let node =
        |n: u16| Tier2Node { name: format!("n-{n}").parse().unwrap(), address: format!("10.0.0.1:{n}") };
    let log = log.iter().map(|server| (*server).to_owned()).collect();
    let init = Init::of("cluster.toml".into(), (1..=nodes).map(node).collect(), vec![node(100)]);
    Init { log, ..init }
}

#[test]
fn defaults_depend_on_the_servers_and_the_nodes() {
    let three = ["nats://a:1", "nats://b:1", "nats://c:1"];
    let copies = |init: Init| {
        let (settlement, _) = init.settle(Duration::ZERO).unwrap();
        let written = init.description(settlement).unwrap();
        let standbys: usize = written.tier1.iter().map(|node| node.standby.len()).sum();
        (written.log.map(|log| log.replicas), standbys / usize::from(written.ranges) + 1)
    };
    assert_eq!(copies(init(3, &[])), (None, 1));
    // No monitor confirms that the servers sync.
    assert_eq!(copies(init(2, &three[..2])), (Some(1), 2));
    assert_eq!(copies(init(3, &three)), (Some(3), 3));
    assert_eq!(copies(init(5, &three)), (Some(3), 3));
    assert_eq!(copies(Init { replicas: Some(2), ..init(3, &three) }), (Some(3), 2));
    let log = |init: Init| {
        let log_monitor = ["http://a:2", "http://b:2", "http://c:2"].map(str::to_owned).to_vec();
        let written = Init { log_monitor, ..init }.description(Settlement::Log).unwrap();
        written.replicas_of(RangeId(0)).len()
    };
    assert_eq!((log(init(3, &three)), log(init(1, &three))), (2, 1));
    assert_eq!(log(Init { replicas: Some(1), ..init(3, &three) }), 1);
    let monitors = |count: usize| vec!["http://a:1".to_owned(); count];
    for (init, says) in [
        (init(1, &three), "--replicas 2 at least"),
        (Init { replicas: Some(1), ..init(3, &three) }, "--replicas 2 at least"),
        (Init { settlement: Some(Settlement::Log), ..init(3, &three) }, "name these with --log-monitor"),
        (Init { log_monitor: monitors(2), ..init(3, &three) }, "3 log servers, and --log-monitor 2"),
        (Init { settlement: Some(Settlement::Standby), ..init(3, &[]) }, "without --log there is none"),
        (Init { log_monitor: monitors(1), ..init(3, &[]) }, "without --log there is none"),
        (Init { replicas: Some(2), ..init(3, &[]) }, "without --log nothing is replicated"),
        (Init { replicas: Some(4), ..init(3, &three) }, "only 3 nodes of tier 1"),
        (Init { log_replicas: Some(3), ..init(3, &[]) }, "without --log there is none"),
        (Init { log_max_bytes: Some(1 << 30), ..init(3, &[]) }, "without --log there is none"),
        (Init { log_window: Some(5), ..init(3, &[]) }, "without --log there is none"),
    ] {
        let settled = init.settle(Duration::ZERO);
        let refused = settled.and_then(|(settlement, _)| init.description(settlement));
        let reason = refused.unwrap_err().to_string();
        assert!(reason.contains(says), "{reason}");
    }
}

#[test]
fn a_node_has_an_address_that_others_reach() {
    for address in ["10.0.0.1:7801", "[fd00::1]:7801", "record-1.example:7801", "127.0.0.1:7801"] {
        assert_eq!(node(&format!("record-1={address}")).unwrap().address, address);
    }
    for (all, address) in
        [("0.0.0.0", "0.0.0.0:7801"), ("::", "[::]:7801"), ("::ffff:0.0.0.0", "[::ffff:0.0.0.0]:7801")]
    {
        let refused = node(&format!("record-1={address}")).unwrap_err();
        assert!(refused.starts_with(&format!("{all} stands for all addresses of a machine")), "{refused}");
        assert!(refused.contains(&format!("--listen {address}")), "{refused}");
    }
}
