//! Exit codes, and how an error ends the program. The table in `--help` is the contract.

use std::io;
use std::process::ExitCode;

use doppel_protocol::client::{ClientError, StatusCode};

use crate::logging::Said;
use crate::output::{ReaderGone, say};

/// Shown at the end of `doppel --help`.
pub const TABLE: &str = "\
Exit codes:
    0  done
    1  failed; the message says why and what to do
    2  wrong arguments
    3  the server cannot be reached, is not trusted, or does not answer in time
    4  the server refused the request; the message is its answer
    5  done, but an input was not read to its end, or nothing was read, or a URL was none, or more than
       20 records were bad and more than 5 % (--max-bad; with --strict: or a record was bad or refused)
  130  interrupted";

/// A failure with an exit code of its own. Anything else ends with 1.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Arguments that are each right and do not go together.
    #[error("{0}")]
    Usage(String),
    /// An input is incomplete or nothing was in it, too many records were bad, or a URL is none; or `--strict`, and records were
    /// bad.
    #[error("{0}")]
    BadInput(String),
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::BadInput(_) => 5,
        }
    }
}

/// Prints what went wrong to stderr and gives the exit code. It is no error when the reader of stdout closed it early.
/// Causes that `is_usage` takes for wrong arguments are that, as [`Failure::Usage`] is.
pub fn code(
    result: anyhow::Result<()>,
    is_usage: impl Fn(&(dyn std::error::Error + 'static)) -> bool,
) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if error.chain().any(is_reader_gone) {
        return ExitCode::SUCCESS;
    }
    if error.downcast_ref::<Said>().is_none() {
        let advice = error.chain().find_map(advice).unwrap_or_default();
        say!("doppel: {error:#}{advice}");
    }
    let code = |cause| code_of(cause).or_else(|| is_usage(cause).then_some(2));
    ExitCode::from(error.chain().find_map(code).unwrap_or(1))
}

/// The code of a cause that has one of its own.
fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if let Some(failure) = cause.downcast_ref::<Failure>() {
        return Some(failure.code());
    }
    match cause.downcast_ref()? {
        ClientError::Unreachable { .. }
        | ClientError::Untrusted { .. }
        | ClientError::Tls { .. }
        | ClientError::Late { .. } => Some(3),
        ClientError::Refused { .. } => Some(4),
        _ => None,
    }
}

/// What to do about a cause that this command line can help with.
fn advice(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    match cause.downcast_ref()? {
        ClientError::Unreachable { .. } => Some(
            "; start one with `doppel serve --data DIR`, or in a cluster with `doppel coordinator`, or name another with --server \
             URL or DOPPEL_SERVER",
        ),
        ClientError::Refused { status: StatusCode::UNAUTHORIZED, .. } => {
            Some("; --token-file FILE or DOPPEL_TOKEN gives one")
        }
        _ => None,
    }
}

fn is_reader_gone(cause: &(dyn std::error::Error + 'static)) -> bool {
    let marked = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    matches!(marked, Some(mark) if mark.is::<ReaderGone>())
}
