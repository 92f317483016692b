//! The index against the definition, on made-up and on real collections.

mod bands;
mod centers;
mod disk;
mod epochs;
mod fail_over;
mod far;
mod history;
mod mapping;
mod model;
mod node;
mod real;
mod service;
mod snapshot;
mod source;
mod turns;
