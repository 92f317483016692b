//! HTTP connections: bounded in number, in the time of their heads and in the patience with clients that do not
//! read, and drained at the end; over TLS where that is asked for. The public front door and the listeners between roles answer
//! through [`serve`].
#![forbid(unsafe_code)]

mod addresses;
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

use addresses::Addresses;
pub use addresses::network;
use pace::{Pace, Paced};
pub use tls::{Tls, TlsError, TlsFiles};

/// Pause after an accept that failed for want of resources, such as files.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Accepts that may fail so one after the other: a minute without a connection is the end.
const ACCEPT_FAILURES: u32 = 60;

/// How long a connection that was accepted last has, at the end, for the first bytes of its request.
const FIRST_BYTES: Duration = Duration::from_millis(50);

/// The limits of a listener's connections.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// Connections open at once. One too many stays in the system's queue.
    pub open: usize,
    /// Of these from one address at once; others from there are closed. Those of this machine are not counted.
    pub of_address: usize,
    /// The longest time the head of a request may take, and the longest a connection may be idle.
    pub head_time: Duration,
    /// The longest a client may go without reading what it asked for.
    pub write_pause: Duration,
    /// Bytes a second that a client has to take of what it asked for, on average over such a time.
    pub write_rate: u32,
    /// How long requests in work may go on at the end.
    pub drain: Duration,
}

/// A listener, and how connections to it are encrypted.
#[derive(Debug)]
pub struct Listening<L> {
    /// The listener.
    pub listener: L,
    /// None for connections in the clear.
    pub tls: Option<Tls>,
}

impl<L> From<L> for Listening<L> {
    fn from(listener: L) -> Self {
        Self { listener, tls: None }
    }
}

/// The address from which a request came, among its extensions. Requests from this machine have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote(pub IpAddr);

/// Answers connections of `listening` until `shutdown` completes; then takes no more, calls `drain`, which is to end
/// requests that wait, and lets those in work go on for the time of [`Connections::drain`] at most.
///
/// A listener that is lent goes on to queue connections meanwhile, for whoever answers next; one that is given is closed.
///
/// # Errors
/// When no connection could be accepted for a minute.
pub async fn serve<L, S>(
    listening: Listening<L>,
    routes: S,
    limits: Connections,
    shutdown: impl Future<Output = ()>,
    drain: impl FnOnce(),
) -> io::Result<()>
where
    L: Borrow<TcpListener>,
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let Listening { listener, tls } = listening;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time);
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(limits.open));
    let addresses = Addresses::default();
    let ending = watch::Sender::new(false);
    let mut failures = 0;
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = accept(listener.borrow(), &permits) => accepted,
            () = &mut shutdown => break,
        };
        let (stream, address, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_connection(&error) => continue,
            Err(error) if failures == ACCEPT_FAILURES => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections at the moment");
                failures += 1;
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        failures = 0;
        let Some(of_address) = addresses.enter(address.ip(), limits.of_address) else {
            tracing::debug!(%address, "an address has as many connections as it may");
            continue;
        };
        let stream = Paced::new(stream, Pace { pause: limits.write_pause, rate: limits.write_rate });
        let (http, watcher, routes) = (http.clone(), graceful.watcher(), routes.clone());
        let acceptor = tls.as_ref().map(Tls::acceptor);
        let mut ending = ending.subscribe();
        tokio::spawn(async move {
            let _permits = (permit, of_address);
            let Some(acceptor) = acceptor else {
                return answer(stream, &http, watcher, from(routes, address)).await;
            };
            let begun = tokio::select! {
                begun = timeout(limits.head_time, acceptor.accept(stream)) => begun,
                // It has no request yet.
                _ = ending.wait_for(|ending| *ending) => return,
            };
            match begun {
                Ok(Ok(stream)) => answer(stream, &http, watcher, from(routes, address)).await,
                Ok(Err(error)) => tracing::debug!(%error, "a connection is not of TLS as it is spoken here"),
                Err(_) => tracing::debug!("a connection was too slow to begin"),
            }
        });
    }
    drop(listener);
    ending.send_replace(true);
    drain();
    // hyper closes a connection of which it has read nothing yet, and the last ones may have sent their requests.
    sleep(FIRST_BYTES).await;
    if timeout(limits.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still in work at the end");
    }
    Ok(())
}

/// Answers the requests of a connection.
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
        tracing::debug!(%error, "a connection broke off");
    }
}

/// The same routes, for requests that know where they come from.
fn from<S>(
    routes: S,
    address: SocketAddr,
) -> MapRequest<S, impl FnMut(Request<Incoming>) -> Request<Incoming> + Clone>
where
    S: Service<Request<Incoming>>,
{
    let address = address.ip().to_canonical();
    routes.map_request(move |mut request: Request<Incoming>| {
        if !address.is_loopback() {
            request.extensions_mut().insert(Remote(address));
        }
        request
    })
}

/// Waits for a permit first, so that a connection too many stays in the system's queue.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, address) = listener.accept().await?;
    stream.set_nodelay(true)?;
    pace::hold_little(&stream)?;
    Ok((stream, address, permit))
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, InvalidInput};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | InvalidInput)
}
