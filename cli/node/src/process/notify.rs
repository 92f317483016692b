//! What a server process tells the service manager that has started it: systemd's protocol, over the socket that `NOTIFY_SOCKET`
//! names. Where no manager asks for it nothing is told. A manager that cannot be told is no reason to end.

use std::time::Duration;

use sd_notify::NotifyState;

/// The process answers. From now on it also says that it is alive, twice in the time that the manager asks for
/// (`WATCHDOG_USEC`), if it does: from the threads that answer requests, so that it falls silent when these do.
pub(crate) fn ready() {
    tell(&NotifyState::Ready);
    if let Some(period) = sd_notify::watchdog_enabled().map(|limit| limit / 2).filter(|half| !half.is_zero())
    {
        tokio::spawn(stay_alive(period));
    }
}

/// The process is ending.
pub(crate) fn stopping() {
    tell(&NotifyState::Stopping);
}

async fn stay_alive(period: Duration) {
    let mut ticks = tokio::time::interval(period);
    loop {
        ticks.tick().await;
        tell(&NotifyState::Watchdog);
    }
}

fn tell(state: &NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(std::slice::from_ref(state)) {
        tracing::warn!(%error, %state, "the service manager cannot be told");
    }
}
