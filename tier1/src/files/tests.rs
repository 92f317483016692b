//! Files for tests.

pub(crate) mod simulated;
