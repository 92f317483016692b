//! Progress bars on stderr; nothing when stderr is not a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const BYTES: &str = "{msg:<12} [{bar:30}] {bytes}/{total_bytes} {binary_bytes_per_sec} eta {eta}";
const PAGES: &str = "{msg:<12} [{bar:30}] {human_pos}/{human_len} pages {per_sec} eta {eta}";
const WAITING: &str = "{msg:<12} {spinner} {elapsed}";

/// A bar over the bytes of the inputs. Drawn by indicatif only where stderr is a terminal.
pub(crate) fn bytes(total: u64, message: &'static str) -> ProgressBar {
    styled(ProgressBar::new(total), BYTES, message)
}

/// A bar over a number of pages.
pub(crate) fn pages(total: u64, message: &'static str) -> ProgressBar {
    styled(ProgressBar::new(total), PAGES, message)
}

/// A spinner for work of unknown length.
pub(crate) fn waiting(message: &'static str) -> ProgressBar {
    let bar = styled(ProgressBar::new_spinner(), WAITING, message);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn styled(bar: ProgressBar, template: &str, message: &'static str) -> ProgressBar {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_message(message)
}
