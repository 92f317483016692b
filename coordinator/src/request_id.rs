//! The id of a request: the one it came with in `x-request-id`, or a new one.
//!
//! Invariants: an id has at most [`REQUEST_ID_BYTES`] visible characters of ASCII, so that a client cannot forge a line
//! of the log; a process makes each id once.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::limits::REQUEST_ID_BYTES;

/// The header, of requests and of answers.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of one request.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(HeaderValue);

/// The ids that a process makes: numbers that follow a random one.
#[derive(Debug)]
pub(crate) struct RequestIds(AtomicU64);

impl Default for RequestIds {
    fn default() -> Self {
        // The hasher has random keys, so two processes that log to one place are unlikely to make the same ids.
        Self(AtomicU64::new(RandomState::new().hash_one(())))
    }
}

impl RequestIds {
    /// The id that the request came with, if it can be taken; or a new one.
    pub(crate) fn id_of(&self, headers: &HeaderMap) -> RequestId {
        let is_sane = |value: &&HeaderValue| {
            let bytes = value.as_bytes();
            (1..=REQUEST_ID_BYTES).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
        };
        let given = headers.get(REQUEST_ID).filter(is_sane).cloned();
        RequestId(given.unwrap_or_else(|| self.0.fetch_add(1, Ordering::Relaxed).into()))
    }
}

impl RequestId {
    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// The id as a header.
    pub(crate) fn into_header(self) -> HeaderValue {
        self.0
    }
}
