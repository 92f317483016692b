//! Names of types: the types of a source, bare participles, and names that two public types share.

use std::collections::BTreeMap;

/// Participles and pronouns that say nothing of the thing they name.
const PARTICIPLES: [&str; 31] = [
    "Applied", "Asked", "Awaited", "Begun", "Called", "Dealt", "Done", "Each", "Found", "Given", "Heard",
    "Here", "Joined", "Kept", "Known", "Left", "Made", "Met", "Named", "Noted", "Reached", "Said", "Seen",
    "Sent", "Shown", "Taken", "There", "Told", "Wanted", "Whom", "Written",
];

/// Names that two public types may share, because the path of the module tells them apart.
const SHARED: [&str; 4] = ["Config", "Error", "Limits", "Result"];

/// A type that a source declares outside of functions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) is_public: bool,
}

/// The types that a source declares at its top level. `source` is the code of the product alone.
pub(crate) fn declared(source: &str) -> Vec<Declared> {
    (1..).zip(source.lines()).filter_map(|(line, text)| declaration(line, text)).collect()
}

fn declaration(line: usize, text: &str) -> Option<Declared> {
    let (is_public, rest) = match text.strip_prefix("pub") {
        Some(rest) if rest.starts_with(' ') => (true, rest.trim_start()),
        Some(rest) => (false, rest.split_once(") ")?.1),
        None => (false, text),
    };
    let kinds = ["struct ", "enum ", "trait ", "union ", "type "];
    let rest = kinds.into_iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(Declared { line, name: rest[..end].to_owned(), is_public })
}

/// Whether a name is a bare participle or pronoun.
pub(crate) fn is_participle(name: &str) -> bool {
    PARTICIPLES.contains(&name)
}

/// Names that several public types share, with the places of these types. `types` lists the name and the place of each public
/// type.
pub(crate) fn shared(types: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, place) in types.into_iter().filter(|(name, _)| !SHARED.contains(&name.as_str())) {
        places.entry(name).or_default().push(place);
    }
    let several = places.into_iter().filter(|(_, places)| places.len() > 1);
    several.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_a_source_are_found_with_their_visibility() {
        let source =
            "pub struct Page {\n    struct Inner;\n}\npub(crate) enum Kind<T> {}\ntrait Told {}\nfn f() {}\n";
        let found = declared(source);
        let found: Vec<_> = found.iter().map(|one| (one.line, one.name.as_str(), one.is_public)).collect();
        assert_eq!(found, [(1, "Page", true), (4, "Kind", false), (5, "Told", false)]);
    }

    #[test]
    fn a_name_of_two_public_types_is_reported_with_both_places() {
        let types = [("Page", "a.rs:1"), ("Error", "a.rs:2"), ("Error", "b.rs:1"), ("Page", "b.rs:2")];
        let types = types.map(|(name, place)| (name.to_owned(), place.to_owned()));
        assert_eq!(shared(types), ["Page: a.rs:1, b.rs:2"]);
        assert!(is_participle("Told") && !is_participle("ToldPage"));
    }
}
