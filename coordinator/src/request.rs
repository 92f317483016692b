//! Reads requests: their ids, parameters and bodies.
//!
//! Invariant: the memory budget covers every body before the body is stored (guarantee G6). An invalid value
//! becomes a problem that names the parameter or field.

pub(crate) mod body;
pub(crate) mod buffer;
pub(crate) mod extract;
pub(crate) mod id;
pub(crate) mod memory;
pub(crate) mod query;
