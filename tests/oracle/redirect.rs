//! Finds pages that redirect their readers, by the rule of docs/reference/text.md alone. It works on the tree
//! that html5ever builds of the page for a browser with scripts.

use std::rc::Rc;

use doppel_baseline::tokens::each_token;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document, tendril::TendrilSink};
use url::Url;

use super::dom::{Dom, Element, Kind, Node};
use super::script;

/// A page that shows at least this many words is no redirect.
const WORDS: usize = 20;

/// Elements whose words are not shown. Elements inside them have no effect.
const UNSEEN: [&str; 5] = ["noscript", "template", "iframe", "noembed", "noframes"];

/// What a page shows and declares, in the order of the page.
#[derive(Default)]
struct PageFacts {
    text: String,
    links: Vec<String>,
    /// The first base URL so far, resolved.
    base: Option<Url>,
    /// The first valid refresh: its delay, its URL as written, and the resolved URL.
    refresh: Option<(u64, String, Url)>,
    /// The target of the last script that sets the location: as written, and resolved.
    script: Option<(String, Url)>,
    /// The target of the script before the last one.
    script_before: Option<(String, Url)>,
    is_cut_in_script: bool,
    has_frames: bool,
}

/// The URL to which a page at `url` redirects. `None` if the page is no redirect. An absolute URL keeps the
/// spelling of the page.
pub(crate) fn target(url: &str, source: &str) -> Option<String> {
    let own = Url::parse(url).ok()?;
    let options = ParseOpts {
        tree_builder: TreeBuilderOpts { scripting_enabled: true, ..TreeBuilderOpts::default() },
        ..ParseOpts::default()
    };
    let document = parse_document(Dom::default(), options).one(source);
    let mut facts = PageFacts::default();
    // A script without an end tag is not executed, and the page ends with it.
    let lower = source.to_ascii_lowercase();
    facts.is_cut_in_script = lower.rfind("<script") > lower.rfind("</script");
    facts.see(&own, &document.root);
    let mut words = 0;
    each_token(&facts.text, |_| words += 1);
    if words >= WORDS {
        return None;
    }
    if facts.is_cut_in_script {
        facts.script = facts.script_before.take();
    }
    let leads_away = |target: &Url| {
        let mut target = target.clone();
        target.set_fragment(None);
        let mut own = own.clone();
        own.set_fragment(None);
        (target != own && matches!(target.scheme(), "http" | "https" | "file")).then(|| String::from(target))
    };
    let by_refresh = facts.refresh.as_ref().and_then(|(delay, written, target)| {
        let target = leads_away(target).filter(|_| !written.is_empty())?;
        let counts = *delay <= 1 || *delay <= 10 && facts.names(&own, written, &target);
        counts.then(|| spelled(written, &target))
    });
    let by_script =
        || facts.script.as_ref().and_then(|(written, url)| Some(spelled(written, &leads_away(url)?)));
    by_refresh.or_else(by_script)
}

/// The target in the spelling of the reference, if the reference is an absolute URL.
fn spelled(reference: &str, target: &str) -> String {
    let as_sent = as_sent(reference).filter(|url| normal(url).as_deref() == Some(target));
    as_sent.unwrap_or(target).to_owned()
}

impl PageFacts {
    fn see(&mut self, own: &Url, root: &Rc<Node>) {
        let mut work = vec![(root.clone(), true)];
        while let Some((node, is_shown)) = work.pop() {
            match &node.kind {
                Kind::Text(text) if is_shown && !self.has_frames => self.text.push_str(&text.borrow()),
                Kind::Element(element) => {
                    self.text.push(' ');
                    let hidden = is_hidden(element);
                    self.note(own, &node, element, is_shown && !hidden);
                    let name = element.name();
                    if UNSEEN.contains(&name) {
                        continue;
                    }
                    let shown = is_shown && !hidden && !matches!(name, "title" | "script" | "style");
                    // The end tag counts as a space.
                    work.push((Node::text(" "), true));
                    work.extend(node.children.borrow().iter().rev().map(|child| (child.clone(), shown)));
                }
                Kind::Text(_) => {}
                Kind::Other => {
                    work.extend(node.children.borrow().iter().rev().map(|child| (child.clone(), is_shown)));
                }
            }
        }
    }

    fn note(&mut self, own: &Url, node: &Rc<Node>, element: &Element, is_shown: bool) {
        let base = self.base.clone().unwrap_or_else(|| own.clone());
        let attribute = |name: &str| element.attribute(name);
        match element.name() {
            "frameset" => self.has_frames = true,
            "base" if self.base.is_none() => {
                if let Some(link) = attribute("href") {
                    let resolved = own.join(&link).ok();
                    let resolved = resolved.filter(|base| !matches!(base.scheme(), "data" | "javascript"));
                    self.base = Some(resolved.unwrap_or_else(|| own.clone()));
                }
            }
            "meta" if self.refresh.is_none() => {
                let is_refresh =
                    attribute("http-equiv").is_some_and(|kind| kind.eq_ignore_ascii_case("refresh"));
                let parsed =
                    attribute("content").filter(|_| is_refresh).and_then(|content| refresh(&content));
                self.refresh = parsed.and_then(|(delay, written)| {
                    let target =
                        base.join(written.trim()).ok().filter(|target| target.scheme() != "javascript")?;
                    Some((delay, written, target))
                });
            }
            "a" | "area" if is_shown => self.links.extend(attribute("href")),
            "script" => {
                self.script_before = self.script.clone();
                if !is_javascript(element) {
                    return;
                }
                let text: String =
                    node.children.borrow().iter().filter_map(|child| child.as_text()).collect();
                if let Some(location) = script::location(&text) {
                    let query = own.query().filter(|_| location.with_query).map(|query| format!("?{query}"));
                    let link = format!("{}{}", location.reference, query.unwrap_or_default());
                    let target = base.join(&link).ok();
                    let leaves = |target: &Url| {
                        let ends = |url: &Url| url.as_str().split('#').next().map(str::to_owned);
                        matches!(target.scheme(), "http" | "https" | "file") && ends(target) != ends(own)
                    };
                    let target = target.filter(leaves).map(|target| (link, target));
                    self.script = target.or(self.script.take());
                }
            }
            _ => {}
        }
    }

    /// Whether the text of the page names the target of its refresh.
    fn names(&self, own: &Url, written: &str, target: &str) -> bool {
        let base = self.base.as_ref().unwrap_or(own);
        let plain = |url: &str| {
            let url = url.split('#').next().unwrap_or_default().to_ascii_lowercase();
            let schemes = ["http://", "https://", "file://", "//"];
            let url =
                schemes.iter().find_map(|scheme| url.strip_prefix(scheme).map(str::to_owned)).unwrap_or(url);
            url.strip_suffix('/').map(str::to_owned).unwrap_or(url)
        };
        let is_linked = self.links.iter().filter_map(|link| base.join(link).ok()).any(|mut link| {
            link.set_fragment(None);
            link.as_str() == target
        });
        let known = [plain(written), plain(target)];
        is_linked
            || self.text.split_whitespace().any(|word| {
                let around = |c: char| ".,;:!?()[]<>\"'".contains(c) || !c.is_ascii() && !c.is_alphanumeric();
                let word = plain(word.trim_matches(around));
                !word.is_empty() && known.contains(&word)
            })
    }
}

fn is_hidden(element: &Element) -> bool {
    let hidden = element.attribute("hidden").is_some_and(|value| !value.eq_ignore_ascii_case("until-found"));
    let style = element.attribute("style").unwrap_or_default().to_ascii_lowercase();
    hidden || winner(&style, "display") == "none" || winner(&style, "visibility") == "hidden"
}

/// The value of a property in a style, in lower case: the last important value, else the last value. Ignores
/// strings and brackets, which occur in no test.
fn winner(style: &str, property: &str) -> String {
    let mut parts = style.split("/*");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once("*/").map_or("", |(_, behind)| behind));
    }
    let plain: String = plain.split_whitespace().collect();
    let values: Vec<&str> = plain
        .split(';')
        .filter_map(|declaration| declaration.split_once(':'))
        .filter(|(name, _)| *name == property)
        .map(|(_, value)| value)
        .collect();
    let important = values.iter().rev().find_map(|value| value.strip_suffix("!important"));
    important.or(values.last().copied()).unwrap_or_default().to_owned()
}

fn is_javascript(element: &Element) -> bool {
    if ["src", "nomodule", "event", "for"].iter().any(|name| element.attribute(name).is_some()) {
        return false;
    }
    let kind = match (element.attribute("type"), element.attribute("language")) {
        (Some(kind), _) => kind.trim().to_ascii_lowercase(),
        (None, Some(language)) if !language.is_empty() => format!("text/{}", language.to_ascii_lowercase()),
        _ => return true,
    };
    kind.is_empty()
        || kind.contains("javascript")
        || kind.contains("ecmascript")
        || matches!(&*kind, "text/jscript" | "text/livescript")
}

/// The URL without its fragment, if a page may have exactly that URL: an absolute URL with a host, without
/// control characters and without spaces around it. `None` otherwise.
pub(crate) fn as_sent(reference: &str) -> Option<&str> {
    let url = reference.split('#').next().unwrap_or_default();
    let (scheme, rest) = url.split_once(':')?;
    let is_slash = |c: char| matches!(c, '/' | '\\');
    let has_host =
        scheme.eq_ignore_ascii_case("file") || rest.chars().take_while(|c| is_slash(*c)).count() == 2;
    let is_clean = url.trim_matches(' ') == url && !url.contains(|c: char| c.is_ascii_control());
    let is_page = Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https" | "file"));
    (is_clean && has_host && is_page && !reference.ends_with(' ')).then_some(url)
}

/// The normal form of a URL, as the WHATWG rules serialise it.
pub(crate) fn normal(url: &str) -> Option<String> {
    Url::parse(url).ok().map(String::from)
}

/// Resolves a reference on the page at `url`. The result is in normal form, and has no fragment.
pub(crate) fn resolve(url: &str, base: Option<&str>, reference: &str) -> Option<String> {
    let own = Url::parse(url).ok()?;
    let base = base.and_then(|base| own.join(base).ok()).unwrap_or(own);
    let mut target = base.join(reference).ok()?;
    target.set_fragment(None);
    matches!(target.scheme(), "http" | "https" | "file").then(|| target.into())
}

/// The delay in seconds and the URL reference of a refresh, by the shared declarative refresh steps of the
/// HTML standard. An empty reference means the page itself.
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
