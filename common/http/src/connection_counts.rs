//! Counts the open connections of each client network, so that no client can use up all connections.
//! [`network`] tells which network a client has.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of open connections by client network. The keys are results of [`network`]. Networks without an
/// open connection have no entry. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionCounts(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// Counts one open connection of a network until this value is dropped. A connection from this machine is not
/// counted.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    all: ConnectionCounts,
    /// The network of the client. `None` for a connection from this machine.
    address: Option<IpAddr>,
}

/// Returns the network that one client controls. An IPv4 address stays as it is. In an IPv6 address the last
/// 64 bits become zero, because one client can use all addresses that differ only in these bits (RFC 4291,
/// section 2.5.4).
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

impl ConnectionCounts {
    /// Counts one more connection from the network of `address`. Returns `None` if the network already has
    /// `max` connections. Connections from this machine always succeed and are not counted.
    pub(crate) fn enter(&self, address: IpAddr, max: usize) -> Option<ConnectionSlot> {
        if address.to_canonical().is_loopback() {
            return Some(ConnectionSlot { all: self.clone(), address: None });
        }
        let address = network(address);
        let mut all = self.lock();
        let count = all.get(&address).copied().unwrap_or_default();
        if count >= max {
            return None;
        }
        all.insert(address, count + 1);
        Some(ConnectionSlot { all: self.clone(), address: Some(address) })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut all = self.all.lock();
        match all.get_mut(&address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(all.remove(&address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_cannot_open_more_connections_than_its_limit() {
        let addresses = ConnectionCounts::default();
        let enter = |text: &str| addresses.enter(text.parse().unwrap(), 2);
        let held = [enter("10.0.0.1").unwrap(), enter("::ffff:10.0.0.1").unwrap()];
        assert!(enter("10.0.0.1").is_none());
        let other = [enter("2001:db8::1").unwrap(), enter("2001:db8::2:3").unwrap()];
        assert!(enter("2001:db8::9").is_none() && enter("2001:db8:0:1::9").is_some());
        let own: Vec<_> = (0..9).map(|_| enter("127.0.0.1").unwrap()).collect();
        drop((held, own));
        assert!(enter("10.0.0.1").is_some());
        drop(other);
        assert_eq!(addresses.lock().len(), 0);
    }
}
