//! Connections: bounded in number and in the time of their heads, and drained at the end.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::app::App;
use crate::limits::{CONNECTIONS, HEAD_TIME};
use crate::router;

/// Pause after an accept that failed for want of resources.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Answers connections of `listener` until `shutdown` completes; then takes no more, ends long polls, and
/// lets requests in work go on for the time of `Limits::drain`.
///
/// # Errors
/// When requests were still in work at the end of that time.
pub async fn serve(listener: TcpListener, state: App, shutdown: impl Future<Output = ()>) -> io::Result<()> {
    let drain = state.limits().drain;
    let service = TowerToHyperService::new(router::app(state.clone()));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut shutdown => break,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_connection(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections at the moment");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service.clone()));
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
    drop(listener);
    state.drain();
    let waited = timeout(drain, graceful.shutdown()).await;
    waited.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "requests were still in work at the end"))
}

/// Waits for a place first, so that a connection too many stays in the system's queue.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, place))
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, InvalidInput};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | InvalidInput)
}
