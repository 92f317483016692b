//! Costs of a page under a policy: bytes of its signature, and processor time.

use serde::Serialize;

/// Mean costs of the pages that have content. Times are processor time.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Cost {
    pages: usize,
    signature_bytes: f64,
    /// Microseconds from HTML to signature, on one core.
    sign_us: f64,
    /// Microseconds to group all pages at once, summed over all cores.
    find_us: f64,
}

impl Cost {
    pub(crate) fn new(pages: usize, bytes: usize, sign_seconds: f64, find_seconds: f64) -> Self {
        let a_page = |sum: f64| if pages == 0 { 0.0 } else { sum / pages as f64 };
        Self {
            pages,
            signature_bytes: a_page(bytes as f64),
            sign_us: a_page(sign_seconds * 1e6),
            find_us: a_page(find_seconds * 1e6),
        }
    }

    /// Formats the bytes of a signature, the microseconds to sign, and the microseconds to find.
    pub(crate) fn cells(&self) -> [String; 3] {
        let Self { signature_bytes, sign_us, find_us, .. } = self;
        [format!("{signature_bytes:.0}"), format!("{sign_us:.0}"), format!("{find_us:.1}")]
    }
}
