//! Why a call to a server has no answer.

use std::io::Read;

use reqwest::StatusCode;
use reqwest::blocking::Response;

use crate::answer::Problem;

/// The most bytes of an error that are read.
const PROBLEM_BYTES_MAX: u64 = 64 << 10;

/// Why a call to a server has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not the URL of a server.
    #[error("{0}: a URL such as http://127.0.0.1:7700 is expected, without a path")]
    Base(String),
    /// The system gives no HTTP client.
    #[error("cannot start the HTTP client")]
    Start(#[source] reqwest::Error),
    /// Nothing answers.
    #[error("no server answers at {url} ({reason})")]
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
    /// The answer is not what was asked for.
    #[error("the answer of {url} is not what this program expects; is it the same version?")]
    Answer {
        /// Whose answer.
        url: String,
        /// The reason.
        source: serde_json::Error,
    },
    /// The request cannot be repeated.
    #[error("a body that is read while it is sent cannot be sent again")]
    Stream,
}

impl ClientError {
    /// What an answer with an error status says.
    pub(super) fn of(response: Response) -> Self {
        let status = response.status();
        let mut text = String::new();
        // What cannot be read adds nothing to the status.
        let _ = response.take(PROBLEM_BYTES_MAX).read_to_string(&mut text);
        Self::refused(status, &text)
    }

    /// The server's words in its `application/problem+json`, or the first line of another text.
    pub(super) fn refused(status: StatusCode, text: &str) -> Self {
        let said = match serde_json::from_str::<Problem>(text) {
            Ok(Problem { detail, field: Some(field), .. }) => format!("{field}: {detail}"),
            // The log has the cause under this id.
            Ok(Problem { detail, request_id: Some(id), .. })
                if status == StatusCode::INTERNAL_SERVER_ERROR =>
            {
                format!("{detail} (request {id})")
            }
            Ok(Problem { detail, .. }) => detail,
            Err(_) => text.lines().next().unwrap_or_default().to_owned(),
        };
        Self::Refused { status, text: format!("the server refused it ({status}): {said}") }
    }

    /// Whether the server takes no request that is as large; it may take a part of it.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::PAYLOAD_TOO_LARGE, .. })
    }
}
