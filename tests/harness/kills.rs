//! Kills a command with SIGKILL at moments spread over the time that it takes.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

/// Runs `command` once to its end, then `moments` times until it is killed: each time a little later, up
/// to the time that it takes on this machine today. `is_done` looks at what each run left, is told
/// whether the run itself ended with success, and clears it away for the next one. Panics if fewer than
/// an eighth of the runs were killed before they were done.
pub fn kill_at_moments(moments: u32, command: impl Fn() -> Command, mut is_done: impl FnMut(bool) -> bool) {
    let started = || command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let ended = started().wait().unwrap().success();
    let mut takes = begun.elapsed();
    assert!(ended && is_done(true), "the command fails when nothing kills it");
    let mut killed = 0;
    for moment in 0..moments {
        let mut child = started();
        let after = takes * moment / moments;
        thread::sleep(after);
        child.kill().unwrap();
        if is_done(child.wait().unwrap().success()) {
            takes = takes.min(after);
        } else {
            killed += 1;
        }
    }
    assert!(killed > moments / 8, "{killed} of {moments} were killed in time");
}
