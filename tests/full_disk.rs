//! A disk that is full while pages come, again and again, and that is emptied without a restart of the server.
//!
//! The server has a small file system of its own, in a mount namespace of its own. Where a process may not have one, the tests
//! print a line and pass.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::metrics::Samples;
use harness::pages::rounds;
use harness::{PATIENCE, Server, differences, doppel, lines_of, meaning, of_one_process, wait_until};
use serde_json::{Value, json};

/// Bytes of the file system.
const BYTES: u64 = 160 << 20;

/// Lines of a request.
const BATCH: usize = 20;

/// A server on a file system of its own.
struct OnSmallDisk {
    server: Server,
    /// The file that fills it, as this process sees it.
    ballast: PathBuf,
}

/// How a process gets a mount namespace here: as root, or as root of a user namespace.
fn namespace() -> Option<&'static [&'static str]> {
    let may = |options: &&&[&str]| {
        let mut command = Command::new("unshare");
        command.args(**options).args(["sh", "-c", "mount -t tmpfs tmpfs /mnt"]);
        command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let ways: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
    ways.iter().find(may).copied()
}

impl OnSmallDisk {
    fn start(home: &Path, options: &[&str]) -> Option<Self> {
        let Some(namespace) = namespace() else {
            println!("full_disk: no process may have a file system of its own here");
            return None;
        };
        let binary = doppel();
        let mut command = Command::new("unshare");
        command.args(namespace).args(["sh", "-c"]);
        command.arg(format!("mount -t tmpfs -o size={BYTES} tmpfs \"$1\" && shift && exec \"$@\""));
        command.arg("sh").arg(home).arg(binary.get_program());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(home.join("data")).args(options);
        command.env_remove("DOPPEL_SERVER").stdin(Stdio::null());
        let server = Server::start_command(command);
        let root = format!("/proc/{}/root", server.id());
        let ballast = Path::new(&root).join(home.strip_prefix("/").unwrap()).join("ballast");
        Some(Self { server, ballast })
    }

    /// Takes all that is free.
    fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(&self.ballast).unwrap();
        for bytes in [1 << 20, 1 << 12, 1] {
            let some = vec![0x55; bytes];
            while file.write_all(&some).is_ok() {}
        }
    }

    fn empty(&self) {
        fs::remove_file(&self.ballast).unwrap();
    }

    fn readiness(&self) -> (u16, String) {
        let response = self.server.get("/readyz");
        (response.status().as_u16(), response.text().unwrap())
    }
}

/// What was acknowledged: the newest version of each URL.
type Acknowledged = HashMap<String, String>;

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
            let body: String = left.iter().map(|page| format!("{page}\n")).collect();
            let response = server.post("/v1/pages", "application/x-ndjson", body);
            let status = response.status();
            let text = response.text().unwrap();
            if !status.is_success() {
                assert!([503, 507].contains(&status.as_u16()), "{status}: {text}");
                thread::sleep(Duration::from_millis(20));
                continue;
            }
            // A redirect to itself is never taken.
            let is_done =
                |answer: &Value| answer["outcome"].is_string() || answer["error"]["code"] == "invalid";
            let (done, again): (Vec<_>, Vec<_>) =
                left.into_iter().zip(lines_of(&text)).partition(|(_, answer)| is_done(answer));
            for (page, _) in done.into_iter().filter(|(_, answer)| answer["outcome"].is_string()) {
                let text = |field: &str| page[field].as_str().unwrap().to_owned();
                acknowledged.insert(text("url"), text("fetched_at"));
            }
            left = again.into_iter().map(|(page, _)| page).collect();
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
    let Some(disk) = OnSmallDisk::start(home.path(), options) else { return };
    let crawl = rounds(29, 60, times);
    let mut acknowledged = Acknowledged::new();
    for (number, round) in crawl.iter().enumerate() {
        let (is_full, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        let hold = (round.len() * 2 / 3, &is_full);
        thread::scope(|scope| {
            let loading = scope.spawn(|| load(&disk.server, round, hold, &done));
            wait_until("a third of the round", PATIENCE, || {
                (done.load(Ordering::Relaxed) >= round.len() / 3).then_some(())
            });
            disk.fill();
            is_full.store(true, Ordering::Relaxed);
            let said = wait_until("the server to meet the full disk", PATIENCE, || {
                // Files that went may have left some room.
                disk.fill();
                let (status, said) = disk.readiness();
                (status == 507).then_some(said)
            });
            assert!(said.contains("the disk is full") && said.contains("goes on by itself"), "{said}");
            assert!(Samples::of(&disk.server).get("doppel_tier1_full_disk_ranges").unwrap() >= 1.0);
            // A little room is not enough, and what is known is told.
            check(&disk.server, &acknowledged);
            disk.empty();
            let emptied = Instant::now();
            wait_until("the server to go on", PATIENCE, || (disk.readiness().0 == 200).then_some(()));
            println!("{number}: went on after {:?}", emptied.elapsed());
            acknowledged.extend(loading.join().unwrap());
        });
        check(&disk.server, &acknowledged);
    }
    disk.server.flush();
    check(&disk.server, &acknowledged);
    let different = differences(&meaning(&disk.server.export()), &of_one_process(&crawl));
    assert!(different.is_empty(), "{}", different.join("\n"));
    let samples = Samples::of(&disk.server);
    assert!(samples.get("doppel_tier1_disk_recoveries_total").unwrap() >= times as f64);
    assert_eq!(samples.get("doppel_tier1_full_disk_ranges"), Some(0.0));
    let log = disk.server.log();
    assert!(
        log.contains("takes no writes until there is room") && log.contains("there is room again"),
        "{log}"
    );
    assert!(disk.server.terminate());
}

#[test]
fn a_disk_that_was_full_twenty_times_has_cost_nothing() {
    fill_and_empty(20, &["--snapshot-every", "0s"]);
}

#[test]
fn every_range_goes_on_after_its_disk_was_full() {
    fill_and_empty(5, &["--shards", "5", "--ranges", "3", "--partitions", "16", "--snapshot-every", "0s"]);
}
