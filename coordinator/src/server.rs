//! The front door at its listeners, until it is to end.

use std::future::Future;
use std::io;
use std::time::Duration;

use doppel_http::{Connections, Listening};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::access::{Access, Gate, Listener};
use crate::app::App;
use crate::limits::{ADDRESS_CONNECTIONS, CONNECTIONS, HEAD_TIME, WRITE_RATE};
use crate::router;

/// Where a front door listens, and whom it answers there.
#[derive(Debug)]
pub struct Doors {
    /// For clients.
    pub clients: Listening<TcpListener>,
    /// For operators; what needs their role is answered nowhere else then.
    pub operators: Option<Listening<TcpListener>>,
    /// By which rules.
    pub access: Access,
}

impl From<TcpListener> for Doors {
    /// One listener for all, in the clear and without tokens.
    fn from(listener: TcpListener) -> Self {
        Self { clients: listener.into(), operators: None, access: Access::default() }
    }
}

/// Answers connections until `shutdown` completes; then takes no more, ends long polls, and lets requests in work go on for the time
/// of `Limits::drain` at most.
///
/// # Errors
/// When no connection could be accepted for a minute.
pub async fn serve(
    doors: impl Into<Doors>,
    state: App,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let Doors { clients, operators, access } = doors.into();
    tokio::spawn(state.clone().note_load());
    tokio::spawn(state.clone().note_load_points());
    let ended = watch::Sender::new(false);
    let at = |listening, listener| {
        let limits = connections(state.limits().write_pause, state.limits().drain);
        let routes = router::app(state.clone(), Gate::new(access.clone(), listener, state.clients()));
        let (state, ended) = (state.clone(), told(&ended));
        async move { doppel_http::serve(listening, routes, limits, ended, || state.drain()).await }
    };
    let (main, other) = match operators {
        None => (at(clients, Listener::Only), None),
        Some(operators) => (at(clients, Listener::Clients), Some(at(operators, Listener::Operators))),
    };
    at_doors(main, other, shutdown, &ended).await
}

/// The limits of the connections of a front door.
pub(crate) fn connections(write_pause: Duration, drain: Duration) -> Connections {
    Connections {
        open: CONNECTIONS,
        of_address: ADDRESS_CONNECTIONS,
        head_time: HEAD_TIME,
        write_pause,
        write_rate: WRITE_RATE,
        drain,
    }
}

/// Completes when it is told that the doors are to end.
pub(crate) fn told(ended: &watch::Sender<bool>) -> impl Future<Output = ()> + use<> {
    let mut ended = ended.subscribe();
    async move { drop(ended.wait_for(|ended| *ended).await) }
}

/// Answers at the doors until both have ended, which they are [`told`] to when `over` completes. One that fails ends the other,
/// because its requests would meet half a service.
pub(crate) async fn at_doors(
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
