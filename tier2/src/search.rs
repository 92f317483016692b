//! One look: candidates, rejection, exact comparison.
//!
//! Candidates are the entries that share a band key, in all partitions that meet the bounding space,
//! oldest first: the lists of their buckets are merged by birth. Each is rejected by its lengths or its
//! nibbles, or compared exactly.
//!
//! **Stars.** The cost of a look must not grow with the number of its neighbours. The first, that is
//! oldest, verified partner of a looked-at entry becomes its *center*, and is a *hub* from then on. When a
//! later look of x has verified y, an entry z whose center is y is *settled*: it need not be compared, nor
//! answered, for z is tied to y by a pair of its own. Because everybody tries the oldest first, the
//! members of a cluster choose the same center, and a look verifies that one and passes over the rest; a
//! run of a large bucket at one step. Hubs themselves are always compared, or the entries around them
//! would not be settled.
//! An entry that was never looked at in this process has no center, and one whose center has left has none any
//! more; the first look that verifies it gives it one, the oldest of the partners and the entry that looks, after
//! comparing these two. (Their pair may not have been reported, but tier 1 owes or has had a look of both, and the
//! two are tied at the latest then; and when a center leaves, tier 1 compares its group again.) A center is named
//! by its birth, so it is void as soon as that entry is gone or begins anew.
//!
//! **Far.** Jaccard distance is a metric. Where x was compared with y in vain, z with center y cannot be a
//! partner of x if d(x, y) - d(y, z) >= 1 - tau.
//!
//! **Turns.** All looks of a pass are numbered before the first of them. A look passes over the entries
//! that look later in the same pass, have no center yet and one page: their look meets this one. So of a
//! cluster that arrives in one pass nobody compares more than those before, and these have centers.
//!
//! Invariant: for a look of x and an entry z that is linked to x, z is a partner found, or its center
//! is, or it looks later in the same pass.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use doppel_model::Tau;
use doppel_model::pairwise::Comparison;
use doppel_model::signature::Signature;
use doppel_partitioning::{BoundingSpace, LengthVector};

use crate::bands::{Tag, Tags};
use crate::columns::{Center, Columns};
use crate::index::Index;
use crate::nibbles::{self, Nibbles};
use crate::tables::Place;

/// The turn of a look that does not belong to a pass: it is after all others.
const LAST_TURN: u32 = u32::MAX - 1;

/// Candidates passed between two offers to let other threads run: some tens of microseconds. A look in a giant cluster
/// would take a processor for milliseconds, and a question to the service would wait for it.
const STEPS: u32 = 512;

/// Buffers of a thread that looks.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    buffer: Vec<u8>,
    /// For who asks the plan.
    pub(crate) contacts: Vec<u32>,
}

/// A verified partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partner {
    pub(crate) place: Place,
    pub(crate) birth: u32,
    /// Shingles in common.
    pub(crate) shared: u32,
}

/// What a look found out.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Oldest first.
    pub(crate) partners: Vec<Partner>,
    /// Partitions of the node that were looked in, and exact comparisons in each.
    pub(crate) contacts: Vec<(u32, u32)>,
    pub(crate) tags: Tags,
    /// The center of the entry that looked.
    pub(crate) center: Option<(Place, Center)>,
    /// Centers of entries that never looked or whose center has left; of the latter with their tags.
    pub(crate) adopted: Vec<(Place, Center, Tags)>,
    /// An entry that is a center for the first time.
    pub(crate) hub: Option<(Place, Tags)>,
    /// Counted lists, and how far they were passed.
    pub(crate) passed: Vec<Passed>,
    /// Signatures that were not in the file.
    pub(crate) fetched: Vec<(Place, Arc<Signature>)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    pub(crate) partition: u32,
    pub(crate) tag: Tag,
    pub(crate) steps: u32,
}

/// A place in a list of candidates.
struct Cursor<'i> {
    birth: u32,
    /// Index in the contacts.
    contact: u32,
    slots: &'i [u32],
    center: Option<Center>,
    /// Index in `passed`.
    counted: Option<u32>,
}

impl Ord for Cursor<'_> {
    /// The greatest is the oldest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.birth.cmp(&self.birth)
    }
}

impl PartialOrd for Cursor<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cursor<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.birth == other.birth
    }
}

impl Eq for Cursor<'_> {}

impl Index {
    /// Looks for the partners of `signature` in some partitions of this node; it is stored at `own`, or not on this
    /// node.
    pub(crate) fn look(
        &self,
        signature: &Signature,
        lengths: LengthVector,
        contacts: impl Iterator<Item = u32>,
        own: Option<Place>,
        scratch: &mut Scratch,
    ) -> Found {
        let mut found = Found::default();
        found.contacts.extend(contacts.map(|partition| (partition, 0)));
        if !self.tables.policy.comparable(signature) {
            return found;
        }
        found.tags = self.tables.tags(signature);
        let mut search = Search {
            index: self,
            signature,
            own: own.map(|place| (place, self.tables.partition(place).columns.birth(place.slot))),
            turn: own.map_or(LAST_TURN, |place| self.tables.partition(place).columns.turn(place.slot)),
            space: BoundingSpace::new(lengths, self.tables.policy.tau),
            nibbles: nibbles::pack(signature.sketch()),
            oldest: None,
            far: Vec::new(),
            found,
            buffer: &mut scratch.buffer,
        };
        search.run();
        search.found
    }
}

struct Search<'i, 's> {
    index: &'i Index,
    signature: &'s Signature,
    /// Where it is stored, and its birth.
    own: Option<(Place, u32)>,
    turn: u32,
    space: BoundingSpace,
    nibbles: Nibbles,
    /// The signature of the oldest partner.
    oldest: Option<Arc<Signature>>,
    /// Entries compared in vain, oldest first, and at most their distance.
    far: Vec<Center>,
    found: Found,
    buffer: &'s mut Vec<u8>,
}

impl<'i> Search<'i, '_> {
    fn run(&mut self) {
        let mut lists = self.lists();
        let (mut last, mut steps) = (0, 0_u32);
        while let Some(mut cursor) = lists.peek_mut() {
            steps += 1;
            if steps.is_multiple_of(STEPS) {
                std::thread::yield_now();
            }
            let (contact, birth) = (cursor.contact as usize, cursor.birth);
            let partition = self.found.contacts[contact].0;
            if cursor.center.is_some_and(|center| self.is_settled(center)) {
                PeekMut::pop(cursor);
                continue;
            }
            let Some((slot, rest)) = cursor.slots.split_first() else {
                PeekMut::pop(cursor);
                continue;
            };
            if let Some(counted) = cursor.counted {
                self.found.passed[counted as usize].steps += 1;
            }
            let slot = *slot;
            match rest.first() {
                Some(next) => {
                    cursor.birth = self.columns(partition).birth(*next);
                    cursor.slots = rest;
                }
                None => drop(PeekMut::pop(cursor)),
            }
            // The same entry in several lists comes up several times running.
            if birth != last {
                last = birth;
                self.consider(contact, Place { partition, slot }, birth);
            }
        }
        self.choose_center();
    }

    /// The lists of candidates in every contacted partition.
    fn lists(&mut self) -> BinaryHeap<Cursor<'i>> {
        let mut cursors = Vec::with_capacity(self.found.tags.len());
        let (tags, contacts, passed) = (&self.found.tags, &self.found.contacts, &mut self.found.passed);
        for (contact, (partition, _)) in contacts.iter().enumerate() {
            let host = &self.index.tables.partitions[*partition as usize];
            for tag in tags {
                host.bands.lists(*tag, |list| {
                    let Some(first) = list.slots.first() else { return };
                    let counted = list.counted.then(|| {
                        passed.push(Passed { partition: *partition, tag: *tag, steps: 0 });
                        passed.len() as u32 - 1
                    });
                    cursors.push(Cursor {
                        birth: host.columns.birth(*first),
                        contact: contact as u32,
                        slots: list.slots,
                        center: list.center,
                        counted,
                    });
                });
            }
        }
        BinaryHeap::from(cursors)
    }

    fn consider(&mut self, contact: usize, place: Place, birth: u32) {
        let columns = self.columns(place.partition);
        let (slot, center) = (place.slot, columns.center(place.slot));
        // With copies, the page that looks later need not be the one that stays.
        let looks_later = center == Center::UNKNOWN
            && columns.turn(slot) > self.turn
            && !self.index.tables.partition(place).has_copies(slot);
        if self.own.is_some_and(|(own, _)| own == place)
            || !columns.is_hub(slot) && (looks_later || self.is_settled(center))
            || nibbles::agreeing(&self.nibbles, columns.nibbles(slot)) < self.index.least_agreeing
            || !self.space.admits(columns.lengths(slot))
        {
            return;
        }
        // Without a signature no page has the content any more, and the order to remove it is under way.
        let Some(read) = self.index.read(place, self.buffer) else { return };
        if read.fetched {
            self.found.fetched.push((place, Arc::clone(&read.signature)));
        }
        self.found.contacts[contact].1 += 1;
        self.compare(place, birth, center, &read.signature);
    }

    fn compare(&mut self, place: Place, birth: u32, center: Center, candidate: &Arc<Signature>) {
        let policy = self.index.tables.policy;
        let comparison = policy.compare(self.signature, candidate);
        let (shared, a, b) = (comparison.shared, comparison.a, comparison.b);
        if !comparison.similar {
            self.far.push(Center { birth, distance: distance(shared, a, b).0 });
            return;
        }
        // A tag is not a key: two that differ may share a bucket.
        if !self.meet(self.signature, candidate) {
            return;
        }
        let tables = &self.index.tables;
        let has_left = tables.has_left(center);
        if (center == Center::UNKNOWN || has_left)
            && let Some(center) = self.adopt(birth, &comparison, candidate)
        {
            let tags = if has_left { tables.tags(candidate) } else { Tags::new() };
            self.found.adopted.push((place, center, tags));
        }
        self.oldest.get_or_insert_with(|| Arc::clone(candidate));
        self.found.partners.push(Partner { place, birth, shared });
    }

    /// The center of a partner that never looked, or whose center has left: the oldest of the entry that looks
    /// and its partners. None when it is that itself.
    fn adopt(&self, birth: u32, tie: &Comparison, candidate: &Signature) -> Option<Center> {
        let (_, own) = self.own?;
        let (oldest, signature) = match self.found.partners.first().zip(self.oldest.as_ref()) {
            None if own > birth => return None,
            Some((oldest, signature)) if own > oldest.birth => (oldest.birth, signature),
            _ => return Some(center(own, tie)),
        };
        let tie = self.index.tables.policy.compare(signature, candidate);
        let tied = tie.similar && self.meet(signature, candidate);
        Some(if tied { center(oldest, &tie) } else { Center::NONE })
    }

    /// Whether two signatures have a band in common.
    fn meet(&self, a: &Signature, b: &Signature) -> bool {
        let bands = self.index.tables.bands;
        bands.keys(a.sketch()).zip(bands.keys(b.sketch())).any(|(x, y)| x == y)
    }

    /// Whether an entry, or all of a run, of that center need not be compared.
    #[inline]
    fn is_settled(&self, center: Center) -> bool {
        if !center.is_entry() {
            return false;
        }
        // Both lists are in order of birth.
        if self.found.partners.binary_search_by_key(&center.birth, |partner| partner.birth).is_ok() {
            return true;
        }
        let far = self.far.binary_search_by_key(&center.birth, |far| far.birth);
        far.is_ok_and(|at| {
            let tau = self.index.tables.policy.tau.numerator();
            let gap = u64::from(self.far[at].distance.saturating_sub(center.distance));
            gap * Tau::DENOMINATOR >= (Tau::DENOMINATOR - tau) * 255
        })
    }

    /// The oldest partner, if it is older than the entry itself. Whichever is the older is a hub.
    fn choose_center(&mut self) {
        let Some((own, own_birth)) = self.own else { return };
        let Some((partner, signature)) = self.found.partners.first().zip(self.oldest.as_ref()) else {
            self.found.center = Some((own, Center::NONE));
            return;
        };
        let (center, hub, hub_signature) = if partner.birth < own_birth {
            let distance = distance(partner.shared, self.signature.shingles(), signature.shingles()).1;
            (Center { birth: partner.birth, distance }, partner.place, &**signature)
        } else {
            (Center::NONE, own, self.signature)
        };
        self.found.center = Some((own, center));
        if !self.columns(hub.partition).is_hub(hub.slot) {
            self.found.hub = Some((hub, self.index.tables.tags(hub_signature)));
        }
    }

    #[inline]
    fn columns(&self, partition: u32) -> &'i Columns {
        &self.index.tables.partitions[partition as usize].columns
    }
}

fn center(birth: u32, tie: &Comparison) -> Center {
    Center { birth, distance: distance(tie.shared, tie.a, tie.b).1 }
}

/// The Jaccard distance of two sets in 255ths, rounded down and up.
fn distance(shared: u32, a: u32, b: u32) -> (u8, u8) {
    let union = (u64::from(a) + u64::from(b)).saturating_sub(u64::from(shared)).max(1);
    let apart = 255 * union.saturating_sub(u64::from(shared));
    let byte = |distance: u64| u8::try_from(distance).unwrap_or(u8::MAX);
    (byte(apart / union), byte(apart.div_ceil(union)))
}
