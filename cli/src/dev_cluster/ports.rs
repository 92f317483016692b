//! Allocates ports for processes that die and come back.
//!
//! The ports lie outside the range from which the system takes ports of outgoing connections. While a process
//! is dead, other processes try to reach it. If an attempt could get the port of the dead process, it would
//! hold the port, or even connect to itself.
//!
//! Ports are allocated in blocks. A cluster owns a block for as long as it listens on the first port of the
//! block. So the port of a process that has not started yet, or is dead, is not given to another cluster of
//! this machine.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::ops::Range;

use anyhow::ensure;

/// The range of outgoing connections begins with 32768 (Linux) or 49152 (RFC 6335, section 6).
const FIRST: u16 = 10_000;
/// Number of ports of a block, with the first one.
const BLOCK: u16 = 20;
const BLOCKS: u16 = 600;

/// Proof that blocks are owned, a listener on the first port of each.
pub(super) type OwnedBlocks = Vec<TcpListener>;

/// Allocates each port once.
pub(super) struct Ports {
    next_block: u16,
    blocks_left: u16,
    owned: OwnedBlocks,
    /// Ports of the last owned block that were not tried yet.
    untried: Range<u16>,
    /// Allocated ports, held until all are allocated.
    taken: Vec<TcpListener>,
}

impl Ports {
    /// Begins at a random block.
    pub(super) fn new() -> Self {
        let next_block = (doppel_model::random_number() % u64::from(BLOCKS)) as u16;
        Self { next_block, blocks_left: BLOCKS, owned: Vec::new(), untried: 0..0, taken: Vec::new() }
    }

    /// Returns the next free port.
    ///
    /// # Errors
    /// If no port is free.
    pub(super) fn take(&mut self) -> anyhow::Result<u16> {
        loop {
            for port in self.untried.by_ref() {
                if let Some(listener) = listen(port) {
                    self.taken.push(listener);
                    return Ok(port);
                }
            }
            let end = FIRST + BLOCKS * BLOCK;
            ensure!(self.blocks_left > 0, "no port from {FIRST} to {} is free", end - 1);
            let first = FIRST + self.next_block * BLOCK;
            self.blocks_left -= 1;
            self.next_block = (self.next_block + 1) % BLOCKS;
            if let Some(owner) = listen(first) {
                self.owned.push(owner);
                self.untried = first + 1..first + BLOCK;
            }
        }
    }

    /// Releases the ports, so that processes can listen on them, but not their blocks.
    pub(super) fn release(self) -> OwnedBlocks {
        self.owned
    }
}

/// Owns the blocks of ports that were allocated earlier. Leaves out the blocks that others own by now: a
/// process whose port is used will say so when it starts.
pub(super) fn own_blocks_again(ports: &BTreeSet<u16>) -> OwnedBlocks {
    let of_blocks = ports.iter().filter(|port| (FIRST..FIRST + BLOCKS * BLOCK).contains(port));
    let firsts: BTreeSet<u16> = of_blocks.map(|port| port - (port - FIRST) % BLOCK).collect();
    firsts.difference(ports).filter_map(|first| listen(*first)).collect()
}

fn listen(port: u16) -> Option<TcpListener> {
    TcpListener::bind(("127.0.0.1", port)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(ports: &mut Ports, count: usize) -> BTreeSet<u16> {
        (0..count).map(|_| ports.take().unwrap()).collect()
    }

    #[test]
    fn each_port_is_free_and_allocated_once() {
        let mut ports = Ports::new();
        let held = listen(FIRST + ports.next_block * BLOCK + 1);
        let given = take(&mut ports, 50);
        assert_eq!(given.len(), 50);
        assert!(given.iter().all(|port| (FIRST..FIRST + BLOCKS * BLOCK).contains(port)));
        let held = held.map(|held| held.local_addr().unwrap().port());
        assert!(!held.is_some_and(|held| given.contains(&held)));
        let _owned = ports.release();
        assert!(given.iter().all(|port| listen(*port).is_some()));
    }

    #[test]
    fn ports_of_a_cluster_that_has_not_started_are_not_allocated_again() {
        let mut ports = Ports::new();
        let begin = ports.next_block;
        let given = take(&mut ports, 30);
        let owned = ports.release();
        let others = take(&mut Ports { next_block: begin, ..Ports::new() }, 100);
        assert!(given.is_disjoint(&others));

        drop(owned);
        let again = own_blocks_again(&given);
        assert!(!again.is_empty());
        let others = take(&mut Ports { next_block: begin, ..Ports::new() }, 100);
        assert!(given.is_disjoint(&others));
    }
}
