//! The server side of calls.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use doppel_http::ConnectionLimits;
use futures_util::stream::unfold;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::traffic::{Counts, ReportTraffic, WireTraffic};
use crate::transport::call::{Call, CallKind, VERSION};
use crate::transport::identity::Identity;
use crate::transport::refusal::{CLUSTER, FROM, NODE, Refusal, WIRE};

/// How long a request waits for a permit.
const TURN_TIME: Duration = Duration::from_secs(2);

/// Number of concurrent calls that ask for the traffic counts.
const TRAFFIC_CALLS: usize = 4;

/// Maximum number of characters of a caller's name in the log.
const NAME_CHARS_MAX: usize = 63;

/// Number of pieces of a stream that are produced before they are read.
const STREAM_PIECES: usize = 4;

/// Maximum time for receiving a body.
const BODY_TIME: Duration = Duration::from_secs(60);

/// Connection limits of a listener. The timeouts exceed the time for which a peer keeps an idle connection.
const CONNECTIONS: ConnectionLimits = ConnectionLimits {
    open: 1_024,
    of_address: 1_024,
    head_time: Duration::from_secs(60),
    write_pause: Duration::from_secs(60),
    write_rate: 4 << 10,
    drain: Duration::from_secs(10),
};

/// How the process reacts to a panic inside a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanicPolicy {
    /// The panic ends the process. The state may be half changed, and a restart is safe.
    End,
    /// The panic becomes an error answer. The calls do not change any state by themselves.
    Fail,
}

/// The calls that a node answers.
pub struct CallListener {
    own: Arc<Identity>,
    /// Permits of the calls that are added next.
    permits: Arc<Semaphore>,
    panics: PanicPolicy,
    traffic: WireTraffic,
    routes: Router,
}

/// The bytes of an answer, produced as they are read.
pub(crate) type ByteStream = Box<dyn Iterator<Item = Bytes> + Send>;

/// Answers a call whose request and answer are encoded.
type EncodedCall = Arc<dyn Fn(Bytes) -> Result<Vec<u8>, CallFault> + Send + Sync>;

/// Why a call has no encoded answer.
enum CallFault {
    /// The request cannot be decoded.
    Request(postcard::Error),
    /// The call panicked.
    Panic,
    /// The answer cannot be encoded.
    Answer(postcard::Error),
}

impl CallListener {
    /// Creates a listener for this node that works on at most `at_once` calls at the same time. Further calls
    /// wait a moment and are then refused.
    #[must_use]
    pub fn new(own: Identity, at_once: usize, panics: PanicPolicy) -> Self {
        let permits = Arc::new(Semaphore::new(at_once));
        Self { own: Arc::new(own), permits, panics, traffic: WireTraffic::default(), routes: Router::new() }
    }

    /// Counts the traffic of the calls that are added next, and adds a call that returns the counts.
    #[must_use]
    pub fn counting(self, traffic: &WireTraffic) -> Self {
        let (permits, counted) = (Arc::clone(&self.permits), traffic.clone());
        let this = Self { traffic: traffic.clone(), ..self }.at_once(TRAFFIC_CALLS);
        Self { permits, ..this.answer::<ReportTraffic>(move |()| counted.totals()) }
    }

    /// Gives the calls that are added next their own permits, so that other calls do not block them.
    #[must_use]
    pub fn at_once(self, permits: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(permits)), ..self }
    }

    /// Adds a call that is answered on a thread that may block.
    #[must_use]
    pub fn answer<C: Call>(self, answer: impl Fn(C::Request) -> C::Answer + Send + Sync + 'static) -> Self {
        self.answer_encoded(CallKind::of::<C>(), Arc::new(move |body| encoded_answer::<C>(body, &answer)))
    }

    fn answer_encoded(mut self, kind: CallKind, answer: EncodedCall) -> Self {
        let permits = Arc::clone(&self.permits);
        let counts = self.traffic.of(kind.name);
        let panics = self.panics;
        let handle = move |headers: HeaderMap, body: Body| async move {
            // The body is not read during the wait, which holds back the caller.
            let Ok(Ok(permit)) = timeout(TURN_TIME, permits.acquire_owned()).await else {
                return Refusal::Busy.because("the node works on too many calls; try again later");
            };
            let body = match read(kind, &headers, body).await {
                Ok(body) => body,
                Err(refused) => return refused,
            };
            counts.request();
            counts.received(body.len());
            let answered = spawn_blocking(move || {
                let _permit = permit;
                run(kind, body, panics, &counts, &*answer)
            });
            answered.await.unwrap_or_else(|_| Refusal::Failed.because("the node broke off the call"))
        };
        self.routes = self.routes.route(&format!("/wire/{}", kind.name), post(handle));
        self
    }

    /// Adds a call that is answered with a stream. A thread produces the stream as fast as the caller reads
    /// it.
    #[must_use]
    pub(crate) fn stream<C: Call>(mut self, pieces: impl Fn() -> ByteStream + Send + Sync + 'static) -> Self {
        let (permits, pieces) = (Arc::clone(&self.permits), Arc::new(pieces));
        let counts = self.traffic.of(C::NAME);
        let handle = move || async move {
            let Ok(Ok(permit)) = timeout(TURN_TIME, permits.acquire_owned()).await else {
                return Refusal::Busy.because("the node works on too many calls; try again later");
            };
            let (sender, receiver) = mpsc::channel(STREAM_PIECES);
            counts.request();
            spawn_blocking(move || {
                let _permit = permit;
                for piece in pieces() {
                    counts.sent(piece.len());
                    if sender.blocking_send(Ok::<_, Infallible>(piece)).is_err() {
                        break;
                    }
                }
            });
            let next =
                |mut receiver: mpsc::Receiver<_>| async move { Some((receiver.recv().await?, receiver)) };
            let body = Body::from_stream(unfold(receiver, next));
            ([(WIRE, HeaderValue::from(VERSION))], body).into_response()
        };
        self.routes = self.routes.route(&format!("/wire/{}", C::NAME), post(handle));
        self
    }

    /// Returns the routes, preceded by the checks of every request.
    pub fn into_routes(self) -> Router {
        self.routes
            .fallback(no_call)
            .method_not_allowed_fallback(no_call)
            .layer(from_fn_with_state(self.own, check))
    }

    /// Answers requests until `shutdown` completes.
    ///
    /// # Errors
    /// If no connection could be accepted for a minute.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> std::io::Result<()> {
        self.serve_until(listener, Box::pin(shutdown)).await
    }

    /// Like [`serve`](Self::serve). Both futures are boxed so that this crate contains the code of a
    /// connection, and not each caller of `serve`.
    fn serve_until<'s>(
        self,
        listener: TcpListener,
        shutdown: Pin<Box<dyn Future<Output = ()> + Send + 's>>,
    ) -> Pin<Box<dyn Future<Output = std::io::Result<()>> + Send + 's>> {
        Box::pin(doppel_http::serve(listener.into(), self.into_routes(), CONNECTIONS, shutdown, || ()))
    }
}

/// Lets a request through if it comes from this cluster, in this version, for this node.
async fn check(State(own): State<Arc<Identity>>, request: Request, next: Next) -> Response {
    match refusal_of(&own, request.headers()) {
        Some((refusal, reason)) => {
            let from = request.headers().get(FROM).and_then(|from| from.to_str().ok()).unwrap_or("unknown");
            let from: String = from.chars().take(NAME_CHARS_MAX).collect();
            tracing::warn!(from, %reason, "a request between roles is refused");
            refusal.because(reason)
        }
        None => next.run(request).await,
    }
}

/// Returns why a request is refused, if it is. A caller without the secret learns nothing else.
fn refusal_of(own: &Identity, headers: &HeaderMap) -> Option<(Refusal, String)> {
    let header =
        |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let secret = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if !secret.is_some_and(|secret| own.secret.matches(secret)) {
        return Some((
            Refusal::Secret,
            "the cluster secret is missing or is not the one of this cluster".to_owned(),
        ));
    }
    let version = header(&WIRE);
    if version != VERSION.to_string() {
        let reason = format!(
            "{} speaks version {VERSION} of the protocol between roles, the caller version {version:?}; run one \
             release of Doppel in a cluster",
            own.node
        );
        return Some((Refusal::Version, reason));
    }
    let cluster = header(&CLUSTER);
    if cluster != &*own.cluster {
        let reason = format!("{} belongs to cluster {}, the caller to {cluster:?}", own.node, own.cluster);
        return Some((Refusal::Cluster, reason));
    }
    let node = header(&NODE);
    (node != own.node.as_str())
        .then(|| (Refusal::Node, format!("this is {}, and the request is for {node:?}", own.node)))
}

async fn read(kind: CallKind, headers: &HeaderMap, body: Body) -> Result<Bytes, Response> {
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let limit = kind.request_bytes_max;
    let too_large = || Refusal::RequestTooLarge.because(format!("the body has more than {limit} bytes"));
    if length.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    match timeout(BODY_TIME, to_bytes(body, limit)).await {
        Ok(Ok(body)) => Ok(body),
        // The body was sent without its length.
        Ok(Err(_)) if length.is_none() => Err(too_large()),
        Ok(Err(error)) => Err(Refusal::Body.because(format!("the body broke off: {error}"))),
        Err(_) => Err(Refusal::Body.because("the body did not arrive in time")),
    }
}

/// Decodes a request, answers it, and encodes the answer. Only this function knows the types of the call.
fn encoded_answer<C: Call>(
    body: Bytes,
    answer: &dyn Fn(C::Request) -> C::Answer,
) -> Result<Vec<u8>, CallFault> {
    let request: C::Request = postcard::from_bytes(&body).map_err(CallFault::Request)?;
    drop(body);
    let answer = catch_unwind(AssertUnwindSafe(|| answer(request))).map_err(|_| CallFault::Panic)?;
    postcard::to_allocvec(&answer).map_err(CallFault::Answer)
}

fn run(
    kind: CallKind,
    body: Bytes,
    panics: PanicPolicy,
    counts: &Counts,
    answer: &dyn Fn(Bytes) -> Result<Vec<u8>, CallFault>,
) -> Response {
    match answer(body) {
        Ok(bytes) if bytes.len() > kind.answer_bytes_max => {
            Refusal::AnswerTooLarge.because(format!("the answer has {} bytes", bytes.len()))
        }
        Ok(bytes) => {
            counts.sent(bytes.len());
            let form = (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
            ([(WIRE, HeaderValue::from(VERSION)), form], bytes).into_response()
        }
        Err(CallFault::Request(error)) => {
            Refusal::Body.because(format!("the body is not a request of {}: {error}", kind.name))
        }
        Err(CallFault::Panic) if panics == PanicPolicy::End => process::abort(),
        Err(CallFault::Panic) => Refusal::Failed.because("the call failed; the log of the node says why"),
        Err(CallFault::Answer(error)) => {
            Refusal::Failed.because(format!("the answer cannot be encoded: {error}"))
        }
    }
}

async fn no_call(uri: Uri) -> Response {
    Refusal::Call.because(format!("this node does not answer {}; it has another role", uri.path()))
}
