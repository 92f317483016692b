//! Errors of a call to a server.

use std::io::Read;

use reqwest::StatusCode;
use reqwest::blocking::Response;

use crate::answer::ProblemDetails;

/// Maximum number of bytes that are read from an error answer.
const PROBLEM_BYTES_MAX: u64 = 64 << 10;

/// Why a call to a server failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The text is not the URL of a server.
    #[error(
        "{0:?} is not the URL of a server: expected a URL such as http://127.0.0.1:7700 or https://proxy.example.org/doppel"
    )]
    Base(String),
    /// The HTTP client cannot be created.
    #[error("cannot start the HTTP client")]
    Start(#[source] reqwest::Error),
    /// The HTTP client cannot be created, and it needs certificates of the system.
    #[error(
        "cannot start the HTTP client; if the system has no certificates of authorities, pass the server's authority with --ca"
    )]
    StartTls(#[source] reqwest::Error),
    /// The file with the authority's certificate contains no certificate.
    #[error("the file with the authority's certificate contains no certificate")]
    NoCertificate,
    /// The token contains characters that an HTTP header cannot contain.
    #[error("the token is not one line of ASCII, as `doppel token new` prints it")]
    Token,
    /// A file for TLS is not in PEM format.
    #[error("the file with {what} cannot be used: expected PEM format")]
    Pem {
        /// What the file should contain.
        what: &'static str,
        /// The error of the parser.
        source: reqwest::Error,
    },
    /// The client's own certificate cannot be used for TLS.
    #[error("the client cannot identify itself by TLS: {reason}")]
    Identity {
        /// What is wrong with the certificate.
        reason: String,
    },
    /// A server answers, but its certificate does not prove that it is the right server.
    #[error("{url} is not trusted: {reason}")]
    Untrusted {
        /// URL of the server.
        url: String,
        /// What is wrong with the server's certificate, and what may help.
        reason: String,
    },
    /// No server answers at the URL.
    #[error("no server answers at {url} ({reason})")]
    Unreachable {
        /// URL of the server.
        url: String,
        /// The error of the connection.
        reason: String,
    },
    /// The TLS connection cannot be established: only one side speaks TLS, or the two sides do not agree.
    #[error("cannot connect to {url}: {reason}")]
    Tls {
        /// URL of the server.
        url: String,
        /// What does not match, and what may help.
        reason: String,
    },
    /// The answer did not arrive within the caller's time limit. The server may still have carried out the
    /// request.
    #[error("no answer came from {url} in time: the server is busy, or waits for another service")]
    Late {
        /// URL of the server.
        url: String,
    },
    /// The server answered with an error.
    #[error("{text}")]
    Refused {
        /// Status of the answer.
        status: StatusCode,
        /// The error in words.
        text: String,
    },
    /// The answer is not of the expected type.
    #[error("this program cannot read the answer of {url}; check that both have the same version")]
    Answer {
        /// URL of the server.
        url: String,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
    /// The request cannot be repeated, because its body is a stream.
    #[error("the request cannot be repeated, because its body is a stream")]
    Stream,
}

impl ClientError {
    /// Creates the error from an answer with an error status.
    pub(super) fn of(response: Response) -> Self {
        let status = response.status();
        let mut text = String::new();
        // If the body cannot be read, the status must suffice.
        let _ = response.take(PROBLEM_BYTES_MAX).read_to_string(&mut text);
        Self::refused(status, &text)
    }

    /// Creates the error from the detail of a problem document (`application/problem+json`), or from the
    /// first line of any other text.
    pub(super) fn refused(status: StatusCode, text: &str) -> Self {
        let words = match serde_json::from_str::<ProblemDetails>(text) {
            Ok(ProblemDetails { detail, field: Some(field), .. }) => format!("{field}: {detail}"),
            // The server's log contains the cause under this id.
            Ok(ProblemDetails { detail, request_id: Some(id), .. })
                if status == StatusCode::INTERNAL_SERVER_ERROR =>
            {
                format!("{detail} (request {id})")
            }
            Ok(ProblemDetails { detail, .. }) => detail,
            Err(_) => text.lines().next().unwrap_or_default().to_owned(),
        };
        Self::Refused { status, text: format!("the server refused it ({status}): {words}") }
    }

    /// Whether the request is too large for the server. The server may accept a smaller part.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::PAYLOAD_TOO_LARGE, .. })
    }
}
