//! Shrinks a failing history: leaves out steps, then versions of a step, as long as the history still fails.

use super::history::{History, Step, Version};

/// Maximal number of runs for shrinking. A kill hits another moment in each run, so a failing history may
/// pass by chance.
const TRIES: usize = 60;

/// The smallest failing history that was found, and its difference, as text.
pub(crate) fn smallest(mut history: History, mut fails: impl FnMut(&History) -> Option<String>) -> String {
    let mut difference = fails(&history);
    let mut tries = 0;
    let mut size = history.steps.len().div_ceil(2);
    while size > 0 && tries < TRIES {
        let mut at = 0;
        let mut is_smaller = false;
        while at < parts(&history) && tries < TRIES {
            let smaller = without(&history, at..at + size);
            tries += 1;
            match fails(&smaller) {
                Some(found) => (history, difference, is_smaller) = (smaller, Some(found), true),
                None => at += size,
            }
        }
        if !is_smaller || size > 1 {
            size /= 2;
        }
    }
    let difference = difference.unwrap_or_else(|| "it did not fail again".to_owned());
    format!(
        "{history}{difference}\nDOPPEL_HISTORY_SEED={} DOPPEL_HISTORIES=1 repeats the whole history",
        history.seed
    )
}

/// Number of versions, where a step without versions counts as one.
fn parts(history: &History) -> usize {
    history.steps.iter().map(|step| versions(step).map_or(1, <[Version]>::len)).sum()
}

fn versions(step: &Step) -> Option<&[Version]> {
    match step {
        Step::Push(versions) | Step::KillDuring(versions, _) => Some(versions),
        _ => None,
    }
}

/// The history without the parts in a range of numbers.
fn without(history: &History, left_out: std::ops::Range<usize>) -> History {
    let mut number = 0;
    let mut stays = || {
        number += 1;
        !left_out.contains(&(number - 1))
    };
    let mut steps = Vec::new();
    for step in &history.steps {
        match versions(step) {
            None if stays() => steps.push(step.clone()),
            None => {}
            Some(versions) => {
                let versions: Vec<Version> = versions.iter().copied().filter(|_| stays()).collect();
                if !versions.is_empty() {
                    steps.push(match step {
                        Step::KillDuring(_, micros) => Step::KillDuring(versions, *micros),
                        _ => Step::Push(versions),
                    });
                }
            }
        }
    }
    History { steps, ..history.clone() }
}
