//! The members of a group and their contents, as recomputation and cover read them.
//!
//! The rows are read while the writer goes on. The counts of changes of the group are read first, so the
//! machine notices when a result is out of date. Contents that no page has any more are left out.

use std::collections::HashMap;
use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, GroupId, PageId};
use doppel_protocol::Tier1Error;

use crate::peers::PeerError;
use crate::rows::key;
use crate::rows::record::{Member, decode};
use crate::service::questions::rows::ReadSignature;
use crate::service::upkeep::Upkeep;

/// Groups members by content: the indices of the members with each content, and the number of each content.
/// Pages with one content have one signature, so any of them can be read for it.
pub(in crate::service) fn by_content(
    members: &[(PageId, Member)],
) -> (Vec<Vec<usize>>, HashMap<ContentHash, usize>) {
    let mut numbers: HashMap<ContentHash, usize> = HashMap::new();
    let mut copies: Vec<Vec<usize>> = Vec::new();
    for (index, (_, member)) in members.iter().enumerate() {
        let number = *numbers.entry(member.content).or_insert(copies.len());
        if number == copies.len() {
            copies.push(Vec::new());
        }
        copies[number].push(index);
    }
    (copies, numbers)
}

/// Signatures that were read ahead of their use. A computation asks for the first signatures in order, so
/// they are read together.
#[derive(Default)]
pub(in crate::service) struct ReadAhead {
    read: HashMap<usize, ReadSignature>,
    /// Number of the content that comes next, as long as contents are asked for in order.
    next: usize,
}

/// Number of following contents whose signatures may be read together.
const AHEAD: usize = 64;

impl ReadAhead {
    /// The signature of a content, if it was read ahead. `None` if it has to be read by itself.
    fn get(
        &mut self,
        upkeep: &Upkeep,
        number: usize,
        page: impl Fn(usize) -> Option<PageId>,
    ) -> Result<Option<ReadSignature>, Tier1Error> {
        if number != self.next {
            self.read.clear();
            return Ok(None);
        }
        self.next += 1;
        if !self.read.contains_key(&number) {
            let range = page(number).map(|page| upkeep.collection.map.of_page(page));
            let pages = (number..number + AHEAD).map_while(|number| Some((number, page(number)?)));
            let of_range = pages.filter(|(_, page)| Some(upkeep.collection.map.of_page(*page)) == range);
            let (numbers, pages): (Vec<usize>, Vec<PageId>) = of_range.unzip();
            self.read.extend(numbers.into_iter().zip(upkeep.rows.first_signatures(&pages)?));
        }
        Ok(self.read.remove(&number))
    }
}

impl Upkeep {
    /// The members of a group for which `wants` holds.
    pub(in crate::service) fn members(
        &self,
        group: GroupId,
        wants: &dyn Fn(&Member) -> bool,
    ) -> Result<Vec<(PageId, Member)>, Tier1Error> {
        let mut members = Vec::new();
        let prefix = key::members(group);
        self.rows.for_each_row(&prefix, &key::after_prefix(&prefix), &mut |key, bytes| {
            std::thread::yield_now();
            if let Some(page) = key::last_page(key) {
                let member = decode(key, bytes)?;
                members.extend(wants(&member).then_some((page, member)));
            }
            Ok(true)
        })?;
        Ok(members)
    }

    /// The signature of content `number` of a group. `None` if no page has this content any more.
    pub(in crate::service) fn content_of(
        &self,
        group: GroupId,
        members: &[(PageId, Member)],
        copies: &[Vec<usize>],
        ahead: &mut ReadAhead,
        number: usize,
    ) -> Result<Option<Arc<Signature>>, Tier1Error> {
        if self.ranges.is_stopping() {
            return Err(Tier1Error::Stopping);
        }
        let range = self.collection.map.of_shard(group.shard());
        if self.ranges.local_owner(range).is_none() {
            return Err(PeerError::NotOwner(range).into());
        }
        std::thread::yield_now();
        let first_page = |number: usize| copies.get(number).map(|copies| members[copies[0]].0);
        let mut read = ahead.get(self, number, first_page)?;
        for &index in &copies[number] {
            let (page, member) = &members[index];
            let signature = match read.take() {
                Some(read) => read?,
                None => self.rows.signature(*page)?,
            };
            if let Some(signature) = signature.filter(|s| s.content() == member.content) {
                return Ok(Some(signature));
            }
        }
        Ok(None)
    }
}
