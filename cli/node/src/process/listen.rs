//! Listening sockets of server processes, with advice for a user whose address cannot be bound.

use std::io;
use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::net::TcpListener;

use super::LISTEN;

/// Binds an address, which `option` gave. Call this first, so that a port in use is noticed before any other
/// work.
///
/// # Errors
/// If the address cannot be bound; the message says what to do.
pub async fn bind(address: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("; is another server running? {option} chooses another address")
            }
            io::ErrorKind::AddrNotAvailable => format!("; {option} takes an address of this machine"),
            io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges".to_owned(),
            _ => String::new(),
        };
        anyhow::Error::new(error).context(format!("cannot listen on {address}{advice}"))
    })
}

/// Like [`bind`], for a node: binds `wanted` if given, otherwise the address at which other nodes reach
/// this node.
///
/// # Errors
/// See [`bind`]; also if the host name of `address` cannot be resolved.
pub async fn bind_node(wanted: Option<SocketAddr>, address: &str) -> anyhow::Result<TcpListener> {
    if let Some(wanted) = wanted {
        return bind(wanted, LISTEN).await;
    }
    let mut found =
        tokio::net::lookup_host(address).await.with_context(|| format!("cannot look up {address}"))?;
    bind(found.next().with_context(|| format!("{address} has no address"))?, LISTEN).await
}
