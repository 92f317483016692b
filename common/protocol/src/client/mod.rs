//! The HTTP client of the public contract (feature `client`): one server, typed answers, errors that say what to do,
//! bounded retries. It blocks.
//!
//! Invariants: a JSON answer is read up to a limit. A patient call returns an answer or an error within twice the given
//! time; one for an answer that is read while it arrives has no such limit once the server has taken it. Every error of the server contains the server's own words.

mod error;
mod notice;
#[cfg(test)]
mod tests;
mod tls;

use std::fmt;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Identity, Url};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

pub use error::ClientError;
pub use notice::Notice;
pub use reqwest::blocking::{RequestBuilder, Response};
pub use reqwest::header::CONTENT_TYPE;
pub use reqwest::{Method, StatusCode};

/// The maximum length of a JSON answer, in bytes. Longer answers are paged or streamed.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For the question whether TLS is spoken, which a call may take on top of its own time.
const TLS_TIMEOUT: Duration = Duration::from_secs(1);
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// A server that is busy for longer is told of: the next owner of a range is there by then.
const BUSY: Duration = Duration::from_secs(5);

/// One server. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    base: Url,
    http: reqwest::blocking::Client,
    notify: Arc<dyn Fn(&Notice<'_>) + Send + Sync>,
    told: Arc<Told>,
    /// Whether TLS is spoken where it asks in the clear, once that was tried.
    is_for_tls: Arc<OnceLock<bool>>,
}

/// Whether the caller was told that the server does not answer, or that it takes no more.
#[derive(Default)]
struct Told {
    away: AtomicBool,
    busy: AtomicBool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// What a client shows a server, and what it takes as a proof of the server.
#[derive(Clone, Default)]
pub struct Credentials {
    /// A token of `doppel token new`.
    pub token: Option<String>,
    /// Certificates, in PEM, of which the server has to have one or be vouched for by one; those of the system where there are none.
    pub ca: Option<Vec<u8>>,
    /// Certificate and private key of the client, in PEM, for a server that asks for one.
    pub identity: Option<Vec<u8>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// Has TLS use ring in this process. Every client does it, and it is needed before any client of reqwest is built.
pub fn install_tls() {
    // An error says that it is done.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A builder of HTTP clients that speak no TLS and go through no proxy, for what is on the same machine or network.
pub fn in_the_clear() -> reqwest::blocking::ClientBuilder {
    install_tls();
    // Without certificates of the system, which a small one does not have.
    reqwest::blocking::Client::builder().no_proxy().tls_certs_only([])
}

/// An answer as the server wrote it, and as it was read.
#[derive(Debug)]
pub struct Answer<T> {
    /// The server's own text.
    pub text: Box<RawValue>,
    /// The value that was read from it.
    pub value: T,
}

impl Client {
    /// A client of the server at `base`, an http or https URL; what is in front of a server may give it a path. It shows no token.
    ///
    /// # Errors
    /// When `base` is no such URL, or the system gives no HTTP client.
    pub fn new(base: &str) -> Result<Self, ClientError> {
        Self::with(base, &Credentials::default())
    }

    /// The same with what the server asks for.
    ///
    /// # Errors
    /// The same, and when the credentials cannot be used.
    pub fn with(base: &str, credentials: &Credentials) -> Result<Self, ClientError> {
        let url = Url::parse(base).ok().filter(|url| {
            let is_bare = url.query().is_none() && url.fragment().is_none();
            ["http", "https"].contains(&url.scheme()) && is_bare && !url.authority().contains('@')
        });
        let base = url.ok_or_else(|| ClientError::Base(base.to_owned()))?;
        install_tls();
        let mut http = reqwest::blocking::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // An export takes as long as it takes; a caller that must not hang sets a limit.
            .timeout(None)
            .tcp_nodelay(true)
            .no_proxy();
        if let Some(token) = &credentials.token {
            let mut value =
                HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| ClientError::Token)?;
            value.set_sensitive(true);
            http = http.default_headers(HeaderMap::from_iter([(AUTHORIZATION, value)]));
        }
        if let Some(pem) = &credentials.identity {
            let what = "the client's certificate and key";
            let identity = Identity::from_pem(pem).map_err(|source| ClientError::Pem { what, source })?;
            http = http.identity(identity);
        }
        let what = "the authority's certificate";
        http = match &credentials.ca {
            Some(pem) => {
                let all =
                    Certificate::from_pem_bundle(pem).map_err(|source| ClientError::Pem { what, source })?;
                if all.is_empty() {
                    return Err(ClientError::NoCertificate);
                }
                http.tls_certs_only(all)
            }
            // Those of the system are not looked for where they are not needed: a small one has none.
            None if base.scheme() == "http" => http.tls_certs_only([]),
            None => http,
        };
        let http = http.build().map_err(|error| match tls::among_causes(&error) {
            Some(rustls::Error::InvalidCertificate(error)) => {
                ClientError::Identity { reason: tls::distrust(error) }
            }
            _ if base.scheme() == "https" && credentials.ca.is_none() => ClientError::StartTls(error),
            _ => ClientError::Start(error),
        })?;
        Ok(Self { base, http, notify: Arc::new(|_| {}), told: Arc::default(), is_for_tls: Arc::default() })
    }

    /// Calls `notify` when a patient call begins to wait for the server, and when the server is back.
    #[must_use]
    pub fn with_notices(self, notify: impl Fn(&Notice<'_>) + Send + Sync + 'static) -> Self {
        Self { notify: Arc::new(notify), ..self }
    }

    /// A request for a path below the server's URL; path segments are escaped.
    pub fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        self.http.request(method, url)
    }

    /// Sends once.
    ///
    /// # Errors
    /// When nothing answers, or not in time, or the server answers with an error.
    pub fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = request.send().map_err(|e| self.failed(&e))?;
        if response.status().is_success() { Ok(response) } else { Err(ClientError::of(response)) }
    }

    /// Sends once and reads the JSON of the answer.
    ///
    /// # Errors
    /// The same, and when the answer is not of the expected type.
    pub fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let response = self.send(request)?;
        let url = response.url().to_string();
        serde_json::from_reader(response.take(ANSWER_BYTES_MAX))
            .map_err(|source| ClientError::Answer { url, source })
    }

    /// Sends once and reads the JSON of the answer. Also returns it as the server wrote it.
    ///
    /// # Errors
    /// The same.
    pub fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<Answer<T>, ClientError> {
        let response = self.send(request)?;
        let url = response.url().to_string();
        let text = serde_json::from_reader(response.take(ANSWER_BYTES_MAX));
        text.and_then(Answer::read).map_err(|source| ClientError::Answer { url, source })
    }

    /// Sends until the server takes it and reads the JSON of the answer; see [`send_patiently`](Self::send_patiently).
    ///
    /// # Errors
    /// The same, and when the answer is not of the expected type.
    pub fn ask_patiently<T: DeserializeOwned>(
        &self,
        request: &RequestBuilder,
        patience: Duration,
    ) -> Result<Answer<T>, ClientError> {
        let text = self.send_patiently(request, patience)?;
        RawValue::from_string(text)
            .and_then(Answer::read)
            .map_err(|source| ClientError::Answer { url: self.base.to_string(), source })
    }

    /// Sends until the server accepts the request, and reads the answer. It waits as long as a 429 or 503 demands, and
    /// with growing pauses while no server answers. It repeats the request for `patience` at most, and waits as long
    /// again for the answer to the last attempt.
    ///
    /// # Errors
    /// When the server did not accept the request within that time, with its last words if it said any, or refuses it for good,
    /// and when the body of the request is a stream.
    pub fn send_patiently(
        &self,
        request: &RequestBuilder,
        patience: Duration,
    ) -> Result<String, ClientError> {
        self.repeat(request, patience, |request| {
            let response = request.timeout(patience).send()?;
            if response.status().is_success() { Ok(Ok(response.text()?)) } else { Ok(Err(response)) }
        })
    }

    /// The same for an answer that is read while it arrives, for as long as that takes.
    ///
    /// # Errors
    /// The same.
    pub fn open_patiently(
        &self,
        request: &RequestBuilder,
        patience: Duration,
    ) -> Result<Response, ClientError> {
        self.repeat(request, patience, |request| {
            let response = request.send()?;
            Ok(if response.status().is_success() { Ok(response) } else { Err(response) })
        })
    }

    /// Repeats an attempt until its answer is no error, or one that does not pass.
    fn repeat<T>(
        &self,
        request: &RequestBuilder,
        patience: Duration,
        attempt: impl Fn(RequestBuilder) -> reqwest::Result<Result<T, Response>>,
    ) -> Result<T, ClientError> {
        let begin = Instant::now();
        let (mut backoff, mut said) = (BACKOFF_FIRST, None);
        loop {
            let (error, pause) = match attempt(request.try_clone().ok_or(ClientError::Stream)?) {
                Ok(Ok(answer)) => {
                    self.told.busy.store(false, Ordering::Relaxed);
                    if self.told.away.swap(false, Ordering::Relaxed) {
                        (self.notify)(&Notice::Back);
                    }
                    return Ok(answer);
                }
                Ok(Err(response)) if is_busy(response.status()) => {
                    let pause = retry_after(&response).unwrap_or(backoff);
                    (ClientError::of(response), pause)
                }
                Ok(Err(response)) => return Err(ClientError::of(response)),
                Err(error) => match self.failed(&error) {
                    passes_not @ (ClientError::Untrusted { .. } | ClientError::Tls { .. }) => {
                        return Err(passes_not);
                    }
                    error => (error, backoff),
                },
            };
            if begin.elapsed() + pause > patience {
                // One that has said why it takes nothing, and now waits for that itself, is not silent.
                return Err(match error {
                    ClientError::Late { .. } => said.unwrap_or(error),
                    other => other,
                });
            }
            self.tell(&error, begin.elapsed(), patience);
            if let ClientError::Refused { .. } = error {
                said = Some(error);
            }
            sleep(pause);
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }

    /// Tells the caller once why a request is sent again.
    fn tell(&self, error: &ClientError, waited: Duration, patience: Duration) {
        let is_first = |told: &AtomicBool| !told.swap(true, Ordering::Relaxed);
        match error {
            ClientError::Unreachable { url, reason } if is_first(&self.told.away) => {
                (self.notify)(&Notice::Away { url, reason, patience });
            }
            ClientError::Refused { text, .. } if waited >= BUSY && is_first(&self.told.busy) => {
                (self.notify)(&Notice::Busy { said: text, patience });
            }
            _ => {}
        }
    }

    fn failed(&self, error: &reqwest::Error) -> ClientError {
        if error.is_timeout() && !error.is_connect() {
            return ClientError::Late { url: self.base.to_string() };
        }
        let url = self.base.to_string();
        match tls::among_causes(error) {
            Some(rustls::Error::InvalidCertificate(error)) => {
                return ClientError::Untrusted { url, reason: tls::distrust(error) };
            }
            Some(error) => return ClientError::Tls { url, reason: tls::refusal(error) },
            None if is_without_answer(error) && *self.is_for_tls.get_or_init(|| self.tries_tls()) => {
                let reason =
                    "what answers there speaks TLS; ask it with https:// in place of http://".to_owned();
                return ClientError::Tls { url, reason };
            }
            None => {}
        }
        // The innermost cause is the operating system's reason.
        let mut reason: &dyn std::error::Error = error;
        while let Some(cause) = reason.source() {
            reason = cause;
        }
        ClientError::Unreachable { url, reason: reason.to_string() }
    }

    /// Whether TLS is spoken where this client asks in the clear.
    fn tries_tls(&self) -> bool {
        let mut url = self.base.clone();
        // It keeps the port.
        if url.scheme() != "http" || url.port().is_none() || url.set_scheme("https").is_err() {
            return false;
        }
        tls::is_spoken(&self.http.head(url).timeout(TLS_TIMEOUT).send())
    }
}

impl<T: DeserializeOwned> Answer<T> {
    fn read(text: Box<RawValue>) -> serde_json::Result<Self> {
        let value = serde_json::from_str(text.get())?;
        Ok(Self { text, value })
    }
}

/// Copies an answer while it arrives.
///
/// # Errors
/// When the answer breaks off, or `out` fails.
pub fn copy(mut response: Response, out: &mut dyn Write) -> std::io::Result<u64> {
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

/// Whether a connection came about, and then not even the head of an answer.
fn is_without_answer(error: &reqwest::Error) -> bool {
    !error.is_connect() && !error.is_body() && !error.is_decode()
}

fn is_busy(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
