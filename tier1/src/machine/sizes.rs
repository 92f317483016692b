//! How large steps and commits are.

/// Rows handled per step of work that may touch many rows, unless a test wants smaller steps.
pub(crate) const STEP_ROWS: usize = 64;

/// Row limit of a commit: past it no further command is taken into it. So many rows take some tens of milliseconds.
pub(crate) const COMMIT_ROWS: usize = 4_000;

/// Row limit of a commit while clients ask for statuses. Nobody reads while the rows of a commit are put in memory, at half a microsecond
/// a row, and a question is to take a millisecond.
pub(crate) const COMMIT_ROWS_ASKED: usize = 256;

/// Row limit of a commit while few pages are handed in beside many. Whoever hands in one page waits for the commit under way and for the next.
pub(crate) const COMMIT_ROWS_BESIDE_FEW: usize = 64;

/// Row limit of a commit while few pages are handed in beside messages on their way. The first quarter is delivered before pages are taken;
/// with a step that goes on past it, and a quarter kept for messages, there is still room for a page.
pub(crate) const COMMIT_ROWS_BESIDE_MESSAGES: usize = 128;

/// Reading this many rows in an election takes as long as writing one.
pub(super) const READ_FOR_WRITTEN: usize = 4;

/// Past this number of undelivered messages, a commit keeps a quarter of its rows for them.
pub(super) const UNDELIVERED_MANY: usize = 1_000;
