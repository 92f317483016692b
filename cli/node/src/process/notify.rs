//! Notifies the service manager that has started the process, in systemd's protocol over the socket in
//! `NOTIFY_SOCKET`.
//!
//! Without that variable, no message is sent. A failed notification is logged and never ends the process.

use std::time::Duration;

use sd_notify::NotifyState;

/// Notifies that the process answers requests.
///
/// If the manager sets a watchdog time (`WATCHDOG_USEC`), the process also reports twice in that time that it
/// is alive. The threads that answer requests send these reports, so the reports stop if the threads hang.
pub(crate) fn ready() {
    tell(&NotifyState::Ready);
    if let Some(period) = sd_notify::watchdog_enabled().map(|limit| limit / 2).filter(|half| !half.is_zero())
    {
        tokio::spawn(stay_alive(period));
    }
}

/// Notifies that the process is ending.
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
        tracing::warn!(%error, %state, "cannot notify the service manager");
    }
}
