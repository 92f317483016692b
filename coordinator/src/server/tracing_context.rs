//! Joins the span of a request to the trace of its client (feature `otel`). The header `traceparent` names
//! the trace (W3C Trace Context).

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

/// Joins `span` to the client's trace, if the headers name a trace. Names the span after the method and the
/// route.
pub(crate) fn adopt(span: &Span, headers: &HeaderMap, method: &str, route: &str) {
    // An error means that no tracing layer is installed.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
    span.set_attribute("otel.name", format!("{method} {route}"));
    span.set_attribute("http.request.method", method.to_owned());
    span.set_attribute("http.route", route.to_owned());
}
