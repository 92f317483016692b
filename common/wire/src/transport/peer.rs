//! The client side of calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use bytes::{Bytes, BytesMut};
use doppel_protocol::CallTraffic;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, InvalidHeaderValue};
use reqwest::{Client, Response};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::traffic::{Counts, ReportTraffic, WireTraffic};
use crate::transport::call::{Call, VERSION};
use crate::transport::identity::{Identity, NodeName};
use crate::transport::refusal::{CLUSTER, FROM, NODE, Refusal, WIRE};

/// Timeout for establishing a connection.
const CONNECT_TIME: Duration = Duration::from_secs(2);

/// Idle connections are closed after this time, before the other side closes them.
const IDLE_TIME: Duration = Duration::from_secs(20);

/// Number of attempts after the first, and the pause before the first retry. The pause doubles, with jitter.
const RETRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum length of the reason in a refusal, in bytes.
const REASON_BYTES_MAX: usize = 4 << 10;

/// Why a call has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WireError {
    /// The node cannot be reached, or the connection broke off. The call may have been carried out.
    #[error("{node} at {address} cannot be reached: {reason}")]
    Unreachable {
        /// Name of the node.
        node: NodeName,
        /// Address of the node.
        address: Arc<str>,
        /// The reason in words.
        reason: String,
        /// Whether no part of the request was sent.
        unsent: bool,
    },
    /// No answer arrived in time. The call may have been carried out.
    #[error("{node} at {address} has not answered {call} in {} s", time.as_secs_f32())]
    Late {
        /// Name of the node.
        node: NodeName,
        /// Address of the node.
        address: Arc<str>,
        /// Name of the call.
        call: &'static str,
        /// Time limit of the call.
        time: Duration,
    },
    /// The node refused the request.
    #[error("{node} at {address} refuses {call}: {reason}")]
    Refused {
        /// Name of the node.
        node: NodeName,
        /// Address of the node.
        address: Arc<str>,
        /// Name of the call.
        call: &'static str,
        /// Kind of the refusal.
        refusal: Refusal,
        /// The reason in the words of the node.
        reason: String,
    },
    /// The peer is not a node of this version, or the request cannot be encoded.
    #[error("{call} of {node} at {address}: {reason}")]
    Protocol {
        /// Name of the node.
        node: NodeName,
        /// Address of the node.
        address: Arc<str>,
        /// Name of the call.
        call: &'static str,
        /// What is wrong, in words.
        reason: String,
    },
}

impl WireError {
    /// Whether the answer is too large for one call.
    #[must_use]
    pub fn is_answer_too_large(&self) -> bool {
        matches!(self, Self::Refused { refusal: Refusal::AnswerTooLarge, .. })
    }

    /// Whether another attempt is pointless, because the two processes do not belong together.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { refusal, .. } if !refusal.is_transient())
    }

    fn can_retry(&self, repeatable: bool) -> bool {
        match self {
            Self::Unreachable { unsent, .. } => *unsent || repeatable,
            Self::Refused { refusal, .. } => refusal.is_transient(),
            Self::Late { .. } | Self::Protocol { .. } => false,
        }
    }
}

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
        let body = self.encode::<C>(request)?;
        self.decode::<C>(&self.0.runtime.handle.block_on(self.ask::<C>(body))?)
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
        let body = self.encode::<C>(request)?;
        let time = time.min(C::DEADLINE);
        let deadline = Instant::now() + time;
        let answer = async {
            match self.send::<C>(body.clone(), deadline).await {
                Err(WireError::Unreachable { unsent: false, .. }) if C::REPEATABLE => {
                    self.send::<C>(body, deadline).await
                }
                answer => answer,
            }
        };
        let answer = self.0.runtime.handle.block_on(async { timeout_at(deadline, answer).await });
        match answer {
            Ok(Err(WireError::Late { .. })) | Err(_) => Err(self.late_after::<C>(time)),
            Ok(answer) => self.decode::<C>(&answer?),
        }
    }

    /// Begins a call and returns at once. `done` receives what [`call`](Self::call) would return. `done` runs
    /// on an async thread, so it must not block. It is dropped if the runtime ends first. If the request
    /// cannot be encoded, `done` is called before this function returns.
    pub(crate) fn begin_call<C: Call>(
        &self,
        request: &C::Request,
        done: impl FnOnce(Result<C::Answer, WireError>) + Send + 'static,
    ) {
        let body = match self.encode::<C>(request) {
            Ok(body) => body,
            Err(error) => return done(Err(error)),
        };
        let peer = self.clone();
        self.0.runtime.handle.spawn(async move {
            let answer = peer.ask::<C>(body).await;
            done(answer.and_then(|answer| peer.decode::<C>(&answer)));
        });
    }

    fn encode<C: Call>(&self, request: &C::Request) -> Result<Bytes, WireError> {
        let body = postcard::to_allocvec(request).map_err(|error| self.protocol::<C>(&error.to_string()))?;
        if body.len() > C::REQUEST_BYTES_MAX {
            let reason = format!("the request has {} bytes, at most {}", body.len(), C::REQUEST_BYTES_MAX);
            return Err(self.protocol::<C>(&reason));
        }
        Ok(body.into())
    }

    fn decode<C: Call>(&self, answer: &[u8]) -> Result<C::Answer, WireError> {
        postcard::from_bytes(answer)
            .map_err(|error| self.protocol::<C>(&format!("the answer cannot be read: {error}")))
    }

    /// Sends a request, with retries if they are harmless, until an answer arrives or the deadline passes.
    async fn ask<C: Call>(&self, body: Bytes) -> Result<Bytes, WireError> {
        let deadline = Instant::now() + C::DEADLINE;
        let pauses =
            ExponentialBuilder::default().with_min_delay(PAUSE).with_max_times(RETRIES).with_jitter();
        let attempts = (|| self.send::<C>(body.clone(), deadline))
            .retry(pauses)
            .when(|error: &WireError| error.can_retry(C::REPEATABLE));
        let mut shutdown = self.0.runtime.shutdown.subscribe();
        tokio::select! {
            answer = timeout_at(deadline, attempts) => answer.unwrap_or_else(|_| Err(self.late::<C>())),
            _ = shutdown.wait_for(|begun| *begun) => Err(self.protocol::<C>("this process is shutting down")),
        }
    }

    /// Makes a call whose answer is a stream. At most [`Call::DEADLINE`] may pass between two pieces.
    ///
    /// # Errors
    /// If no answer arrives in that time, or the node refuses.
    pub(crate) fn stream<C: Call>(&self, request: &C::Request) -> Result<AnswerStream, WireError> {
        let body = postcard::to_allocvec(request).map_err(|error| self.protocol::<C>(&error.to_string()))?;
        let begin = async { timeout(C::DEADLINE, self.begin::<C>(body.into(), None)).await };
        let begun = self.0.runtime.handle.block_on(begin);
        let response = begun.unwrap_or_else(|_| Err(self.late::<C>()))?;
        let (peer, pause) = (self.clone(), C::DEADLINE);
        let counts = peer.0.runtime.traffic.of::<C>();
        Ok(AnswerStream { peer, response, pause, counts, late: Self::late::<C>, failed: Self::failed::<C> })
    }

    async fn send<C: Call>(&self, body: Bytes, deadline: Instant) -> Result<Bytes, WireError> {
        let response = self.begin::<C>(body, Some(deadline)).await?;
        let answer = self.read::<C>(response, C::ANSWER_BYTES_MAX).await?;
        self.0.runtime.traffic.of::<C>().received(answer.len());
        Ok(answer)
    }

    /// Sends a request. Returns after the head of the answer has arrived and reports success.
    async fn begin<C: Call>(&self, body: Bytes, deadline: Option<Instant>) -> Result<Response, WireError> {
        let url = format!("http://{}/wire/{}", self.0.address, C::NAME);
        let counts = self.0.runtime.traffic.of::<C>();
        counts.request();
        counts.sent(body.len());
        let mut request = self.0.runtime.http.post(url).headers(self.0.headers.clone()).body(body);
        if let Some(deadline) = deadline {
            request = request.timeout(deadline.saturating_duration_since(Instant::now()));
        }
        let response = request.send().await.map_err(|error| self.failed::<C>(&error))?;
        let (status, refusal) = (response.status(), Refusal::of(response.headers()));
        let is_same_version =
            response.headers().get(WIRE).is_some_and(|version| *version == HeaderValue::from(VERSION));
        if let Some(refusal) = refusal {
            let reason = self.read::<C>(response, REASON_BYTES_MAX).await.unwrap_or_default();
            let (node, address) = self.node_and_address();
            let reason = String::from_utf8_lossy(&reason).into_owned();
            return Err(WireError::Refused { node, address, call: C::NAME, refusal, reason });
        }
        if !status.is_success() || !is_same_version {
            let reason = format!("this server (status {status}) is not a node of this version");
            return Err(self.protocol::<C>(&reason));
        }
        Ok(response)
    }

    /// Reads a body up to a size limit.
    async fn read<C: Call>(&self, mut response: Response, limit: usize) -> Result<Bytes, WireError> {
        let expected = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        if expected > limit {
            return Err(self.protocol::<C>(&format!("the answer has {expected} bytes, at most {limit}")));
        }
        let mut bytes = BytesMut::with_capacity(expected);
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed::<C>(&error))? {
            if bytes.len() + chunk.len() > limit {
                return Err(self.protocol::<C>(&format!("the answer has more than {limit} bytes")));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    }

    fn node_and_address(&self) -> (NodeName, Arc<str>) {
        (self.0.node.clone(), Arc::clone(&self.0.address))
    }

    fn late<C: Call>(&self) -> WireError {
        self.late_after::<C>(C::DEADLINE)
    }

    fn late_after<C: Call>(&self, time: Duration) -> WireError {
        let (node, address) = self.node_and_address();
        WireError::Late { node, address, call: C::NAME, time }
    }

    fn protocol<C: Call>(&self, reason: &str) -> WireError {
        let (node, address) = self.node_and_address();
        WireError::Protocol { node, address, call: C::NAME, reason: reason.to_owned() }
    }

    fn failed<C: Call>(&self, error: &reqwest::Error) -> WireError {
        if error.is_timeout() && !error.is_connect() {
            return self.late::<C>();
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
    pause: Duration,
    counts: Arc<Counts>,
    late: fn(&Peer) -> WireError,
    failed: fn(&Peer, &reqwest::Error) -> WireError,
}

impl AnswerStream {
    /// Returns the next bytes; `None` at the end. Blocks.
    pub(crate) fn chunk(&mut self) -> Result<Option<Bytes>, WireError> {
        let Self { peer, response, pause, counts, late, failed } = self;
        let chunk = peer.0.runtime.handle.block_on(async { timeout(*pause, response.chunk()).await });
        let chunk = chunk.map_err(|_| late(peer))?.map_err(|error| failed(peer, &error))?;
        counts.received(chunk.as_ref().map_or(0, Bytes::len));
        Ok(chunk)
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("node", &self.0.node).field("address", &self.0.address).finish()
    }
}
