//! Exit codes, and how an error ends the program. The table in `--help` is the contract.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::ExitCode;

use doppel_overlap::OverlapError;
use doppel_protocol::client::{ClientError, StatusCode};
use serde_json::json;

use crate::memory;
use crate::output::{self, Output, ReaderGone, say};

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
  130  interrupted
With --json a command that fails prints {\"error\": {\"code\": ..., \"message\": ...}} as the last line of standard
output, unless the result itself says it (doppel check, code 5), and not where data goes to standard output (--out -).";

/// Options whose value `-` has standard output taken by data.
const OUTPUTS: [&str; 5] = ["--out", "--report", "--pairs", "--assignments", "--map"];

/// A failure with an exit code of its own. Anything else ends with 1.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Arguments that are each right and do not go together.
    #[error("{0}")]
    Usage(String),
    /// What is checked is not as it should be, and the result that was printed says so.
    #[error("{0}")]
    Verdict(String),
    /// An output beside the result is not complete.
    #[error("{0}")]
    Output(String),
    /// A list breaks off, so that what is behind it was not done.
    #[error("{0}")]
    BrokenOff(String),
    /// An input is incomplete or nothing was in it, too many records were bad, or a URL is none; or `--strict`, and records were
    /// bad.
    #[error("{0}")]
    BadInput(String),
}

/// The reason of a failure is in a log whose lines all have one form, so the command prints nothing more.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("see the log")]
pub struct AlreadyLogged;

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::Verdict(_) | Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::BrokenOff(_) | Self::BadInput(_) => 5,
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
    let advice = error.chain().find_map(advice).unwrap_or_default();
    let message = format!("{error:#}{advice}");
    if error.downcast_ref::<AlreadyLogged>().is_none() {
        say!("doppel: {message}");
    }
    let code = |cause| code_of(cause).or_else(|| is_usage(cause).then_some(2));
    let code = error.chain().find_map(code).unwrap_or(1);
    // What was done and is incomplete is in the result.
    let is_in_result = error
        .chain()
        .any(|cause| matches!(cause.downcast_ref(), Some(Failure::BadInput(_) | Failure::Verdict(_))));
    if !is_in_result || !output::is_begun() {
        print_json(code, &message);
    }
    ExitCode::from(code)
}

/// Prints that the arguments cannot be understood, or the help or version that was asked for, and gives the exit code.
pub fn code_of_arguments(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    let mut code = u8::try_from(error.exit_code()).unwrap_or(2);
    // It is no error when the reader closed it, and where standard error cannot be written, there is no other place to say it.
    if let Err(failed) = printed
        && !error.use_stderr()
        && failed.kind() != io::ErrorKind::BrokenPipe
    {
        say!("doppel: cannot write to standard output: {failed}");
        code = 1;
    }
    if error.use_stderr() {
        let message = error.render().to_string();
        print_json(code, message.trim_start_matches("error: ").trim_end());
    }
    ExitCode::from(code)
}

/// Prints a failure for programs, where the arguments ask for JSON and standard output is not that of data.
fn print_json(code: u8, message: &str) {
    let arguments: Vec<_> = std::env::args_os().skip(1).take_while(|argument| argument != "--").collect();
    let is_asked = arguments.iter().any(|argument| argument == "--json");
    // Arguments that cannot be understood may name it as well.
    let is_output = |option: &OsStr| OUTPUTS.iter().any(|output| option == *output);
    let has_data = output::is_of_data()
        || arguments.windows(2).any(|pair| is_output(&pair[0]) && pair[1] == "-")
        || arguments
            .iter()
            .filter_map(|argument| argument.to_str()?.strip_suffix("=-"))
            .any(|o| is_output(o.as_ref()));
    if is_asked && !has_data {
        let failure = json!({ "error": { "code": code, "message": message } });
        // Whoever does not read it sees the exit code.
        let _ = Output { json: true }.print(&failure, |_| Ok(()));
    }
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
fn advice(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(OverlapError::Memory { needed, free, limit, .. }) = cause.downcast_ref() {
        return Some(format!("; {}", memory::more_memory(*needed, *free, *limit)));
    }
    let advice = match cause.downcast_ref()? {
        ClientError::Unreachable { .. } => {
            "; start one with `doppel serve --data DIR`, or in a cluster with `doppel coordinator`, or name another with --server \
             URL or DOPPEL_SERVER"
        }
        ClientError::Refused { status: StatusCode::UNAUTHORIZED, .. } => {
            "; --token-file FILE or DOPPEL_TOKEN gives one"
        }
        _ => return None,
    };
    Some(advice.to_owned())
}

fn is_reader_gone(cause: &(dyn std::error::Error + 'static)) -> bool {
    let marked = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    matches!(marked, Some(mark) if mark.is::<ReaderGone>())
}
