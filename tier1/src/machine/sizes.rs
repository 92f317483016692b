//! Sizes of steps and commits, in rows.

/// Rows per step of work that may touch many rows. Tests may use smaller steps.
pub(crate) const STEP_ROWS: usize = 64;

/// Row limit of a commit. A commit of this size takes no further command. It takes some tens of milliseconds.
pub(crate) const COMMIT_ROWS: usize = 4_000;

/// Row limit of a commit while clients ask for statuses. Nobody can read while the rows of a commit enter
/// memory, which takes half a microsecond per row. A question should take one millisecond.
pub(crate) const COMMIT_ROWS_ASKED: usize = 256;

/// Row limit of a commit while one client submits few pages and another submits many. The client with few
/// pages waits for the commit under way and for the next one.
pub(crate) const COMMIT_ROWS_BESIDE_FEW: usize = 64;

/// Row limit of a commit while a client submits few pages and messages are under way. The commit delivers
/// messages in its first quarter, before it takes pages. One step may exceed that quarter, and another
/// quarter is reserved for messages. The rest still has room for a page.
pub(crate) const COMMIT_ROWS_BESIDE_MESSAGES: usize = 128;

/// Number of rows that an election reads in the time that it takes to write one row.
pub(super) const READ_FOR_WRITTEN: usize = 4;

/// Number of undelivered messages above which a commit reserves a quarter of its rows for them.
pub(super) const UNDELIVERED_MANY: usize = 1_000;
