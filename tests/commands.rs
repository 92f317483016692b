//! The commands as people and programs use them: their output and their exit codes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;

use harness::pages::{html, ndjson, rounds, text};
use harness::{OwnServer, PATIENCE, Server, doppel, lines_of, run, run_ok, wait_until};
use serde_json::{Value, json};

/// Runs a command against a server. Returns its output, whatever the exit code.
fn ask(server: &Server, arguments: &[&str]) -> Output {
    doppel().env("DOPPEL_SERVER", &server.url).args(arguments).output().unwrap()
}

/// Runs a command that must exit with 0. Returns its stdout.
fn answer(server: &Server, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = ask(server, arguments);
    assert!(status.success(), "{arguments:?}: {status}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits for a command that must not hang.
fn finished(mut command: Child) -> Output {
    let status = wait_until("the command to end", PATIENCE, || command.try_wait().unwrap());
    let mut output = Output { status, stdout: Vec::new(), stderr: Vec::new() };
    if let Some(mut stdout) = command.stdout {
        stdout.read_to_end(&mut output.stdout).unwrap();
    }
    if let Some(mut stderr) = command.stderr {
        stderr.read_to_end(&mut output.stderr).unwrap();
    }
    output
}

/// A named pipe.
fn fifo(home: &Path) -> PathBuf {
    let path = home.join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// The response of a fake server to a request line and a body. `None` means that it does not respond.
type Responder = fn(&str, &str) -> Option<(u16, String)>;

/// Runs a fake server as long as the test runs. Returns its URL.
fn fake_server(answer: Responder) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || respond_once(&stream.unwrap(), answer));
        }
    });
    url
}

/// Responds to one request and closes the connection.
fn respond_once(mut stream: &TcpStream, answer: Responder) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap() == 0 {
            return;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    match answer(head.lines().next().unwrap(), std::str::from_utf8(&body).unwrap()) {
        Some((status, body)) => {
            let head = format!("HTTP/1.1 {status} Played\r\nContent-Length: {}\r\n", body.len());
            stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).unwrap();
        }
        // Wait until the client gives up.
        None => drop(reader.read_to_end(&mut body)),
    }
}

/// Runs a fake server whose response stops in the middle; the connection closes when the returned sender is
/// dropped. Returns its URL as well.
fn fake_server_that_breaks_off() -> (String, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, gone) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"url\":").unwrap();
        let _ = gone.recv();
    });
    (url, sender)
}

/// The response of a server that accepts every line.
fn taken(body: &str) -> (u16, String) {
    let answer = |line: &str| {
        let page: Value = serde_json::from_str(line).unwrap();
        format!("{}\n", json!({"url": page["url"], "outcome": "pending"}))
    };
    (200, body.lines().map(answer).collect())
}

const A: &str = "http://a.example/";
const B: &str = "http://b.example/copy";

/// A, its copy B, a unique page, and a redirect that does not resolve.
fn loaded() -> OwnServer {
    let server = OwnServer::start(&[]);
    let copy = html("page", &text(1, 100));
    let crawl = ndjson(&[
        json!({"url": A, "html": copy, "fetched_at": "2024-05-01T00:00:00Z"}),
        json!({"url": B, "html": copy, "fetched_at": "2024-05-02T00:00:00Z"}),
        json!({"url": "http://c.example/", "html": html("page", &text(2, 100))}),
        json!({"url": "http://d.example/", "redirect_to": "http://nowhere.example/"}),
    ]);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("crawl.jsonl");
    fs::write(&path, crawl).unwrap();
    let summary: Value =
        serde_json::from_str(&answer(&server, &["load", "--flush", "--json", path.to_str().unwrap()]))
            .unwrap();
    assert_eq!(summary["outcomes"], json!({"pending": 4}), "{summary}");
    let again = answer(&server, &["load", path.to_str().unwrap()]);
    assert!(again.contains("unchanged"), "{again}");
    server
}

#[test]
fn queries_are_answered_for_people_and_programs() {
    let server = loaded();
    let output = ask(&server, &["status", A, B, "http://d.example/", "nonsense"]);
    assert_eq!((code(&output), errors(&output).as_str()), (5, "doppel: 1 is no page URL\n"));
    let human = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = human.lines().collect();
    assert!(lines[0].starts_with("winner ") && lines[0].contains(A), "{human}");
    assert!(
        lines[1].starts_with("duplicate ")
            && lines[1].contains(&format!("of {A} (seen on an earlier day), similarity 1.000")),
        "{human}"
    );
    let leads = "redirects to http://nowhere.example/, where the way ends at an unknown page";
    assert!(lines[2].starts_with("unresolved ") && lines[2].ends_with(leads), "{human}");
    assert!(lines[3].starts_with("error ") && lines[3].contains("not an absolute URL"), "{human}");
    let json = lines_of(&answer(&server, &["status", "--json", A, B]));
    assert_eq!((&json[0]["status"], &json[1]["winner"]), (&json!("winner"), &json!(A)));
    assert_eq!(json[0], server.status(A), "the server's answer as it is");

    let group = json[0]["group"].as_str().unwrap();
    let human = answer(&server, &["group", group]);
    assert!(human.starts_with(&format!("{group}: 2 pages with content, winner {A}\n")), "{human}");
    let json = lines_of(&answer(&server, &["group", "--json", group]));
    assert_eq!(json[0]["pages"].as_array().unwrap().len(), 2);

    let human = answer(&server, &["repair", "--dry-run", group]);
    assert!(human.contains("2 pages in 1 set; nothing was changed"), "{human}");
    let json = lines_of(&answer(&server, &["repair", "--json", "--by", "tests", group]));
    assert_eq!(
        (json[0]["applied"].as_bool(), json[0]["components"][0].as_array().unwrap().len()),
        (Some(true), 2)
    );

    let human = answer(&server, &["explain", A, B]);
    assert!(human.starts_with("near-duplicates: they have the same content\n"), "{human}");
    assert_eq!(lines_of(&answer(&server, &["explain", "--json", A, B]))[0]["duplicate"], true);

    for (report, word) in [("load-balance", "imbalance"), ("quality", "live pages"), ("groups", "largest")] {
        let human = answer(&server, &["report", report]);
        assert!(human.contains(word), "{human}");
        let json = lines_of(&answer(&server, &["report", "--json", report]));
        assert!(json[0].is_object());
    }

    let output = ask(&server, &["changes"]);
    let human = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(human.lines().count(), 4, "{human}");
    assert!(human.lines().all(|line| line.contains("fetched 20")), "{human}");
    let said = errors(&output);
    let cursor = said.trim_end().strip_prefix("doppel: continue with --cursor ").unwrap();
    assert_eq!(answer(&server, &["changes", "--cursor", cursor]), "");
    let json = lines_of(&answer(&server, &["changes", "--json"]));
    let cursor = json[0]["cursor"].as_str().unwrap();
    assert_eq!(answer(&server, &["changes", "--cursor", cursor]), "");
    let export = answer(&server, &["export"]);
    assert_eq!(export, server.export());
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out.jsonl");
    answer(&server, &["export", "--out", out.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(out).unwrap(), export);
}

#[test]
fn changes_are_followed() {
    let server = loaded();
    let mut command = doppel();
    command.env("DOPPEL_SERVER", &server.url).args(["changes", "--follow"]).stdout(Stdio::piped());
    let mut follow = command.spawn().unwrap();
    let mut out = follow.stdout.take().unwrap();
    let mut seen = String::new();
    let mut read_until = |word: &str| {
        let mut buffer = [0; 4096];
        while !seen.contains(word) {
            let read = out.read(&mut buffer).unwrap();
            assert!(read > 0, "it ended after {seen}");
            seen.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
    };
    read_until("http://d.example/");
    server.push(&[json!({"url": "http://new.example/", "dead": true})]);
    read_until("http://new.example/");
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn exit_codes_say_what_happened() {
    let wrong = run(["dedup"]);
    assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
    let wrong = run(["status", "--server", "ftp://a.example/", A]);
    assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
    for wrong in
        ["127.0.0.1:7700", "localhost:7700", "http://127.0.0.1:7700/doppel", "http://a@b/", "https://a"]
    {
        let wrong = run(["status", "--server", wrong, A]);
        assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
        assert!(errors(&wrong).contains("a URL such as http://127.0.0.1:7700 "), "{}", errors(&wrong));
    }
    for (option, value, says) in [
        ("--listen", "localhost:80", "an IP address and a port are expected, such as 127.0.0.1:7700"),
        ("--listen", "203.0.113.7:7702", "--listen takes an address of this machine"),
        ("--pending-max", "0", "a number of at least 1000 is expected"),
    ] {
        let wrong = run(["serve", "--data", "none", option, value]);
        assert!(errors(&wrong).contains(says), "{}", errors(&wrong));
    }
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unset = doppel().env("DOPPEL_SERVER", "").args(["group", "nonsense"]).output().unwrap();
    assert!(!errors(&unset).contains("--server"), "{}", errors(&unset));
    let nobody = run(["status", "--server", &format!("http://{free}"), A]);
    assert_eq!(code(&nobody), 3, "{}", errors(&nobody));
    assert!(errors(&nobody).contains("doppel serve --data DIR"), "{}", errors(&nobody));
    let server = OwnServer::start(&[]);
    let refused = ask(&server, &["group", "g999999-0"]);
    assert_eq!(code(&refused), 4);
    assert!(errors(&refused).contains("there is no group g999999-0"), "{}", errors(&refused));
    let refused = ask(&server, &["explain", "nonsense", A]);
    assert!(errors(&refused).contains("a: not an absolute URL"), "{}", errors(&refused));
    for (cursor, says) in [("foo", "400"), ("1.2", "410")] {
        let refused = ask(&server, &["changes", "--cursor", cursor]);
        assert!(errors(&refused).contains(says), "{}", errors(&refused));
    }
    let help = run_ok(["--help"]);
    for line in ["Exit codes:", "3  the server cannot be reached", "5  done, but"] {
        assert!(help.contains(line), "{help}");
    }
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let server = OwnServer::start(&[]);
    let page = |n| json!({"url": format!("http://a.example/{n}/{}", "x".repeat(200)), "text": "a"});
    server.push(&(0..2_000).map(page).collect::<Vec<_>>());
    let mut command = doppel();
    command.env("DOPPEL_SERVER", &server.url).arg("export").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut export = command.spawn().unwrap();
    let mut first = [0; 100];
    export.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(export.stdout.take());
    let output = export.wait_with_output().unwrap();
    assert_eq!((code(&output), errors(&output).as_str()), (0, ""));
}

/// The files of a crawl in two rounds.
fn crawl_files(home: &Path) -> Vec<String> {
    let write = |(round, pages): (usize, &Vec<Value>)| {
        let path = home.join(format!("round-{round}.jsonl"));
        fs::write(&path, ndjson(pages)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    rounds(5, 80, 2).iter().enumerate().map(write).collect()
}

#[test]
fn a_collection_outlives_its_commands() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path());
    let data = home.path().join("data");
    let dedup = |options: &[&str], inputs: &[&String]| {
        let mut arguments = vec!["dedup", "--out", "-"];
        arguments.extend(options);
        arguments.extend(inputs.iter().map(|path| path.as_str()));
        run_ok(arguments)
    };
    let whole = dedup(&[], &[&files[0], &files[1]]);
    let kept = ["--data", data.to_str().unwrap(), "--shards", "2"];
    dedup(&kept, &[&files[0]]);
    let kept = &kept[..2];
    let after = dedup(kept, &[&files[1]]);
    assert_eq!(harness::meaning(&after), harness::meaning(&whole));
    assert_eq!(dedup(kept, &[&files[0], &files[1]]), after, "the same files again change nothing");
    let server = Server::start(&data, &[]);
    assert_eq!(server.export(), after);
}

#[test]
fn the_temporary_directory_is_removed() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path());
    let temporary = home.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let output = doppel().env("TMPDIR", &temporary).arg("dedup").args(&files).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn an_interrupted_run_removes_the_temporary_directory() {
    let home = tempfile::tempdir().unwrap();
    let crawl = home.path().join("crawl.jsonl");
    let page = |n: u64| json!({"url": format!("http://a.example/{n}"), "text": text(n, 200).join(" ")});
    fs::write(&crawl, ndjson(&(0..20_000).map(page).collect::<Vec<_>>())).unwrap();
    let temporary = home.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    // Under `nohup` SIGHUP is ignored, as it should be.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0").trim();
    let hangs_up = u64::from_str_radix(ignored, 16).unwrap() & 1 == 0;
    for signal in if hangs_up { &["INT", "HUP"][..] } else { &["INT"] } {
        let mut dedup = doppel().env("TMPDIR", &temporary).arg("dedup").arg(&crawl).spawn().unwrap();
        // The storage engine has begun to write.
        wait_until("the engine to open", PATIENCE, || {
            let made = fs::read_dir(&temporary).unwrap().next()?.unwrap().path();
            made.join("tier2").is_dir().then_some(())
        });
        interrupt(&dedup, signal);
        let status = wait_until("the run to end", PATIENCE, || dedup.try_wait().unwrap());
        assert_eq!(status.code(), Some(130));
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    }
    let data = home.path().join("data");
    let mut command = doppel();
    command.args(["dedup", "--data"]).arg(&data).arg(&crawl).stderr(Stdio::piped());
    let dedup = command.spawn().unwrap();
    wait_until("the engine to open", PATIENCE, || data.join("tier2").is_dir().then_some(()));
    // The command installs its signal handlers slightly later.
    wait_until("something to be recorded", PATIENCE, || {
        let size = fs::metadata(data.join("tier2/node-0/signatures.dat")).map_or(0, |file| file.len());
        (size > 10_000).then_some(())
    });
    interrupt(&dedup, "INT");
    let output = finished(dedup);
    assert_eq!(
        (code(&output), errors(&output).as_str()),
        (130, "doppel: interrupted; the same command goes on\n")
    );
}

fn interrupt(command: &Child, signal: &str) {
    assert!(Command::new("kill").args(["-s", signal, &command.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_directory_is_opened_as_it_was_made() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path());
    let data = home.path().join("data");
    let dedup = |options: &[&str]| {
        run(["dedup", "--data", data.to_str().unwrap()].iter().chain(options).chain([&files[0].as_str()]))
    };
    assert_eq!(code(&dedup(&["--tau", "0.9"])), 0);
    let other = dedup(&["--tau", "0.8"]);
    assert_eq!(code(&other), 1);
    assert!(errors(&other).contains("was made with --tau 0.9, not 0.8"), "{}", errors(&other));
    let other = dedup(&["--shards", "7"]);
    assert!(errors(&other).contains("was made with --shards 16, not 7"), "{}", errors(&other));
    let other = dedup(&["--ranges", "2"]);
    assert!(errors(&other).contains("was made with --ranges 1, not 2"), "{}", errors(&other));
    let many = run(["dedup", "--shards", "2", "--ranges", "3", &files[0]]);
    assert_eq!(code(&many), 1);
    assert!(errors(&many).contains("3 ranges of 2 shards"), "{}", errors(&many));

    let manifest = data.join("manifest.json");
    let sound = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, sound.replace("0.9", "0.7")).unwrap();
    let damaged = dedup(&[]);
    assert_eq!(code(&damaged), 1);
    assert!(errors(&damaged).contains("manifest.json is damaged"), "{}", errors(&damaged));
    fs::remove_file(&manifest).unwrap();
    let foreign = dedup(&[]);
    assert!(errors(&foreign).contains("is not empty and has no manifest.json"), "{}", errors(&foreign));
}

#[test]
fn a_directory_that_is_in_use_or_damaged_says_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path());
    let data = home.path().join("data");
    let dedup = || run(["dedup", "--data", data.to_str().unwrap(), &files[0]]);
    assert_eq!(code(&dedup()), 0);
    let server = Server::start(&data, &[]);
    let serve = || run(["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    for used in [dedup(), serve()] {
        assert_eq!(code(&used), 1);
        let expected = format!("doppel: cannot open {}: another process uses it: ", data.display());
        assert!(errors(&used).starts_with(&expected), "{}", errors(&used));
        assert_eq!(errors(&used).lines().count(), 1, "{}", errors(&used));
    }
    assert!(server.terminate());
    let database = data.join("tier1/range-0/db");
    let mut bytes = fs::read(&database).unwrap();
    bytes.fill(0xaa);
    fs::write(&database, bytes).unwrap();
    let damaged = dedup();
    let said = errors(&damaged);
    assert_eq!(code(&damaged), 1, "{said}");
    assert!(said.contains("the database is damaged ("), "{said}");
    assert!(said.contains("restore it from a backup"), "{said}");
    // An empty collection must not silently replace one that was lost.
    fs::remove_dir_all(data.join("tier1")).unwrap();
    fs::create_dir(data.join("tier1")).unwrap();
    let emptied = dedup();
    assert_eq!(code(&emptied), 1);
    let lost = format!("doppel: {} has lost its pages: restore ", data.join("tier1").display());
    assert!(errors(&emptied).starts_with(&lost), "{}", errors(&emptied));
    fs::remove_dir_all(data.join("tier1")).unwrap();
    let lost = dedup();
    assert_eq!(code(&lost), 1);
    let missing = format!("{} is missing: restore", data.join("tier1").display());
    assert!(errors(&lost).contains(&missing), "{}", errors(&lost));
    assert!(!data.join("tier1").exists());
    // The error of the operating system appears only once.
    let file = run(["dedup", "--data", &files[0], &files[0]]);
    assert_eq!(errors(&file).matches("Not a directory").count(), 1, "{}", errors(&file));
}

#[test]
fn pages_whose_file_is_gone_are_reported_and_pruned() {
    let home = tempfile::tempdir().unwrap();
    let (site, data) = (home.path().join("site"), home.path().join("data"));
    fs::create_dir_all(site.join("sub")).unwrap();
    let same = text(1, 100).join(" ");
    for name in ["a.txt", "sub/b.txt", "sub/c.txt"] {
        fs::write(site.join(name), &same).unwrap();
    }
    // Not in the directory, although its URL has the same prefix.
    let beside = home.path().join("site.txt");
    fs::write(&beside, &same).unwrap();
    let dedup = |options: &[&str], inputs: &[&Path]| -> (Value, String) {
        let arguments = ["dedup", "--data", data.to_str().unwrap()];
        let inputs = inputs.iter().map(|path| path.to_str().unwrap());
        let options = arguments.iter().chain(options).copied();
        let human = run_ok(options.clone().chain(inputs.clone()));
        let json = run_ok(options.chain(["--json"]).chain(inputs));
        (serde_json::from_str(&json).unwrap(), human)
    };
    dedup(&[], &[&site, &beside]);
    fs::remove_file(site.join("a.txt")).unwrap();
    fs::remove_dir_all(site.join("sub")).unwrap();
    fs::remove_file(&beside).unwrap();
    fs::write(site.join("sub"), "not a directory any more").unwrap();
    let (summary, human) = dedup(&[], &[&site]);
    assert_eq!([&summary["gone"], &summary["pruned"]], [&json!(3), &json!(false)], "{summary}");
    assert_eq!(summary["pages"]["live"], 5);
    assert!(human.contains("they stay live, --prune records them as dead"), "{human}");
    // An empty directory prunes nothing, because it may be one that is not mounted.
    let empty = home.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let options = ["dedup", "--prune", "--data", data.to_str().unwrap(), empty.to_str().unwrap()];
    assert_eq!(code(&run(options)), 5);
    let (summary, human) = dedup(&["--prune"], &[&site]);
    assert!(human.contains("their files have gone: dead now"), "{human}");
    assert_eq!([&summary["pages"]["live"], &summary["pages"]["dead"]], [2, 3], "{summary}");
    assert_eq!(summary["gone"], 0, "the first of the two runs has pruned them");
    assert_eq!(code(&run(["dedup", "--prune", site.to_str().unwrap()])), 2, "there is nothing to prune");
}

#[test]
fn the_summary_counts_stale_and_unchanged_pages() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let crawl = |name: &str, date: &str| {
        let path = home.path().join(name);
        fs::write(&path, ndjson(&[json!({"url": A, "text": format!("from {date}"), "fetched_at": date})]))
            .unwrap();
        path
    };
    let (new, old) = (crawl("new.jsonl", "2024-05-02T00:00:00Z"), crawl("old.jsonl", "2024-05-01T00:00:00Z"));
    let dedup = |input: &Path| run_ok(["dedup", "--data", data.to_str().unwrap(), input.to_str().unwrap()]);
    let first = dedup(&new);
    assert!(!first.contains("stale") && !first.contains("unchanged"), "{first}");
    assert!(dedup(&old).contains("stale         1  older than what is on record: not taken"));
    assert!(dedup(&new).contains("unchanged     1  as on record"));
}

#[test]
fn a_load_reports_that_it_waits_for_the_server() {
    let home = tempfile::tempdir().unwrap();
    let crawl = numbered(home.path(), 5);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = doppel();
    command.args(["load", "--patience", "60", "--server", &format!("http://{free}")]).arg(&crawl);
    let mut load = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(load.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("no server answers at ") && line.ends_with("trying for 60 s\n"), "{line}");
    let server = Server::start_on(&free.to_string(), &home.path().join("data"), &[]);
    assert!(wait_until("the load to end", PATIENCE, || load.try_wait().unwrap()).success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "doppel: the server answers\n");
    assert_eq!(server.status("http://a.example/4")["url"], "http://a.example/4");
}

#[test]
fn the_summary_counts_what_was_found() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("crawl.jsonl");
    let copy = text(1, 100);
    let mut near = copy.clone();
    near[50] = "another".to_owned();
    let other = text(2, 100).join(" ");
    let page = |url: &str, text: String| json!({"url": url, "text": text});
    let pages = [
        page("http://a.example/1", copy.join(" ")),
        page("http://a.example/2", near.join(" ")),
        page("http://b.example/1", other.clone()),
        page("http://b.example/2", other.clone()),
        page("http://b.example/3", other),
        page("http://c.example/1", text(3, 100).join(" ")),
        page("http://d.example/1", text(4, 100).join(" ")),
        json!({"url": "http://d.example/2", "redirect_to": "http://d.example/1"}),
        json!({"url": "http://e.example/", "dead": true}),
        json!({"url": "http://f.example/"}),
    ];
    fs::write(&path, ndjson(&pages)).unwrap();
    let summary: Value = serde_json::from_str(&run_ok(["dedup", "--json", path.to_str().unwrap()])).unwrap();
    assert_eq!(summary["groups"], json!({"exact": 1, "near": 1, "redirects": 1}), "{summary}");
    assert_eq!(summary["input"]["records"], 9);
    assert_eq!(summary["input"]["bad"], json!({"JSON line that is no page": 1}));
    let pages = &summary["pages"];
    assert_eq!([&pages["live"], &pages["duplicates"], &pages["dead"]], [8, 4, 1], "{summary}");
    let largest = &summary["largest"][0];
    assert_eq!(
        [&largest["pages"], &largest["winner"]],
        [&json!(3), &json!("http://b.example/1")],
        "{summary}"
    );
    let human = run_ok(["dedup", path.to_str().unwrap()]);
    for line in ["live pages    8", "exact groups  1", "3 pages  exact  http://b.example/1"] {
        assert!(human.contains(line), "{human}");
    }
}

/// A crawl of small pages with the numbers 0, 1, ...
fn numbered(home: &Path, pages: usize) -> PathBuf {
    let path = home.join("crawl.jsonl");
    let page = |number| json!({"url": format!("http://a.example/{number}"), "text": "a"});
    fs::write(&path, ndjson(&(0..pages).map(page).collect::<Vec<_>>())).unwrap();
    path
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_page_too_large_for_the_server_is_named_and_the_others_are_accepted() {
    let home = tempfile::tempdir().unwrap();
    let crawl = numbered(home.path(), 20);
    let url = fake_server(|_, body| {
        let large = body.lines().any(|line| line.contains("/13\""));
        let problem =
            json!({"type": "urn:doppel:problem:too-large", "title": "", "status": 413, "detail": "too long"});
        Some(if large { (413, problem.to_string()) } else { taken(body) })
    });
    let load = |options: &[&str]| {
        let mut command = doppel();
        command.args(["load", "--json", "--lanes", "1", "--server", &url]).args(options).arg(&crawl);
        command.output().unwrap()
    };
    let output = load(&[]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert!(errors(&output).contains("http://a.example/13: "), "{}", errors(&output));
    assert!(errors(&output).contains("too long"), "{}", errors(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcomes"], json!({"pending": 19, "refused": 1}));
    let strict = load(&["--strict"]);
    assert_eq!(code(&strict), 5, "{}", errors(&strict));
    assert!(errors(&strict).contains("1 page was refused"), "{}", errors(&strict));
}

#[test]
fn a_refusal_names_the_pages() {
    let home = tempfile::tempdir().unwrap();
    let url = fake_server(|_, _| Some((507, "{\"detail\":\"the disk is full\"}".to_owned())));
    for (pages, named) in [(1, "http://a.example/0: "), (3, "http://a.example/0 and 2 pages after it: ")] {
        let crawl = numbered(home.path(), pages);
        let output = run(["load", "--lanes", "1", "--server", &url, crawl.to_str().unwrap()]);
        assert_eq!(code(&output), 4, "{}", errors(&output));
        assert!(errors(&output).contains(named), "{}", errors(&output));
        assert!(errors(&output).contains("the disk is full"), "{}", errors(&output));
    }
}

#[test]
fn a_silent_server_is_given_up() {
    let home = tempfile::tempdir().unwrap();
    let crawl = numbered(home.path(), 1);
    let silent: [Responder; 2] = [|_, _| None, |line, body| line.contains("/v1/pages").then(|| taken(body))];
    for silent in silent {
        let url = fake_server(silent);
        let mut command = doppel();
        command.args(["load", "--flush", "--patience", "1", "--server", &url]).arg(&crawl);
        let load = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let output = finished(load);
        assert_eq!(code(&output), 3, "{}", errors(&output));
        assert!(errors(&output).contains("no server answers"), "{}", errors(&output));
    }
}

#[test]
fn acknowledgements_that_cannot_be_written_are_an_error() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, fifo) = (numbered(home.path(), 2_000), fifo(home.path()));
    let url = fake_server(|_, body| Some(taken(body)));
    let mut command = doppel();
    command.args(["load", "--lanes", "1", "--batch", "10", "--server", &url, "--acknowledged"]).arg(&fifo);
    let load = command.arg(&crawl).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    fs::File::open(&fifo).unwrap().read_exact(&mut [0]).unwrap();
    let output = finished(load);
    assert_eq!(code(&output), 1, "{}", errors(&output));
    assert!(errors(&output).contains("cannot write the acknowledged pages"), "{}", errors(&output));
}

#[test]
fn an_output_file_is_replaced_completely_or_not_at_all() {
    let home = tempfile::tempdir().unwrap();
    let crawl = numbered(home.path(), 5);
    let out = home.path().join("out.jsonl");
    fs::write(&out, "old").unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o640)).unwrap();
    let link = home.path().join("link");
    symlink("out.jsonl", &link).unwrap();
    let before = names(home.path());
    let dedup = |out: &Path, input: &Path| run(["dedup".as_ref(), "--out".as_ref(), out, input]);
    let export = |url: &str| run(["export", "--server", url, "--out", out.to_str().unwrap()]);
    // A failing run does not change it and leaves nothing else behind.
    let missing = dedup(&out, &home.path().join("missing.jsonl"));
    assert_eq!(code(&missing), 1, "{}", errors(&missing));
    let refused = export(&fake_server(|_, _| Some((503, String::new()))));
    assert_eq!(code(&refused), 4, "{}", errors(&refused));
    let (url, sender) = fake_server_that_breaks_off();
    drop(sender);
    let broken = export(&url);
    assert_eq!(code(&broken), 1, "{}", errors(&broken));
    assert!(errors(&broken).contains("out.jsonl"), "{}", errors(&broken));
    let (url, _sender) = fake_server_that_breaks_off();
    let mut command = doppel();
    let mut interrupted = command.args(["export", "--server", &url, "--out"]).arg(&out).spawn().unwrap();
    wait_until("the export to begin", PATIENCE, || (names(home.path()) != before).then_some(()));
    let id = interrupted.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
    let status = wait_until("the export to end", PATIENCE, || interrupted.try_wait().unwrap());
    assert_eq!(status.code(), Some(130));
    assert_eq!((fs::read_to_string(&out).unwrap().as_str(), names(home.path())), ("old", before.clone()));

    // A link still points to the file afterwards, and the file keeps its permissions.
    let output = dedup(&link, &crawl);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert_eq!((lines_of(&fs::read_to_string(&out).unwrap()).len(), names(home.path())), (5, before));
    assert!(link.is_symlink());
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o640);

    // The output may replace the input.
    let output = dedup(&crawl, &crawl);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert_eq!(fs::read(&crawl).unwrap(), fs::read(&out).unwrap());

    // A path at which no file can be created is detected before anything is read.
    for wrong in [home.path().join("none/out.jsonl"), home.path().to_owned(), home.path().join("new/")] {
        let output = dedup(&wrong, &home.path().join("missing.jsonl"));
        assert_eq!(code(&output), 1);
        let cannot = format!("cannot write {}", wrong.display());
        assert!(errors(&output).contains(&cannot), "{}", errors(&output));
    }
}

#[test]
fn special_files_are_written_to() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, fifo) = (numbered(home.path(), 5), fifo(home.path()));
    let dedup = |out: &Path| {
        let mut command = doppel();
        command.args(["dedup", "--json", "--out"]).arg(out).arg(&crawl);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (sender, read) = mpsc::channel();
    let path = fifo.clone();
    thread::spawn(move || sender.send(fs::read_to_string(path).unwrap()));
    let output = finished(dedup(&fifo));
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert_eq!(lines_of(&read.recv_timeout(PATIENCE).unwrap()).len(), 5);
    let output = finished(dedup(Path::new("/dev/null")));
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert_eq!(lines_of(std::str::from_utf8(&output.stdout).unwrap()).len(), 1, "the summary");
    // `/dev/stdout` has the same effect as `-`, even if it is a file.
    let output = finished(dedup(Path::new("/dev/stdout")));
    assert_eq!(lines_of(std::str::from_utf8(&output.stdout).unwrap()).len(), 5);
    assert!(errors(&output).contains("live pages"), "{}", errors(&output));
    let out = home.path().join("out.jsonl");
    let mut command = doppel();
    command.args(["dedup", "--out", "/dev/stdout"]).arg(&crawl).stderr(Stdio::null());
    assert!(command.stdout(fs::File::create(&out).unwrap()).status().unwrap().success());
    assert_eq!(lines_of(&fs::read_to_string(&out).unwrap()).len(), 5);
}
