//! How many connections each address has, so that none takes all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Those that have some. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Addresses(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection of an address; it is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    all: Addresses,
    address: Option<IpAddr>,
}

/// Whoever has one address of the sixth version has all that differ in the last 64 bits (RFC 4291, section 2.5.4).
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

impl Addresses {
    /// Counts one more, if there are fewer than `most`. Those of this machine are not counted.
    pub(crate) fn enter(&self, address: IpAddr, most: usize) -> Option<Counted> {
        if address.to_canonical().is_loopback() {
            return Some(Counted { all: self.clone(), address: None });
        }
        let address = network(address);
        let mut all = self.lock();
        let count = all.get(&address).copied().unwrap_or_default();
        if count >= most {
            return None;
        }
        all.insert(address, count + 1);
        Some(Counted { all: self.clone(), address: Some(address) })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
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
    fn an_address_has_its_share_and_no_more() {
        let addresses = Addresses::default();
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
