//! Checks of the machine at rest: the groups equal the model's, and no other row is left.

use super::*;

impl World {
    /// Finds the page that the target of a redirect stands for, by the model.
    fn target(&self, asker: &str, to: &str) -> Option<String> {
        let named = [to.to_owned(), form(to)].into_iter().find(|name| self.model.contains_key(name));
        // The map iterates in byte order.
        let mut others = self.model.keys().filter(|name| form(name) == form(to) && *name != asker);
        named.or_else(|| others.next().cloned())
    }

    /// Follows a page's redirects to their end, by the model.
    pub(super) fn end(&self, name: &str) -> Result<String, UnresolvedReason> {
        let mut at = name.to_owned();
        let mut seen = HashSet::new();
        loop {
            match self.model.get(&at).map(|p| &p.body) {
                None => return Err(UnresolvedReason::UnknownTarget),
                Some(ModelBody::Dead) => return Err(UnresolvedReason::DeadTarget),
                Some(ModelBody::Content(_)) => return Ok(at),
                Some(ModelBody::Redirect(to)) => {
                    if !seen.insert(at.clone()) {
                        return Err(UnresolvedReason::Loop);
                    }
                    at = self.target(&at, to).ok_or(UnresolvedReason::UnknownTarget)?;
                }
            }
        }
    }

    /// Drops all forwards by sweeps. At rest no message needs a forward.
    pub(super) fn collect_forwards(&mut self) {
        for _ in 0..2 {
            self.wall += 2 * KEEP_MS as i64;
            for (group, _) in self.groups() {
                self.expire_group(group);
            }
        }
        for (group, record) in self.groups() {
            assert!(matches!(record, GroupRecord::Active(_)), "{group} is still a forward: {record:?}");
        }
    }

    pub(super) fn check(&mut self) {
        self.collect_forwards();
        // Components of the contents. Each redirect belongs to the component of its end.
        let contents: Vec<(&String, u64)> = self
            .model
            .iter()
            .filter_map(|(name, page)| match page.body {
                ModelBody::Content(k) => Some((name, k)),
                _ => None,
            })
            .collect();
        let mut group_of: BTreeMap<&String, usize> = BTreeMap::new();
        for start in 0..contents.len() {
            if group_of.contains_key(contents[start].0) {
                continue;
            }
            let mut queue = vec![start];
            while let Some(at) = queue.pop() {
                group_of.insert(contents[at].0, start);
                for (other, (name, k)) in contents.iter().enumerate() {
                    if !group_of.contains_key(name) && linked(contents[at].1, *k) {
                        queue.push(other);
                    }
                }
            }
        }
        let rank = |name: &String| {
            let page = &self.model[name];
            Rank {
                url: PageUrl::parse(name).unwrap(),
                popularity: page.popularity,
                first_seen: Timestamp::from_millis(page.first_seen),
            }
        };
        let mut seen_groups: HashMap<GroupId, usize> = HashMap::new();
        for (name, page) in &self.model {
            let record =
                self.record(PageId::of(name)).unwrap_or_else(|| panic!("the store has no record of {name}"));
            let published = &record.published;
            let Rank { popularity, first_seen, .. } = record.rank;
            assert_eq!(record.fetched_at.millis(), page.fetched_at, "{name}");
            assert_eq!((popularity, first_seen.millis()), (page.popularity, page.first_seen), "{name}");
            let end = match (&page.body, self.end(name)) {
                (ModelBody::Dead, _) => {
                    assert_eq!(published.status, Status::Dead, "{name}");
                    continue;
                }
                (_, Err(reason)) => {
                    assert_eq!(published.status, Status::Unresolved, "{name}");
                    assert_eq!(published.reason, Some(reason), "{name}");
                    continue;
                }
                (_, Ok(end)) => end,
            };
            let mine = group_of[&end];
            let members: Vec<&String> =
                contents.iter().map(|(n, _)| *n).filter(|n| group_of[n] == mine).collect();
            let pages = self.model.keys().filter(|n| self.end(n).is_ok_and(|e| group_of[&e] == mine)).count();
            if pages == 1 {
                assert_eq!(published.status, Status::Unique, "{name}");
                assert_eq!(published.group, None, "{name}");
                continue;
            }
            let order = self.shards.settings.winners;
            let winner =
                members.iter().copied().min_by(|a, b| order.compare(&rank(a), &rank(b), None).0).unwrap();
            assert_eq!(published.winner.as_ref().map(PageUrl::as_str), Some(winner.as_str()), "{name}");
            let group = published.group.expect("a page with partners has a group");
            assert_eq!(
                *seen_groups.entry(group).or_insert(mine),
                mine,
                "{name}: {group} has pages of two components"
            );
            assert_eq!(
                seen_groups.values().filter(|g| **g == mine).count(),
                1,
                "{name}: one group for one component"
            );
            let content = |n: &String| contents.iter().find(|(m, _)| *m == n).unwrap().1;
            let distinct: HashSet<u64> = members.iter().map(|member| content(member)).collect();
            let record = self.in_use(group);
            let allowed = self.shards.settings.group_members_max.max(2 * record.contents_at_repair);
            assert_eq!(record.quarantined, distinct.len() as u64 > allowed, "{name}: {record:?}");
            // Find the cover, in the winner order.
            let mut in_order = members.clone();
            in_order.sort_by(|a, b| order.compare(&rank(a), &rank(b), None).0);
            let (mut kept, mut cover) = (Vec::<&String>::new(), HashMap::<&String, &String>::new());
            for member in in_order {
                match kept.iter().find(|earlier| linked(content(member), content(earlier))) {
                    Some(earlier) => drop(cover.insert(member, earlier)),
                    None => kept.push(member),
                }
            }
            let is_redirect = *name != end;
            let cover = cover.get(&end).copied().filter(|_| !record.quarantined);
            let expected = cover.or(is_redirect.then_some(&end));
            let duplicate_of = published.duplicate_of.as_ref().map(PageUrl::as_str);
            assert_eq!(duplicate_of, expected.map(String::as_str), "{name}");
            let status = match expected {
                Some(_) => Status::Duplicate,
                None if name == winner => Status::Winner,
                None => Status::Secondary,
            };
            assert_eq!(published.status, status, "{name}");
            assert_eq!(published.similarity.is_some(), expected.is_some() && !is_redirect, "{name}");
        }
        self.check_rows(&seen_groups);
    }

    /// Checks that every row belongs to a page or group on record: members, inbound redirects, signatures,
    /// and events.
    pub(super) fn check_rows(&self, groups: &HashMap<GroupId, usize>) {
        let settings = self.shards.settings;
        let mut dissimilar: HashMap<GroupId, u64> = HashMap::new();
        for shard in (0..settings.shards).map(ShardId) {
            for_each_row(&self.store, shard, RowKind::Member, |key, bytes| {
                let member: Member = decode(key, bytes)?;
                let group = GroupId::from_stored(key::last_number(&key[..key.len() - 16]).unwrap());
                let page = self.record(key::last_page(key).unwrap()).unwrap();
                assert!(groups.contains_key(&group), "a member row belongs to a group that is not in use");
                assert_eq!(page.published.group, Some(group));
                assert_eq!(
                    (page.membership_number, page.inbound_redirects > 0),
                    (member.membership_number, member.has_inbound_redirects)
                );
                assert!(page.has_content(member.content));
                let is_of_winner = page.published.duplicate_of == page.published.winner;
                let is_winner = page.published.status == Status::Winner;
                // A group in quarantine keeps all its pages.
                if !self.in_use(group).quarantined {
                    assert_eq!(member.dissimilar, !is_of_winner && !is_winner);
                }
                *dissimilar.entry(group).or_default() += u64::from(member.dissimilar);
                Ok(())
            })
            .unwrap();
            for_each_row(&self.store, shard, RowKind::InboundRedirect, |key, _| {
                let source = self.record(key::last_page(key).unwrap()).unwrap();
                let target = key::last_page(&key[..key.len() - 16]).unwrap();
                let State::Redirect(state) = &source.state else {
                    panic!("the source of an inbound redirect does not redirect")
                };
                assert_eq!(state.attached_to(), Some(target));
                Ok(())
            })
            .unwrap();
            for_each_row(&self.store, shard, RowKind::Spelling, |key, bytes| {
                let url: PageUrl = decode(key, bytes)?;
                assert!(self.model.contains_key(url.as_str()) && form(url.as_str()) != url.as_str());
                Ok(())
            })
            .unwrap();
            for_each_row(&self.store, shard, RowKind::Signature, |key, bytes| {
                let signature = Signature::from_bytes(bytes).unwrap();
                assert!(self.record(key::last_page(key).unwrap()).unwrap().has_content(signature.content()));
                Ok(())
            })
            .unwrap();
            for_each_row(&self.store, shard, RowKind::Feed, |key, bytes| {
                let page = self.record(PageId::from_bytes(*bytes.first_chunk().unwrap())).unwrap();
                assert_eq!(page.event, key::last_number(key).unwrap());
                Ok(())
            })
            .unwrap();
            for_each_row(&self.store, shard, RowKind::ForwardingEntry, |_, _| {
                panic!("a forwarding entry is left at rest")
            })
            .unwrap();
            for_each_row(&self.store, shard, RowKind::Outbox, |_, _| {
                panic!("an undelivered message is left at rest")
            })
            .unwrap();
        }
        for group in groups.keys() {
            let record = read(&self.store, &key::group(*group)).unwrap();
            let Some(GroupRecord::Active(record)) = record else { panic!("{group} is not in use") };
            assert_eq!(record.dissimilar, dissimilar.get(group).copied().unwrap_or_default(), "{group}");
        }
    }
}
