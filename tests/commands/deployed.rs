//! What `deploy/` offers: the unit of systemd. A tool that is not there is told, and nothing is tested then.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

/// Whether the tool is there; it is told where not.
fn has(tool: &str) -> bool {
    let is_there = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("{tool} is not installed: what it would say of deploy/ is not tested");
    }
    is_there
}

/// The output of a command that has to succeed.
fn done(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?} ended with {status}: {out}{errors}");
    out.into_owned()
}

/// The exposure that systemd computes from 0, nothing, to 10, everything: in tenths, at most 20.
#[test]
fn the_unit_gives_the_service_no_more_than_it_needs() {
    if has("systemd-analyze") {
        let mut analyze = Command::new("systemd-analyze");
        analyze.args(["security", "--offline=true", "--threshold=20", "--no-pager"]);
        done(analyze.arg(deploy().join("doppel.service")));
    }
}
