//! Connections: bounded in number, in the time of their heads and in the patience with clients that do not
//! read, and drained at the end.

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

use crate::app::App;
use crate::limits::{CONNECTIONS, HEAD_TIME};
use crate::router;

/// Pause after an accept that failed for want of resources, such as files.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Accepts that may fail so one after the other: a minute without a connection is the end.
const ACCEPT_FAILURES: u32 = 60;

/// Answers connections of `listener` until `shutdown` completes; then takes no more, ends long polls, and
/// lets requests in work go on for the time of `Limits::drain` at most.
///
/// # Errors
/// When no connection could be accepted for a minute.
pub async fn serve(listener: TcpListener, state: App, shutdown: impl Future<Output = ()>) -> io::Result<()> {
    let (write_pause, drain) = (state.limits().write_pause, state.limits().drain);
    let service = TowerToHyperService::new(router::app(state.clone()));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    tokio::spawn(state.clone().note_load());
    let mut failures = 0;
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &permits) => accepted,
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
        stream.set_write_timeout(Some(write_pause));
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
    state.drain();
    if timeout(drain, graceful.shutdown()).await.is_err() {
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
