//! The two text formats of a scrape: OpenMetrics, and the classic Prometheus format for clients that accept
//! only that.

use std::collections::HashMap;

use axum::http::{HeaderMap, header};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use crate::problem::Problem;

/// Media type of the OpenMetrics format.
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Media type of the classic Prometheus format.
pub(crate) const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Selects the media type for a client: OpenMetrics, unless the client prefers plain text.
pub(crate) fn wanted(headers: &HeaderMap) -> &'static str {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let (mut openmetrics, mut classic, mut any) = (None, None, None);
    for range in accepted.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
        let best = match &*kind {
            "application/openmetrics-text" => &mut openmetrics,
            "text/plain" | "text/*" => &mut classic,
            "*/*" => &mut any,
            _ => continue,
        };
        *best = Some(best.map_or(quality, |best: f32| best.max(quality)));
    }
    let (openmetrics, classic) = (openmetrics.or(any), classic.or(any));
    if classic.unwrap_or(0.0) > openmetrics.unwrap_or(0.0) { CLASSIC } else { OPENMETRICS }
}

/// Encodes the registry in the format of this media type.
pub(crate) fn encode(registry: &Registry, media_type: &str) -> Result<String, Problem> {
    let mut out = String::new();
    text::encode(&mut out, registry).map_err(|error| {
        tracing::error!(%error, "cannot encode the metrics; the scrape gets 500");
        Problem::internal()
    })?;
    Ok(if media_type == CLASSIC { classic(&out) } else { out })
}

/// Converts OpenMetrics to the classic format.
///
/// OpenMetrics names a counter without the suffix `_total` of its samples, and an info without `_info`. The
/// classic format names both like their samples. It has no infos, no units, and no end marker.
fn classic(openmetrics: &str) -> String {
    let mut out = String::with_capacity(openmetrics.len());
    // The name in a HELP line depends on the TYPE line, which comes after it. The types are therefore
    // collected first.
    let types = openmetrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let types: HashMap<&str, &str> = types.collect();
    let suffix = |kind: Option<&str>| match kind {
        Some("counter") => "_total",
        Some("info") => "_info",
        _ => "",
    };
    for line in openmetrics.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), Some(help)) => {
                let suffix = suffix(types.get(name).copied());
                out.extend(["# HELP ", name, suffix, " ", help, "\n"]);
            }
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let suffix = suffix(Some(kind));
                let kind = match kind {
                    "info" => "gauge",
                    "unknown" => "untyped",
                    kind => kind,
                };
                out.extend(["# TYPE ", name, suffix, " ", kind, "\n"]);
            }
            (Some("#"), ..) => {}
            _ => out.extend([line, "\n"]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn clients_that_prefer_plain_text_get_it() {
        let of = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
            wanted(&headers)
        };
        assert_eq!(wanted(&HeaderMap::new()), OPENMETRICS);
        for accept in [
            "*/*",
            "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "text/html",
            "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5",
        ] {
            assert_eq!(of(accept), OPENMETRICS, "{accept}");
        }
        for accept in
            ["text/plain", "Text/Plain; version=0.0.4", "application/openmetrics-text;q=0.2,text/*;q=0.9"]
        {
            assert_eq!(of(accept), CLASSIC, "{accept}");
        }
    }

    #[test]
    fn the_classic_form_names_things_as_their_samples() {
        let openmetrics = "# HELP a Things.\n# TYPE a counter\na_total{x=\"# HELP a y\"} 1\n# HELP b What is.\n\
            # TYPE b info\nb_info{v=\"1\"} 1\n# HELP s Time.\n# TYPE s histogram\n# UNIT s seconds\ns_sum 0.5\n# EOF\n";
        let expected = "# HELP a_total Things.\n# TYPE a_total counter\na_total{x=\"# HELP a y\"} 1\n\
            # HELP b_info What is.\n# TYPE b_info gauge\nb_info{v=\"1\"} 1\n# HELP s Time.\n# TYPE s histogram\ns_sum 0.5\n";
        assert_eq!(classic(openmetrics), expected);
    }
}
