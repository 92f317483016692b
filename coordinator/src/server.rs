//! Serves the coordinator's HTTP interface at its listeners until the process shuts down.

pub(crate) mod fast_path;
pub(crate) mod middleware;
pub(crate) mod startup;
#[cfg(feature = "otel")]
mod tracing_context;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use doppel_http::{ConnectionLimits, ServerListener};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::access::{Access, AdmissionCheck, Listener};
use crate::app::App;
use crate::limits::{ADDRESS_CONNECTIONS, CONNECTIONS, HEAD_TIME, WRITE_RATE};
use crate::routes;

/// Listeners of a coordinator, with their access rules.
#[derive(Debug)]
pub struct ServerListeners {
    /// Listener for all clients.
    pub clients: ServerListener<TcpListener>,
    /// Listener for operators, if they have one of their own. The listener for clients then refuses
    /// operations that need the operator role.
    pub operators: Option<ServerListener<TcpListener>>,
    /// Access rules for both listeners.
    pub access: Access,
}

impl From<TcpListener> for ServerListeners {
    /// Creates a single listener for clients and operators, without TLS and without tokens.
    fn from(listener: TcpListener) -> Self {
        Self { clients: listener.into(), operators: None, access: Access::default() }
    }
}

/// Serves connections until `shutdown` completes. Then it accepts no more connections, ends long polls, and
/// lets requests in progress continue for up to `Limits::drain`.
///
/// # Errors
/// If no connection could be accepted for a minute.
pub async fn serve(
    listeners: impl Into<ServerListeners>,
    state: App,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let ServerListeners { clients, operators, access } = listeners.into();
    tokio::spawn(state.clone().record_balance_history());
    tokio::spawn(state.clone().record_load_history());
    let ended = watch::Sender::new(false);
    let at = |listening, listener| {
        let admission = AdmissionCheck::new(access.clone(), listener, state.clients());
        serve_listener(listening, state.clone(), admission, &ended)
    };
    let (main, other) = match operators {
        None => (at(clients, Listener::Only), None),
        Some(operators) => (at(clients, Listener::Clients), Some(at(operators, Listener::Operators))),
    };
    serve_both(main, other, shutdown, &ended).await
}

/// Serves one listener until `ended` becomes true. The future is boxed so that this crate contains the code
/// of a connection, and not each caller of [`serve`].
fn serve_listener(
    listening: ServerListener<TcpListener>,
    state: App,
    admission: AdmissionCheck,
    ended: &watch::Sender<bool>,
) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>> {
    let limits = connections(state.limits().write_pause, state.limits().drain);
    let routes = routes::http_service(state.clone(), admission);
    let ended = until_set(ended);
    Box::pin(async move { doppel_http::serve(listening, routes, limits, ended, || state.drain()).await })
}

/// Returns the limits for the connections of a coordinator.
pub(crate) fn connections(write_pause: Duration, drain: Duration) -> ConnectionLimits {
    ConnectionLimits {
        open: CONNECTIONS,
        of_address: ADDRESS_CONNECTIONS,
        head_time: HEAD_TIME,
        write_pause,
        write_rate: WRITE_RATE,
        drain,
    }
}

/// Returns a future that completes when `ended` becomes true.
pub(crate) fn until_set(ended: &watch::Sender<bool>) -> impl Future<Output = ()> + use<> {
    let mut ended = ended.subscribe();
    async move { drop(ended.wait_for(|ended| *ended).await) }
}

/// Serves both listeners until both have ended. When `over` completes, this function sets `ended`, for which
/// each listener waits ([`until_set`]).
///
/// If one listener fails, the other ends too, because it alone would serve only a part of the operations.
pub(crate) async fn serve_both(
    clients: impl Future<Output = io::Result<()>>,
    operators: Option<impl Future<Output = io::Result<()>>>,
    over: impl Future<Output = ()>,
    ended: &watch::Sender<bool>,
) -> io::Result<()> {
    let operators = async {
        match operators {
            Some(operators) => operators.await,
            None => Ok(()),
        }
    };
    let end = async {
        over.await;
        ended.send_replace(true);
    };
    let served = async { tokio::try_join!(clients, operators).map(drop) };
    tokio::pin!(served);
    tokio::select! {
        served = &mut served => served,
        () = end => served.await,
    }
}
