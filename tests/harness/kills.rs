//! Kills a command with SIGKILL at moments spread over the time that it takes.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

/// Runs `command` once to its end, and then `moments` times until it is killed. Each run lives a little
/// longer than the one before, up to the duration of the first run.
///
/// After each run, `is_done` receives whether the process exited with 0. It inspects the files that the run
/// left, removes them, and returns whether the run completed. Panics if fewer than an eighth of the runs were
/// killed before they completed.
pub fn kill_at_moments(moments: u32, command: impl Fn() -> Command, mut is_done: impl FnMut(bool) -> bool) {
    let started = || command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let ended = started().wait().unwrap().success();
    let mut takes = begun.elapsed();
    assert!(ended && is_done(true), "the command failed although nothing killed it");
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
    assert!(killed > moments / 8, "only {killed} of {moments} runs were killed before they completed");
}
