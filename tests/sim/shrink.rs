//! Shrinks a failing run: leaves out actions as long as the same invariant is violated.

use std::time::{Duration, Instant};

use super::action::{Action, Plan};
use super::mistake::Mistake;
use super::run::run;
use super::violation::Violation;

/// Time limit for shrinking a run.
const PATIENCE: Duration = Duration::from_secs(300);

/// The smallest plan found that violates the same invariant, and its violation.
pub(crate) fn shrink(plan: &Plan, mistake: Option<Mistake>, violation: Violation) -> (Plan, Violation) {
    let deadline = Instant::now() + PATIENCE;
    let mut best = (plan.clone(), violation);
    let mut piece = best.0.actions.len().div_ceil(2);
    while piece > 0 {
        let mut removed = false;
        let mut at = 0;
        while at < best.0.actions.len() && Instant::now() < deadline {
            let mut smaller = best.0.clone();
            smaller.actions.drain(at..(at + piece).min(smaller.actions.len()));
            match fails(&smaller, mistake, &best.1) {
                Some(violation) => {
                    best = (smaller, violation);
                    removed = true;
                }
                None => at += piece,
            }
        }
        if !removed || piece > 1 {
            piece /= 2;
        }
    }
    shrink_batches(&mut best, mistake, deadline);
    best
}

/// Leaves versions out of batches.
fn shrink_batches(best: &mut (Plan, Violation), mistake: Option<Mistake>, deadline: Instant) {
    for at in 0..best.0.actions.len() {
        let mut item = 0;
        while let Action::Send(items) | Action::AtOnce(items) = &best.0.actions[at]
            && item < items.len()
            && items.len() > 1
            && Instant::now() < deadline
        {
            let mut smaller = best.0.clone();
            if let Action::Send(items) | Action::AtOnce(items) = &mut smaller.actions[at] {
                items.remove(item);
            }
            match fails(&smaller, mistake, &best.1) {
                Some(violation) => *best = (smaller, violation),
                None => item += 1,
            }
        }
    }
}

/// The violation of a run, if it concerns the same invariant.
fn fails(plan: &Plan, mistake: Option<Mistake>, like: &Violation) -> Option<Violation> {
    run(plan, mistake).err().filter(|violation| violation.invariant == like.invariant)
}
