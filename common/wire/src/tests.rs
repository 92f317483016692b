//! Tests of client and server over real connections.

mod orders;
mod range_owner;

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use doppel_model::PageId;
use doppel_model::signature::{Builder, Signature};
use doppel_protocol::{BackupError, BackupPiece, BackupSummary, SignatureSource, SourceError};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;

use crate::signatures::{self, RemoteSignatures};
use crate::transport::call::calls;
use crate::{CallListener, Identity, PanicPolicy, Peer, Refusal, Runtime, Secret, WireError};

calls! {
    Echo = "echo": String => String { REQUEST_BYTES_MAX: usize = 1_000, ANSWER_BYTES_MAX: usize = 500 };
    Sleep = "sleep": Duration => () { DEADLINE: Duration = Duration::from_millis(200) };
    Patient = "patient": Duration => () { DEADLINE: Duration = Duration::from_secs(20) };
    Once = "once": () => () { REPEATABLE: bool = false };
    Panic = "panic": () => ();
    Elsewhere = "elsewhere": () => ();
}

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn identity(cluster: &str, node: &str, secret: &str) -> Identity {
    Identity { cluster: cluster.into(), node: node.parse().unwrap(), secret: Secret::new(secret).unwrap() }
}

/// A node that answers until it is dropped, with the threads of both sides.
struct Node {
    threads: tokio::runtime::Runtime,
    address: SocketAddr,
    _end: oneshot::Sender<()>,
}

impl Node {
    fn start(calls: impl FnOnce(CallListener) -> CallListener) -> Self {
        let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let listener = threads.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let calls = calls(CallListener::new(identity("one", "index-1", SECRET), 1, PanicPolicy::Fail));
        let (_end, ended) = oneshot::channel::<()>();
        threads.spawn(calls.serve(listener, async { drop(ended.await) }));
        Self { threads, address, _end }
    }

    fn peer_as(&self, own: &Identity, node: &str) -> Peer {
        self.peer_at(own, node, self.address)
    }

    fn peer_at(&self, own: &Identity, node: &str, address: SocketAddr) -> Peer {
        let runtime = Runtime::new(self.threads.handle().clone()).unwrap();
        Peer::new(&runtime, own, &node.parse().unwrap(), &address.to_string()).unwrap()
    }

    fn peer(&self) -> Peer {
        self.peer_as(&identity("one", "front", SECRET), "index-1")
    }
}

fn node() -> Node {
    Node::start(|listener| {
        listener
            .answer::<Echo>(|text| text)
            .answer::<Sleep>(std::thread::sleep)
            .answer::<Once>(|()| ())
            .answer::<Panic>(|()| panic!("simulated panic"))
            .at_once(1)
            .answer::<Patient>(std::thread::sleep)
    })
}

fn refusal(error: WireError) -> (Refusal, String) {
    let text = error.to_string();
    match error {
        WireError::Refused { refusal, .. } => (refusal, text),
        other => panic!("not refused: {other}"),
    }
}

#[test]
fn strangers_are_refused_with_a_reason() {
    let node = node();
    assert_eq!(node.peer().call::<Echo>(&"hello".to_owned()).unwrap(), "hello");
    let other = "f".repeat(32);
    for (own, name, expected, says) in [
        (
            identity("one", "front", &other),
            "index-1",
            Refusal::Secret,
            "the cluster secret is missing or is not",
        ),
        (
            identity("two", "front", SECRET),
            "index-1",
            Refusal::Cluster,
            "index-1 belongs to cluster one, the caller to \"two\"",
        ),
        (
            identity("one", "front", SECRET),
            "index-2",
            Refusal::Node,
            "this is index-1, and the request is for \"index-2\"",
        ),
    ] {
        let error = node.peer_as(&own, name).call::<Echo>(&String::new()).unwrap_err();
        assert!(error.is_final());
        let (refusal, text) = refusal(error);
        assert!(refusal == expected && text.contains(says), "{text}");
        assert!(!text.contains(SECRET) && !text.contains(&other), "{text}");
    }
    let (refusal, text) = refusal(node.peer().call::<Elsewhere>(&()).unwrap_err());
    assert!(refusal == Refusal::Call && text.contains("it has another role"), "{text}");
}

#[test]
fn another_version_is_refused_in_plain_text() {
    let node = node();
    let (own, next) = (crate::VERSION.to_string(), (crate::VERSION + 1).to_string());
    let ask = |version: Option<&str>, body: usize| {
        let mut request =
            reqwest::Client::new().post(format!("http://{}/wire/echo", node.address)).body(vec![0; body]);
        request =
            request.bearer_auth(SECRET).header("doppel-cluster", "one").header("doppel-node", "index-1");
        if let Some(version) = version {
            request = request.header("doppel-wire", version);
        }
        node.threads.block_on(async {
            let response = request.send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        })
    };
    for version in [Some("0"), Some(&*next), Some("x"), None] {
        let (status, text) = ask(version, 0);
        let says = format!("speaks version {own} of the protocol between roles");
        assert!(status == 400 && text.contains(&says), "{text}");
    }
    let (status, text) = ask(Some(&own), 1_001);
    assert!(status == 413 && text.contains("more than 1000 bytes"), "{text}");
    // The body claims a string that is longer than the body.
    let (status, text) = ask(Some(&own), 0);
    assert!(status == 400 && text.contains("the body is not a request of echo"), "{text}");
}

#[test]
fn bodies_are_bounded_on_both_sides() {
    let node = node();
    let error = node.peer().call::<Echo>(&"x".repeat(1_001)).unwrap_err();
    assert!(error.to_string().contains("at most 1000"), "{error}");
    let error = node.peer().call::<Echo>(&"x".repeat(600)).unwrap_err();
    assert!(error.is_answer_too_large(), "{error}");
    assert_eq!(node.peer().call::<Echo>(&"x".repeat(400)).unwrap().len(), 400);
}

#[test]
fn a_call_ends_at_its_deadline_and_excess_calls_wait_for_a_permit() {
    let node = node();
    let begin = Instant::now();
    let late = node.peer().call::<Sleep>(&Duration::from_secs(1)).unwrap_err();
    assert!(matches!(late, WireError::Late { call: "sleep", .. }), "{late}");
    assert!(begin.elapsed() < Duration::from_millis(900));
    // The interrupted call still holds the only permit.
    assert_eq!(node.peer().call::<Echo>(&"after".to_owned()).unwrap(), "after");
    assert!(begin.elapsed() >= Duration::from_millis(900), "the call has waited for the permit");
    // Calls with their own permits do not block other calls.
    let waiting = std::thread::spawn({
        let peer = node.peer();
        move || peer.call::<Patient>(&Duration::from_secs(1))
    });
    let begin = Instant::now();
    assert_eq!(node.peer().call::<Echo>(&"at once".to_owned()).unwrap(), "at once");
    assert!(begin.elapsed() < Duration::from_millis(700));
    waiting.join().unwrap().unwrap();
}

#[test]
fn a_call_that_panics_is_answered_and_the_node_goes_on() {
    let node = node();
    let (refusal, text) = refusal(node.peer().call::<Panic>(&()).unwrap_err());
    assert!(refusal == Refusal::Failed && text.contains("the log of the node says why"), "{text}");
    assert_eq!(node.peer().call::<Echo>(&"on".to_owned()).unwrap(), "on");
}

/// Returns an address without a listener. The address stays free while the socket is held.
fn silent_address() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[test]
fn only_harmless_calls_are_retried() {
    let node = node();
    let broken = StdListener::bind("127.0.0.1:0").unwrap();
    let address = broken.local_addr().unwrap();
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    std::thread::spawn(move || {
        for stream in broken.incoming() {
            count.fetch_add(1, Ordering::Relaxed);
            // The server reads the request and closes the connection without an answer.
            let _ = stream.unwrap().read(&mut [0; 4_096]);
        }
    });
    let peer = node.peer_at(&identity("one", "front", SECRET), "index-1", address);
    assert!(matches!(peer.call::<Once>(&()), Err(WireError::Unreachable { unsent: false, .. })));
    assert_eq!(taken.load(Ordering::Relaxed), 1);
    assert!(matches!(peer.call::<Echo>(&String::new()), Err(WireError::Unreachable { .. })));
    assert_eq!(taken.load(Ordering::Relaxed), 1 + 4);
    let (_held, free) = silent_address();
    let peer = node.peer_at(&identity("one", "front", SECRET), "index-1", free);
    let error = peer.call::<Once>(&()).unwrap_err();
    assert!(matches!(error, WireError::Unreachable { unsent: true, .. }) && !error.is_final(), "{error}");
    assert!(error.to_string().starts_with(&format!("index-1 at {free} cannot be reached: ")), "{error}");
}

#[test]
fn both_sides_count_what_they_send_and_receive() {
    use crate::traffic::{TransferredBytes, WireTraffic};
    let counted = WireTraffic::default();
    counted.add_source("log", || TransferredBytes { sent: 7, received: 9 });
    let node = Node::start(|listener| {
        listener.counting(&counted).answer::<Echo>(|text| text).answer::<Once>(|()| ())
    });
    let runtime = Runtime::new(node.threads.handle().clone()).unwrap();
    let own = identity("one", "front", SECRET);
    let peer = Peer::new(&runtime, &own, &"index-1".parse().unwrap(), &node.address.to_string()).unwrap();
    // The encoding of a text has one more byte, its length.
    for _ in 0..3 {
        peer.call::<Echo>(&"x".repeat(99)).unwrap();
    }
    let echo = |counts: Vec<doppel_protocol::CallTraffic>| {
        let of = counts.iter().find(|counts| counts.call == "echo").unwrap();
        (of.requests, of.sent, of.received)
    };
    let counts = peer.read_traffic().unwrap();
    assert_eq!(
        counts.iter().map(|one| &*one.call).collect::<Vec<_>>(),
        ["echo", "traffic", "log"],
        "{counts:?}"
    );
    assert_eq!((counts[2].sent, counts[2].received), (7, 9));
    assert_eq!(echo(counts), (3, 300, 300));
    assert_eq!(echo(runtime.traffic().totals()), (3, 300, 300));
}

/// A source of signatures for pages that are numbered by their first byte.
struct Texts(Vec<Option<Arc<Signature>>>);

impl SignatureSource for Texts {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        Ok(pages.iter().map(|page| self.0[usize::from(page.bytes()[0])].clone()).collect())
    }
}

#[test]
fn signatures_come_in_pieces() {
    let mut builder = Builder::new();
    let mut text = |words: u32| Some(Arc::new(builder.build(&(0..words).map(u64::from).collect::<Vec<_>>())));
    // Three signatures that do not fit into one answer, a page without content, and a small signature.
    let texts = vec![text(2_500_000), None, text(2_400_000), text(2_300_000), text(10)];
    let source: Arc<dyn SignatureSource> = Arc::new(Texts(texts.clone()));
    let node = Node::start(|listener| signatures::serve(listener, &source));
    let remote = RemoteSignatures::new(node.peer());
    let pages: Vec<PageId> = (0..5).map(|n| PageId::from_bytes([n; 16])).collect();
    assert_eq!(remote.signatures(&pages).unwrap(), texts);
}

#[test]
fn an_incomplete_backup_ends_with_an_error() {
    let pieces = |how: u8| {
        let bytes = |n: u8| Ok(BackupPiece::Bytes(vec![n; 300_000]));
        let end = match how {
            0 => Some(Ok(BackupPiece::End(BackupSummary::default()))),
            1 => Some(Err(BackupError::TooMuch(7))),
            _ => None,
        };
        (0..5).map(bytes).chain(end)
    };
    for how in 0..3 {
        let node =
            Node::start(|listener| crate::backup::serve_from(listener, move || Ok(Box::new(pieces(how)))));
        let read: Vec<_> = crate::backup::begin(&node.peer()).unwrap().collect();
        let (last, bytes) = read.split_last().unwrap();
        let expected: Vec<BackupPiece> = pieces(how).take(5).map(Result::unwrap).collect();
        let got: Vec<BackupPiece> = bytes.iter().map(|piece| piece.as_ref().unwrap().clone()).collect();
        assert_eq!(got, expected);
        match (how, last) {
            (0, Ok(BackupPiece::End(_))) | (2, Err(BackupError::BrokenOff)) => {}
            (1, Err(error)) => assert!(error.to_string().contains("more than 7 bytes changed"), "{error}"),
            (_, other) => panic!("{how}: {other:?}"),
        }
    }
}
