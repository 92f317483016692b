//! Exit codes of the program, and how an error ends it. The table in `--help` is the contract.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::ExitCode;

use doppel_contract::client::{ClientError, StatusCode};
use doppel_overlap::OverlapError;
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
    5  the inputs are at fault: one was not read to its end, there is nothing to read or to use (but dedup and
       load accept files without records), a URL is invalid, or more than 20 records and more than 5 % are bad
       (--max-bad; with --strict: any record is bad or refused); dedup and load have taken the other records
  130  interrupted
With --json, a command that fails prints {\"error\": {\"code\": ..., \"message\": ...}} as the last line of standard
output. It omits the line if the result reports the failure (doppel check, code 5) or if --out - sends data there.";

/// Options that send data to standard output if their value is `-`.
const OUTPUTS: [&str; 5] = ["--out", "--report", "--pairs", "--assignments", "--map"];

/// A failure with an exit code of its own. Every other error ends the program with code 1.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Wrong arguments, such as two that are valid alone but not together. Exit code 2.
    #[error("{0}")]
    Usage(String),
    /// A check found a problem, and the printed result reports the problem. Exit code 1.
    #[error("{0}")]
    CheckFailed(String),
    /// An output file beside the result is incomplete. Exit code 1.
    #[error("{0}")]
    IncompleteOutput(String),
    /// A list ends early, so the command skipped everything behind the break. Exit code 5.
    #[error("{0}")]
    IncompleteList(String),
    /// An input is incomplete or has no records, too many records were bad, or a URL is invalid. With
    /// `--strict`, any bad record is such a failure. Exit code 5.
    #[error("{0}")]
    BadInput(String),
}

/// Marks a failure whose reason is already in the log. The command prints nothing more, so that every line on
/// standard error has the format of the log.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("see the log")]
pub struct AlreadyLogged;

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::CheckFailed(_) | Self::IncompleteOutput(_) => 1,
            Self::Usage(_) => 2,
            Self::IncompleteList(_) | Self::BadInput(_) => 5,
        }
    }
}

/// Reports the result of a command, and returns the exit code of the program. `is_usage` selects further
/// causes that count as wrong arguments, like [`Failure::Usage`].
///
/// Prints an error to standard error, unless the error is [`AlreadyLogged`]. With `--json`, also prints the
/// error to standard output, unless the printed result reports the failure or standard output carries data.
/// If the reader of standard output closed it early, the program succeeds.
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
    // If the command printed a result, the result already reports these failures.
    let is_in_result = error
        .chain()
        .any(|cause| matches!(cause.downcast_ref(), Some(Failure::BadInput(_) | Failure::CheckFailed(_))));
    if !is_in_result || !output::has_written() {
        print_json(code, &message);
    }
    ExitCode::from(code)
}

/// Prints the answer of the argument parser, and returns the exit code of the program. The answer is a usage
/// error, or the help or version that the user asked for.
pub fn code_of_arguments(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    let mut code = u8::try_from(error.exit_code()).unwrap_or(2);
    // A closed pipe is not an error. If standard error fails, there is no other place to report that.
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

/// Prints a failure as JSON on standard output if the arguments contain `--json`. Prints nothing if standard
/// output carries data.
fn print_json(code: u8, message: &str) {
    let arguments: Vec<_> = std::env::args_os().skip(1).take_while(|argument| argument != "--").collect();
    let is_asked = arguments.iter().any(|argument| argument == "--json");
    // If the arguments could not be parsed, no output was opened yet, so this looks for `-` among the raw
    // arguments.
    let is_output = |option: &OsStr| OUTPUTS.iter().any(|output| option == *output);
    let has_data = output::is_reserved_for_data()
        || arguments.windows(2).any(|pair| is_output(&pair[0]) && pair[1] == "-")
        || arguments
            .iter()
            .filter_map(|argument| argument.to_str()?.strip_suffix("=-"))
            .any(|o| is_output(o.as_ref()));
    if is_asked && !has_data {
        let failure = json!({ "error": { "code": code, "message": message } });
        // If printing fails, the exit code still reports the failure.
        let _ = Output { json: true }.print(&failure, |_| Ok(()));
    }
}

/// Exit code of a cause. `None` if the cause does not define an exit code.
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

/// Advice to append to the error message. `None` if no option of the program helps against the cause.
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
            "; pass a token with --token-file FILE or DOPPEL_TOKEN"
        }
        _ => return None,
    };
    Some(advice.to_owned())
}

fn is_reader_gone(cause: &(dyn std::error::Error + 'static)) -> bool {
    let marked = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    matches!(marked, Some(mark) if mark.is::<ReaderGone>())
}
