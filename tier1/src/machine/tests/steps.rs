//! The random steps of a run: submissions, passes of tier 2, work of the worker, sweeps and crashes.

use doppel_model::ClientId;
use doppel_model::pairwise::Similarity;

use super::*;
use crate::machine::{CoverUpdate, EvictedMember, MemberCover};
use crate::rows::record::CoveringPage;

impl World {
    /// Lets tier 2 make a pass over some of its orders.
    pub(super) fn index_step(&mut self) {
        let orders = self.orders.len().min(1 + self.random.below(8) as usize);
        let mut wanted = Vec::new();
        for order in self.orders.drain(..orders).collect::<Vec<_>>() {
            match order {
                IndexCommand::Put { page, signature, search } => {
                    self.index.put(page, self.numbers[&signature.content()]);
                    wanted.extend(search.map(|search| (page, signature.content(), search.ticket)));
                }
                IndexCommand::Remove { page, content } => {
                    let next = self.index.remove(page, self.numbers[&content], &mut self.random);
                    if let Some(page) = next {
                        let (ticket, pairs) = (Search::UNREQUESTED, Vec::new());
                        self.commands.push_back(Command::Searched(SearchResult {
                            page,
                            content,
                            ticket,
                            pairs,
                        }));
                    }
                }
                IndexCommand::Search { page, content, search } => wanted.push((page, content, search.ticket)),
            }
        }
        wanted.retain(|(page, content, _)| self.index.take_turn(*page, self.numbers[content]));
        // Searches of one chunk do not see each other's findings.
        let chunk = 1 + self.random.below(4) as usize;
        for wanted in wanted.chunks(chunk) {
            let found: Vec<_> = wanted
                .iter()
                .map(|(page, content, _)| self.index.search(*page, self.numbers[content]))
                .collect();
            for ((page, content, ticket), found) in wanted.iter().zip(found) {
                let (page, content, ticket) = (*page, *content, *ticket);
                let k = self.numbers[&content];
                let pair = |(k, page): (u64, PageId)| VerifiedPartner {
                    page,
                    content: self.signatures[k as usize].content(),
                    similarity: Similarity { shared: 1, of: 2 },
                };
                let pairs = self.index.named(k, found.as_ref()).into_iter().map(pair).collect();
                if let Some(found) = found {
                    self.index.learn(k, &found);
                }
                self.commands.push_back(Command::Searched(SearchResult { page, content, ticket, pairs }));
            }
        }
    }

    pub(super) fn measured(&self, a: ContentHash, b: ContentHash) -> ContentComparison {
        let similar = linked(self.numbers[&a], self.numbers[&b]);
        ContentComparison { content: b, similarity: Similarity { shared: 1, of: 2 }, similar }
    }

    pub(super) fn verify_step(&mut self) {
        if self.verify.is_empty() {
            return;
        }
        let at = self.random.below(self.verify.len() as u64) as usize;
        let (page, content, winner, winner_content) = self.verify.swap_remove(at);
        let current = |page, content| self.record(page).is_some_and(|r| r.has_content(content));
        if current(page, content) && current(winner, winner_content) {
            let with = self.measured(content, winner_content);
            self.commands.push_back(Command::Verified { page, content, with });
        }
    }

    /// Returns the members of a group.
    fn members(&self, group: GroupId) -> Vec<(PageId, Member)> {
        let mut members: Vec<(PageId, Member)> = Vec::new();
        let prefix = key::members(group);
        self.store
            .range(&prefix, &key::after_prefix(&prefix), &mut |key, bytes| {
                members.push((key::last_page(key).unwrap(), decode(key, bytes).unwrap()));
                true
            })
            .unwrap();
        members
    }

    /// Computes the cover of a group that owes one, by the definition.
    pub(super) fn cover_step(&mut self) {
        let Some(group) = self.uncovered.pop_first() else { return };
        let Some(GroupRecord::Active(record)) = read(&self.store, &key::group(group)).unwrap() else {
            return;
        };
        if !record.owes_cover() {
            return;
        }
        let mut members = self.members(group);
        members.retain(|(_, member)| member.dissimilar);
        let winners = self.shards.settings.winners;
        members.sort_by(|(_, a), (_, b)| winners.compare(&a.rank, &b.rank, None).0);
        let (mut kept, mut news) = (Vec::<&(PageId, Member)>::new(), Vec::new());
        for of in &members {
            let (page, member) = of;
            let k = self.numbers[&member.content];
            let by = kept.iter().find(|(_, earlier)| linked(k, self.numbers[&earlier.content]));
            let by = by.map(|(page, earlier)| CoveringPage {
                page: *page,
                url: earlier.rank.url.clone(),
                with: self.measured(member.content, earlier.content),
            });
            if by.is_none() {
                kept.push(of);
            }
            let (page, membership_number, content) = (*page, member.membership_number, member.content);
            news.push(MemberCover { page, membership_number, content, by });
        }
        let steps = news.len().div_ceil(2).max(1);
        for step in 0..steps {
            let members = news.iter().skip(2 * step).take(2).cloned().collect();
            let (changes, last) = (record.cover_changes, step + 1 == steps);
            self.commands.push_back(Command::Covered(CoverUpdate { group, changes, members, last }));
        }
    }

    pub(super) fn regroup_step(&mut self) {
        let Some(group) = self.dirty.pop_first() else { return };
        let Some(GroupRecord::Active(record)) = read(&self.store, &key::group(group)).unwrap() else {
            return;
        };
        if !record.owes_recomputation() {
            return;
        }
        let mut members = self.members(group);
        let all = members.clone();
        members.retain(|(page, m)| self.record(*page).is_some_and(|r| r.has_content(m.content)));
        let winner = record.winner.as_ref().map(|(page, _)| *page);
        let first = members.iter().position(|(page, _)| Some(*page) == winner).unwrap_or(0);
        let mut inside: Vec<usize> = if members.is_empty() { vec![] } else { vec![first] };
        let mut next = 0;
        while let Some(&at) = inside.get(next) {
            next += 1;
            let k = self.numbers[&members[at].1.content];
            for (other, (_, member)) in members.iter().enumerate() {
                if !inside.contains(&other) && linked(k, self.numbers[&member.content]) {
                    inside.push(other);
                }
            }
        }
        let evicted: Vec<_> = (0..members.len())
            .filter(|at| !inside.contains(at))
            .map(|at| EvictedMember {
                page: members[at].0,
                membership_number: members[at].1.membership_number,
                content: members[at].1.content,
            })
            .collect();
        // Count also the contents that no page has any more, and that could not be compared.
        let stay = |(page, _): &&(PageId, Member)| evicted.iter().all(|member| member.page != *page);
        let contents: HashSet<ContentHash> =
            all.iter().filter(stay).map(|(_, member)| member.content).collect();
        let steps = evicted.len().div_ceil(2).max(1);
        for step in 0..steps {
            let before = 2 * step as u64;
            let repair = self.random.below(4) == 0 && self.repairs;
            let entry = || AuditEntry {
                at: Timestamp::from_millis(self.wall),
                event: TrailEvent::Repair,
                by: "ann".to_owned(),
                group,
                into: None,
                members: members.len() as u64,
                before: Vec::new(),
                components: Vec::new(),
            };
            let audit = (repair && step == 0).then(|| Box::new(entry()));
            self.commands.push_back(Command::Recomputed(RecomputationStep {
                group,
                changes: record.changes + before,
                losses: record.losses + before,
                evicted: evicted.iter().skip(2 * step).take(2).copied().collect(),
                contents: contents.len() as u64,
                last: step + 1 == steps,
                repair,
                audit,
            }));
        }
    }

    pub(super) fn submit(&mut self) -> Command {
        let name = url(self.random.below(24));
        self.clock += self.random.below(1_000_000_000) as i64;
        let is_old = self.random.below(10) == 0;
        // Sometimes the date of the version on record.
        let fetched_at = match self.model.get(&name) {
            Some(page) if self.random.below(8) == 0 => page.fetched_at,
            _ if is_old => self.clock / 2,
            _ => self.clock,
        };
        let popularity = (self.random.below(4) == 0).then(|| self.random.below(9) as f64);
        let body = match self.random.below(12) {
            0 => ModelBody::Dead,
            1..=3 => ModelBody::Redirect(url(self.random.below(24))),
            _ => {
                // Often a neighbour of the page's content.
                let near = match self.model.get(&name).map(|p| &p.body) {
                    Some(ModelBody::Content(k)) if self.random.below(2) == 0 => {
                        Some((k + self.random.below(3)).saturating_sub(1).min(CONTENTS - 1))
                    }
                    _ => None,
                };
                ModelBody::Content(near.unwrap_or_else(|| self.random.below(CONTENTS)))
            }
        };
        self.model_submit(&name, fetched_at, popularity, &body);
        let url = PageUrl::parse(&name).unwrap();
        let hint = self.hint(url.id(), &body);
        Command::Submit {
            client: ClientId::NONE,
            submission: Box::new(Submission {
                url,
                fetched_at: Timestamp::from_millis(fetched_at),
                popularity,
                language: None,
                canonical: None,
                body: match body {
                    ModelBody::Content(k) => Body::Content(Arc::clone(&self.signatures[k as usize])),
                    ModelBody::Redirect(to) => Body::Redirect(PageUrl::parse(&to).unwrap()),
                    ModelBody::Dead => Body::Dead,
                },
            }),
            hint,
        }
    }

    pub(super) fn hint(&self, page: PageId, body: &ModelBody) -> Option<Hint> {
        let ModelBody::Content(k) = body else { return None };
        let record = self.record(page)?;
        let state = record.content()?;
        let representative = match state.membership.as_ref().and_then(|m| m.winner.as_ref()) {
            Some(winner) if winner.page != page => winner.content,
            _ => state.content,
        };
        let with = self.measured(self.signatures[*k as usize].content(), representative);
        Some(Hint { previous: state.content, membership_number: record.membership_number, with })
    }

    pub(super) fn model_submit(
        &mut self,
        name: &str,
        fetched_at: i64,
        popularity: Option<f64>,
        body: &ModelBody,
    ) {
        let new = ModelPage {
            fetched_at,
            first_seen: fetched_at,
            popularity,
            popularity_at: fetched_at,
            body: body.clone(),
        };
        let place = |page: &ModelPage| (page.fetched_at, self.place(&page.body));
        let is_later = self.model.get(name).is_none_or(|page| place(&new) > place(page));
        let page = self.model.entry(name.to_owned()).or_insert_with(|| new.clone());
        page.first_seen = page.first_seen.min(fetched_at);
        let known = page.popularity.map(|value| (page.popularity_at, value));
        if popularity.is_some() && popularity.map(|value| (fetched_at, value)) > known {
            (page.popularity, page.popularity_at) = (popularity, fetched_at);
        }
        if is_later {
            page.fetched_at = fetched_at;
            page.body = body.clone();
        }
    }

    /// Returns the place of a body among versions of one date: redirects by target, then contents by hash,
    /// then death.
    fn place(&self, body: &ModelBody) -> (u8, String, Option<ContentHash>) {
        match body {
            ModelBody::Redirect(to) => (0, to.clone(), None),
            ModelBody::Content(k) => (1, String::new(), Some(self.signatures[*k as usize].content())),
            ModelBody::Dead => (2, String::new(), None),
        }
    }

    pub(super) fn now(&mut self) -> Timestamp {
        self.wall += self.random.below(30) as i64;
        Timestamp::from_millis(self.wall)
    }

    pub(super) fn expire_page(&mut self, name: &str) {
        let (page, now) = (PageId::of(name), self.now());
        self.commit(vec![Command::ExpirePage { page, now }], 0);
        if self.record(page).is_none() {
            let gone = self.model.remove(name);
            assert!(gone.is_none_or(|page| page.body == ModelBody::Dead), "{name} was alive");
        }
    }

    pub(super) fn expire_group(&mut self, group: GroupId) {
        let now = self.now();
        self.commit(vec![Command::ExpireGroup { group, now }], 0);
    }

    /// Sends a sweep's command about the newest audit entry of a shard.
    pub(super) fn expire_repair(&mut self, shard: ShardId) {
        let repair = RepairId { shard, number: self.shards.metas[usize::from(shard.0)].audits };
        let now = self.now();
        self.commit(vec![Command::ExpireRepair { repair, now }], 0);
    }

    pub(super) fn groups(&self) -> Vec<(GroupId, GroupRecord)> {
        let mut groups = Vec::new();
        for shard in (0..self.shards.settings.shards).map(ShardId) {
            for_each_row(&self.store, shard, RowKind::Group, |key, bytes| {
                groups.push((GroupId::from_stored(key::last_number(key).unwrap()), decode(key, bytes)?));
                Ok(())
            })
            .unwrap();
        }
        groups
    }

    pub(super) fn step(&mut self) {
        match self.random.below(100) {
            0..=24 => {
                let command = self.submit();
                let deliveries = self.random.below(6) as usize;
                self.commit(vec![command], deliveries);
            }
            25 => {
                let name = url(self.random.below(24));
                self.model.remove(&name);
                self.commit(vec![Command::Purge { page: PageId::of(&name) }], 1);
            }
            26 => self.crash(),
            27 => {
                let groups = self.groups();
                if !groups.is_empty() {
                    let group = groups[self.random.below(groups.len() as u64) as usize].0;
                    self.expire_group(group);
                    self.expire_repair(group.shard());
                }
                let name = url(self.random.below(24));
                self.expire_page(&name);
            }
            28..=49 => self.index_step(),
            50..=59 => self.verify_step(),
            60..=63 => self.regroup_step(),
            64 => self.cover_step(),
            65..=69 => {
                if let Some(page) = self.deferred.pop() {
                    self.commit(vec![Command::SearchNow { page }], 0);
                }
            }
            70..=84 => {
                if let Some(command) = self.commands.pop_front() {
                    self.commit(vec![command], 0);
                }
            }
            _ => {
                let deliveries = self.random.below(8) as usize;
                self.commit(Vec::new(), deliveries);
            }
        }
    }
}
