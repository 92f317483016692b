//! Tests of the index against its definition, with generated and real collections.

mod build;
mod candidates;
mod centers;
mod disk;
mod epochs;
mod fail_over;
mod families;
mod far;
mod history;
mod mapping;
mod model;
mod node;
mod real;
mod reference;
mod service;
mod snapshot;
mod source;
mod turns;
