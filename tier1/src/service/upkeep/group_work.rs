//! Groups that owe work outside the machine, with at most one piece of work under way for each.
//!
//! The work waits until no message is on its way to any group. An earlier recomputation would put out members
//! that only a page links whose message has not arrived. These members would search, join again, and make
//! their group owe the next recomputation, so a long chain would never come to rest. If messages are always
//! on their way, a group waits for some seconds. The wait doubles each time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use doppel_model::GroupId;

use crate::service::upkeep::unique_queue::UniqueQueue;

/// Work that takes longer than [`SHORT`] is followed by a rest. The rest is [`REST`] times as long as the
/// work, and at most [`REST_MAX`].
const SHORT: Duration = Duration::from_millis(50);
const REST: u32 = 4;
const REST_MAX: Duration = Duration::from_secs(60);

/// How long a group waits while messages are on their way. The wait doubles each time, up to
/// [`PATIENCE_MAX`].
const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_MAX: Duration = Duration::from_secs(60);

/// Most groups that one call looks at, because the thread of the writer makes it.
const LOOKS_MAX: usize = 256;

/// Groups in the order in which they came to owe the work. A group that is marked again and again does not
/// keep the others waiting.
#[derive(Default)]
pub(in crate::service) struct GroupWork {
    waiting: UniqueQueue<GroupId>,
    under_way: HashSet<GroupId>,
    turns: HashMap<GroupId, Turn>,
    /// Ends of turns, in their order. Turns that ended longer than [`PATIENCE_MAX`] ago are forgotten.
    ended: VecDeque<(Instant, GroupId)>,
}

/// The turn of a group that waits, or whose work ended not long ago.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// When the group came to owe the work.
    since: Instant,
    patience: Duration,
    /// When the last work on the group ended.
    ended: Option<Instant>,
    /// Until when the group rests, because its last work took long.
    rests_until: Option<Instant>,
}

/// Reasons to begin work without the usual wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) struct Urgency {
    /// No message is on its way to any group.
    pub(in crate::service) quiet: bool,
    /// A caller waits.
    pub(in crate::service) hurry: bool,
}

impl GroupWork {
    pub(in crate::service) fn push(&mut self, group: GroupId, now: Instant) {
        if self.waiting.contains(&group) {
            return;
        }
        self.waiting.push(group);
        let first = Turn { since: now, patience: PATIENCE, ended: None, rests_until: None };
        let turn = self.turns.entry(group).or_insert(first);
        *turn = if turn.is_over(now) { first } else { Turn { since: now, ..*turn } };
    }

    pub(in crate::service) fn is_waiting(&self) -> bool {
        self.waiting.iter().any(|group| !self.under_way.contains(group))
    }

    /// Whether a group owes the work.
    pub(in crate::service) fn owes(&self, group: GroupId) -> bool {
        self.waiting.contains(&group) || self.under_way.contains(&group)
    }

    /// Begins work, so that work is under way for at most `at_once_max` groups. A group for which `waits`
    /// returns true gives way to other work while it has patience.
    pub(in crate::service) fn begin(
        &mut self,
        now: Instant,
        at_once_max: usize,
        urgency: Urgency,
        waits: impl Fn(GroupId) -> bool,
    ) -> Vec<GroupId> {
        let mut begun = Vec::new();
        for _ in 0..self.waiting.len().min(LOOKS_MAX) {
            if self.under_way.len() >= at_once_max {
                break;
            }
            let Some(group) = self.waiting.pop() else { break };
            let gives_way = || waits(group) && !self.is_impatient(group, now);
            if self.under_way.contains(&group) || !self.is_due(group, now, urgency) || gives_way() {
                // The group comes later.
                self.waiting.push(group);
                continue;
            }
            self.under_way.insert(group);
            begun.push(group);
        }
        begun
    }

    /// Ends work on a group. After long work the group rests, so that a giant group that changes all the time
    /// does not occupy the worker.
    pub(in crate::service) fn end(&mut self, group: GroupId, took: Duration, now: Instant) {
        self.under_way.remove(&group);
        if let Some(turn) = self.turns.get_mut(&group) {
            let rest = took.saturating_mul(REST).min(REST_MAX);
            turn.ended = Some(now);
            turn.rests_until = now.checked_add(rest).filter(|_| took > SHORT);
            turn.patience = turn.patience.saturating_mul(2).min(PATIENCE_MAX);
            self.ended.push_back((now, group));
        }
        self.forget(now);
    }

    fn is_due(&self, group: GroupId, now: Instant, Urgency { quiet, hurry }: Urgency) -> bool {
        let Some(turn) = self.turns.get(&group) else { return true };
        let has_rested = hurry || turn.rests_until.is_none_or(|until| until <= now);
        has_rested && (quiet || self.is_impatient(group, now))
    }

    fn is_impatient(&self, group: GroupId, now: Instant) -> bool {
        self.turns.get(&group).is_none_or(|turn| now.duration_since(turn.since) >= turn.patience)
    }

    /// Forgets turns that ended long ago, unless their group owes work again.
    fn forget(&mut self, now: Instant) {
        while let Some((ended, group)) =
            self.ended.front().copied().filter(|(ended, _)| now.duration_since(*ended) > PATIENCE_MAX)
        {
            self.ended.pop_front();
            let is_last = self.turns.get(&group).is_some_and(|turn| turn.ended == Some(ended));
            if is_last && !self.owes(group) {
                self.turns.remove(&group);
            }
        }
    }
}

impl Turn {
    /// Whether the last work ended so long ago that the next counts as the first.
    fn is_over(&self, now: Instant) -> bool {
        self.ended.is_none_or(|ended| now.duration_since(ended) > PATIENCE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use doppel_model::ShardId;

    use super::*;

    const QUIET: Urgency = Urgency { quiet: true, hurry: false };
    const BUSY: Urgency = Urgency { quiet: false, hurry: false };

    fn group(number: u64) -> GroupId {
        GroupId::new(number, ShardId(0))
    }

    fn begin(work: &mut GroupWork, now: Instant, urgency: Urgency) -> Vec<GroupId> {
        work.begin(now, 10, urgency, |_| false)
    }

    #[test]
    fn work_waits_for_messages_under_way_and_waits_longer_each_time() {
        let (mut work, mut now) = (GroupWork::default(), Instant::now());
        for patience in [5, 10, 20, 40, 60, 60] {
            work.push(group(1), now);
            assert_eq!(begin(&mut work, now + Duration::from_secs(patience - 1), BUSY), []);
            now += Duration::from_secs(patience);
            assert_eq!(begin(&mut work, now, BUSY), [group(1)]);
            work.end(group(1), Duration::ZERO, now);
        }
        now += PATIENCE_MAX + Duration::from_secs(1);
        work.push(group(1), now);
        assert_eq!(
            begin(&mut work, now + PATIENCE, BUSY),
            [group(1)],
            "the group starts again with the least patience"
        );
        work.push(group(2), now);
        assert_eq!(begin(&mut work, now, QUIET), [group(2)]);
    }

    #[test]
    fn a_group_rests_after_long_work_unless_a_caller_waits() {
        let (mut work, now) = (GroupWork::default(), Instant::now());
        let again = |work: &mut GroupWork| {
            work.push(group(1), now);
            assert_eq!(begin(work, now, Urgency { quiet: true, hurry: true }), [group(1)]);
            work.end(group(1), Duration::from_secs(1), now);
        };
        again(&mut work);
        again(&mut work);
        work.push(group(1), now);
        assert_eq!(begin(&mut work, now + Duration::from_secs(3), QUIET), []);
        assert_eq!(begin(&mut work, now + Duration::from_secs(4), QUIET), [group(1)]);
    }

    #[test]
    fn a_group_gives_way_to_other_work_while_it_has_patience() {
        let (mut work, now) = (GroupWork::default(), Instant::now());
        work.push(group(1), now);
        assert_eq!(work.begin(now, 10, QUIET, |_| true), []);
        assert_eq!(work.begin(now + PATIENCE, 10, QUIET, |_| true), [group(1)]);
    }

    #[test]
    fn every_group_gets_its_turn_within_some_calls() {
        let (mut work, now) = (GroupWork::default(), Instant::now());
        let groups = 3 * LOOKS_MAX as u64;
        (0..groups).for_each(|number| work.push(group(number), now));
        let mut found = Vec::new();
        for _ in 0..3 {
            found.extend(work.begin(now, usize::MAX, QUIET, |other| other != group(groups - 1)));
        }
        assert_eq!(found, [group(groups - 1)]);
    }

    #[test]
    fn old_turns_are_forgotten() {
        let (mut work, now) = (GroupWork::default(), Instant::now());
        for number in 0..100 {
            work.push(group(number), now);
            assert_eq!(begin(&mut work, now, QUIET), [group(number)]);
            work.end(group(number), Duration::ZERO, now);
        }
        let later = now + PATIENCE_MAX + Duration::from_secs(1);
        work.push(group(7), later);
        assert_eq!(begin(&mut work, later, QUIET), [group(7)]);
        work.end(group(7), Duration::ZERO, later);
        assert_eq!((work.turns.len(), work.ended.len()), (1, 1));
    }

    #[test]
    fn a_group_has_one_piece_of_work_at_a_time_and_gives_way() {
        let (mut work, now) = (GroupWork::default(), Instant::now());
        [1, 2, 3].into_iter().for_each(|number| work.push(group(number), now));
        assert_eq!(work.begin(now, 1, QUIET, |waits| waits == group(1)), [group(2)]);
        assert_eq!(work.begin(now, 1, QUIET, |_| false), [], "as many groups as allowed are under way");
        work.push(group(2), now);
        assert_eq!(begin(&mut work, now, QUIET), [group(3), group(1)]);
        assert!(work.owes(group(2)) && !work.is_waiting(), "the next work waits for the present one");
        work.end(group(2), Duration::ZERO, now);
        assert_eq!(begin(&mut work, now, QUIET), [group(2)]);
    }
}
