//! Redirects in content: small pages with nothing but a meta refresh or a script that sets the location.

use super::html::Document;
use doppel_model::PageUrl;

/// Pages of this many bytes or more are never redirects.
pub(super) const HTML_BYTES: usize = 4_000;

/// The target of a small page, if it redirects to another URL than its own.
pub(super) fn target(url: &PageUrl, document: &Document) -> Option<PageUrl> {
    let other = |link: &str| {
        if link.is_empty() {
            return None;
        }
        let target = document.base(url).redirect_target(link).ok()?;
        (!target.is_spelling_of(url)).then_some(target)
    };
    if let Some(target) = document.refresh.as_deref().and_then(other) {
        return Some(target);
    }
    if document.has_body {
        return None;
    }
    location(std::str::from_utf8(&document.script).ok()?).and_then(other)
}

/// The string literal that a script sets the location to: `window.location = "x"`,
/// `location.href='x'`, `location.replace("x")` or `location.assign("x")`, also of document, self, top or parent.
fn location(script: &str) -> Option<&str> {
    let mut rest = script;
    loop {
        let at = rest.find("location")?;
        let (before, after) = (&rest[..at], &rest[at + "location".len()..]);
        rest = after;
        if let Some(literal) = standalone(before).then(|| assigned(after)).flatten() {
            return Some(literal);
        }
    }
}

/// Whether `location` after this text is the location of the page itself.
fn standalone(before: &str) -> bool {
    let name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let Some(owner) = before.strip_suffix('.') else {
        return !before.ends_with(name);
    };
    let start = owner.rfind(|c| !name(c)).map_or(0, |at| at + 1);
    matches!(&owner[start..], "window" | "document" | "self" | "top" | "parent")
}

/// The string literal that `location` is set to in the text after it.
fn assigned(after: &str) -> Option<&str> {
    let after = after.trim_ascii_start();
    let called = ["replace", "assign"]
        .iter()
        .find_map(|call| after.strip_prefix('.')?.strip_prefix(call)?.trim_ascii_start().strip_prefix('('));
    let value = match called {
        Some(value) => value,
        None => {
            let after = after.strip_prefix(".href").unwrap_or(after).trim_ascii_start();
            after.strip_prefix('=').filter(|value| !value.starts_with('='))?
        }
    };
    let value = value.trim_ascii_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let literal = value[1..].split_once(quote)?.0;
    // A literal with an escape or a placeholder is not taken.
    let plain = !literal.contains(['\\', '\n']) && (quote != '`' || !literal.contains("${"));
    plain.then_some(literal)
}

#[cfg(test)]
mod tests;
