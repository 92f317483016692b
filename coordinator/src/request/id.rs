//! Request ids: the value of `x-request-id` that the client sent, or a new id.
//!
//! Invariants: an id has at most [`REQUEST_ID_BYTES`] visible ASCII characters, so that a client cannot forge
//! a log line. A process never generates an id twice.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::limits::REQUEST_ID_BYTES;

/// Header with the request id, in requests and answers.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of one request.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(HeaderValue);

/// Generator of request ids: consecutive numbers that start at a random number.
#[derive(Debug)]
pub(crate) struct RequestIds(AtomicU64);

impl Default for RequestIds {
    fn default() -> Self {
        // The hasher has random keys, so two processes that share a log are unlikely to generate equal ids.
        Self(AtomicU64::new(RandomState::new().hash_one(())))
    }
}

impl RequestIds {
    /// Returns the id that the client sent, if it is valid, or else a new id.
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

    /// Converts the id to a header value.
    pub(crate) fn into_header(self) -> HeaderValue {
        self.0
    }
}
