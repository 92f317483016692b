//! Progress bars on stderr; nothing when stderr is not a terminal.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

const BYTES: &str = "{msg:<12} [{bar:30}] {bytes}/{total_bytes} {binary_bytes_per_sec} {left}";
const PAGES: &str = "{msg:<12} [{bar:30}] {human_pos}/{human_len} pages {per_sec} {left}";
/// How long a bar goes on before it shows the time left.
const BEFORE_ETA: Duration = Duration::from_secs(3);
const WAITING: &str = "{msg:<12} {spinner} {elapsed}";

/// A bar over the bytes of the inputs. Drawn by indicatif only where stderr is a terminal.
pub fn bytes(total: u64, message: &'static str) -> ProgressBar {
    styled(ProgressBar::new(total), BYTES, message)
}

/// A bar over a number of pages.
pub fn pages(total: u64, message: &'static str) -> ProgressBar {
    styled(ProgressBar::new(total), PAGES, message)
}

/// A spinner for work of unknown length.
pub fn waiting(message: &'static str) -> ProgressBar {
    let bar = styled(ProgressBar::new_spinner(), WAITING, message);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The time left, once there is something to tell it by.
fn left(state: &ProgressState, out: &mut dyn Write) {
    if state.elapsed() > BEFORE_ETA {
        // Nothing depends on a bar that is not drawn.
        let _ = write!(out, "eta {:#}", HumanDuration(state.eta()));
    }
}

fn styled(bar: ProgressBar, template: &str, message: &'static str) -> ProgressBar {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.with_key("left", left).progress_chars("=> "));
    }
    bar.with_message(message)
}
