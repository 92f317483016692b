//! The five-minute tour of README.md, run as it is printed there.
//!
//! Every `console` block of the tour is read: lines after `$ ` are commands (a backslash at the end
//! continues them), the others what they print. The server is started on a free port and a directory
//! of its own, which replace the ones in the text. In the text `…` stands for whatever is there.

mod harness;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use harness::Server;

const SECTION: &str = "## A five-minute tour";
const ADDRESS: &str = "http://127.0.0.1:7700";
const PROGRAM: &str = "cargo run --release -- ";

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

#[test]
fn the_tour_prints_what_the_readme_shows() {
    let has_curl = Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !has_curl {
        println!("the tour: skipped, there is no curl");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "curl is needed here");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let steps = steps(&readme, SECTION);
    let (serve, questions) = steps.split_first().expect("the tour has steps");
    let options: Vec<&str> = serve.command.trim().strip_prefix(PROGRAM).unwrap().split(' ').collect();
    assert_eq!(options, ["serve", "--data", "tour"], "the tour begins with the server");
    assert!(serve.printed.iter().any(|line| line.contains(ADDRESS)), "the server says where it listens");
    assert!(questions.len() > 10, "the tour has only {} questions", questions.len());

    let home = tempfile::tempdir().unwrap();
    let server = Server::start(&home.path().join("tour"), &[]);
    let program = format!("{} ", env!("CARGO_BIN_EXE_doppel"));
    for step in questions {
        let command = step.command.replace(ADDRESS, &server.url).replace(PROGRAM, &program);
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &command])
            .env("DOPPEL_SERVER", &server.url)
            .current_dir(home.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap().replace(&server.url, ADDRESS);
        let lines: Vec<&str> = printed.lines().map(str::trim_end).collect();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "README.md:{}: {}{errors}{printed}", step.line, step.command);
        assert!(
            all_match(&step.printed, &lines),
            "README.md:{}: {}shows:\n{}\n\nand the program prints:\n{printed}",
            step.line,
            step.command,
            step.printed.join("\n"),
        );
    }
}

#[test]
fn an_ellipsis_is_any_text() {
    assert!(matches("a … c", "a b c") && matches("…", "") && matches("a…", "abc") && matches("ab", "ab"));
    assert!(!matches("a … c", "a b d") && !matches("a", "ab") && !matches("…b…", "ac"));
    let patterns = ["a", "…", "z"].map(str::to_owned);
    assert!(all_match(&patterns, &["a", "z"]) && all_match(&patterns, &["a", "b", "c", "z"]));
    assert!(!all_match(&patterns, &["a", "b"]) && !all_match(&patterns, &["z"]));
}
