//! The thread that posts the messages of a range to other ranges, so that the writer never waits for them.
//!
//! The thread keeps nothing durable. Posts that are under way when the process ends are still in the outbox.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, Select, TryRecvError};
use doppel_model::RangeId;

use crate::peers::{PeerError, Peers, Post, PostAnswer, Receipt};
use crate::service::ownership::owner::Owner;
use crate::service::writer::task::Task;

/// A post without an answer for this long is sent again.
const DEADLINE: Duration = Duration::from_secs(30);

/// First and longest pause after a failed post. A range whose commits wait refuses posts all that time, and
/// each post carries all its messages again.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A post that is under way, or the pause after a failed post.
struct PendingPost {
    to: RangeId,
    state: PostPhase,
    until: Instant,
}

enum PostPhase {
    Posted(PostAnswer),
    Failed(PeerError),
}

/// Runs until the writer has ended.
pub(in crate::service) fn run(peers: &dyn Peers, owner: &Owner, posts: &Receiver<Post>) {
    let mut under_way: Vec<PendingPost> = Vec::new();
    let mut pauses = RetryPauses::default();
    loop {
        match next(posts, &mut under_way) {
            SenderEvent::Post(post) => {
                let to = post.to;
                under_way.push(match peers.post(post) {
                    Ok(answer) => PendingPost::posted(to, answer),
                    Err(error) => pauses.failed(to, error),
                });
            }
            SenderEvent::Answer(by, answer) => match answer {
                // The range pauses before the next post to it.
                Err(error) => under_way.push(pauses.failed(by, error)),
                Ok(receipt) => {
                    pauses.0.remove(&by);
                    drop(owner.tasks.send(Task::Receipt { by, answer: Ok(receipt) }));
                }
            },
            SenderEvent::Failed(by, error) => {
                drop(owner.tasks.send(Task::Receipt { by, answer: Err(error) }));
            }
            SenderEvent::End => return,
        }
    }
}

enum SenderEvent {
    Post(Post),
    Answer(RangeId, Result<Receipt, PeerError>),
    /// The pause after a failed post is over.
    Failed(RangeId, PeerError),
    End,
}

/// Waits for a post to send, for an answer, or for the end of a pause.
fn next(posts: &Receiver<Post>, under_way: &mut Vec<PendingPost>) -> SenderEvent {
    let mut select = Select::new();
    select.recv(posts);
    let mut answering = Vec::new();
    for (at, of) in under_way.iter().enumerate() {
        if let PostPhase::Posted(answer) = &of.state {
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
            Ok(post) => SenderEvent::Post(post),
            Err(TryRecvError::Disconnected) => SenderEvent::End,
            // The select may wake although no post is there.
            Err(TryRecvError::Empty) => next(posts, under_way),
        },
        Some(ready) => {
            let PendingPost { to, state, .. } = under_way.swap_remove(answering[ready - 1]);
            match state {
                PostPhase::Posted(answer) => SenderEvent::Answer(
                    to,
                    answer.try_recv().unwrap_or(Err(PeerError::unreachable(to, "its owner has ended"))),
                ),
                PostPhase::Failed(error) => SenderEvent::Failed(to, error),
            }
        }
        None => {
            let now = Instant::now();
            let over = under_way.iter().position(|of| of.until <= now);
            match over.map(|at| under_way.swap_remove(at)) {
                Some(PendingPost { to, state: PostPhase::Failed(error), .. }) => {
                    SenderEvent::Failed(to, error)
                }
                Some(PendingPost { to, state: PostPhase::Posted(_), .. }) => {
                    SenderEvent::Failed(to, PeerError::unreachable(to, "it has not answered in time"))
                }
                None => next(posts, under_way),
            }
        }
    }
}

impl PendingPost {
    fn posted(to: RangeId, answer: PostAnswer) -> Self {
        Self { to, state: PostPhase::Posted(answer), until: Instant::now() + DEADLINE }
    }
}

/// Last pause of each range whose last post failed.
#[derive(Default)]
struct RetryPauses(BTreeMap<RangeId, Duration>);

impl RetryPauses {
    fn failed(&mut self, to: RangeId, error: PeerError) -> PendingPost {
        let pause = self.0.get(&to).map_or(PAUSE, |last| last.saturating_mul(2).min(PAUSE_MAX));
        self.0.insert(to, pause);
        PendingPost { to, state: PostPhase::Failed(error), until: Instant::now() + pause }
    }
}
