//! Room for what waits for a writer: what is handed in takes a place, and keeps it until it is done.
//!
//! A writer may take nothing for hours, for its commit waits for the log or a standby. Its callers give up after a while and come
//! again, and what they had handed in waits on. So it is what waits that is counted, and not who waits for it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam::channel::Sender;
use doppel_model::{ClientId, PageUrl};
use doppel_protocol::{Body, Submission};

/// Most bytes that wait for all writers of a process: as much as the calls of many coordinators bring at
/// once.
const BYTES_MAX: u64 = 512 << 20;

/// Bytes that every task takes besides its data.
const LEAST: usize = 256;

/// The memory that all queue spaces of a process share. Each space gets an equal part, so a writer that is
/// stuck for hours leaves the parts of the others alone.
#[derive(Debug, Clone)]
pub(super) struct Rooms {
    count: Arc<AtomicU64>,
    most: u64,
}

impl Default for Rooms {
    fn default() -> Self {
        Self { count: Arc::default(), most: BYTES_MAX }
    }
}

impl Rooms {
    /// Creates one more queue space. It counts until its last reservation is dropped.
    pub(super) fn begin(&self) -> Arc<Room> {
        self.count.fetch_add(1, Ordering::AcqRel);
        Arc::new(Room { taken: AtomicU64::new(0), rooms: self.clone() })
    }

    /// Bytes that each queue space may use.
    fn part(&self) -> u64 {
        self.most / self.count.load(Ordering::Acquire).max(1)
    }
}

/// Room for some bytes. Something larger is taken alone.
#[derive(Debug)]
pub(super) struct Room {
    taken: AtomicU64,
    rooms: Rooms,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.rooms.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Room {
    /// Reserves space for a task of `bytes`. `None` if the queue is full.
    pub(super) fn place(self: &Arc<Self>, bytes: usize) -> Option<Place> {
        let bytes = bytes.saturating_add(LEAST) as u64;
        let before = self.taken.fetch_add(bytes, Ordering::AcqRel);
        let place = Place { room: Some(Arc::clone(self)), bytes };
        (before == 0 || before.saturating_add(bytes) <= self.rooms.part()).then_some(place)
    }

    /// Bytes that are reserved at present.
    #[cfg(test)]
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }
}

/// Reserved space in a queue, as long as this value is kept.
#[derive(Debug, Default)]
pub(crate) struct Place {
    room: Option<Arc<Room>>,
    bytes: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(room) = &self.room {
            room.taken.fetch_sub(self.bytes, Ordering::AcqRel);
        }
    }
}

/// Where to send an answer, and the space that the task keeps until then.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    to: Sender<T>,
    place: Place,
}

impl<T> Reply<T> {
    pub(crate) fn new(to: Sender<T>, place: Place) -> Self {
        Self { to, place }
    }

    /// Sends the answer. A caller that has gone away does not receive it.
    pub(crate) fn send(self, answer: T) {
        let Self { to, place } = self;
        drop(place);
        drop(to.send(answer));
    }
}

/// Counts of contents that were handed in and are not yet committed.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    all: AtomicU64,
    clients: Mutex<HashMap<ClientId, u64>>,
}

impl Arrivals {
    /// Number of contents of all clients.
    #[cfg(test)]
    pub(super) fn all(&self) -> u64 {
        self.all.load(Ordering::Acquire)
    }

    /// Adds contents of a client. Returns how many there were before, of all clients and of this one.
    fn add(&self, client: ClientId, contents: u64) -> (u64, u64) {
        let all = self.all.fetch_add(contents, Ordering::AcqRel);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let of_client = clients.entry(client).or_default();
        let before = *of_client;
        *of_client += contents;
        (all, before)
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

/// Contents of one client handed in and not yet committed, counted for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Arriving {
    arrivals: Arc<Arrivals>,
    client: ClientId,
    contents: u64,
}

impl Arriving {
    /// Counts contents of a client. Also returns the counts before.
    pub(super) fn count(arrivals: &Arc<Arrivals>, client: ClientId, contents: u64) -> (Self, (u64, u64)) {
        let before = arrivals.add(client, contents);
        (Self { arrivals: Arc::clone(arrivals), client, contents }, before)
    }

    /// The client that has handed the contents in.
    pub(super) fn client(&self) -> ClientId {
        self.client
    }

    /// Splits off `contents` of them, which count on their own from now on.
    pub(super) fn split_off(&mut self, contents: u64) -> Self {
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
pub(super) fn has_content(submission: &Submission) -> bool {
    matches!(submission.body, Body::Content(_))
}

/// The approximate size of a submission in memory.
pub(super) fn size(submission: &Submission) -> usize {
    let url = |url: &PageUrl| url.as_str().len();
    let body = match &submission.body {
        Body::Content(signature) => signature.as_bytes().len(),
        Body::Redirect(target) => url(target),
        Body::Dead => 0,
    };
    LEAST + url(&submission.url) + submission.canonical.as_ref().map_or(0, url) + body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_has_a_bound_and_something_large_is_taken_alone() {
        let room = Rooms { most: 1_000, ..Rooms::default() }.begin();
        let large = room.place(5_000).unwrap();
        assert!(room.place(0).is_none());
        drop(large);
        let places: Vec<Place> = std::iter::from_fn(|| room.place(0)).collect();
        assert_eq!((places.len(), room.taken()), (3, 768));
        drop(places);
        assert_eq!(room.taken(), 0);
    }

    #[test]
    fn the_rooms_of_a_process_share_its_memory() {
        let rooms = Rooms { most: 10_240, ..Rooms::default() };
        let fill = |room: &Arc<Room>| -> Vec<Place> { std::iter::from_fn(|| room.place(0)).collect() };
        let [first, second] = [rooms.begin(), rooms.begin()];
        // A full space uses nothing of the other's part.
        let places = [&first, &second].map(&fill);
        assert_eq!(places.each_ref().map(Vec::len), [20, 20]);
        let others: Vec<Arc<Room>> = (0..6).map(|_| rooms.begin()).collect();
        assert_eq!(others.iter().map(&fill).map(|places| places.len()).collect::<Vec<_>>(), [5; 6]);
        assert!(first.place(0).is_none());
        // A space counts as long as anything is reserved in it.
        drop(others);
        drop(second);
        assert_eq!(rooms.part(), 5_120);
        drop(places);
        assert_eq!((rooms.part(), fill(&first).len()), (10_240, 40));
    }

    #[test]
    fn contents_are_counted_until_the_last_part_of_them_has_gone() {
        let arrivals = Arc::<Arrivals>::default();
        let (_other, before) = Arriving::count(&arrivals, ClientId(1), 2);
        assert_eq!(before, (0, 0));
        let (mut rest, before) = Arriving::count(&arrivals, ClientId(2), 5);
        let part = rest.split_off(3);
        drop(rest);
        assert_eq!((before, arrivals.all()), ((2, 0), 5));
        assert_eq!(Arriving::count(&arrivals, ClientId(2), 0).1, (5, 3));
        drop(part);
        assert_eq!((arrivals.all(), arrivals.clients.lock().unwrap().len()), (2, 1));
    }
}
