//! The HTTP client of the public contract (feature `client`). It calls one server, blocks, parses typed
//! answers, retries within bounds, and reports errors that say what to do.
//!
//! Invariants: a JSON answer is read up to a size limit. A patient call returns within twice the given time,
//! unless its answer is read while it arrives. Every error of the server contains the server's own words.

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

/// Maximum length of a JSON answer in bytes. Longer answers are paged or streamed.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for the attempt to speak TLS, which a call may spend in addition to its own time.
const TLS_TIMEOUT: Duration = Duration::from_secs(1);
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Time after which the caller hears that the server is busy. A new owner of a range is there by then.
const BUSY: Duration = Duration::from_secs(5);

/// A client of one server. Cloning is cheap.
#[derive(Clone)]
pub struct Client {
    base: Url,
    http: reqwest::blocking::Client,
    notify: Arc<dyn Fn(&Notice<'_>) + Send + Sync>,
    notices: Arc<GivenNotices>,
    /// Whether the server speaks TLS at an `http` URL. Unset until a failed request makes the client try.
    speaks_tls: Arc<OnceLock<bool>>,
}

/// Which notices the caller has already received.
#[derive(Default)]
struct GivenNotices {
    away: AtomicBool,
    busy: AtomicBool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// Proof of the client's identity, and the certificates by which it recognises the server.
#[derive(Clone, Default)]
pub struct Credentials {
    /// A token from `doppel token new`.
    pub token: Option<String>,
    /// Certificates in PEM: the server's own, or those of its authorities. `None` means the certificates of
    /// the system.
    pub ca: Option<Vec<u8>>,
    /// Certificate and private key of the client in PEM, for a server that requires them.
    pub identity: Option<Vec<u8>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// Installs ring as the TLS provider of this process. Every client calls this function. It must run before
/// any reqwest client is built.
pub fn install_tls() {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Creates a builder of HTTP clients without TLS and without a proxy, for servers on the same machine or
/// network.
pub fn builder_without_tls() -> reqwest::blocking::ClientBuilder {
    install_tls();
    // A minimal system has no certificates, so the builder does not load any.
    reqwest::blocking::Client::builder().no_proxy().tls_certs_only([])
}

/// An answer as text and as a parsed value.
#[derive(Debug)]
pub struct ParsedAnswer<T> {
    /// The JSON text that the server sent.
    pub text: Box<RawValue>,
    /// The value that was parsed from the text.
    pub value: T,
}

impl Client {
    /// Creates a client without a token for the server at `base`, an http or https URL. The URL may have a
    /// path if a proxy in front of the server adds one.
    ///
    /// # Errors
    /// If `base` is not such a URL, or the HTTP client cannot be created.
    pub fn new(base: &str) -> Result<Self, ClientError> {
        Self::with(base, &Credentials::default())
    }

    /// Like [`new`](Self::new), but with credentials.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does, and if the credentials cannot be used.
    pub fn with(base: &str, credentials: &Credentials) -> Result<Self, ClientError> {
        let url = Url::parse(base).ok().filter(|url| {
            let is_bare = url.query().is_none() && url.fragment().is_none();
            ["http", "https"].contains(&url.scheme()) && is_bare && !url.authority().contains('@')
        });
        let base = url.ok_or_else(|| ClientError::Base(base.to_owned()))?;
        install_tls();
        let mut http = reqwest::blocking::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // An export may take any time. A caller that must not hang sets its own limit.
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
            // Without TLS, the certificates of the system are not needed, and a minimal system has none.
            None if base.scheme() == "http" => http.tls_certs_only([]),
            None => http,
        };
        let http = http.build().map_err(|error| match tls::tls_error_among_causes(&error) {
            Some(rustls::Error::InvalidCertificate(error)) => {
                ClientError::Identity { reason: tls::distrust(error) }
            }
            _ if base.scheme() == "https" && credentials.ca.is_none() => ClientError::StartTls(error),
            _ => ClientError::Start(error),
        })?;
        Ok(Self { base, http, notify: Arc::new(|_| {}), notices: Arc::default(), speaks_tls: Arc::default() })
    }

    /// Calls `notify` when a patient call begins to wait for the server, and when the server is back.
    #[must_use]
    pub fn with_notices(self, notify: impl Fn(&Notice<'_>) + Send + Sync + 'static) -> Self {
        Self { notify: Arc::new(notify), ..self }
    }

    /// Creates a request for a path below the server's URL. Path segments are escaped.
    pub fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        self.http.request(method, url)
    }

    /// Sends a request once.
    ///
    /// # Errors
    /// If no server answers, the answer does not arrive in time, or the server answers with an error.
    pub fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = request.send().map_err(|e| self.request_error(&e))?;
        if response.status().is_success() { Ok(response) } else { Err(ClientError::of(response)) }
    }

    /// Sends a request once and parses the JSON answer.
    ///
    /// # Errors
    /// Fails as [`send`](Self::send) does, and if the answer is not of the expected type.
    pub fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let response = self.send(request)?;
        let url = response.url().to_string();
        serde_json::from_reader(response.take(ANSWER_BYTES_MAX))
            .map_err(|source| ClientError::Answer { url, source })
    }

    /// Like [`json`](Self::json), but also returns the text that the server sent.
    ///
    /// # Errors
    /// Fails as [`json`](Self::json) does.
    pub fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<ParsedAnswer<T>, ClientError> {
        let response = self.send(request)?;
        let url = response.url().to_string();
        let text = serde_json::from_reader(response.take(ANSWER_BYTES_MAX));
        text.and_then(ParsedAnswer::read).map_err(|source| ClientError::Answer { url, source })
    }

    /// Like [`send_patiently`](Self::send_patiently), but parses the JSON answer.
    ///
    /// # Errors
    /// Fails as [`send_patiently`](Self::send_patiently) does, and if the answer is not of the expected type.
    pub fn ask_patiently<T: DeserializeOwned>(
        &self,
        request: &RequestBuilder,
        patience: Duration,
    ) -> Result<ParsedAnswer<T>, ClientError> {
        let text = self.send_patiently(request, patience)?;
        RawValue::from_string(text)
            .and_then(ParsedAnswer::read)
            .map_err(|source| ClientError::Answer { url: self.base.to_string(), source })
    }

    /// Sends a request until the server accepts it, and reads the answer. After a 429 or 503, it waits as
    /// long as the server demands. If no server answers, it waits with growing pauses. It repeats the request
    /// for at most `patience`. The last attempt may wait for its answer as long again.
    ///
    /// # Errors
    /// If the server did not accept the request within that time, with the server's last words if there are
    /// any. Also if the server refuses the request for good, or if the request's body is a stream.
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

    /// Like [`send_patiently`](Self::send_patiently), but returns an answer that the caller reads while it
    /// arrives, without a time limit.
    ///
    /// # Errors
    /// Fails as [`send_patiently`](Self::send_patiently) does.
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

    /// Repeats an attempt until it succeeds or fails permanently.
    fn repeat<T>(
        &self,
        request: &RequestBuilder,
        patience: Duration,
        attempt: impl Fn(RequestBuilder) -> reqwest::Result<Result<T, Response>>,
    ) -> Result<T, ClientError> {
        let begin = Instant::now();
        let (mut backoff, mut last_refusal) = (BACKOFF_FIRST, None);
        loop {
            let (error, pause) = match attempt(request.try_clone().ok_or(ClientError::Stream)?) {
                Ok(Ok(answer)) => {
                    self.notices.busy.store(false, Ordering::Relaxed);
                    if self.notices.away.swap(false, Ordering::Relaxed) {
                        (self.notify)(&Notice::Back);
                    }
                    return Ok(answer);
                }
                Ok(Err(response)) if is_busy(response.status()) => {
                    let pause = retry_after(&response).unwrap_or(backoff);
                    (ClientError::of(response), pause)
                }
                Ok(Err(response)) => return Err(ClientError::of(response)),
                Err(error) => match self.request_error(&error) {
                    permanent @ (ClientError::Untrusted { .. } | ClientError::Tls { .. }) => {
                        return Err(permanent);
                    }
                    error => (error, backoff),
                },
            };
            if begin.elapsed() + pause > patience {
                // If the server explained earlier why it is busy, this explanation says more than the
                // timeout.
                return Err(match error {
                    ClientError::Late { .. } => last_refusal.unwrap_or(error),
                    other => other,
                });
            }
            self.notify_once(&error, begin.elapsed(), patience);
            if let ClientError::Refused { .. } = error {
                last_refusal = Some(error);
            }
            sleep(pause);
            backoff = (backoff * 2).min(BACKOFF_MAX);
        }
    }

    /// Gives the caller one notice about the reason for retrying.
    fn notify_once(&self, error: &ClientError, waited: Duration, patience: Duration) {
        let is_first = |given: &AtomicBool| !given.swap(true, Ordering::Relaxed);
        match error {
            ClientError::Unreachable { url, reason } if is_first(&self.notices.away) => {
                (self.notify)(&Notice::Away { url, reason, patience });
            }
            ClientError::Refused { text, .. } if waited >= BUSY && is_first(&self.notices.busy) => {
                (self.notify)(&Notice::Busy { said: text, patience });
            }
            _ => {}
        }
    }

    fn request_error(&self, error: &reqwest::Error) -> ClientError {
        if error.is_timeout() && !error.is_connect() {
            return ClientError::Late { url: self.base.to_string() };
        }
        let url = self.base.to_string();
        match tls::tls_error_among_causes(error) {
            Some(rustls::Error::InvalidCertificate(error)) => {
                return ClientError::Untrusted { url, reason: tls::distrust(error) };
            }
            Some(error) => return ClientError::Tls { url, reason: tls::refusal(error) },
            None if is_without_answer(error) && *self.speaks_tls.get_or_init(|| self.try_tls()) => {
                let reason = "the server there speaks TLS; use https:// instead of http://".to_owned();
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

    /// Tries whether the server speaks TLS, although the client's URL has the scheme `http`.
    fn try_tls(&self) -> bool {
        let mut url = self.base.clone();
        // Only an explicit port stays the same when the scheme changes.
        if url.scheme() != "http" || url.port().is_none() || url.set_scheme("https").is_err() {
            return false;
        }
        tls::is_tls_spoken(&self.http.head(url).timeout(TLS_TIMEOUT).send())
    }
}

impl<T: DeserializeOwned> ParsedAnswer<T> {
    fn read(text: Box<RawValue>) -> serde_json::Result<Self> {
        let value = serde_json::from_str(text.get())?;
        Ok(Self { text, value })
    }
}

/// Copies an answer while it arrives. Returns the number of bytes.
///
/// # Errors
/// If the answer breaks off, or writing to `out` fails.
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

/// Whether the connection was established but not even the head of an answer arrived.
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
