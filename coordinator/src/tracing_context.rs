//! Makes the span of a request a part of its caller's trace (feature `otel`), as the header `traceparent` says (W3C Trace Context).

use axum::http::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

struct Headers<'h>(&'h HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

/// Takes the caller's trace, if there is one, and names the span as its operation.
pub(crate) fn adopt(span: &Span, headers: &HeaderMap, method: &str, route: &str) {
    // An error says that nobody takes traces.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
    span.set_attribute("otel.name", format!("{method} {route}"));
    span.set_attribute("http.request.method", method.to_owned());
    span.set_attribute("http.route", route.to_owned());
}
