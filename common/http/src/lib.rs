//! HTTP connections: bounded in number, in the time of their heads and in the patience with clients that do not
//! read, and drained at the end. The public front door and the listeners between roles answer through [`serve`].
#![forbid(unsafe_code)]

use std::borrow::Borrow;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tower::Service;

/// Pause after an accept that failed for want of resources, such as files.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Accepts that may fail so one after the other: a minute without a connection is the end.
const ACCEPT_FAILURES: u32 = 60;

/// The limits of a listener's connections.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// Connections open at once. One too many stays in the system's queue.
    pub open: usize,
    /// The longest time the head of a request may take, and the longest a connection may be idle.
    pub head_time: Duration,
    /// The longest a client may go without reading what it asked for.
    pub write_pause: Duration,
    /// How long requests in work may go on at the end.
    pub drain: Duration,
}

/// Answers connections of `listener` until `shutdown` completes; then takes no more, calls `drain`, which is to end
/// requests that wait, and lets those in work go on for the time of [`Connections::drain`] at most.
///
/// A listener that is lent goes on to queue connections meanwhile, for whoever answers next; one that is given is closed.
///
/// # Errors
/// When no connection could be accepted for a minute.
pub async fn serve<S>(
    listener: impl Borrow<TcpListener>,
    routes: S,
    limits: Connections,
    shutdown: impl Future<Output = ()>,
    drain: impl FnOnce(),
) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let service = TowerToHyperService::new(routes);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time);
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(limits.open));
    let mut failures = 0;
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = accept(listener.borrow(), &permits) => accepted,
            () = &mut shutdown => break,
        };
        let (stream, permit) = match accepted {
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
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(limits.write_pause));
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service.clone());
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            let _permit = permit;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
    drop(listener);
    drain();
    if timeout(limits.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still in work at the end");
    }
    Ok(())
}

/// Waits for a permit first, so that a connection too many stays in the system's queue.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, permit))
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, InvalidInput};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | InvalidInput)
}
