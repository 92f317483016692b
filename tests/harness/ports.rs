//! Free ports for servers whose address is written to a file before they start.
//!
//! The system assigns ports from a range of its own to listeners on port 0 and to outgoing connections. A
//! free port of that range can be taken before the server starts, so this module takes ports below that
//! range.

use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port and the number of ports. `doppel dev-cluster` allocates the ports below these. Both Linux and
/// other systems assign their own ports from 32,768 or above.
const FIRST: u16 = 22_000;
const COUNT: u16 = 10_000;

/// Number of ports that this process has tried.
static TRIED: AtomicU16 = AtomicU16::new(0);

/// A port of 127.0.0.1 that is free now. No two calls in one process return the same port.
pub fn free_port() -> u16 {
    // Test programs that run at the same time start far from each other.
    let begin = u16::try_from(process::id().wrapping_mul(7_919) % u32::from(COUNT)).unwrap();
    for _ in 0..COUNT {
        let at = (u32::from(begin) + u32::from(TRIED.fetch_add(1, Ordering::Relaxed))) % u32::from(COUNT);
        let port = FIRST + u16::try_from(at).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("none of the {COUNT} ports from {FIRST} on is free");
}
