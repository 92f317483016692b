//! The links of pages, and the anchors of their headings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A link of a page: its line, and where it leads.
struct Link {
    line: usize,
    target: String,
}

/// Relative links of the page that lead to no file or no heading.
pub(crate) fn broken(root: &Path, path: &str) -> Vec<String> {
    let text = fs::read_to_string(root.join(path)).unwrap();
    let mut wrong = Vec::new();
    for Link { line, target } in links(&text) {
        let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
        let file = if file.is_empty() { path.to_owned() } else { beside(path, file) };
        let whole = root.join(&file);
        if !whole.exists() {
            wrong.push(format!("{path}:{line}: {target}: there is no {file}"));
        } else if !anchor.is_empty() && file.ends_with(".md") {
            let anchors = anchors(&fs::read_to_string(&whole).unwrap());
            if !anchors.contains(anchor) {
                let there = anchors.into_iter().collect::<Vec<_>>().join(", ");
                wrong.push(format!("{path}:{line}: {target}: {file} has no such heading, but {there}"));
            }
        }
    }
    wrong
}

/// Paths of the pages below docs/ to which the page leads, step by step.
pub(crate) fn reached(root: &Path, path: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::from([path.to_owned()]);
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(text) = fs::read_to_string(root.join(&path)) else { continue };
        for Link { target, .. } in links(&text) {
            let file = beside(&path, target.split('#').next().unwrap());
            if file.starts_with("docs/") && file.ends_with(".md") && reached.insert(file.clone()) {
                left.push(file);
            }
        }
    }
    reached
}

/// The path of a file that is named relative to the page.
fn beside(page: &str, file: &str) -> String {
    let mut path = PathBuf::new();
    for part in Path::new(page).parent().unwrap().join(file).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    path.display().to_string()
}

/// The text with code blanked out, so that lines stay where they are.
fn without_code(text: &str) -> String {
    let mut kept = String::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let bare = line.trim();
        match fence {
            Some(end) if bare == end => fence = None,
            Some(_) => {}
            None if bare.starts_with("```") || bare.starts_with("~~~") => {
                fence = Some(&bare[..bare.len() - bare.trim_start_matches(['`', '~']).len()]);
            }
            None => kept.push_str(line),
        }
        kept.push('\n');
    }
    let mut text = String::new();
    for paragraph in kept.split_inclusive("\n\n") {
        let mut rest = paragraph;
        while let Some(at) = rest.find('`') {
            let (before, code) = rest.split_at(at);
            text.push_str(before);
            let ticks = code.len() - code.trim_start_matches('`').len();
            let Some(end) = code[ticks..].find(&code[..ticks]) else {
                rest = &code[ticks..];
                continue;
            };
            let whole = ticks + end + ticks;
            text.extend(code[..whole].chars().filter(|&c| c == '\n'));
            rest = &code[whole..];
        }
        text.push_str(rest);
    }
    text
}

/// The relative links of a page: of Markdown, and `href` and `src` of HTML.
fn links(text: &str) -> Vec<Link> {
    let text = without_code(text);
    let mut links = Vec::new();
    for (begin, end) in [("](", ")"), ("href=\"", "\""), ("src=\"", "\""), ("srcset=\"", "\""), ("]: ", "\n")]
    {
        for (at, _) in text.match_indices(begin) {
            let Some((target, _)) = text[at + begin.len()..].split_once(end) else { continue };
            let target = target.split_whitespace().next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let line = text[..at].lines().count().max(1);
            links.push(Link { line, target: target.to_owned() });
        }
    }
    links
}

/// The anchors of a page, as GitHub makes them of its headings, and those that it names in HTML.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && line.starts_with('#') {
            let name = anchor(line.trim_start_matches('#').trim());
            let count = counts.entry(name.clone()).or_default();
            anchors.insert(if *count == 0 { name } else { format!("{name}-{count}") });
            *count += 1;
        }
        for begin in ["id=\"", "name=\""] {
            let named = line.split(begin).skip(1).filter_map(|rest| rest.split('"').next());
            anchors.extend(named.map(str::to_owned));
        }
    }
    anchors
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    // A link contributes its text to the anchor, not its target.
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let kept = text.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_and_anchors_are_found() {
    let text = "# A [b](c.md) `d`, e\n\n[x](y.md#z) `[no](no.md)` <img src=\"p.svg\">\n\n```sh\n[no](no.md)\n```\n## A\n## A\n";
    let targets: Vec<String> = links(text).into_iter().map(|link| link.target).collect();
    assert_eq!(targets, ["c.md", "y.md#z", "p.svg"]);
    assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), ["a", "a-1", "a-b-d-e"]);
    assert_eq!(
        [beside("docs/a/b.md", "../c.md"), beside("README.md", "docs/d.md")],
        ["docs/c.md", "docs/d.md"]
    );
}
