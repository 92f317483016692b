//! The thread of a range that posts its messages, so that its writer never waits for another range.
//!
//! It keeps nothing: what it has in hand when the process ends is in the outbox.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Select, TryRecvError};
use doppel_model::RangeId;

use super::Tier1;
use super::owner::Owner;
use super::task::Task;
use crate::peers::{PeerError, Post, PostAnswer, Receipt};

/// A post that is not answered for so long is made again.
const DEADLINE: Duration = Duration::from_secs(30);

/// Pauses after a post that failed: the first, and the longest of those that follow. A range whose commits wait refuses posts for as
/// long as that lasts, and each brings all its messages.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A post under way, or the time after one that failed.
struct UnderWay {
    to: RangeId,
    state: State,
    until: Instant,
}

enum State {
    Posted(PostAnswer),
    Failed(PeerError),
}

/// Runs until the writer has ended.
pub(super) fn run(tier1: &Tier1, owner: &Owner, posts: &Receiver<Post>) {
    let mut under_way: Vec<UnderWay> = Vec::new();
    let mut pauses = Pauses::default();
    loop {
        match next(posts, &mut under_way) {
            Next::Post(post) => {
                let to = post.to;
                under_way.push(match tier1.peers.post(post) {
                    Ok(answer) => UnderWay::posted(to, answer),
                    Err(error) => pauses.failed(to, error),
                });
            }
            Next::Answer(by, answer) => match answer {
                // The range waits before it goes again.
                Err(error) => under_way.push(pauses.failed(by, error)),
                Ok(receipt) => {
                    pauses.0.remove(&by);
                    drop(owner.tasks.send(Task::Receipt { by, answer: Ok(receipt) }));
                }
            },
            Next::Failed(by, error) => drop(owner.tasks.send(Task::Receipt { by, answer: Err(error) })),
            Next::End => return,
        }
    }
}

enum Next {
    Post(Post),
    Answer(RangeId, Result<Receipt, PeerError>),
    /// The pause after it is over.
    Failed(RangeId, PeerError),
    End,
}

/// Waits for a post to make, an answer, or the end of a time.
fn next(posts: &Receiver<Post>, under_way: &mut Vec<UnderWay>) -> Next {
    let mut select = Select::new();
    select.recv(posts);
    let mut answering = Vec::new();
    for (at, of) in under_way.iter().enumerate() {
        if let State::Posted(answer) = &of.state {
            select.recv(answer);
            answering.push(at);
        }
    }
    let until = under_way.iter().map(|of| of.until).min();
    let ready = match until {
        Some(until) => select.ready_deadline(until).ok(),
        None => Some(select.ready()),
    };
    match ready {
        Some(0) => match posts.try_recv() {
            Ok(post) => Next::Post(post),
            Err(TryRecvError::Disconnected) => Next::End,
            // It may wake for nothing.
            Err(TryRecvError::Empty) => next(posts, under_way),
        },
        Some(ready) => {
            let UnderWay { to, state, .. } = under_way.swap_remove(answering[ready - 1]);
            match state {
                State::Posted(answer) => Next::Answer(
                    to,
                    answer.try_recv().unwrap_or(Err(PeerError::unreachable(to, "it has ended"))),
                ),
                State::Failed(error) => Next::Failed(to, error),
            }
        }
        None => {
            let now = Instant::now();
            let over = under_way.iter().position(|of| of.until <= now);
            match over.map(|at| under_way.swap_remove(at)) {
                Some(UnderWay { to, state: State::Failed(error), .. }) => Next::Failed(to, error),
                Some(UnderWay { to, state: State::Posted(_), .. }) => {
                    Next::Failed(to, PeerError::unreachable(to, "no answer came in time"))
                }
                None => next(posts, under_way),
            }
        }
    }
}

impl UnderWay {
    fn posted(to: RangeId, answer: PostAnswer) -> Self {
        Self { to, state: State::Posted(answer), until: Instant::now() + DEADLINE }
    }
}

/// The last pause of each range whose last post has failed.
#[derive(Default)]
struct Pauses(BTreeMap<RangeId, Duration>);

impl Pauses {
    fn failed(&mut self, to: RangeId, error: PeerError) -> UnderWay {
        let pause = self.0.get(&to).map_or(PAUSE, |last| last.saturating_mul(2).min(PAUSE_MAX));
        self.0.insert(to, pause);
        UnderWay { to, state: State::Failed(error), until: Instant::now() + pause }
    }
}
