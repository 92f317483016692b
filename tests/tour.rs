//! The five-minute tour of README.md, run as it is printed there.
//!
//! Every `console` block of the tour is read: lines after `$ ` are commands (a backslash at the end
//! continues them) of one shell, the others what they print. The server is started on a free port and
//! a directory of its own, which replace the ones in the text. In the text `…` stands for whatever is there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use doppel_model::GroupId;
use doppel_protocol::client::in_the_clear;
use harness::{Server, doppel};
use reqwest::Certificate;
use reqwest::header::AUTHORIZATION;

const SECTION: &str = "## A five-minute tour";
const ADDRESS: &str = "http://127.0.0.1:7700";
const PROGRAMS: [&str; 2] = ["cargo run --release -- ", "cargo run -q --release -- "];

/// A command of the text and what is printed under it.
#[derive(Debug)]
struct Step {
    line: usize,
    command: String,
    printed: Vec<String>,
}

/// The steps of one section of a Markdown text.
fn steps(text: &str, section: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    let mut block = false;
    let mut continued = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("## ") {
            inside = line == section;
        } else if line.starts_with("```") {
            block = inside && line == "```console";
        } else if block {
            if continued || line.starts_with("$ ") {
                let part = line.strip_prefix("$ ").unwrap_or(line);
                if !continued {
                    steps.push(Step { line: at + 1, command: String::new(), printed: Vec::new() });
                }
                continued = part.ends_with('\\');
                let command = &mut steps.last_mut().unwrap().command;
                command.push_str(part);
                command.push('\n');
            } else {
                steps.last_mut().expect("a block begins with a command").printed.push(line.to_owned());
            }
        }
    }
    steps
}

/// Whether `line` is `pattern`, where each `…` of the pattern is any text.
fn matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        last = Some(part);
        rest = &rest[at + part.len()..];
    }
    last.map_or(rest.is_empty(), |last| line.ends_with(last))
}

/// Whether the lines fit; a line `…` of the pattern is any number of lines.
fn all_match(patterns: &[String], lines: &[&str]) -> bool {
    match patterns.split_first() {
        None => lines.is_empty(),
        Some((pattern, patterns)) if pattern == "…" => {
            (0..=lines.len()).any(|skipped| all_match(patterns, &lines[skipped..]))
        }
        Some((pattern, patterns)) => lines
            .split_first()
            .is_some_and(|(line, lines)| matches(pattern, line) && all_match(patterns, lines)),
    }
}

/// Whether there is a program that the tours use; in CI there has to be.
fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        println!("the tour: skipped, there is no {program}");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{program} is needed here");
    }
    found.is_ok()
}

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// Checks that commands print what is shown under them.
fn check(steps: &[Step], printed: &[String]) {
    let mut wrong = String::new();
    for (step, printed) in steps.iter().zip(printed) {
        let printed = without_ids(printed);
        let lines: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
        let shown: Vec<String> = step.printed.iter().map(|line| without_ids(line)).collect();
        if !all_match(&shown, &lines) {
            let (line, command, shown) = (step.line, &step.command, step.printed.join("\n"));
            wrong += &format!(
                "README.md:{line}: {command}shows:\n{shown}\nand the program prints:\n{printed}\n\n"
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_tour_prints_what_the_readme_shows() {
    if !is_there("curl") {
        return;
    }
    let steps = steps(&readme(), SECTION);
    let (serve, questions) = steps.split_first().expect("the tour has steps");
    let options: Vec<&str> = serve.command.trim().strip_prefix(PROGRAMS[0]).unwrap().split(' ').collect();
    assert_eq!(options, ["serve", "--data", "tour"], "the tour begins with the server");
    assert!(serve.printed.iter().any(|line| line.contains(ADDRESS)), "the server says where it listens");
    assert!(questions.len() > 10, "the tour has only {} questions", questions.len());

    let home = tempfile::tempdir().unwrap();
    let server = Server::start(&home.path().join("tour"), &[]);
    check(questions, &session(questions, (ADDRESS, &server.url), home.path()));
}

#[test]
fn the_tour_with_tokens_prints_what_the_readme_shows() {
    if !is_there("curl") || !is_there("openssl") {
        return;
    }
    let steps = steps(&readme(), "## With tokens and TLS");
    let at = steps.iter().position(|step| step.command.starts_with("doppel serve ")).unwrap();
    let (before, questions) = (&steps[..at], &steps[at + 1..]);
    assert!(before.len() > 2 && questions.len() > 4);
    let home = tempfile::tempdir().unwrap();
    check(before, &session(before, (ADDRESS, ADDRESS), home.path()));

    let mut serve = doppel();
    let options = steps[at].command.trim().strip_prefix("doppel ").unwrap();
    serve.args(options.split(' ')).args(["--listen", "127.0.0.1:0"]).current_dir(home.path());
    let ca = Certificate::from_pem(&fs::read(home.path().join("cert.pem")).unwrap()).unwrap();
    let token = fs::read_to_string(home.path().join("ann.token")).unwrap();
    let token = format!("Bearer {}", token.trim()).parse().unwrap();
    let http =
        in_the_clear().tls_certs_only([ca]).default_headers([(AUTHORIZATION, token)].into_iter().collect());
    let server = Server::start_as(serve, http.build().unwrap());
    let secure = ADDRESS.replace("http:", "https:");
    assert_eq!(steps[at].printed, [format!("doppel is listening on {secure}")]);
    check(questions, &session(questions, (&secure, &server.url), home.path()));
}

/// Group ids depend on which pages meet first; each becomes `g-`.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.parse::<GroupId>().is_ok();
    let end = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    text.split_inclusive(end)
        .map(|word| {
            let (name, rest) = word.split_at(word.find(end).unwrap_or(word.len()));
            if is_id(name) { format!("g-{rest}") } else { word.to_owned() }
        })
        .collect()
}

/// Runs the commands in one shell and gives what each printed to its standard output.
fn session(steps: &[Step], (address, url): (&str, &str), home: &Path) -> Vec<String> {
    const END: &str = "==== end of step ====";
    let mut script = String::new();
    for step in steps {
        let command = step.command.replace(address, url);
        let command = match command.strip_prefix("doppel ") {
            Some(arguments) => format!("{}{arguments}", PROGRAMS[1]),
            None => command,
        };
        script += &PROGRAMS.iter().fold(command, |command, program| command.replace(program, "\"$DOPPEL\" "));
        script += &format!("printf '\\n{END}\\n'\n");
    }
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .env("DOPPEL", env!("CARGO_BIN_EXE_doppel"))
        .env("DOPPEL_SERVER", url)
        .current_dir(home)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8(output.stdout).unwrap().replace(url, address);
    assert!(output.status.success(), "{errors}{printed}");
    let mut parts: Vec<String> = printed.split(&format!("\n{END}\n")).map(str::to_owned).collect();
    assert_eq!(parts.pop().as_deref(), Some(""), "{printed}");
    assert_eq!(parts.len(), steps.len(), "{printed}");
    parts
}

#[test]
fn an_ellipsis_is_any_text() {
    assert!(matches("a … c", "a b c") && matches("…", "") && matches("a…", "abc") && matches("ab", "ab"));
    assert!(!matches("a … c", "a b d") && !matches("a", "ab") && !matches("…b…", "ac"));
    let patterns = ["a", "…", "z"].map(str::to_owned);
    assert!(all_match(&patterns, &["a", "z"]) && all_match(&patterns, &["a", "b", "c", "z"]));
    assert!(!all_match(&patterns, &["a", "b"]) && !all_match(&patterns, &["z"]));
    assert_eq!(without_ids(r#"{"group":"g12-0","g":"g-1"} g1-3"#), r#"{"group":"g-","g":"g-1"} g-"#);
}
