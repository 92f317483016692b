//! The HTTP client of the commands: one server, errors that say what to do, bounded retries.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context;
use reqwest::blocking::{RequestBuilder, Response};
use reqwest::header::RETRY_AFTER;
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::args::{DEFAULT_SERVER, ServerArgs};
use crate::exit::Failure;

/// An answer in JSON is at most this long, in bytes; longer ones are paged or streamed.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// One server.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    base: Url,
    http: reqwest::blocking::Client,
    /// Whether whoever waits for it was told that it does not answer.
    is_away: Arc<AtomicBool>,
}

/// What is read of an error's `application/problem+json`; the status line says the rest.
#[derive(Debug, Deserialize)]
struct Problem {
    detail: String,
    field: Option<String>,
}

impl Client {
    /// A client of the server that the command line names.
    pub(crate) fn new(args: &ServerArgs) -> anyhow::Result<Self> {
        // A variable that is set to nothing is as good as none.
        let named = if args.server.is_empty() { DEFAULT_SERVER } else { &args.server };
        let base = Url::parse(named).ok().filter(|url| {
            let bare = Url::parse(&format!("http://{}/", url.authority()));
            bare.as_ref() == Ok(url) && !url.authority().contains('@')
        });
        let base = base.ok_or_else(|| {
            Failure::Usage(format!(
                "--server {named}: a URL such as {DEFAULT_SERVER} is expected, without a path"
            ))
        })?;
        let http = reqwest::blocking::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(None) // an export takes as long as it takes; who is not to hang sets a limit
            .tcp_nodelay(true)
            .no_proxy()
            .build()
            .context("cannot start the HTTP client")?;
        Ok(Self { base, http, is_away: Arc::default() })
    }

    /// A request for a path below the server's URL; path segments are escaped.
    pub(crate) fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        self.http.request(method, url)
    }

    /// Sends once. An error status is a [`Failure::Refused`] with the server's own words.
    pub(crate) fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let response = request.send().map_err(|e| self.unreachable(&e))?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(response).into()) }
    }

    /// Sends once and reads the JSON of the answer.
    pub(crate) fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> anyhow::Result<T> {
        parse(self.send(request)?)
    }

    /// Sends until the server takes it and reads the answer: waits as long as a 429 or 503 asks for,
    /// and with growing pauses while nothing answers, for `patience` at most; and as long again for an
    /// answer to what was sent last.
    pub(crate) fn send_patiently(
        &self,
        request: &RequestBuilder,
        patience: Duration,
    ) -> anyhow::Result<String> {
        let begin = Instant::now();
        let mut backoff = BACKOFF_FIRST;
        loop {
            let request = request.try_clone().context("the request cannot be repeated")?;
            let answer = request.timeout(patience).send().and_then(|response| match response.status() {
                status if status.is_success() => Ok(Ok(response.text()?)),
                _ => Ok(Err(response)),
            });
            let (error, pause) = match answer {
                Ok(Ok(text)) => {
                    if self.is_away.swap(false, Ordering::Relaxed) {
                        eprintln!("doppel: the server answers");
                    }
                    return Ok(text);
                }
                Ok(Err(response)) if is_busy(response.status()) => {
                    let pause = retry_after(&response).unwrap_or(backoff);
                    (refusal(response), pause)
                }
                Ok(Err(response)) => return Err(refusal(response).into()),
                Err(error) => (self.unreachable(&error), backoff),
            };
            if let Failure::Unreachable { url, reason } = &error
                && begin.elapsed() + pause <= patience
                && !self.is_away.swap(true, Ordering::Relaxed)
            {
                let seconds = patience.as_secs();
                eprintln!("doppel: no server answers at {url} ({reason}); trying for {seconds} s");
            }
            if begin.elapsed() + pause > patience {
                return Err(error.into());
            }
            sleep(pause);
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        // The innermost cause is the operating system's reason.
        let mut reason: &dyn std::error::Error = error;
        while let Some(cause) = reason.source() {
            reason = cause;
        }
        Failure::Unreachable { url: self.base.to_string(), reason: reason.to_string() }
    }
}

/// Reads an answer's JSON.
pub(crate) fn parse<T: DeserializeOwned>(response: Response) -> anyhow::Result<T> {
    let url = response.url().to_string();
    serde_json::from_reader(response.take(ANSWER_BYTES_MAX)).with_context(|| {
        format!("the answer of {url} is not what this program expects; is it the same version?")
    })
}

/// Copies an answer as it comes.
pub(crate) fn copy(mut response: Response, out: &mut dyn Write) -> std::io::Result<u64> {
    let mut buffer = [0; 1 << 16];
    let mut copied = 0;
    loop {
        let read = response.read(&mut buffer)?;
        if read == 0 {
            return Ok(copied);
        }
        out.write_all(&buffer[..read])?;
        copied += read as u64;
    }
}

fn is_busy(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn refusal(response: Response) -> Failure {
    let status = response.status();
    let mut text = String::new();
    // What cannot be read adds nothing to the status.
    let _ = response.take(64 << 10).read_to_string(&mut text);
    let said = match serde_json::from_str::<Problem>(&text) {
        Ok(Problem { detail, field: Some(field) }) => format!("{field}: {detail}"),
        Ok(Problem { detail, field: None }) => detail,
        Err(_) => text.lines().next().unwrap_or_default().to_owned(),
    };
    let text = format!("the server refused it ({status}): {said}");
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => Failure::TooLarge(text),
        _ => Failure::Refused { status, text },
    }
}
