//! Allocates ports for processes that die and come back.
//!
//! The ports lie outside the range from which the system takes ports of outgoing connections. While a process
//! is dead, other processes try to reach it. If an attempt could get the port of the dead process, it would
//! hold the port, or even connect to itself.

use std::net::TcpListener;

use anyhow::ensure;

/// The range of outgoing connections begins with 32768 (Linux) or 49152 (RFC 6335, section 6).
const FIRST: u16 = 10_000;
const COUNT: u16 = 22_000;

/// Allocates each port once.
pub(super) struct Ports {
    next: u16,
    left: u16,
    /// Allocated ports, held until all are allocated.
    taken: Vec<TcpListener>,
}

impl Ports {
    /// Begins at a random port, so that two trials that start at the same time seldom want the same ports.
    pub(super) fn new() -> Self {
        let place = doppel_model::random_number() % u64::from(COUNT);
        Self { next: place as u16, left: COUNT, taken: Vec::new() }
    }

    /// Returns the next free port.
    ///
    /// # Errors
    /// If no port is free.
    pub(super) fn take(&mut self) -> anyhow::Result<u16> {
        loop {
            ensure!(self.left > 0, "no port from {FIRST} to {} is free", FIRST + COUNT - 1);
            let port = FIRST + self.next;
            self.left -= 1;
            self.next = (self.next + 1) % COUNT;
            if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
                self.taken.push(listener);
                return Ok(port);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_given_once() {
        let mut ports = Ports::new();
        let held = TcpListener::bind(("127.0.0.1", FIRST + ports.next)).ok();
        let given: Vec<u16> = (0..20).map(|_| ports.take().unwrap()).collect();
        let distinct: std::collections::BTreeSet<&u16> = given.iter().collect();
        assert_eq!(distinct.len(), 20);
        let held = held.map(|held| held.local_addr().unwrap().port());
        assert!(given.iter().all(|port| (FIRST..FIRST + COUNT).contains(port) && Some(*port) != held));
        drop(ports);
        assert!(given.iter().all(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()));
    }
}
