//! Redirects to pages with many spellings, checked against the rule. A target stands for the page with its
//! spelling, or else for the page with its normalised form, or else for the first other page of that form.

use super::*;
use crate::bulk::{Bulk, BulkConfig, BulkOutput};
use crate::machine::SPELLINGS_MAX;
use crate::rows::record::Resolution;

/// Parts of a URL, and how the WHATWG rules write them.
const SCHEMES: [(&str, &str); 3] = [("http", "http"), ("HTTP", "http"), ("hTTp", "http")];
const HOSTS: [(&str, &str); 8] = [
    ("c.example", "c.example"),
    ("C.EXAMPLE", "c.example"),
    ("%63.example", "c.example"),
    ("c\u{3002}example", "c.example"),
    ("c.example.", "c.example."),
    ("münchen.example", "xn--mnchen-3ya.example"),
    ("MÜNCHEN.example", "xn--mnchen-3ya.example"),
    ("xn--mnchen-3ya.example", "xn--mnchen-3ya.example"),
];
const PORTS: [(&str, &str); 5] = [("", ""), (":80", ""), (":", ""), (":080", ""), (":81", ":81")];
const PATHS: [(&str, &str); 18] = [
    ("", "/"),
    ("/", "/"),
    ("/.", "/"),
    ("/x/..", "/"),
    ("/%2E", "/"),
    ("\\", "/"),
    ("/münchen", "/m%C3%BCnchen"),
    ("/m%C3%BCnchen", "/m%C3%BCnchen"),
    // The case of an escape is kept.
    ("/m%c3%bcnchen", "/m%c3%bcnchen"),
    ("/a b", "/a%20b"),
    ("/a%20b", "/a%20b"),
    ("/a/b", "/a/b"),
    ("/a/./b", "/a/b"),
    ("/a/x/../b", "/a/b"),
    ("/a\\b", "/a/b"),
    ("/~%7e", "/~%7e"),
    ("/\"", "/%22"),
    ("/%22", "/%22"),
];
const QUERIES: [(&str, &str); 5] =
    [("", ""), ("", ""), ("?", "?"), ("?q='ü", "?q=%27%C3%BC"), ("?q=%27%C3%BC", "?q=%27%C3%BC")];

type Part = (&'static str, &'static str);

/// Returns a URL in a random spelling, and its normalised form. Few hosts, paths and queries occur together,
/// so spellings coincide.
fn spelling(random: &mut Random, topic: usize) -> (String, String) {
    let mut one = |parts: &[Part]| parts[random.index(parts.len())];
    let of_form = |parts: &[Part], form: &str| -> Vec<Part> {
        parts.iter().copied().filter(|(_, written)| *written == form).collect()
    };
    let hosts = of_form(&HOSTS, HOSTS[topic % 2 * 5].1);
    let paths = of_form(&PATHS, PATHS[topic * 5 % PATHS.len()].1);
    let queries = of_form(&QUERIES, QUERIES[topic % 4].1);
    let rare = one(&[("", ""), ("rare", ""), ("", ""), ("", "")]).0 == "rare";
    let (hosts, paths) = if rare { (HOSTS.to_vec(), PATHS.to_vec()) } else { (hosts, paths) };
    let parts = [one(&SCHEMES), ("://", "://"), one(&hosts), one(&PORTS), one(&paths), one(&queries)];
    (parts.iter().map(|part| part.0).collect(), parts.iter().map(|part| part.1).collect())
}

/// Finds the page that a target stands for, by the rule.
fn target<'p>(
    pages: &'p BTreeMap<String, (String, ModelBody)>,
    asker: &str,
    to: &(String, String),
) -> Option<&'p String> {
    let exactly = |name: &str| pages.get_key_value(name).map(|(name, _)| name);
    let others = || {
        let of_form = |(name, (form, _)): (&'p String, &(String, ModelBody))| (*form == to.1).then_some(name);
        let mut of_form: Vec<&String> = pages.iter().filter_map(of_form).collect();
        of_form.sort_by_key(|name| PageId::of(name));
        of_form.into_iter().take(SPELLINGS_MAX).filter(|name| *name != asker).min()
    };
    exactly(&to.0).or_else(|| exactly(&to.1)).or_else(others)
}

fn end(
    pages: &BTreeMap<String, (String, ModelBody)>,
    forms: &HashMap<String, String>,
    name: &str,
) -> Result<String, UnresolvedReason> {
    let mut path = vec![name.to_owned()];
    loop {
        let at = path.last().unwrap();
        match &pages[at].1 {
            ModelBody::Content(_) => return Ok(at.clone()),
            ModelBody::Dead => return Err(UnresolvedReason::DeadTarget),
            ModelBody::Redirect(to) => {
                let to = (to.clone(), forms[to].clone());
                let next = target(pages, at, &to).ok_or(UnresolvedReason::UnknownTarget)?;
                if path.contains(next) {
                    return Err(UnresolvedReason::Loop);
                }
                if path.len() >= 20 && matches!(pages[next].1, ModelBody::Redirect(_)) {
                    return Err(UnresolvedReason::TooManyHops);
                }
                path.push(next.clone());
            }
        }
    }
}

fn body(world: &World, k: usize, is: &ModelBody) -> Body {
    match is {
        ModelBody::Content(_) => Body::Content(Arc::clone(&world.signatures[k])),
        ModelBody::Redirect(to) => Body::Redirect(PageUrl::parse(to).unwrap()),
        ModelBody::Dead => Body::Dead,
    }
}

/// Submits random spellings of a few URLs as pages, redirects and dead pages, in random order, and purges
/// some. Every redirect must end where the rule says, in the machine and in bulk grouping.
fn run(seed: u64, steps: usize) {
    let mut world = World::new(seed, [1, 3, 8][(seed % 3) as usize]);
    let (mut pages, mut forms) = (BTreeMap::<String, (String, ModelBody)>::new(), HashMap::new());
    let mut submitted = Vec::new();
    let topics = 1 + world.random.index(3);
    for _ in 0..steps {
        let topic = world.random.index(topics);
        let (name, form) = spelling(&mut world.random, topic);
        let topic = world.random.index(topics);
        let to = spelling(&mut world.random, topic);
        for (name, form) in [(&name, &form), (&to.0, &to.1)] {
            let url = PageUrl::parse(name).unwrap();
            assert_eq!(url.normal_id(), PageId::of(form), "{name}");
            forms.insert(name.clone(), form.clone());
        }
        if world.random.below(12) == 0 && pages.remove(&name).is_some() {
            world.commit(vec![Command::Purge { page: PageId::of(&name) }], usize::MAX);
            submitted.retain(|(of, _): &(String, _)| *of != name);
            continue;
        }
        let is = match world.random.below(8) {
            0 => ModelBody::Dead,
            1..=4 if to.0 != name => ModelBody::Redirect(to.0),
            _ => ModelBody::Content(0),
        };
        let k = world.random.index(world.signatures.len());
        let body = body(&world, k, &is);
        submitted.push((name.clone(), is.clone()));
        world.push(&name, body);
        pages.insert(name, (form, is));
    }
    world.settle();
    let settings = world.shards.settings;
    assert_sound(std::slice::from_ref(&world.store), settings.shards, settings.winners);
    let mut bulk = Bulk::new(&BulkConfig {
        policy: settings.policy,
        winners: settings.winners,
        market: None,
        group_members_max: 1_000,
        unit: crate::bulk::Unit::Page,
        keep: BulkOutput::Answer { memory_max: usize::MAX, temp_dir: &std::env::temp_dir() },
    })
    .unwrap();
    let mut builder = Builder::new();
    for ((name, is), at) in submitted.iter().zip(0..) {
        // Every page has its own text.
        let tokens: Vec<u64> =
            (0..30).map(|n| u128::from_be_bytes(*PageId::of(name).bytes()) as u64 ^ n << 7).collect();
        let body = match is {
            ModelBody::Content(_) => Body::Content(Arc::new(builder.build(&tokens))),
            other => body(&world, 0, other),
        };
        let (url, fetched_at) = (PageUrl::parse(name).unwrap(), Timestamp::from_millis(at));
        bulk.submit(Submission { url, fetched_at, popularity: None, language: None, canonical: None, body })
            .unwrap();
    }
    let grouped = bulk.finish().unwrap();
    let lines: HashMap<String, _> = grouped.lines().map(|line| (line.url.to_string(), line)).collect();
    for (name, (_, is)) in &pages {
        if !matches!(is, ModelBody::Redirect(_)) {
            continue;
        }
        let expected = end(&pages, &forms, name);
        let State::Redirect(state) = world.record(PageId::of(name)).unwrap().state else { panic!("{name}") };
        let resolution = match &expected {
            Ok(end) => Resolution::Content(PageId::of(end)),
            Err(reason) => Resolution::Unresolved(*reason),
        };
        assert_eq!(state.resolution, Some(resolution), "{name} to {} ends at {expected:?}", state.to);
        let line = &lines[name];
        let of = line.duplicate_of.as_ref().map(|url| url.as_str().to_owned());
        assert_eq!((of, line.reason), (expected.clone().ok(), expected.err()), "{name} to {}", state.to);
    }
}

#[test]
fn redirects_find_their_targets_in_all_spellings() {
    for seed in 0..100 {
        run(seed, 4 + (seed as usize * 7) % 60);
    }
}

#[test]
fn a_redirect_finds_a_page_that_comes_later_and_a_nearer_spelling_after_that() {
    let mut world = World::new(0, 3);
    let content = |world: &World, k: usize| Body::Content(Arc::clone(&world.signatures[k]));
    let end = |world: &World| {
        let State::Redirect(state) = world.record(PageId::of("http://from/")).unwrap().state else {
            panic!()
        };
        state.resolution.unwrap()
    };
    let unknown = Resolution::Unresolved(UnresolvedReason::UnknownTarget);
    world.push("http://from/", Body::Redirect(PageUrl::parse("http://c.example:80").unwrap()));
    world.settle();
    assert_eq!(end(&world), unknown);
    // Another spelling, one before it in byte order, the normalised form, and the exact spelling of the
    // target.
    let names = ["http://c.example", "HTTP://c.example", "http://c.example/", "http://c.example:80"];
    for (name, k) in names.into_iter().zip(0..) {
        let body = content(&world, 9 * k);
        world.push(name, body);
        world.settle();
        assert_eq!(end(&world), Resolution::Content(PageId::of(name)), "{name}");
    }
    for (gone, next) in names.into_iter().rev().zip(names.into_iter().rev().skip(1).map(Some).chain([None])) {
        world.commit(vec![Command::Purge { page: PageId::of(gone) }], usize::MAX);
        world.settle();
        let expected = next.map_or(unknown, |next| Resolution::Content(PageId::of(next)));
        assert_eq!(end(&world), expected, "without {gone}");
    }
    assert_sound(std::slice::from_ref(&world.store), 3, world.shards.settings.winners);
}

#[test]
fn a_redirect_to_another_spelling_of_its_own_url_is_not_its_own_target() {
    let mut world = World::new(0, 2);
    let to = Body::Redirect(PageUrl::parse("http://c.example/").unwrap());
    world.push("http://c.example", to);
    world.settle();
    let reason = |world: &World| world.record(PageId::of("http://c.example")).unwrap().published.reason;
    assert_eq!(reason(&world), Some(UnresolvedReason::UnknownTarget));
    // This redirect leads back to the first.
    world.push("http://c.example/", Body::Redirect(PageUrl::parse("HTTP://c.example").unwrap()));
    world.settle();
    assert_eq!(reason(&world), Some(UnresolvedReason::Loop));
    let content = Body::Content(Arc::clone(&world.signatures[1]));
    world.push("http://c.example/", content);
    world.settle();
    assert_eq!(reason(&world), None);
}

/// Every page redirects to another spelling of its own URL, and may lead to each of the others.
#[test]
fn spellings_that_redirect_to_each_other_cost_a_bounded_number_of_messages() {
    let mut world = World::new(0, 2);
    let spelling = |n: usize| {
        let letters = "abcdefgh".chars().enumerate();
        let host: String =
            letters.map(|(at, c)| if n >> at & 1 == 1 { c.to_ascii_uppercase() } else { c }).collect();
        format!("http://{host}.example/")
    };
    let before: u64 = world.shards.metas.iter().flat_map(|meta| &meta.sent).sum();
    for n in 1..64 {
        let body = Body::Redirect(PageUrl::parse(&spelling((n * 37 + 11) % 63 + 1)).unwrap());
        world.push(&spelling(n), body);
        world.settle();
    }
    let after: u64 = world.shards.metas.iter().flat_map(|meta| &meta.sent).sum();
    // Each of 63 submissions tells up to 63 redirects. Each of those sends a trace of up to 20 hops, and
    // tells others at most 20 times.
    assert!(after - before < 63 * 63 * 20 * 20, "{} messages", after - before);
}
