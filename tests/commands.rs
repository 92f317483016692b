//! Runs the commands as people and programs use them, and checks their output and their exit codes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

mod commands {
    pub(crate) mod fake_server;

    mod bodies;
    mod damaged_columns;
    mod dedup;
    mod deployed;
    mod earlier_results;
    mod equation;
    mod exit_codes;
    mod explain;
    mod failing_calls;
    mod forgotten;
    mod formats;
    mod load;
    mod logged;
    mod markup;
    mod named_fields;
    mod new_directory;
    mod notify;
    mod offline;
    mod output_file;
    mod overlap;
    mod pages;
    mod pilot;
    mod policies;
    mod queries;
    mod read_again;
    mod records;
    mod reference;
    mod reports;
    mod results;
    mod revisits;
    mod schemas;
    mod unwritten;
}

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use harness::pages::ndjson;
use harness::{PATIENCE, Server, doppel, wait_until};
use serde_json::json;

const A: &str = "http://a.example/";

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

/// Waits for the end of a command, within a time limit.
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

/// Creates a named pipe.
fn fifo(home: &Path) -> PathBuf {
    let path = home.join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Sends a signal to a command by its name.
fn interrupt(command: &Child, signal: &str) {
    assert!(Command::new("kill").args(["-s", signal, &command.id().to_string()]).status().unwrap().success());
}

/// A crawl of small pages with the numbers 0, 1, ...
fn numbered(home: &Path, pages: usize) -> PathBuf {
    let path = home.join("crawl.jsonl");
    let page = |number| json!({"url": format!("http://a.example/{number}"), "text": "a"});
    fs::write(&path, ndjson(&(0..pages).map(page).collect::<Vec<_>>())).unwrap();
    path
}
