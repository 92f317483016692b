//! Real crawls.
