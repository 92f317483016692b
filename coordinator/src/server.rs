//! The front door at a listener, until it is to end.

use std::future::Future;
use std::io;

use doppel_http::Connections;
use tokio::net::TcpListener;

use crate::app::App;
use crate::hosts::Hosts;
use crate::limits::{CONNECTIONS, HEAD_TIME};
use crate::router;

/// Answers connections of `listener`, where it is asked by one of `hosts`, until `shutdown` completes; then takes no more, ends long polls, and
/// lets requests in work go on for the time of `Limits::drain` at most.
///
/// # Errors
/// When no connection could be accepted for a minute.
pub async fn serve(
    listener: TcpListener,
    (state, hosts): (App, Hosts),
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let limits = Connections {
        open: CONNECTIONS,
        head_time: HEAD_TIME,
        write_pause: state.limits().write_pause,
        drain: state.limits().drain,
    };
    tokio::spawn(state.clone().note_load());
    tokio::spawn(state.clone().note_load_points());
    doppel_http::serve(listener, router::app(state.clone(), hosts), limits, shutdown, || state.drain()).await
}
