//! Parsers of the options that describe a new cluster or a change of one.

use doppel_control::description::{Tier2Node, unspecified};
use doppel_control::log::{check_monitor, check_server};
use doppel_protocol::Settlement;

/// URL of a server of the log.
pub(crate) fn server(text: &str) -> Result<String, String> {
    check_server(text)?;
    Ok(text.to_owned())
}

/// URL of the monitor of a log server.
pub(crate) fn monitor(text: &str) -> Result<String, String> {
    check_monitor(text)?;
    Ok(text.trim_end_matches('/').to_owned())
}

/// Settlement by its name.
pub(crate) fn settlement(text: &str) -> Result<Settlement, String> {
    match text {
        "log" => Ok(Settlement::Log),
        "standby" => Ok(Settlement::Standby),
        _ => Err("`log` or `standby` is expected".to_owned()),
    }
}

/// Number of copies of a stream of the log.
pub(crate) fn log_replicas(text: &str) -> Result<u16, String> {
    let replicas = text.parse().ok().filter(|replicas| [1, 3, 5].contains(replicas));
    replicas.ok_or_else(|| "1, 3 or 5 is expected".to_owned())
}

/// Name and address of a node, as `NAME=HOST:PORT`.
pub(crate) fn node(text: &str) -> Result<Tier2Node, String> {
    let (name, address) =
        text.split_once('=').ok_or("NAME=HOST:PORT is expected, such as index-1=10.0.0.2:7802")?;
    let name = name.parse().map_err(|error: doppel_wire::InvalidNodeName| error.to_string())?;
    if let Some(all) = unspecified(address) {
        return Err(format!(
            "{all} stands for all addresses of a machine, and under it no other machine reaches this node; name the address that \
             the others reach it at. To listen on all, start the node with --listen {address}"
        ));
    }
    Ok(Tier2Node { name, address: address.to_owned() })
}
