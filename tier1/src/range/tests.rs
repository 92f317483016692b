//! Tests of the range, without threads.
