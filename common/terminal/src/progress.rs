//! Progress bars on standard error. If standard error is not a terminal, the bars print nothing.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

const BYTES: &str = "{msg:<12} [{bar:30}] {bytes}/{total_bytes} {binary_bytes_per_sec} {left}";
const PAGES: &str = "{msg:<12} [{bar:30}] {human_pos}/{human_len} pages {per_sec} {left}";
/// Time after which a bar begins to show the estimated time left.
const BEFORE_ETA: Duration = Duration::from_secs(3);
const WAITING: &str = "{msg:<12} {spinner} {elapsed}";

/// Creates a bar over the bytes of the inputs. indicatif draws the bar only if standard error is a terminal.
pub fn bytes(total: u64, message: &'static str) -> ProgressBar {
    styled(ProgressBar::new(total), BYTES, message)
}

/// Creates a bar over a number of pages.
pub fn pages(total: u64, message: &'static str) -> ProgressBar {
    styled(ProgressBar::new(total), PAGES, message)
}

/// Creates a spinner for work of unknown length.
pub fn waiting(message: &'static str) -> ProgressBar {
    let bar = styled(ProgressBar::new_spinner(), WAITING, message);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Writes the estimated time left, once the bar has run long enough for an estimate.
fn left(state: &ProgressState, out: &mut dyn Write) {
    if state.elapsed() > BEFORE_ETA {
        // Ignores errors, because nothing depends on whether the bar is drawn.
        let _ = write!(out, "eta {:#}", HumanDuration(state.eta()));
    }
}

fn styled(bar: ProgressBar, template: &str, message: &'static str) -> ProgressBar {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.with_key("left", left).progress_chars("=> "));
    }
    bar.with_message(message)
}
