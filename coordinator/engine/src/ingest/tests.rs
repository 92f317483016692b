//! Tests of the extractor pool: order of answers, keys, languages, main content, limits.

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn json(n: usize) -> PageSource {
    PageSource::Json(format!(r#"{{"url": "http://a/{n}", "text": "{}"}}"#, "word ".repeat(n % 300)).into())
}

#[test]
fn a_language_is_detected_only_when_asked_for_and_never_instead_of_a_given_one() {
    let english =
        "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age";
    let page =
        |given| PageSource::Json(format!(r#"{{"url": "http://a/", "text": "{english}"{given}}}"#).into());
    let languages = |ingest: io::Result<Ingest>| {
        let answers = ingest.unwrap().run(vec![page(""), page(r#", "language": "en-GB""#)], NOW);
        answers.into_iter().map(|answer| answer.unwrap().language.map(String::from)).collect::<Vec<_>>()
    };
    let given = Some("en-GB".to_owned());
    assert_eq!(languages(Ingest::new(1, Policy::default())), [None, given.clone()]);
    assert_eq!(languages(Ingest::detecting_language(1, Policy::default())), [Some("eng".to_owned()), given]);
}

#[test]
fn more_sources_than_the_queue_holds_are_answered_in_order() {
    let ingest = Ingest::new(3, Policy::default()).unwrap();
    let answers = ingest.run((0..3 * QUEUE).map(json).collect(), NOW);
    assert_eq!(answers.len(), 3 * QUEUE);
    for (n, answer) in answers.into_iter().enumerate() {
        let submission = answer.unwrap();
        assert_eq!((submission.url.as_str(), submission.fetched_at), (&*format!("http://a/{n}"), NOW));
        let Body::Content(signature) = submission.body else { panic!("{n} is content") };
        assert_eq!(signature.tokens() as usize, n % 300);
    }
}

#[test]
fn a_key_comes_back_beside_the_answer_to_its_source() {
    let ingest = Ingest::new(3, Policy::default()).unwrap();
    // Every third source is not a page, and long pages are answered later than short ones.
    let source =
        |n: usize| if n.is_multiple_of(3) { PageSource::Json("nonsense".into()) } else { json(600 - n) };
    let answers = ingest.start_keyed((0..600).map(|n| (n, source(n))).collect(), NOW).wait();
    assert_eq!(answers.iter().map(|(key, _)| *key).collect::<Vec<_>>(), (0..600).collect::<Vec<_>>());
    for (key, answer) in answers {
        let url = answer.map(|submission| submission.url.to_string()).ok();
        assert_eq!(url, (key % 3 > 0).then(|| format!("http://a/{}", 600 - key)));
    }
    let keys = ingest.start_keyed(vec![('a', json(1)), ('b', json(2))], NOW).into_keys();
    assert_eq!(keys, ['a', 'b']);
}

#[test]
fn batches_of_several_callers_do_not_mix() {
    let ingest = Ingest::new(2, Policy::default()).unwrap();
    thread::scope(|scope| {
        for caller in 0..4 {
            let ingest = &ingest;
            scope.spawn(move || {
                let numbers: Vec<_> = (0..200).map(|n| 1_000 * caller + n).collect();
                let answers = ingest.run(numbers.iter().map(|n| json(*n)).collect(), NOW);
                let urls: Vec<_> = answers.into_iter().map(|one| one.unwrap().url.to_string()).collect();
                assert_eq!(urls, numbers.iter().map(|n| format!("http://a/{n}")).collect::<Vec<_>>());
            });
        }
    });
}

#[test]
fn the_main_content_of_html_is_reported_and_the_page_comes_back() {
    let ingest = Ingest::new(2, Policy::default()).unwrap();
    let page = |body: &str| {
        let line = format!(r#"{{"url": "http://a/", {body}}}"#);
        FetchedPage::from(PageItem::parse(line.as_bytes(), NOW).unwrap())
    };
    let html = page(&format!(r#""html": "<nav>a b c</nav>{}""#, "w ".repeat(20)));
    let (back, taken) = ingest.main_content(html.clone(), 4).unwrap();
    let taken = taken.unwrap();
    assert_eq!((back, taken.tokens, taken.of, &*taken.left_out[0].text), (html, 20, 23, "a b…"));
    for other in [r#""text": "a b""#, r#""dead": true"#, r#""redirect_to": "http://b/""#] {
        let other = page(other);
        assert_eq!(ingest.main_content(other.clone(), 4), Ok((other, None)));
    }
}

#[test]
fn a_line_longer_than_any_page_is_not_parsed() {
    let ingest = Ingest::new(1, Policy::default()).unwrap();
    let long = PageSource::Json(vec![b' '; LINE_BYTES_MAX + 1].into());
    let answers = ingest.run(vec![json(1), long, json(2)], NOW);
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert_eq!(answers[1].as_ref().unwrap_err(), &IngestError::TooLong(LINE_BYTES_MAX + 1));
    assert!(ingest.run(Vec::new(), NOW).is_empty());
}

#[test]
fn only_contents_without_a_host_are_refused_if_the_policy_reads_sites() {
    for policy in Policy::all().filter(|policy| !policy.reads_tables()) {
        let ingest = Ingest::new(1, policy).unwrap();
        let page = |url: &str, body: &str| PageSource::Json(format!(r#"{{"url": "{url}", {body}}}"#).into());
        let text = r#""text": "some words""#;
        let sources = vec![
            page("http://a/", text),
            page("file:///a", text),
            page("file:///b", r#""html": "<p>some words""#),
            // A dead page and a redirect are not compared by site. Accepting them lets a client withdraw
            // pages on record.
            page("file:///c", r#""dead": true"#),
            page("file:///d", r#""redirect_to": "http://a/""#),
            page("file://server/e", text),
        ];
        let answers = ingest.run(sources, NOW);
        let refused: Vec<bool> = answers.iter().map(Result::is_err).collect();
        let reads = policy.reads_site();
        assert_eq!(refused, [false, reads, reads, false, false, false], "{policy}");
        if reads {
            assert_eq!(answers[1].as_ref().unwrap_err(), &IngestError::NoSite(policy.name()));
        }
    }
}
