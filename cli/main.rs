//! The `doppel` command.
fn main() {}
