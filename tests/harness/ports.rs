//! Ports on which nobody listens, for servers whose address is written down before they start.
//!
//! The system gives out ports from a range of its own, to listeners on port 0 and to every outgoing connection. A port that
//! was free there a moment ago may be somebody else's by the time the server starts, so these are taken from below.

use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port, and how many: below the range of Linux, which begins at 32,768, and that of other systems.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// How many this process has looked at.
static TRIED: AtomicU16 = AtomicU16::new(0);

/// A port of 127.0.0.1 that is free now. No other call of this process gives the same one.
pub fn free_port() -> u16 {
    // Test programs that run at the same time begin far from each other.
    let begin = u16::try_from(process::id().wrapping_mul(7_919) % u32::from(COUNT)).unwrap();
    for _ in 0..COUNT {
        let at = (u32::from(begin) + u32::from(TRIED.fetch_add(1, Ordering::Relaxed))) % u32::from(COUNT);
        let port = FIRST + u16::try_from(at).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("none of {COUNT} ports is free");
}
