//! Why a call to a server failed.

use std::io::Read;

use reqwest::StatusCode;
use reqwest::blocking::Response;

use crate::answer::Problem;

/// The maximum number of bytes that are read of an error.
const PROBLEM_BYTES_MAX: u64 = 64 << 10;

/// Why a call to a server failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not the URL of a server.
    #[error("{0}: a URL such as http://127.0.0.1:7700 or https://proxy.example.org/doppel is expected")]
    Base(String),
    /// The HTTP client cannot be created.
    #[error("cannot start the HTTP client")]
    Start(#[source] reqwest::Error),
    /// The same where certificates of the system are needed.
    #[error(
        "cannot start the HTTP client; where the system knows no authorities, --ca names the certificate of the server's"
    )]
    StartTls(#[source] reqwest::Error),
    /// The file of an authority has none.
    #[error("the file of the authority's certificate has no certificate in it")]
    NoCertificate,
    /// A token that no header can have.
    #[error("the token is not one line of ASCII, as `doppel token new` prints it")]
    Token,
    /// What was given for TLS is not what it was given as.
    #[error("the file of {what} cannot be used: PEM is expected")]
    Pem {
        /// What it was given as.
        what: &'static str,
        /// The reason.
        source: reqwest::Error,
    },
    /// The client's own certificate is not one that TLS can use.
    #[error("the client cannot be known by TLS: {reason}")]
    Identity {
        /// What is wrong with the certificate.
        reason: String,
    },
    /// Something answers, and it is not shown to be the server.
    #[error("{url} is not trusted: {reason}")]
    Untrusted {
        /// The server's URL.
        url: String,
        /// What is wrong with its certificate, and what may help.
        reason: String,
    },
    /// Nothing answers.
    #[error("no server answers at {url} ({reason})")]
    Unreachable {
        /// The server's URL.
        url: String,
        /// The error of the connection.
        reason: String,
    },
    /// Something answers, and one of the two speaks TLS and the other does not, or not with this one.
    #[error("{url} cannot be asked: {reason}")]
    Tls {
        /// The server's URL.
        url: String,
        /// What does not go together, and what may help.
        reason: String,
    },
    /// No answer came in the time that the caller gave. What was asked for may be done.
    #[error("no answer came from {url} in time: what is there is busy, or waits for something itself")]
    Late {
        /// The server's URL.
        url: String,
    },
    /// The server answered with an error.
    #[error("{text}")]
    Refused {
        /// The status of the answer.
        status: StatusCode,
        /// The error in words.
        text: String,
    },
    /// The answer is not of the expected type.
    #[error("the answer of {url} is not what this program expects; is it the same version?")]
    Answer {
        /// The server's URL.
        url: String,
        /// The reason.
        source: serde_json::Error,
    },
    /// The request cannot be repeated.
    #[error("a body that is read while it is sent cannot be sent again")]
    Stream,
}

impl ClientError {
    /// The error of an answer with an error status.
    pub(super) fn of(response: Response) -> Self {
        let status = response.status();
        let mut text = String::new();
        // If the body cannot be read, the status must suffice.
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

    /// Whether the request is too large for the server. It may accept a smaller part.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::PAYLOAD_TOO_LARGE, .. })
    }
}
