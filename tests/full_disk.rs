//! A disk that is full while pages come, again and again, and that is emptied without a restart of the server.
//!
//! The server has a small file system of its own. Where a process may not have one, the tests print a line and pass.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::collections::HashMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::cluster::Cluster;
use harness::metrics::Samples;
use harness::pages::{ndjson, rounds, text};
use harness::small_disk::SmallDisk;
use harness::{PATIENCE, Server, differences, doppel, lines_of, meaning, of_one_process, wait_until};
use serde_json::{Value, json};

/// Bytes of the file system.
const BYTES: u64 = 160 << 20;

/// Lines of a request.
const BATCH: usize = 20;

/// How long a server may take to end: less than it waits for connections.
const END: Duration = Duration::from_secs(20);

/// Starts a server on the disk that is in the place of `home`.
fn start(disk: &SmallDisk, home: &Path, options: &[&str]) -> Server {
    let mut command = disk.command(doppel().get_program());
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(home.join("data")).args(options);
    command.env_remove("DOPPEL_SERVER").stdin(Stdio::null());
    Server::start_command(command)
}

fn readiness(server: &Server) -> (u16, String) {
    let response = server.get("/readyz");
    (response.status().as_u16(), response.text().unwrap())
}

/// Fills the disk until the server says that it is. What it says.
fn fill_until_refused(disk: &SmallDisk, server: &Server) -> String {
    wait_until("the server to meet the full disk", PATIENCE, || {
        // Files that went may have left some room.
        disk.fill();
        let (status, said) = readiness(server);
        (status == 507).then_some(said)
    })
}

/// What was acknowledged: the newest version of each URL.
type Acknowledged = HashMap<String, String>;

/// Posts pages, and takes out those that are done. False when all are refused.
fn post(server: &Server, left: &mut Vec<Value>, acknowledged: &mut Acknowledged) -> bool {
    let body: String = left.iter().map(|page| format!("{page}\n")).collect();
    let response = server.post("/v1/pages", "application/x-ndjson", body);
    let status = response.status();
    let text = response.text().unwrap();
    if !status.is_success() {
        assert!([503, 507].contains(&status.as_u16()), "{status}: {text}");
        return false;
    }
    // A redirect to itself is never taken.
    let is_done = |answer: &Value| answer["outcome"].is_string() || answer["error"]["code"] == "invalid";
    let (done, again): (Vec<_>, Vec<_>) =
        std::mem::take(left).into_iter().zip(lines_of(&text)).partition(|(_, answer)| is_done(answer));
    for (page, _) in done.into_iter().filter(|(_, answer)| answer["outcome"].is_string()) {
        let text = |field: &str| page[field].as_str().unwrap().to_owned();
        acknowledged.insert(text("url"), text("fetched_at"));
    }
    *left = again.into_iter().map(|(page, _)| page).collect();
    true
}

/// Posts pages until all are acknowledged. Before those behind `hold`, waits until it may go on.
fn load(server: &Server, pages: &[Value], hold: (usize, &AtomicBool), done: &AtomicUsize) -> Acknowledged {
    let (mut acknowledged, began) = (Acknowledged::new(), Instant::now());
    for batch in pages.chunks(BATCH) {
        if done.load(Ordering::Relaxed) >= hold.0 {
            wait_until("the disk to be full", PATIENCE, || hold.1.load(Ordering::Relaxed).then_some(()));
        }
        let mut left = batch.to_vec();
        while !left.is_empty() {
            assert!(began.elapsed() < PATIENCE, "the server does not take pages again");
            if !post(server, &mut left, &mut acknowledged) {
                thread::sleep(Duration::from_millis(20));
            }
        }
        done.fetch_add(batch.len(), Ordering::Relaxed);
    }
    acknowledged
}

/// Everything that was acknowledged is there, in that version or a newer one.
fn check(server: &Server, acknowledged: &Acknowledged) {
    let urls: Vec<&String> = acknowledged.keys().collect();
    for urls in urls.chunks(1000) {
        let answers = server.post_json("/v1/status", &json!({ "urls": urls }));
        for answer in answers["pages"].as_array().unwrap() {
            let url = answer["url"].as_str().unwrap();
            let kept = answer["fetched_at"].as_str().unwrap_or_else(|| panic!("{url} is lost: {answer}"));
            let acknowledged = acknowledged[url].as_str();
            assert!(kept >= acknowledged, "{url}: version {acknowledged} was acknowledged: {answer}");
        }
    }
}

/// Fills the disk in the middle of each of so many rounds, empties it, and goes on.
fn fill_and_empty(times: usize, options: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::make(home.path(), BYTES) else { return };
    let server = start(&disk, home.path(), options);
    let crawl = rounds(29, 60, times);
    let mut acknowledged = Acknowledged::new();
    for (number, round) in crawl.iter().enumerate() {
        let (is_full, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        let hold = (round.len() * 2 / 3, &is_full);
        thread::scope(|scope| {
            let loading = scope.spawn(|| load(&server, round, hold, &done));
            wait_until("a third of the round", PATIENCE, || {
                (done.load(Ordering::Relaxed) >= round.len() / 3).then_some(())
            });
            disk.fill();
            is_full.store(true, Ordering::Relaxed);
            let said = fill_until_refused(&disk, &server);
            assert!(said.contains("the disk is full") && said.contains("resumes by itself"), "{said}");
            assert!(Samples::of(&server).get("doppel_tier1_full_disk_ranges").unwrap() >= 1.0);
            // A little room is not enough, and what is known is told.
            check(&server, &acknowledged);
            disk.empty();
            let emptied = Instant::now();
            wait_until("the server to go on", PATIENCE, || (readiness(&server).0 == 200).then_some(()));
            println!("{number}: went on after {:?}", emptied.elapsed());
            acknowledged.extend(loading.join().unwrap());
        });
        check(&server, &acknowledged);
    }
    server.flush();
    check(&server, &acknowledged);
    let different = differences(&meaning(&server.export()), &of_one_process(&crawl));
    assert!(different.is_empty(), "{}", different.join("\n"));
    let samples = Samples::of(&server);
    assert!(samples.get("doppel_tier1_disk_recoveries_total").unwrap() >= times as f64);
    assert_eq!(samples.get("doppel_tier1_full_disk_ranges"), Some(0.0));
    let log = server.log();
    assert!(
        log.contains("takes no writes until there is room") && log.contains("there is room again"),
        "{log}"
    );
    assert!(server.terminate());
}

#[test]
fn a_disk_that_was_full_twenty_times_has_cost_nothing() {
    fill_and_empty(20, &["--snapshot-every", "0s"]);
}

#[test]
fn every_range_goes_on_after_its_disk_was_full() {
    fill_and_empty(5, &["--shards", "5", "--ranges", "3", "--partitions", "16", "--snapshot-every", "0s"]);
}

/// Posts pages to a server whose disk is filled after some of them, until it refuses. What was acknowledged.
fn load_until_refused(disk: &SmallDisk, server: &Server, pages: &[Value]) -> Acknowledged {
    let mut acknowledged = Acknowledged::new();
    let (first, others) = pages.split_at(pages.len() / 2);
    acknowledged.extend(load(server, first, (usize::MAX, &AtomicBool::new(false)), &AtomicUsize::new(0)));
    disk.fill();
    thread::scope(|scope| {
        let refused = scope.spawn(|| fill_until_refused(disk, server));
        let mut left = others.to_vec();
        while !refused.is_finished() {
            post(server, &mut left, &mut acknowledged);
            if left.is_empty() {
                left = others.to_vec();
            }
        }
        assert!(refused.join().unwrap().contains("the disk is full"));
    });
    acknowledged
}

#[test]
fn a_collection_begins_when_there_is_room_for_it() {
    let home = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::make(home.path(), BYTES) else { return };
    let (data, input) = (home.path().join("data"), elsewhere.path().join("pages.jsonl"));
    fs::write(&input, ndjson(&rounds(31, 20, 1)[0])).unwrap();
    // What a command says, and whether it succeeds.
    let run = |arguments: &[&str]| {
        let mut command = disk.command(doppel().get_program());
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let status = wait_until("the command to end", PATIENCE, || child.try_wait().unwrap());
        (status.success(), std::io::read_to_string(child.stderr.take().unwrap()).unwrap())
    };
    let [data, input] = [&data, &input].map(|path| path.to_str().unwrap());
    for way in ["--json", "--incremental"] {
        disk.fill();
        let (is_done, said) = run(&["dedup", way, "--data", data, input]);
        assert!(!is_done && said.to_lowercase().contains("no space left on"), "{said}");
        disk.empty();
        let (is_done, said) = run(&["dedup", way, "--data", data, input]);
        assert!(is_done, "{said}");
        // As a process that was killed while it made the database has left it.
        let conf = disk.path().join("data/tier1/range-0/conf");
        fs::write(&conf, &fs::read(&conf).unwrap()[..20]).unwrap();
        disk.fill();
        let (is_sound, said) = run(&["check", data]);
        assert!(!is_sound && !said.contains("damaged"), "{said}");
        disk.empty();
        let (is_sound, said) = run(&["check", data]);
        assert!(is_sound, "{said}");
        fs::remove_dir_all(disk.path().join("data")).unwrap();
    }
}

#[test]
fn a_server_that_refuses_ends_in_time_or_is_killed_and_its_restart_has_what_was_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::make(home.path(), BYTES) else { return };
    let start = || start(&disk, home.path(), &["--snapshot-every", "0s"]);
    let crawl = rounds(31, 60, 2);
    let mut server = start();
    let mut acknowledged = Acknowledged::new();
    for (pages, is_killed) in crawl.iter().zip([false, true]) {
        acknowledged.extend(load_until_refused(&disk, &server, pages));
        check(&server, &acknowledged);
        if is_killed {
            server.kill();
        } else {
            let ending = Instant::now();
            assert!(server.terminate(), "it ends well");
            assert!(ending.elapsed() < END, "{:?}", ending.elapsed());
        }
        disk.empty();
        server = start();
        check(&server, &acknowledged);
        let hold = (usize::MAX, &AtomicBool::new(false));
        acknowledged.extend(load(&server, pages, hold, &AtomicUsize::new(0)));
        server.flush();
        check(&server, &acknowledged);
    }
    let different = differences(&meaning(&server.export()), &of_one_process(&crawl));
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Bytes of a file system that are free.
fn free(disk: &SmallDisk) -> u64 {
    let system = rustix::fs::statvfs(disk.path()).unwrap();
    system.f_bavail * system.f_frsize
}

/// Bytes of the files without a name that a process has open on the disk: what a backup keeps of changes.
fn unnamed_bytes(server: &Server) -> u64 {
    let open = fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().flatten();
    let of_disk = open.filter(|entry| {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        // The path is one of the process's own file system.
        let target = target.to_string_lossy();
        target.contains("/tier1/") && target.ends_with(" (deleted)")
    });
    of_disk.map(|entry| fs::metadata(entry.path()).map_or(0, |file| file.len())).sum()
}

#[test]
fn a_backup_that_nobody_reads_leaves_room_on_the_disk_and_gives_its_own_back() {
    let home = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::make(home.path(), BYTES) else { return };
    let server = start(&disk, home.path(), &["--snapshot-every", "0s"]);
    // More than the buffers of a connection take.
    let page = |n: u64| json!({"url": format!("http://p{n}.example/"), "text": text(n, 4_000).join(" ")});
    server.push_all(&(0..600).map(page).collect::<Vec<_>>());
    server.flush();
    let mut reader = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    // Otherwise the system may take the whole backup for a reader that reads nothing.
    socket2::SockRef::from(&reader).set_recv_buffer_size(64 << 10).unwrap();
    reader.write_all(b"GET /v1/backup HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut head = [0; 100];
    reader.read_exact(&mut head).unwrap();
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    // Little more than what is left for new pages.
    let left = free(&disk) - (BYTES / 40 + (16 << 20));
    fs::write(disk.path().join("ballast"), vec![0x55; usize::try_from(left).unwrap()]).unwrap();
    // Redirects have no signatures, so what is kept of them is a good part of what the disk gets.
    let redirect = |n: u64, turn: u64| json!({"url": format!("http://r{n}.example/"), "redirect_to": format!("http://to{turn}.example/{n}")});
    let (mut kept, mut largest) = (0, 0);
    for turn in 0..400 {
        let redirects: Vec<Value> = (0..500).map(|n| redirect(n, turn)).collect();
        let response = server.post("/v1/pages", "application/x-ndjson", ndjson(&redirects));
        assert_eq!(response.status(), 200, "the disk is full, and {kept} bytes of it are of a backup");
        kept = unnamed_bytes(&server);
        largest = largest.max(kept);
        if kept < largest {
            break;
        }
    }
    assert!(largest > 1 << 20 && kept == 0, "{kept} bytes of {largest} are left");
    assert!(free(&disk) > 2 << 20, "{} bytes are free", free(&disk));
    // The reader is told that it has no whole backup.
    disk.empty();
    let mut rest = Vec::new();
    let read = reader.read_to_end(&mut rest);
    assert!(read.is_err() || !rest.ends_with(b"\r\n0\r\n\r\n"), "the backup looks whole");
    assert!(server.log().contains("the disk has little room left"), "{}", server.log());
    assert!(server.terminate());
}

#[test]
fn a_node_of_a_cluster_whose_disk_is_full_keeps_nothing_but_its_own_pages_from_being_taken() {
    let home = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::make(home.path(), BYTES) else { return };
    let url = |n: usize| format!("http://p{n}.example/");
    let page =
        |n: usize, turn: usize| json!({"url": url(n), "text": format!("text {turn} of page {n} is its own")});
    let mut cluster = Cluster::start_spread(&["record-0", "record-1"], 1, &[], &[]);
    // One of the nodes goes on where there is little room.
    assert!(cluster.terminate("record-1"));
    let (own, moved) = (cluster.data("record-1"), disk.path().join("record-1"));
    assert!(Command::new("cp").arg("-r").args([&own, &moved]).status().unwrap().success());
    fs::remove_dir_all(&own).unwrap();
    symlink(&moved, &own).unwrap();
    cluster.start_node("record-1");
    let front = cluster.coordinator("front");
    let first: Vec<Value> = (0..40).map(|n| page(n, 0)).collect();
    front.push_all(&first);
    front.flush();
    disk.fill();
    let take = |n: usize, turn: usize| {
        let response = front.post("/v1/pages", "application/x-ndjson", format!("{}\n", page(n, turn)));
        (response.status().as_u16(), response.text().unwrap())
    };
    let mut turn = 0;
    wait_until("the node to meet the full disk", PATIENCE, || {
        turn += 1;
        disk.fill();
        (0..40).any(|n| take(n, turn).0 == 507).then_some(())
    });
    let full = || Samples::of(&front).get("doppel_tier1_full_disk_ranges").unwrap();
    let answers: Vec<(u16, String)> = (0..40).map(|n| take(n, 1_000)).collect();
    let (taken, refused): (Vec<usize>, Vec<usize>) = (0..40).partition(|n| answers[*n].0 == 200);
    assert!(taken.len() > 5 && refused.len() > 5, "{answers:?}");
    assert!(refused.iter().all(|n| answers[*n].0 == 507), "{answers:?}");
    assert!(taken.iter().all(|n| answers[*n].1.contains("outcome")), "{answers:?}");
    assert!(full() >= 1.0);
    // All of them are answered for.
    (0..40).for_each(|n| assert_eq!(front.status(&url(n))["url"], url(n)));
    let quality = front.ask("/v1/reports/quality", &[]);
    assert!(quality["not_ready"].as_str().is_some_and(|why| why.contains("takes no writes")), "{quality}");
    disk.empty();
    wait_until("the node to go on", PATIENCE, || {
        refused.iter().all(|n| take(*n, 2_000).0 == 200).then_some(())
    });
    front.flush();
    assert_eq!(full(), 0.0);
    assert!(Samples::of(&front).get("doppel_tier1_disk_recoveries_total").unwrap() >= 1.0);
    assert_eq!(front.ask("/v1/reports/quality", &[])["not_ready"], Value::Null);
    (0..40).for_each(|n| assert_eq!(front.status(&url(n))["status"], "unique"));
    // Before the disk goes.
    assert!(cluster.terminate("record-1"));
}
