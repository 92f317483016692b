//! Contents that callers have handed in and that no commit has recorded yet, counted for all clients and for
//! each.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use doppel_model::ClientId;
use doppel_protocol::{Body, Submission};

/// Counts of contents that were handed in and are not yet committed.
#[derive(Debug, Default)]
pub(in crate::service) struct Arrivals {
    all: AtomicU64,
    clients: Mutex<HashMap<ClientId, u64>>,
}

impl Arrivals {
    /// Number of contents of all clients.
    #[cfg(test)]
    pub(in crate::service) fn all(&self) -> u64 {
        self.all.load(Ordering::Acquire)
    }

    /// Adds contents of a client. Returns the counts before.
    fn add(&self, client: ClientId, contents: u64) -> ArrivalCounts {
        let all = self.all.fetch_add(contents, Ordering::AcqRel);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let count = clients.entry(client).or_default();
        let of_client = *count;
        *count += contents;
        ArrivalCounts { all, of_client }
    }

    fn remove(&self, client: ClientId, contents: u64) {
        self.all.fetch_sub(contents, Ordering::AcqRel);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut of_client) = clients.entry(client) {
            *of_client.get_mut() -= contents;
            if *of_client.get() == 0 {
                of_client.remove();
            }
        }
    }
}

/// Numbers of contents that were handed in and are not yet committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) struct ArrivalCounts {
    /// Number of contents of all clients.
    pub(in crate::service) all: u64,
    /// Number of contents of one client.
    pub(in crate::service) of_client: u64,
}

/// Contents of one client that are counted as long as this value is kept.
#[derive(Debug)]
pub(crate) struct Arriving {
    arrivals: Arc<Arrivals>,
    client: ClientId,
    contents: u64,
}

impl Arriving {
    /// Counts contents of a client. Also returns the counts before.
    pub(in crate::service) fn count(
        arrivals: &Arc<Arrivals>,
        client: ClientId,
        contents: u64,
    ) -> (Self, ArrivalCounts) {
        let before = arrivals.add(client, contents);
        (Self { arrivals: Arc::clone(arrivals), client, contents }, before)
    }

    /// The client that has handed the contents in.
    pub(in crate::service) fn client(&self) -> ClientId {
        self.client
    }

    /// Splits off `contents` of them, which count on their own from now on.
    pub(in crate::service) fn split_off(&mut self, contents: u64) -> Self {
        let contents = contents.min(self.contents);
        self.contents -= contents;
        Self { arrivals: Arc::clone(&self.arrivals), client: self.client, contents }
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.arrivals.remove(self.client, self.contents);
    }
}

/// Whether a submission has a content.
pub(in crate::service) fn has_content(submission: &Submission) -> bool {
    matches!(submission.body, Body::Content(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_count_until_the_last_part_of_them_is_dropped() {
        let arrivals = Arc::<Arrivals>::default();
        let (_other, before) = Arriving::count(&arrivals, ClientId(1), 2);
        assert_eq!(before, ArrivalCounts { all: 0, of_client: 0 });
        let (mut rest, before) = Arriving::count(&arrivals, ClientId(2), 5);
        let part = rest.split_off(3);
        drop(rest);
        assert_eq!((before, arrivals.all()), (ArrivalCounts { all: 2, of_client: 0 }, 5));
        assert_eq!(Arriving::count(&arrivals, ClientId(2), 0).1, ArrivalCounts { all: 5, of_client: 3 });
        drop(part);
        assert_eq!((arrivals.all(), arrivals.clients.lock().unwrap().len()), (2, 1));
    }
}
