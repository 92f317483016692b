//! Exit codes, and how an error ends the program. The table in `--help` is the contract.

use std::io::{self, Write};
use std::process::ExitCode;

use reqwest::StatusCode;

use crate::output::ReaderGone;

/// Shown at the end of `doppel --help`.
pub(crate) const TABLE: &str = "\
Exit codes:
    0  done
    1  failed; the message says why and what to do
    2  wrong arguments
    3  the server cannot be reached
    4  the server refused the request; the message is its answer
    5  done, but an input was not read to its end, or nothing was read, or a URL was none
       (with --strict: or a record was bad or refused)
  130  interrupted";

/// A failure with an exit code of its own. Anything else ends with 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Arguments that are each right and do not go together.
    #[error("{0}")]
    Usage(String),
    /// Nothing answers.
    #[error(
        "no server answers at {url} ({reason}); start one with `doppel serve --data DIR`, or name another with --server URL or DOPPEL_SERVER"
    )]
    Unreachable {
        /// The server's URL.
        url: String,
        /// What the connection said.
        reason: String,
    },
    /// The server answered with an error.
    #[error("{text}")]
    Refused {
        /// The status of the answer.
        status: StatusCode,
        /// It in words.
        text: String,
    },
    /// The server takes no request that is as large; it may take a part of it.
    #[error("{0}")]
    TooLarge(String),
    /// An input is incomplete or nothing was in it, or a URL is none; or `--strict`, and records were bad.
    #[error("{0}")]
    BadInput(String),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Unreachable { .. } => 3,
            Self::Refused { .. } | Self::TooLarge(_) => 4,
            Self::BadInput(_) => 5,
        }
    }
}

/// Prints what went wrong to stderr and gives the exit code. A reader that closed stdout early had
/// enough: that is no error.
pub(crate) fn code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if error.chain().any(is_reader_gone) {
        return ExitCode::SUCCESS;
    }
    // Where nobody reads stderr, the code has to do.
    let _ = writeln!(io::stderr(), "doppel: {error:#}");
    let code = error.chain().find_map(|cause| cause.downcast_ref::<Failure>()).map_or(1, Failure::code);
    ExitCode::from(code)
}

fn is_reader_gone(cause: &(dyn std::error::Error + 'static)) -> bool {
    let marked = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    matches!(marked, Some(mark) if mark.is::<ReaderGone>())
}
