//! Kills `doppel serve` with kill -9 at random moments while `doppel load` submits pages.
//!
//! After each kill the test restarts the server on the same directory. The server must have everything that
//! it acknowledged. Then the load is repeated from the beginning of its round, as an operator would do. At
//! the end the export must equal that of an undisturbed run: the same groups as sets of URLs, the same
//! winners, the same similarities.
//!
//! `DOPPEL_KILLS` sets the number of kills (default 4; from 20 on, the long crawl is loaded as well).
//! `DOPPEL_SEED` repeats a run.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use doppel_model::Timestamp;
use harness::pages::{Random, ndjson, rounds};
use harness::{PATIENCE, Server, crawl, crawls, doppel, lines_of, meaning, wait_until};
use serde_json::{Value, json};

/// From this number of kills on, the crawl `trace` is loaded after `quick`.
const KILLS_FOR_TRACE: usize = 20;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

/// The rounds to load: real crawls if available, otherwise generated ones in `made`.
fn inputs(kills: usize, made: &Path) -> Vec<PathBuf> {
    let Some(data) = crawls("crash, on real crawls") else {
        let write = |(round, pages): (usize, &Vec<Value>)| {
            let path = made.join(format!("round-{round}.jsonl"));
            fs::write(&path, ndjson(pages)).unwrap();
            path
        };
        return rounds(7, 300, 3).iter().enumerate().map(write).collect();
    };
    let mut files = crawl(&data, "quick");
    if kills >= KILLS_FOR_TRACE {
        files.extend(crawl(&data, "trace"));
    }
    files
}

/// Seconds that a load waits for an answer: `UNDISTURBED` if the server runs on, `KILLED` if the test kills
/// the server.
const UNDISTURBED: &str = "60";
const KILLED: &str = "1";

/// Starts to load one round. Every acknowledged page becomes a line of `acknowledged`. The load ends when the
/// server has not answered for `patience` seconds.
fn load(server: &Server, round: &Path, acknowledged: &Path, patience: &str) -> Child {
    let mut command = doppel();
    command
        .args(["load", "--server", &server.url, "--patience", patience, "--batch", "40", "--acknowledged"])
        .arg(acknowledged);
    command.arg(round).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn finished(mut load: Child) -> bool {
    let status = wait_until("the load to end", PATIENCE, || load.try_wait().unwrap());
    status.success()
}

/// Checks that the server stores every acknowledged page in that version or a newer one, and empties the
/// list.
fn check_acknowledged(server: &Server, acknowledged: &Path) -> usize {
    let text = fs::read_to_string(acknowledged).unwrap_or_default();
    // An incomplete last line that the loader was writing was not acknowledged.
    let complete = text.rfind('\n').map_or("", |end| &text[..=end]);
    let date = |line: &Value| line["fetched_at"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let newest: HashMap<String, Timestamp> = lines_of(complete)
        .iter()
        .filter(|line| line["outcome"] != "stale")
        .map(|line| (line["url"].as_str().unwrap().to_owned(), date(line)))
        .collect();
    let urls: Vec<&String> = newest.keys().collect();
    for urls in urls.chunks(1000) {
        let answers = server.post_json("/v1/status", &json!({ "urls": urls }));
        for answer in answers["pages"].as_array().unwrap() {
            let url = answer["url"].as_str().unwrap();
            assert_ne!(answer["status"], "unknown", "{url} was acknowledged and is lost");
            let (kept, acknowledged) = (date(answer), newest[url]);
            assert!(kept >= acknowledged, "{url}: version {acknowledged} was acknowledged, {kept} is kept");
        }
    }
    fs::write(acknowledged, "").unwrap();
    newest.len()
}

/// Loads every round without disturbance. Returns the export, and the duration of each round.
fn undisturbed(rounds: &[PathBuf], acknowledged: &Path) -> (String, Vec<Duration>) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let time = |round: &PathBuf| {
        let begin = Instant::now();
        assert!(
            finished(load(&server, round, acknowledged, UNDISTURBED)),
            "the load of {} failed",
            round.display()
        );
        begin.elapsed()
    };
    let times = rounds.iter().map(time).collect();
    server.flush();
    check_acknowledged(&server, acknowledged);
    (server.export(), times)
}

#[test]
fn nothing_acknowledged_is_lost() {
    kill_while_loading(&["--snapshot-every", "0s"]);
}

/// Each range has its own database and sends messages to the other ranges, and the index learns a map. A kill
/// therefore finds each range in another phase.
#[test]
fn nothing_acknowledged_is_lost_with_several_ranges() {
    kill_while_loading(&["--shards", "5", "--ranges", "3", "--partitions", "16", "--snapshot-every", "0s"]);
}

/// Makes the tests run one after the other. A loader gives up after a second, so two tests must not share the
/// machine.
static ALONE: Mutex<()> = Mutex::new(());

fn kill_while_loading(options: &[&str]) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let kills = number("DOPPEL_KILLS").map_or(4, |n| usize::try_from(n).unwrap());
    let seed = number("DOPPEL_SEED")
        .unwrap_or_else(|| u64::from(std::process::id()) << 20 | u64::from(kills as u32));
    println!("{kills} kills, DOPPEL_SEED={seed}");
    let mut random = Random::new(seed);
    let home = tempfile::tempdir().unwrap();
    let rounds = inputs(kills, home.path());
    let acknowledged = home.path().join("acknowledged.jsonl");
    let (expected, times) = undisturbed(&rounds, &acknowledged);

    // The probability that a kill falls into a round is proportional to the round's duration.
    let total: Duration = times.iter().sum();
    let mut planned = vec![0; rounds.len()];
    for _ in 0..kills {
        let mut at = random.index(usize::try_from(total.as_micros()).unwrap());
        let hit = times.iter().position(|time| {
            let micros = usize::try_from(time.as_micros()).unwrap();
            let inside = at < micros;
            at = at.saturating_sub(micros);
            inside
        });
        planned[hit.unwrap_or(0)] += 1;
    }

    let data = home.path().join("data");
    let mut server = Server::start(&data, options);
    let mut late = 0;
    for ((round, time), planned) in rounds.iter().zip(&times).zip(&planned) {
        let mut span = usize::try_from(time.as_micros()).unwrap();
        let mut interrupted = 0;
        while interrupted < *planned {
            let loading = load(&server, round, &acknowledged, KILLED);
            let moment = random.index(span);
            std::thread::sleep(Duration::from_micros(moment as u64));
            server.kill();
            if finished(loading) {
                // The load had ended, so the kill does not count, although it may interrupt decisions. Pages
                // that are already known load faster than the first time, so shorten the span.
                late += 1;
                span = (span * 4 / 5).max(10_000);
            } else {
                interrupted += 1;
            }
            if random.index(4) == 0 {
                die_while_starting(&data, options, Duration::from_millis(random.index(200) as u64));
            }
            server = Server::start(&data, options);
            let kept = check_acknowledged(&server, &acknowledged);
            println!("{}: killed after {moment} us, {kept} acknowledged pages kept", round.display());
        }
        assert!(
            finished(load(&server, round, &acknowledged, UNDISTURBED)),
            "the load of {} failed",
            round.display()
        );
    }
    check_acknowledged(&server, &acknowledged);
    server.flush();
    println!("{kills} kills while pages were posted, {late} after that");
    let different = differences(&server.export(), &expected);
    assert!(different.is_empty(), "DOPPEL_SEED={seed}\n{}", different.join("\n"));
    assert!(server.terminate());
    let checked = doppel().arg("check").arg(&data).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn the_loader_survives_a_restart_of_the_server() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, acknowledged) = (home.path().join("crawl.jsonl"), home.path().join("acknowledged.jsonl"));
    let pages = rounds(13, 1_000, 1).concat();
    fs::write(&crawl, ndjson(&pages)).unwrap();
    let data = home.path().join("data");
    let server = Server::start(&data, &[]);
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let mut command = doppel();
    command.args(["load", "--flush", "--batch", "20", "--server", &server.url, "--acknowledged"]);
    let loading = command.arg(&acknowledged).arg(&crawl).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the first pages", PATIENCE, || {
        fs::metadata(&acknowledged).ok().filter(|file| file.len() > 0)
    });
    server.kill();
    let server = Server::start_on(&address, &data, &[]);
    assert!(finished(loading), "the load must go on with the restarted server");
    assert_eq!(lines_of(&fs::read_to_string(&acknowledged).unwrap()).len(), pages.len());
    assert_eq!(server.export().lines().count(), pages.len());
}

/// The first few lines in which two exports differ, ignoring the ids of groups.
fn differences(export: &str, expected: &str) -> Vec<String> {
    let ((pages, groups), (expected_pages, expected_groups)) = (meaning(export), meaning(expected));
    let pages = pages.iter().zip(&expected_pages).filter(|(is, expected)| is != expected);
    let pages = pages.map(|(is, expected)| format!("{is:?}, expected {expected:?}"));
    let missing =
        expected_groups.iter().filter(|group| !groups.contains(group)).map(|g| format!("no group {g:?}"));
    let lines = [export, expected].map(|text| text.lines().count());
    let counts = (lines[0] != lines[1]).then(|| format!("{} pages, expected {}", lines[0], lines[1]));
    counts.into_iter().chain(pages.take(20)).chain(missing.take(20)).collect()
}

/// Starts a server and kills it before or during recovery.
fn die_while_starting(data: &Path, options: &[&str], after: Duration) {
    let mut command = doppel();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).args(options);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}
