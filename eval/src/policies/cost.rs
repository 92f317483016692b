//! What a page costs under a policy.

use doppel_model::pairwise::Policy;
use serde::Serialize;

use crate::report::Table;

/// Means over the pages that have content. Times are processor time.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Cost {
    pages: usize,
    signature_bytes: f64,
    /// From HTML to signature, on one core.
    sign_us: f64,
    /// All pages grouped at once, all cores together.
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
}

pub(crate) fn table(costs: impl Iterator<Item = (Policy, Cost)>, pages: usize) -> Table {
    let title =
        format!("what a page costs, the mean of {pages} pages: processor time on the machine that ran this");
    let mut table = Table::new(&title, ["policy", "bytes of signature", "us to sign", "us to find"]);
    for (policy, Cost { signature_bytes, sign_us, find_us, .. }) in costs {
        let figures = [format!("{signature_bytes:.0}"), format!("{sign_us:.0}"), format!("{find_us:.1}")];
        table.row(std::iter::once(policy.to_string()).chain(figures));
    }
    table
}
