//! Tests of the log on real servers, with every program in `DOPPEL_NATS_SERVERS`, on one server and on three.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod servers;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use doppel_shared_log::{
    AppendError, EngineError, JetStreamLog, LogEngine, LogEntry, LogError, LogTraffic, Sequence,
    SharedLog as _, StreamContents, StreamSettings, append_surely, conformance,
};
use servers::{Servers, patiently, programs};

fn settings(replicas: usize) -> StreamSettings {
    StreamSettings { replicas, max_bytes: 64 << 20 }
}

fn create(engine: &LogEngine, name: &str, replicas: usize) -> JetStreamLog {
    patiently(|| engine.create(name, settings(replicas)).map_err(|error| error.to_string()))
}

/// Runs a test with every program, one after another.
fn with_each(test: impl Fn(&Path)) {
    programs().iter().for_each(|program| test(program));
}

#[test]
fn one_server_conforms() {
    with_each(|program| {
        let servers = Servers::start(program, 1);
        let engine = servers.connect();
        let mut number = 0;
        conformance::run(&mut || {
            number += 1;
            create(&engine, &format!("log-{number}"), 1)
        });
    });
}

#[test]
fn three_servers_conform() {
    with_each(|program| {
        let servers = Servers::start(program, 3);
        let engine = servers.connect();
        let mut number = 0;
        conformance::run(&mut || {
            number += 1;
            create(&engine, &format!("log-{number}"), 3)
        });
    });
}

#[test]
fn a_stream_is_created_once_and_opened_with_the_same_settings() {
    with_each(|program| {
        let servers = Servers::start(program, 1);
        let engine = servers.connect();
        assert!(matches!(engine.open("log", 1), Err(EngineError::Log(LogError::Missing { .. }))));
        create(&engine, "log", 1).append(Sequence(0), &Bytes::from_static(b"a")).unwrap();
        assert!(matches!(engine.create("log", settings(1)), Err(EngineError::Exists(_))));
        let opened = servers.connect().open("log", 1).unwrap();
        assert_eq!(opened.end(), Ok(Sequence(1)));
        let refused = engine.open("log", 3).unwrap_err();
        assert!(refused.to_string().contains("fewer replicas"), "{refused}");
        // A single server cannot provide three replicas.
        assert!(matches!(engine.create("more", settings(3)), Err(EngineError::NotMade { .. })));
    });
}

#[test]
fn a_full_log_and_a_long_entry_are_refused_and_harm_nothing() {
    with_each(|program| {
        let servers = Servers::start(program, 1);
        let engine = servers.connect();
        let small = StreamSettings { max_bytes: 100_000, ..settings(1) };
        let log = engine.create("small", small).unwrap();
        let entry = Bytes::from(vec![7; 30_000]);
        let mut last = Sequence(0);
        let full = loop {
            match append_surely(&log, last, &entry, Duration::from_secs(10)) {
                Ok(sequence) => last = sequence,
                Err(error) => break error,
            }
        };
        assert!(matches!(full, AppendError::Failed(LogError::Full { .. })), "{full}");
        assert_eq!(last, Sequence(3));
        log.trim(Sequence(2)).unwrap();
        assert_eq!(log.append(last, &entry), Ok(Sequence(4)));
        let long = Bytes::from(vec![7; engine.server().unwrap().message_bytes_max + 1]);
        let refused = log.append(Sequence(4), &long).unwrap_err();
        assert!(matches!(refused, AppendError::Failed(LogError::TooLong { .. })), "{refused}");
        assert_eq!(log.end(), Ok(Sequence(4)));
    });
}

/// A writer appends while servers are killed, first one after another and then all. Every acknowledged entry
/// survives.
#[test]
fn acknowledged_entries_survive_killed_servers() {
    with_each(|program| {
        let mut servers = Servers::start(program, 3);
        let engine = servers.connect();
        let log = create(&engine, "log", 3);
        let writer = thread::spawn(move || {
            let began = Instant::now();
            let mut last = Sequence(0);
            while began.elapsed() < Duration::from_secs(20) || last.0 < 100 {
                let entry = Bytes::from(format!("entry {}", last.0));
                match append_surely(&log, last, &entry, Duration::from_secs(60)) {
                    Ok(sequence) => {
                        assert_eq!(sequence, last.next());
                        last = sequence;
                    }
                    // Just after a start, servers may not know their streams yet.
                    Err(
                        AppendError::Failed(LogError::Missing { .. })
                        | AppendError::Unknown(LogError::Missing { .. }),
                    ) => {
                        thread::sleep(Duration::from_millis(500));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            (log, last)
        });
        for at in 0..3 {
            thread::sleep(Duration::from_secs(2));
            servers.kill(at);
            thread::sleep(Duration::from_secs(1));
            servers.start_one(at);
        }
        thread::sleep(Duration::from_secs(2));
        (0..3).for_each(|at| servers.kill(at));
        (0..3).for_each(|at| servers.start_one(at));
        let (log, last) = writer.join().unwrap();
        let mut entries: Vec<LogEntry> = Vec::new();
        while (entries.len() as u64) < last.0 {
            let after = Sequence(entries.len() as u64);
            let more = patiently(|| log.read(after, usize::MAX).map_err(|error| error.to_string()));
            assert!(!more.is_empty(), "{} of {} entries", entries.len(), last.0);
            entries.extend(more);
        }
        assert_eq!(entries.len() as u64, last.0);
        for (place, entry) in entries.iter().enumerate() {
            assert_eq!(entry.bytes, format!("entry {place}"));
        }
    });
}

#[test]
fn subscribers_receive_news() {
    with_each(|program| {
        let servers = Servers::start(program, 1);
        let (teller, listener) =
            (servers.connect().news_channel("news"), servers.connect().news_channel("news"));
        let (sender, heard) = channel();
        let listening = listener.listen(move |news| drop(sender.send(news.to_vec())));
        let first = patiently(|| {
            teller.tell(Bytes::from_static(b"here"));
            heard.recv_timeout(Duration::from_millis(200)).map_err(|error| error.to_string())
        });
        assert_eq!(first, b"here");
        drop(listening);
        drop(heard);
        teller.tell(Bytes::from_static(b"nobody listens"));
    });
}

/// A reader in another process receives each announced entry. A reader that starts later has to read the log.
#[test]
fn readers_in_other_processes_receive_announced_entries() {
    with_each(|program| {
        let servers = Servers::start(program, 3);
        let (engine, other) = (servers.connect(), servers.connect());
        let writer = create(&engine, "log", 3);
        let reader = patiently(|| other.open("log", 3).map_err(|error| error.to_string()));
        let entry = |place: u64| Bytes::from(vec![place as u8; 100_000]);
        let mut last = Sequence(0);
        let mut append = || {
            last = append_surely(&writer, last, &entry(last.0), Duration::from_secs(10)).unwrap();
            last
        };
        // Repeat until the subscription is active.
        patiently(|| {
            let before = Sequence(append().0 - 1);
            reader.wait(before, Duration::from_millis(200));
            reader.told(before).pop().ok_or("no entry was announced".to_owned())
        });
        let began = append();
        for place in began.0..began.0 + 50 {
            let appended = append();
            assert_eq!(appended.0, place + 1);
            let told = patiently(|| {
                reader.wait(Sequence(place), Duration::from_millis(200));
                reader.told(Sequence(place)).pop().ok_or("no entry was announced".to_owned())
            });
            assert_eq!((told.sequence, told.bytes), (appended, entry(place)));
        }
        // Announcements do not prove the end of the log, and a writer does not receive its own.
        assert_eq!(reader.told(Sequence(began.0 + 50)), []);
        assert_eq!(writer.told(Sequence(began.0)), []);
        assert_eq!(reader.read(Sequence(began.0 + 49), 1).unwrap().len(), 1);
        assert_eq!(reader.read(Sequence(began.0 + 50), 1), Ok(Vec::new()));
    });
}

/// Without a connection, the queue to the servers is not emptied.
#[test]
fn calls_end_although_all_servers_are_gone_and_the_queue_is_full() {
    with_each(|program| {
        let mut servers = Servers::start(program, 1);
        let engine = servers.connect();
        let log = Arc::new(create(&engine, "log", 1));
        let entry = Bytes::from_static(b"a");
        for place in 0..3 {
            log.append(Sequence(place), &entry).unwrap();
        }
        servers.kill(0);
        let news = engine.news_channel("news");
        let is_queued = || {
            let began = Instant::now();
            news.tell(Bytes::new());
            began.elapsed() < Duration::from_millis(150)
        };
        let queued = (0..1_000_000).take_while(|_| is_queued()).count();
        assert!((2_000..1_000_000).contains(&queued), "the queue holds {queued} messages");
        let call = |what: &'static str, call: fn(&LogEngine, &JetStreamLog) -> bool| {
            let (engine, log, (done, answer)) = (engine.clone(), Arc::clone(&log), channel());
            thread::spawn(move || done.send(call(&engine, &log)));
            (what, answer)
        };
        let calls = [
            call("end", |_, log| log.end().is_err()),
            call("read", |_, log| log.read(Sequence(0), 1).is_err()),
            call("trim", |_, log| log.trim(Sequence(2)).is_err()),
            call("append", |_, log| log.append(Sequence(3), &Bytes::from_static(b"b")).is_err()),
            call("open", |engine, _| engine.open("log", 1).is_err()),
            call("create", |engine, _| engine.create("other", settings(1)).is_err()),
        ];
        for (what, answer) in calls {
            assert_eq!(answer.recv_timeout(Duration::from_secs(10)), Ok(true), "{what}");
        }
        servers.start_one(0);
        patiently(|| log.end().map_err(|error| error.to_string()));
    });
}

#[test]
fn a_single_server_has_one_copy_of_its_streams() {
    with_each(|program| {
        let servers = Servers::start(program, 1);
        let engine = servers.connect();
        create(&engine, "log", 1);
        let state = engine.state(&servers.urls(), &["log".to_owned()], Duration::from_secs(3));
        let has = state.streams[0].contents.as_ref().unwrap();
        assert_eq!(has.current_copies(), 1, "{has:?}");
    });
}

#[test]
fn the_state_shows_which_servers_and_copies_are_available() {
    with_each(|program| {
        let mut servers = Servers::start(program, 3);
        let engine = servers.connect();
        let log = create(&engine, "log", 3);
        for n in 0..3 {
            append_surely(&log, Sequence(n), &Bytes::from(vec![7; 1_000]), Duration::from_secs(30)).unwrap();
        }
        let (urls, limit) = (servers.urls(), Duration::from_secs(3));
        let streams = ["log".to_owned(), "none".to_owned()];
        let state = patiently(|| {
            let state = engine.state(&urls, &streams, limit);
            let copies = state.streams[0].contents.as_ref().map(StreamContents::current_copies);
            if copies == Ok(3) { Ok(state) } else { Err(format!("{state:?}")) }
        });
        for (at, server) in state.servers.iter().enumerate() {
            let greeting = server.greeting.as_ref().unwrap();
            assert!(greeting.name == format!("s{at}") && greeting.has_jetstream, "{greeting:?}");
            assert!(greeting.version.starts_with("2."), "{greeting:?}");
        }
        let has = state.streams[0].contents.as_ref().unwrap();
        assert_eq!((has.first, has.last, has.replicas, has.bytes_max), (1, 3, 3, Some(64 << 20)));
        assert!(has.bytes > 3_000, "{has:?}");
        let leader = has.leader.clone().unwrap();
        assert_eq!(state.streams[1].stream, "none");
        assert!(state.streams[1].contents.is_err());
        let LogTraffic { received, sent } = engine.traffic();
        assert!(received > 100 && (6_000..9_000).contains(&sent), "{received} {sent}");

        // Kill a server that is not the leader.
        let away = (0..3).find(|at| format!("s{at}") != leader).unwrap();
        servers.kill(away);
        let state = patiently(|| {
            let state = engine.state(&urls, &streams, limit);
            let copies = state.streams[0].contents.as_ref().map(StreamContents::current_copies);
            if copies == Ok(2) { Ok(state) } else { Err(format!("{state:?}")) }
        });
        assert!(state.servers[away].greeting.is_err());
        let behind = |has: &StreamContents| -> Vec<String> {
            let followers = has.followers.iter().filter(|follower| !follower.is_current);
            followers.map(|follower| follower.server.clone()).collect()
        };
        assert_eq!(behind(state.streams[0].contents.as_ref().unwrap()), [format!("s{away}")]);
    });
}

#[test]
fn a_report_reaches_another_process() {
    with_each(|program| {
        let servers = Servers::start(program, 1);
        let (engine, other) = (servers.connect(), servers.connect());
        let writer = create(&engine, "log", 1);
        let reader = patiently(|| other.open("log", 1).map_err(|error| error.to_string()));
        patiently(|| {
            reader.report("a", &Bytes::from_static(b"first"));
            reader.report("a", &Bytes::from_static(b"second"));
            let limit = Duration::from_millis(200);
            let is_heard = writer.await_report(limit, &|by, report| by == "a" && *report == "second");
            is_heard.then_some(()).ok_or("no report arrived".to_owned())
        });
        assert!(!writer.await_report(Duration::ZERO, &|by, report| by != "a" || *report != "second"));
    });
}
