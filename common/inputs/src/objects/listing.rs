//! Finds the objects that an input in a store names: a single object, all objects whose keys begin with a
//! prefix, or all objects that match a pattern.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use doppel_crawls::crawl_ending;
use doppel_crawls::record::RecordFile;
use futures_util::TryStreamExt;
use glob::{MatchOptions, Pattern};
use object_store::path::Path as Key;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::Listing;
use super::address::Address;
use super::download::{self, Object};
use doppel_terminal::exit::Failure;

/// Most objects that are listed for an input. The name of each takes some hundred bytes of memory.
const LISTED_MAX: usize = 1_000_000;

/// Patterns match keys as the shell matches paths.
const MATCHING: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Finds the objects that an input names.
///
/// # Errors
/// If the input names no object, or the store does not answer or refuses the request.
pub fn named_by(input: &str) -> anyhow::Result<Listing> {
    let address = Address::parse(input).map_err(|error| Failure::Usage(format!("{input}: {error:#}")))?;
    named_at(&address).with_context(|| format!("cannot read {input}"))
}

fn named_at(address: &Address) -> anyhow::Result<Listing> {
    if address.key.is_empty() || address.key.ends_with('/') {
        return below(address);
    }
    let key = Key::parse(&address.key)?;
    match download::wait(address.store.head(&key))? {
        Ok(found) => {
            let name = RecordFile::single(Path::new(key.as_ref()));
            Ok(Listing { objects: vec![object(address, found, name)], beside: 0 })
        }
        Err(Error::NotFound { .. }) if address.lists && address.key.contains(['*', '?', '[']) => {
            matching(address)
        }
        Err(error) => Err(error.into()),
    }
}

/// Finds the crawl files whose keys begin with the key of the address.
fn below(address: &Address) -> anyhow::Result<Listing> {
    anyhow::ensure!(address.lists, "a web server does not list its files; name one");
    let prefix = address.key.as_str();
    let mut listing = Listing { objects: Vec::new(), beside: 0 };
    for found in list(address, prefix)? {
        let relative = below_prefix(&found, prefix).to_owned();
        let is_hidden = relative.split('/').any(|part| part.starts_with('.'));
        if is_hidden {
            continue;
        }
        if crawl_ending(Path::new(&relative)).is_some() {
            listing.objects.push(object(address, found, RecordFile::new(Path::new(&relative))));
        } else {
            listing.beside += 1;
        }
    }
    anyhow::ensure!(!listing.objects.is_empty(), "there is no crawl file ({} other objects)", listing.beside);
    Ok(listing)
}

/// Finds the objects that match the pattern in the address.
fn matching(address: &Address) -> anyhow::Result<Listing> {
    let pattern = Pattern::new(&address.key)?;
    let fixed = address.key.find(['*', '?', '[']).unwrap_or_default();
    let prefix = address.key[..fixed].rfind('/').map_or("", |at| &address.key[..=at]);
    let found = list(address, prefix)?;
    let found = found.into_iter().filter(|found| pattern.matches_with(found.location.as_ref(), MATCHING));
    let objects: Vec<_> = found
        .map(|found| {
            let name = RecordFile::new(Path::new(below_prefix(&found, prefix)));
            object(address, found, name)
        })
        .collect();
    anyhow::ensure!(!objects.is_empty(), "no object matches this pattern");
    Ok(Listing { objects, beside: 0 })
}

fn object(address: &Address, found: ObjectMeta, name: RecordFile) -> Object {
    let path = PathBuf::from(format!("{}{}", address.place, found.location));
    Object::new(Arc::clone(&address.store), found, (path, name))
}

fn below_prefix<'f>(found: &'f ObjectMeta, prefix: &str) -> &'f str {
    let key = found.location.as_ref();
    key.strip_prefix(prefix).unwrap_or(key)
}

/// Lists all objects below `prefix`, in the order of their keys.
fn list(address: &Address, prefix: &str) -> anyhow::Result<Vec<ObjectMeta>> {
    let prefix = Key::parse(prefix.trim_end_matches('/'))?;
    let listed = async {
        let mut all = Vec::new();
        let mut listed = address.store.list(Some(&prefix));
        while let Some(found) = listed.try_next().await? {
            if all.len() == LISTED_MAX {
                return Ok(None);
            }
            all.push(found);
        }
        Ok::<_, Error>(Some(all))
    };
    let mut all = download::wait(listed)??
        .with_context(|| format!("there are more than {LISTED_MAX} objects; name fewer"))?;
    all.sort_by(|a, b| a.location.cmp(&b.location));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use doppel_crawls::{Item, Limits};
    use doppel_model::Timestamp;
    use object_store::memory::InMemory;

    use super::*;

    fn address(key: &str, objects: &[(&str, &str)]) -> Address {
        let store = InMemory::new();
        for (key, content) in objects {
            let key = Key::parse(key).unwrap();
            download::wait(store.put(&key, content.as_bytes().to_vec().into())).unwrap().unwrap();
        }
        Address { store: Arc::new(store), place: "s3://bucket/".to_owned(), key: key.to_owned(), lists: true }
    }

    /// URLs of the pages in the objects that the address names.
    fn pages(address: &Address) -> Vec<String> {
        let Listing { objects, .. } = named_at(address).unwrap();
        let limits = Limits::at(Timestamp::now());
        let items = objects.iter().flat_map(|object| object.open(limits.into()).unwrap());
        let page = |item| match item {
            Item::Page(page) => Some(page.url.to_string()),
            Item::Fields(_) => None,
            other => panic!("{other:?}"),
        };
        items.filter_map(page).collect()
    }

    #[test]
    fn objects_prefixes_and_patterns_are_named() {
        let record = "{\"text\": \"a\"}\n";
        let objects = [
            ("set/b.jsonl", record),
            ("set/a/1.jsonl", record),
            ("set/a/.hidden.jsonl", record),
            ("set/README.md", record),
            ("settled.jsonl", record),
            ("set/[x].jsonl", record),
        ];
        let at = |key| address(key, &objects);
        assert_eq!(pages(&at("set/b.jsonl")), ["record:b.jsonl#row=1"]);
        assert_eq!(pages(&at("set/[x].jsonl")), ["record:%5Bx%5D.jsonl#row=1"]);
        let all = ["record:%5Bx%5D.jsonl#row=1", "record:a/1.jsonl#row=1", "record:b.jsonl#row=1"];
        assert_eq!(pages(&at("set/")), all);
        assert_eq!(pages(&at("set/*/*.jsonl")), all[1..2]);
        assert_eq!(pages(&at("set/**/[!\\[]*.jsonl")), all[1..]);
        assert_eq!(named_at(&at("set/")).unwrap().beside, 1);
        for (key, why) in
            [("none/", "no crawl file"), ("set/*.csv", "no object matches"), ("none", "not found")]
        {
            let error = format!("{:#}", named_at(&at(key)).err().unwrap());
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn an_object_is_read_in_pieces_of_one_version() {
        let content: String = (0..3_000_000).map(|n| format!("{n}\n")).collect();
        assert!(content.len() > 20 << 20);
        let address = address("a.jsonl", &[("a.jsonl", &content)]);
        let object = named_at(&address).unwrap().objects.pop().unwrap();
        let mut read = String::new();
        object.pieces().read_to_string(&mut read).unwrap();
        assert!(read == content);
        let mut pieces = object.pieces();
        pieces.read_exact(&mut [0; 10]).unwrap();
        let key = Key::parse("a.jsonl").unwrap();
        download::wait(address.store.put(&key, "other".into())).unwrap().unwrap();
        assert!(pieces.read_to_string(&mut String::new()).is_err());
    }
}
