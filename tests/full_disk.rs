//! A server whose disk fills up while it receives pages, again and again. The test frees space each time, and
//! the server must resume without a restart and without loss.
//!
//! The server runs on a small file system of its own. If the system does not allow that, the tests print a
//! line and pass.
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

/// Size of the file system in bytes.
const BYTES: u64 = 160 << 20;

/// Number of pages in a request.
const BATCH: usize = 20;

/// Time limit for a server to end. A server waits longer than this for open connections.
const END: Duration = Duration::from_secs(20);

/// Starts a server whose data directory is on the small disk mounted over `home`.
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

/// Fills the disk until the server reports it as full. Returns the text of that report.
fn fill_until_refused(disk: &SmallDisk, server: &Server) -> String {
    wait_until("the server to meet the full disk", PATIENCE, || {
        // Files that the server deleted may have freed space again.
        disk.fill();
        let (status, said) = readiness(server);
        (status == 507).then_some(said)
    })
}

/// Acknowledged pages: the newest acknowledged version by URL.
type Acknowledged = HashMap<String, String>;

/// Submits pages, and removes the answered ones from `left`. Returns false if the server refuses the whole
/// request.
fn post(server: &Server, left: &mut Vec<Value>, acknowledged: &mut Acknowledged) -> bool {
    let body: String = left.iter().map(|page| format!("{page}\n")).collect();
    let response = server.post("/v1/pages", "application/x-ndjson", body);
    let status = response.status();
    let text = response.text().unwrap();
    if !status.is_success() {
        assert!([503, 507].contains(&status.as_u16()), "{status}: {text}");
        return false;
    }
    // The server never accepts a redirect to itself, so that page is done, too.
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

/// Submits pages until all are acknowledged. Before the page `hold.0`, waits until `hold.1` is true.
fn load(server: &Server, pages: &[Value], hold: (usize, &AtomicBool), done: &AtomicUsize) -> Acknowledged {
    let (mut acknowledged, began) = (Acknowledged::new(), Instant::now());
    for batch in pages.chunks(BATCH) {
        if done.load(Ordering::Relaxed) >= hold.0 {
            wait_until("the disk to be full", PATIENCE, || hold.1.load(Ordering::Relaxed).then_some(()));
        }
        let mut left = batch.to_vec();
        while !left.is_empty() {
            assert!(began.elapsed() < PATIENCE, "the server still refuses pages after {PATIENCE:?}");
            if !post(server, &mut left, &mut acknowledged) {
                thread::sleep(Duration::from_millis(20));
            }
        }
        done.fetch_add(batch.len(), Ordering::Relaxed);
    }
    acknowledged
}

/// Checks that the server stores every acknowledged page in that version or a newer one.
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

/// Loads `times` rounds. Fills the disk in the middle of each, frees the space again, and goes on.
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
            // A little free space is not enough to resume. Meanwhile the server answers questions.
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
fn a_server_loses_nothing_although_its_disk_was_full_twenty_times() {
    fill_and_empty(20, &["--snapshot-every", "0s"]);
}

#[test]
fn every_range_resumes_after_its_disk_was_full() {
    fill_and_empty(5, &["--shards", "5", "--ranges", "3", "--partitions", "16", "--snapshot-every", "0s"]);
}

/// Submits pages to a server whose disk fills up after some of them, until it refuses. Returns the
/// acknowledged pages.
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
fn a_collection_can_be_created_after_space_was_freed() {
    let home = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::make(home.path(), BYTES) else { return };
    let (data, input) = (home.path().join("data"), elsewhere.path().join("pages.jsonl"));
    fs::write(&input, ndjson(&rounds(31, 20, 1)[0])).unwrap();
    // Returns the messages of a command, and whether it succeeded.
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
        // Leave the file as a process leaves it that is killed while it creates the database.
        let range = disk.path().join("data/tier1/range-0");
        let conf = range.join("conf");
        fs::write(&conf, &fs::read(&conf).unwrap()[..20]).unwrap();
        for file in fs::read_dir(&range).unwrap().map(|file| file.unwrap()) {
            if file.file_name().to_string_lossy().starts_with("snap.") {
                fs::remove_file(file.path()).unwrap();
            }
        }
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
fn a_server_with_a_full_disk_keeps_acknowledged_pages_after_a_clean_end_and_after_a_kill() {
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
            assert!(server.terminate(), "the server must exit with 0");
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

/// Free bytes of the file system.
fn free(disk: &SmallDisk) -> u64 {
    let system = rustix::fs::statvfs(disk.path()).unwrap();
    system.f_bavail * system.f_frsize
}

/// Bytes of the deleted files that a process keeps open on the disk. A backup keeps changed rows in such
/// files.
fn unnamed_bytes(server: &Server) -> u64 {
    let open = fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().flatten();
    let of_disk = open.filter(|entry| {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        // The link shows the path inside the file system of the process.
        let target = target.to_string_lossy();
        target.contains("/tier1/") && target.ends_with(" (deleted)")
    });
    of_disk.map(|entry| fs::metadata(entry.path()).map_or(0, |file| file.len())).sum()
}

#[test]
fn a_backup_with_a_stalled_reader_is_broken_off_before_it_fills_the_disk() {
    let home = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::make(home.path(), BYTES) else { return };
    let server = start(&disk, home.path(), &["--snapshot-every", "0s"]);
    // The backup must be larger than the buffers of a connection.
    let page = |n: u64| json!({"url": format!("http://p{n}.example/"), "text": text(n, 4_000).join(" ")});
    server.push_all(&(0..600).map(page).collect::<Vec<_>>());
    server.flush();
    let mut reader = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    // With a large receive buffer, the system might take the whole backup although the reader reads nothing.
    socket2::SockRef::from(&reader).set_recv_buffer_size(64 << 10).unwrap();
    reader.write_all(b"GET /v1/backup HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut head = [0; 100];
    reader.read_exact(&mut head).unwrap();
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    // Leave little more than the space that the server reserves for new pages.
    let left = free(&disk) - (BYTES / 40 + (16 << 20));
    fs::write(disk.path().join("ballast"), vec![0x55; usize::try_from(left).unwrap()]).unwrap();
    // Redirects have no signatures. The rows that the backup keeps are therefore a large part of what is
    // written.
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
    // The reader learns that its backup is incomplete.
    disk.empty();
    let mut rest = Vec::new();
    let read = reader.read_to_end(&mut rest);
    assert!(
        read.is_err() || !rest.ends_with(b"\r\n0\r\n\r\n"),
        "the reader takes the broken backup for a complete one"
    );
    assert!(server.log().contains("the disk has little room left"), "{}", server.log());
    assert!(server.terminate());
}

#[test]
fn while_the_disk_of_a_node_is_full_only_its_own_pages_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::make(home.path(), BYTES) else { return };
    let url = |n: usize| format!("http://p{n}.example/");
    let page =
        |n: usize, turn: usize| json!({"url": url(n), "text": format!("text {turn} of page {n} is its own")});
    let mut cluster = Cluster::start_spread(&["record-0", "record-1"], 1, &[], &[]);
    // One node goes on with its data on the small disk.
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
    // The coordinator answers questions about all pages.
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
    // End the node before its disk disappears.
    assert!(cluster.terminate("record-1"));
}
