//! Detects pages that only redirect the reader.

use url::Url;

use super::html::Page;

/// HTML of at least this many bytes is content, whatever it says.
const STUB_BYTES: usize = 4_000;
/// A refresh with a longer delay, in seconds, leaves time to read: the page is content.
const MAX_DELAY: u64 = 10;

/// The URL to which a page with `bytes` bytes of HTML at `url` redirects, if it is a redirect.
pub(crate) fn target(url: &str, page: &Page, bytes: usize) -> Option<String> {
    if bytes >= STUB_BYTES {
        return None;
    }
    let refresh = page.refreshes.iter().find_map(|content| refresh(content));
    let by_refresh = refresh.filter(|(delay, _)| *delay <= MAX_DELAY).map(|(_, reference)| reference);
    let by_script = || {
        let scripts = page.scripts.iter().filter(|_| !page.has_body);
        scripts.filter_map(|script| location_set(script)).next()
    };
    let reference = by_refresh.or_else(by_script)?;
    let target = resolve(url, page.base.as_deref(), &reference)?;
    let own = resolve(url, None, "");
    (own.as_deref() != Some(&*target) && target != url).then_some(target)
}

/// Resolves a reference found on the page at `url`. The result has no fragment.
pub(crate) fn resolve(url: &str, base: Option<&str>, reference: &str) -> Option<String> {
    let own = Url::parse(url).ok()?;
    let base = base.and_then(|base| own.join(base).ok()).unwrap_or(own);
    let mut target = base.join(reference).ok()?;
    target.set_fragment(None);
    matches!(target.scheme(), "http" | "https" | "file").then(|| target.into())
}

/// The delay in seconds and the URL reference of a refresh, by the shared declarative refresh steps of the HTML
/// standard. An empty reference means the page itself.
pub(crate) fn refresh(content: &str) -> Option<(u64, String)> {
    const SPACE: [char; 5] = ['\t', '\n', '\u{c}', '\r', ' '];
    let rest = content.trim_start_matches(SPACE);
    let after_digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &rest[..rest.len() - after_digits.len()];
    if digits.is_empty() && !after_digits.starts_with('.') {
        return None;
    }
    let delay = match digits {
        "" => 0,
        digits => digits.parse().unwrap_or(u64::MAX),
    };
    let rest = after_digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !rest.is_empty() && !rest.starts_with([';', ',']) && !rest.starts_with(SPACE) {
        return None;
    }
    let rest = rest.trim_start_matches(SPACE);
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest);
    let rest = rest.trim_start_matches(SPACE);
    let named = rest
        .get(..3)
        .filter(|name| name.eq_ignore_ascii_case("url"))
        .and_then(|name| rest[name.len()..].trim_start_matches(SPACE).strip_prefix('='))
        .map(|value| value.trim_start_matches(SPACE));
    let value = named.unwrap_or(rest);
    let value = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].split(quote).next().unwrap_or_default(),
        _ => value,
    };
    Some((delay, value.to_owned()))
}

/// The string to which a script sets the location of the page, if it does.
pub(crate) fn location_set(script: &str) -> Option<String> {
    script.match_indices("location").find_map(|(at, word)| {
        let before = script[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            return None;
        }
        let rest = script[at + word.len()..].trim_start();
        let assigned = |rest: &str| Some(rest.trim_start().strip_prefix('=')?.trim_start().to_owned());
        let called = |name: &str| {
            let arguments = rest.strip_prefix(name)?.trim_start().strip_prefix('(')?;
            Some(arguments.trim_start().to_owned())
        };
        let value = assigned(rest)
            .or_else(|| assigned(rest.strip_prefix(".href")?))
            .or_else(|| called(".replace"))
            .or_else(|| called(".assign"))?;
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let literal = value[1..].split(quote).next()?;
        Some(literal.replace('\\', ""))
    })
}
