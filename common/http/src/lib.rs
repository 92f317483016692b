//! Serves HTTP/1.1 connections, in the clear or over TLS. The public API, and the listeners through which the
//! servers of a cluster call each other, both answer through [`serve`].
//!
//! Clients must not be able to exhaust the server. The server therefore limits the number of connections,
//! both in total and for each client network. It also limits the time for a TLS handshake, for a request
//! head, and between two requests. It disconnects clients that read their answers too slowly. At shutdown,
//! the server gives the requests in progress a limited time to finish.
#![forbid(unsafe_code)]

mod connection_counts;
mod pace;
mod tls;

use std::borrow::Borrow;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tower::util::MapRequest;
use tower::{Service, ServiceExt as _};

use connection_counts::ConnectionCounts;
pub use connection_counts::network;
use pace::{Pace, PacedStream};
pub use tls::{Tls, TlsError, TlsFiles};

/// Pause after an accept that failed because a resource, such as file descriptors, is exhausted. A failure of
/// the accepted connection itself causes no pause.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Consecutive failed accepts that [`serve`] tolerates. With [`ACCEPT_PAUSE`] that is one minute without a
/// connection.
const ACCEPT_FAILURES: u32 = 60;

/// At shutdown, time that the most recently accepted connections get to deliver the first bytes of their
/// requests.
const FIRST_BYTES: Duration = Duration::from_millis(50);

/// The limits of a listener's connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Maximum number of open connections. Further connections wait in the operating system's queue.
    pub open: usize,
    /// Maximum number of open connections from one IPv4 address, or from all IPv6 addresses that begin with
    /// equal 64 bits. The server closes further connections at once. Connections from this machine are not
    /// counted.
    pub of_address: usize,
    /// Maximum time for a TLS handshake, maximum time for a request head, and maximum time that a connection
    /// may be idle.
    pub head_time: Duration,
    /// Maximum time for which a client may read nothing of its answer.
    pub write_pause: Duration,
    /// Slowest rate, in bytes per second, at which a client may read its answer in the long run.
    pub write_rate: u32,
    /// Maximum time that requests in progress get to finish at shutdown.
    pub drain: Duration,
}

/// A listener, and how its connections are encrypted.
#[derive(Debug)]
pub struct ServerListener<L> {
    /// Listener that accepts TCP connections.
    pub listener: L,
    /// TLS configuration of the listener. `None` for connections in the clear.
    pub tls: Option<Tls>,
}

impl<L> From<L> for ServerListener<L> {
    fn from(listener: L) -> Self {
        Self { listener, tls: None }
    }
}

/// A request extension with the address of the client. Requests from this machine do not have this extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// Accepts and answers connections until `shutdown` completes. Then [`serve`] accepts no more connections and
/// calls `drain`, which must end requests that wait for an event, such as long polls. Requests in progress
/// get [`ConnectionLimits::drain`] to finish.
///
/// If the caller passes the listener by reference, the listener keeps queueing connections for the next
/// server. If the caller passes it by value, [`serve`] closes it.
///
/// # Errors
/// If the listener could not accept any connection for a minute.
pub async fn serve<L, S>(
    listening: ServerListener<L>,
    routes: S,
    limits: ConnectionLimits,
    shutdown: impl Future<Output = ()>,
    drain: impl FnOnce(),
) -> io::Result<()>
where
    L: Borrow<TcpListener>,
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let ServerListener { listener, tls } = listening;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time);
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(limits.open));
    let addresses = ConnectionCounts::default();
    let ending = watch::Sender::new(false);
    let mut failures = 0;
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = accept(listener.borrow(), &permits) => accepted,
            () = &mut shutdown => break,
        };
        let AcceptedConnection { stream, address, permit } = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_connection_error(&error) => continue,
            Err(error) if failures == ACCEPT_FAILURES => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection; trying again in a second");
                failures += 1;
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        failures = 0;
        let Some(slot) = addresses.enter(address.ip(), limits.of_address) else {
            tracing::debug!(%address, "closed a connection: its address has too many open connections");
            continue;
        };
        let stream = PacedStream::new(stream, Pace { pause: limits.write_pause, rate: limits.write_rate });
        let (http, watcher, routes) = (http.clone(), graceful.watcher(), routes.clone());
        let acceptor = tls.as_ref().map(Tls::acceptor);
        let mut ending = ending.subscribe();
        tokio::spawn(async move {
            let _permits = (permit, slot);
            let Some(acceptor) = acceptor else {
                return answer(stream, &http, watcher, with_remote(routes, address)).await;
            };
            let handshake = tokio::select! {
                result = timeout(limits.head_time, acceptor.accept(stream)) => result,
                // The connection has not sent a request yet, so there is nothing to drain.
                _ = ending.wait_for(|ending| *ending) => return,
            };
            match handshake {
                Ok(Ok(stream)) => answer(stream, &http, watcher, with_remote(routes, address)).await,
                Ok(Err(error)) => tracing::debug!(%error, "closed a connection: the TLS handshake failed"),
                Err(_) => tracing::debug!("closed a connection: the TLS handshake took too long"),
            }
        });
    }
    drop(listener);
    ending.send_replace(true);
    drain();
    // hyper closes a connection from which it has read nothing yet, but its client may already have sent a
    // request. Give hyper time to read it.
    sleep(FIRST_BYTES).await;
    if timeout(limits.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("the drain time ended before all requests were answered; they are cut off");
    }
    Ok(())
}

/// Answers all requests of one connection.
async fn answer<S>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    http: &http1::Builder,
    watcher: Watcher,
    routes: S,
) where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

/// Wraps `routes` so that every request has a [`ClientAddress`] extension, unless the client is on this
/// machine.
fn with_remote<S>(
    routes: S,
    address: SocketAddr,
) -> MapRequest<S, impl FnMut(Request<Incoming>) -> Request<Incoming> + Clone>
where
    S: Service<Request<Incoming>>,
{
    let address = address.ip().to_canonical();
    routes.map_request(move |mut request: Request<Incoming>| {
        if !address.is_loopback() {
            request.extensions_mut().insert(ClientAddress(address));
        }
        request
    })
}

/// A connection that [`accept`] returns. Dropping the permit lets [`accept`] take another connection.
struct AcceptedConnection {
    stream: TcpStream,
    address: SocketAddr,
    permit: OwnedSemaphorePermit,
}

/// Accepts a connection. Waits for a permit first, so that surplus connections stay in the operating system's
/// queue.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> io::Result<AcceptedConnection> {
    let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, address) = listener.accept().await?;
    stream.set_nodelay(true)?;
    pace::limit_unsent(&stream)?;
    Ok(AcceptedConnection { stream, address, permit })
}

fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, InvalidInput};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | InvalidInput)
}
