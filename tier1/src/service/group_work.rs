//! Groups that owe work which is done outside the machine, one piece of work for each at a time.
//!
//! The work waits until nothing is on its way to any group. A recomputation before that would put members out that a page
//! links which has not come yet; they would search and come again, and make their groups owe the next one: a long chain would
//! not come to rest. Where something is always on its way, a group waits for some seconds, and the longer the more often.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use doppel_model::GroupId;

use super::queue::Queue;

/// Work that takes longer than this is followed by a rest of so many times its time, within a limit.
const SHORT: Duration = Duration::from_millis(50);
const REST: u32 = 4;
const REST_MAX: Duration = Duration::from_secs(60);

/// A group has its work after so long though others are on their way, and the next time after twice as long, within a limit.
const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_MAX: Duration = Duration::from_secs(60);

/// Groups that are looked at for the next work at a time: the writer's thread does it.
const LOOKS_MAX: usize = 256;

/// Groups in the order in which they came to owe it, so that a group that is marked again and again does not keep the others
/// waiting.
#[derive(Default)]
pub(super) struct GroupWork {
    waiting: Queue<GroupId>,
    under_way: HashSet<GroupId>,
    turns: HashMap<GroupId, Turn>,
    /// When the turns ended, in order: those of before [`PATIENCE_MAX`] are forgotten.
    ended: VecDeque<(Instant, GroupId)>,
}

/// The turn of a group that waits, or had its work not long ago.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// When it came to owe what it owes.
    since: Instant,
    patience: Duration,
    /// When its last work was over.
    ended: Option<Instant>,
    /// That took long: when it may have the next.
    rests_until: Option<Instant>,
}

/// What a group may be begun in spite of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Urgency {
    /// Nothing is on its way to any group.
    pub(super) quiet: bool,
    /// A caller waits.
    pub(super) hurry: bool,
}

impl GroupWork {
    pub(super) fn push(&mut self, group: GroupId, now: Instant) {
        if self.waiting.contains(&group) {
            return;
        }
        self.waiting.push(group);
        let first = Turn { since: now, patience: PATIENCE, ended: None, rests_until: None };
        let turn = self.turns.entry(group).or_insert(first);
        *turn = if turn.is_over(now) { first } else { Turn { since: now, ..*turn } };
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.iter().any(|group| !self.under_way.contains(group))
    }

    /// Whether a group owes the work.
    pub(super) fn owes(&self, group: GroupId) -> bool {
        self.waiting.contains(&group) || self.under_way.contains(&group)
    }

    /// Begins work, so that at most so many groups have it. A group that something else comes first for waits for that as
    /// long as it has patience.
    pub(super) fn begin(
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
                // Its turn comes later.
                self.waiting.push(group);
                continue;
            }
            self.under_way.insert(group);
            begun.push(group);
        }
        begun
    }

    /// Work is over. What took long has a rest before its next, so that a giant group that changes all the time does not
    /// take the worker for itself.
    pub(super) fn end(&mut self, group: GroupId, took: Duration, now: Instant) {
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

    /// Forgets the turns that ended long ago. One that goes on is left to its end.
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
    /// Whether its last work was so long ago that the next is the first again.
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
    fn work_waits_for_what_is_on_its_way_and_the_longer_the_more_often() {
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
        assert_eq!(begin(&mut work, now + PATIENCE, BUSY), [group(1)], "it has been calm for long");
        work.push(group(2), now);
        assert_eq!(begin(&mut work, now, QUIET), [group(2)]);
    }

    #[test]
    fn long_work_is_followed_by_a_rest_unless_somebody_waits() {
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
    fn other_work_comes_first_as_long_as_a_group_has_patience() {
        let (mut work, now) = (GroupWork::default(), Instant::now());
        work.push(group(1), now);
        assert_eq!(work.begin(now, 10, QUIET, |_| true), []);
        assert_eq!(work.begin(now + PATIENCE, 10, QUIET, |_| true), [group(1)]);
    }

    #[test]
    fn every_group_is_looked_at_within_some_turns() {
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
    fn turns_are_forgotten_in_time() {
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
    fn one_piece_of_work_at_a_time_and_others_before_it() {
        let (mut work, now) = (GroupWork::default(), Instant::now());
        [1, 2, 3].into_iter().for_each(|number| work.push(group(number), now));
        assert_eq!(work.begin(now, 1, QUIET, |waits| waits == group(1)), [group(2)]);
        assert_eq!(work.begin(now, 1, QUIET, |_| false), [], "as many as may be are under way");
        work.push(group(2), now);
        assert_eq!(begin(&mut work, now, QUIET), [group(3), group(1)]);
        assert!(work.owes(group(2)) && !work.is_waiting(), "its next comes when this one is over");
        work.end(group(2), Duration::ZERO, now);
        assert_eq!(begin(&mut work, now, QUIET), [group(2)]);
    }
}
