//! The client side of calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use bytes::{Bytes, BytesMut};
use doppel_protocol::CallTraffic;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, InvalidHeaderValue};
use reqwest::{Client, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::traffic::{Counts, ReportTraffic, WireTraffic};
use crate::transport::call::{Call, CallKind, VERSION};
use crate::transport::identity::{Identity, NodeName};
use crate::transport::refusal::{CLUSTER, FROM, NODE, Refusal, WIRE};
use crate::transport::wire_error::WireError;

/// Timeout for establishing a connection.
const CONNECT_TIME: Duration = Duration::from_secs(2);

/// Idle connections are closed after this time, before the other side closes them.
const IDLE_TIME: Duration = Duration::from_secs(20);

/// Number of attempts after the first, and the pause before the first retry. The pause doubles, with jitter.
const RETRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum length of the reason in a refusal, in bytes.
const REASON_BYTES_MAX: usize = 4 << 10;

/// The async runtime and the connections of a process, shared by all its peers.
#[derive(Clone)]
pub struct Runtime {
    handle: Handle,
    http: Client,
    traffic: WireTraffic,
    shutdown: Arc<watch::Sender<bool>>,
}

impl Runtime {
    /// Creates a runtime that uses the threads of `handle`.
    ///
    /// # Errors
    /// If the HTTP client cannot be created.
    pub fn new(handle: Handle) -> Result<Self, reqwest::Error> {
        doppel_contract::client::install_tls();
        let http = Client::builder()
            .tls_certs_only([])
            .connect_timeout(CONNECT_TIME)
            .pool_idle_timeout(IDLE_TIME)
            .tcp_nodelay(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { handle, http, traffic: Default::default(), shutdown: Arc::new(watch::Sender::new(false)) })
    }

    /// Returns the traffic counts of peers, and of listeners with [`counting`](crate::CallListener::counting).
    #[must_use]
    pub fn traffic(&self) -> &WireTraffic {
        &self.traffic
    }

    /// Breaks off all running and future calls, because the process is ending.
    pub fn end(&self) {
        self.shutdown.send_replace(true);
    }
}

/// Another node of the cluster. Cloning is cheap. Its calls block, so do not make them on an async thread.
#[derive(Clone)]
pub struct Peer(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    node: NodeName,
    address: Arc<str>,
    headers: HeaderMap,
}

impl Peer {
    /// Creates a client of the node named `node` at `address`. `own` is the identity of this process.
    ///
    /// # Errors
    /// If the identity contains characters that an HTTP header cannot contain.
    pub fn new(
        runtime: &Runtime,
        own: &Identity,
        node: &NodeName,
        address: &str,
    ) -> Result<Self, InvalidHeaderValue> {
        let mut secret = HeaderValue::from_str(&format!("Bearer {}", own.secret.expose()))?;
        secret.set_sensitive(true);
        let headers = HeaderMap::from_iter([
            (AUTHORIZATION, secret),
            (WIRE, HeaderValue::from(VERSION)),
            (CLUSTER, HeaderValue::from_str(&own.cluster)?),
            (NODE, HeaderValue::from_str(node.as_str())?),
            (FROM, HeaderValue::from_str(own.node.as_str())?),
        ]);
        let (runtime, node, address) = (runtime.clone(), node.clone(), address.into());
        Ok(Self(Arc::new(Inner { runtime, node, address, headers })))
    }

    /// Makes a call, and retries it a few times if that is harmless.
    ///
    /// # Errors
    /// If no answer arrives within [`Call::DEADLINE`], or the node refuses.
    pub fn call<C: Call>(&self, request: &C::Request) -> Result<C::Answer, WireError> {
        let kind = CallKind::of::<C>();
        let body = self.encode(kind, request)?;
        self.decode(kind, &self.ask_and_wait(kind, body)?)
    }

    /// Returns what the node has sent and received since its start.
    ///
    /// # Errors
    /// If the node does not answer.
    pub fn read_traffic(&self) -> Result<Vec<CallTraffic>, WireError> {
        self.call::<ReportTraffic>(&())
    }

    /// Makes a call that another node can answer as well: with less time, and without retrying an unreachable
    /// node. A broken connection may have been idle for too long, so the call is then repeated once.
    ///
    /// # Errors
    /// If no answer arrives within `time`, or the node refuses.
    pub(crate) fn call_within<C: Call>(
        &self,
        request: &C::Request,
        time: Duration,
    ) -> Result<C::Answer, WireError> {
        let kind = CallKind::of::<C>();
        let body = self.encode(kind, request)?;
        self.decode(kind, &self.ask_within(kind, body, time)?)
    }

    /// Begins a call and returns at once. `done` receives what [`call`](Self::call) would return. `done` runs
    /// on an async thread, so it must not block. It is dropped if the runtime ends first. If the request
    /// cannot be encoded, `done` is called before this function returns.
    pub(crate) fn begin_call<C: Call>(
        &self,
        request: &C::Request,
        done: impl FnOnce(Result<C::Answer, WireError>) + Send + 'static,
    ) {
        let kind = CallKind::of::<C>();
        let body = match self.encode(kind, request) {
            Ok(body) => body,
            Err(error) => return done(Err(error)),
        };
        let peer = self.clone();
        self.0.runtime.handle.spawn(async move {
            let answer = peer.ask(kind, body).await;
            done(answer.and_then(|answer| peer.decode(kind, &answer)));
        });
    }

    fn encode<R: Serialize>(&self, kind: CallKind, request: &R) -> Result<Bytes, WireError> {
        self.check_request(kind, postcard::to_allocvec(request))
    }

    fn check_request(&self, kind: CallKind, body: postcard::Result<Vec<u8>>) -> Result<Bytes, WireError> {
        let body = body.map_err(|error| self.protocol(kind, &error.to_string()))?;
        if body.len() > kind.request_bytes_max {
            let reason = format!("the request has {} bytes, at most {}", body.len(), kind.request_bytes_max);
            return Err(self.protocol(kind, &reason));
        }
        Ok(body.into())
    }

    fn decode<A: DeserializeOwned>(&self, kind: CallKind, answer: &[u8]) -> Result<A, WireError> {
        postcard::from_bytes(answer).map_err(|error| self.unreadable(kind, &error))
    }

    fn unreadable(&self, kind: CallKind, error: &postcard::Error) -> WireError {
        self.protocol(kind, &format!("the answer cannot be read: {error}"))
    }

    fn ask_and_wait(&self, kind: CallKind, body: Bytes) -> Result<Bytes, WireError> {
        self.0.runtime.handle.block_on(self.ask(kind, body))
    }

    /// Sends a request, with retries if they are harmless, until an answer arrives or the deadline passes.
    async fn ask(&self, kind: CallKind, body: Bytes) -> Result<Bytes, WireError> {
        let deadline = Instant::now() + kind.deadline;
        let pauses =
            ExponentialBuilder::default().with_min_delay(PAUSE).with_max_times(RETRIES).with_jitter();
        let attempts = (|| self.send(kind, body.clone(), deadline))
            .retry(pauses)
            .when(|error: &WireError| error.can_retry(kind.repeatable));
        let mut shutdown = self.0.runtime.shutdown.subscribe();
        tokio::select! {
            answer = timeout_at(deadline, attempts) => answer.unwrap_or_else(|_| Err(self.late(kind))),
            _ = shutdown.wait_for(|begun| *begun) => Err(self.protocol(kind, "this process is shutting down")),
        }
    }

    /// Sends a request for [`call_within`](Self::call_within), and waits for the answer.
    fn ask_within(&self, kind: CallKind, body: Bytes, time: Duration) -> Result<Bytes, WireError> {
        let time = time.min(kind.deadline);
        let deadline = Instant::now() + time;
        let answer = async {
            match self.send(kind, body.clone(), deadline).await {
                Err(WireError::Unreachable { unsent: false, .. }) if kind.repeatable => {
                    self.send(kind, body, deadline).await
                }
                answer => answer,
            }
        };
        match self.0.runtime.handle.block_on(async { timeout_at(deadline, answer).await }) {
            Ok(Err(WireError::Late { .. })) | Err(_) => Err(self.late_after(kind, time)),
            Ok(answer) => answer,
        }
    }

    /// Makes a call whose answer is a stream. At most [`Call::DEADLINE`] may pass between two pieces.
    ///
    /// # Errors
    /// If no answer arrives in that time, or the node refuses.
    pub(crate) fn stream<C: Call>(&self, request: &C::Request) -> Result<AnswerStream, WireError> {
        let kind = CallKind::of::<C>();
        let body = self.encode(kind, request)?;
        let begin = async { timeout(kind.deadline, self.begin(kind, body, None)).await };
        let begun = self.0.runtime.handle.block_on(begin);
        let response = begun.unwrap_or_else(|_| Err(self.late(kind)))?;
        let counts = self.0.runtime.traffic.of(kind.name);
        Ok(AnswerStream { peer: self.clone(), response, kind, counts })
    }

    async fn send(&self, kind: CallKind, body: Bytes, deadline: Instant) -> Result<Bytes, WireError> {
        let response = self.begin(kind, body, Some(deadline)).await?;
        let answer = self.read(kind, response, kind.answer_bytes_max).await?;
        self.0.runtime.traffic.of(kind.name).received(answer.len());
        Ok(answer)
    }

    /// Sends a request. Returns after the head of the answer has arrived and reports success.
    async fn begin(
        &self,
        kind: CallKind,
        body: Bytes,
        deadline: Option<Instant>,
    ) -> Result<Response, WireError> {
        let url = format!("http://{}/wire/{}", self.0.address, kind.name);
        let counts = self.0.runtime.traffic.of(kind.name);
        counts.request();
        counts.sent(body.len());
        let mut request = self.0.runtime.http.post(url).headers(self.0.headers.clone()).body(body);
        if let Some(deadline) = deadline {
            request = request.timeout(deadline.saturating_duration_since(Instant::now()));
        }
        let response = request.send().await.map_err(|error| self.failed(kind, &error))?;
        let (status, refusal) = (response.status(), Refusal::of(response.headers()));
        let is_same_version =
            response.headers().get(WIRE).is_some_and(|version| *version == HeaderValue::from(VERSION));
        if let Some(refusal) = refusal {
            let reason = self.read(kind, response, REASON_BYTES_MAX).await.unwrap_or_default();
            let (node, address) = self.node_and_address();
            let reason = String::from_utf8_lossy(&reason).into_owned();
            return Err(WireError::Refused { node, address, call: kind.name, refusal, reason });
        }
        if !status.is_success() || !is_same_version {
            let reason = format!("this server (status {status}) is not a node of this version");
            return Err(self.protocol(kind, &reason));
        }
        Ok(response)
    }

    /// Reads a body up to a size limit.
    async fn read(&self, kind: CallKind, mut response: Response, limit: usize) -> Result<Bytes, WireError> {
        let expected = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        if expected > limit {
            return Err(self.protocol(kind, &format!("the answer has {expected} bytes, at most {limit}")));
        }
        let mut bytes = BytesMut::with_capacity(expected);
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(kind, &error))? {
            if bytes.len() + chunk.len() > limit {
                return Err(self.protocol(kind, &format!("the answer has more than {limit} bytes")));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    }

    fn node_and_address(&self) -> (NodeName, Arc<str>) {
        (self.0.node.clone(), Arc::clone(&self.0.address))
    }

    fn late(&self, kind: CallKind) -> WireError {
        self.late_after(kind, kind.deadline)
    }

    fn late_after(&self, kind: CallKind, time: Duration) -> WireError {
        let (node, address) = self.node_and_address();
        WireError::Late { node, address, call: kind.name, time }
    }

    fn protocol(&self, kind: CallKind, reason: &str) -> WireError {
        let (node, address) = self.node_and_address();
        WireError::Protocol { node, address, call: kind.name, reason: reason.to_owned() }
    }

    fn failed(&self, kind: CallKind, error: &reqwest::Error) -> WireError {
        if error.is_timeout() && !error.is_connect() {
            return self.late(kind);
        }
        // The innermost cause is the operating system's reason.
        let mut reason: &dyn std::error::Error = error;
        while let Some(cause) = reason.source() {
            reason = cause;
        }
        let (node, address) = self.node_and_address();
        let (reason, unsent) = (reason.to_string(), error.is_connect());
        WireError::Unreachable { node, address, reason, unsent }
    }
}

/// An answer that is read while it arrives.
pub(crate) struct AnswerStream {
    peer: Peer,
    response: Response,
    kind: CallKind,
    counts: Arc<Counts>,
}

impl AnswerStream {
    /// Returns the next bytes; `None` at the end. Blocks.
    pub(crate) fn chunk(&mut self) -> Result<Option<Bytes>, WireError> {
        let Self { peer, response, kind, counts } = self;
        let chunk = peer.0.runtime.handle.block_on(async { timeout(kind.deadline, response.chunk()).await });
        let chunk = chunk.map_err(|_| peer.late(*kind))?.map_err(|error| peer.failed(*kind, &error))?;
        counts.received(chunk.as_ref().map_or(0, Bytes::len));
        Ok(chunk)
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("node", &self.0.node).field("address", &self.0.address).finish()
    }
}
