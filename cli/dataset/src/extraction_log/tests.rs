use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use doppel_crawls::InputPosition;
use doppel_inputs::ingested::FileStatistics;
use doppel_inputs::records::FieldArgs;
use doppel_inputs::records::record_names::Origin;
use doppel_inputs::sources::{self, Sources};
use doppel_model::pairwise::{Policy, Signer};
use doppel_model::{PageUrl, Timestamp};
use doppel_protocol::{Body, Submission};
use doppel_text::Extractor;

use super::*;

fn reading() -> ReadingPlan {
    ReadingPlan::new(&FieldArgs::default(), false).leaving_out(false)
}

fn page(record: u64) -> ExtractedPage {
    let text = (0..30).map(|word| format!("w{} ", record + word)).collect::<String>();
    let signature = Extractor::signing(Signer::new(Policy::default())).text(&text).signature;
    let submission = Submission {
        url: PageUrl::parse(&format!("http://a.example/{record}")).unwrap(),
        fetched_at: Timestamp::from_millis(record as i64),
        popularity: record.is_multiple_of(2).then_some(0.5),
        language: None,
        canonical: None,
        body: Body::Content(Arc::new(signature)),
    };
    // This path is not UTF-8.
    let path = Path::new(OsStr::from_bytes(b"a\xff.jsonl")).into();
    let id = record.is_multiple_of(2).then(|| format!("id {record}").into());
    let origin = Origin {
        path,
        position: InputPosition::Line(record + 1),
        id,
        refers_back: (record == 3).then_some(2),
    };
    ExtractedPage { record, submission, bytes: text.len() as u64, origin }
}

fn ingested(source: &InputSource) -> IngestedFile {
    let had = FileStatistics { records: 2, ..FileStatistics::default() };
    reading().ended(source, source.version(), had).unwrap()
}

/// Three files of two pages each, in three batches. The first batch ends in the middle of the first file, and
/// the last file has no end.
fn batches(sources: &Sources) -> Vec<ExtractedBatch> {
    let end =
        |at: usize| FileEnd { source: at, before: 2 * (at as u64 + 1), ingested: ingested(&sources.all[at]) };
    vec![
        ExtractedBatch { pages: vec![page(0)], ended: vec![] },
        ExtractedBatch { pages: vec![page(1), page(2), page(3), page(4)], ended: vec![end(0), end(1)] },
        ExtractedBatch { pages: vec![page(5)], ended: vec![] },
    ]
}

fn files(home: &Path) -> Sources {
    for name in ["a.jsonl", "b.jsonl", "c.jsonl"] {
        fs::write(home.join(name), name).unwrap();
    }
    sources::sources(&[home.join("*.jsonl")]).unwrap()
}

/// The numbers of the records that another run replays from the log, and the number of files that it skips.
fn replayed(path: &Path, maker: &str, sources: &[InputSource]) -> (Vec<u64>, usize) {
    let mut records = Vec::new();
    let take = |extracted: ExtractedBatch| {
        for read in extracted.pages {
            let (written, ExtractedPage { record, submission, bytes, origin }) = (page(read.record), read);
            assert_eq!(
                (&submission.url, submission.fetched_at, bytes),
                (&written.submission.url, written.submission.fetched_at, written.bytes)
            );
            let contents = [&submission, &written.submission].map(|submission| match &submission.body {
                Body::Content(signature) => signature.as_bytes().to_vec(),
                Body::Redirect(_) | Body::Dead => Vec::new(),
            });
            assert_eq!(contents[0], contents[1]);
            let expected = written.origin;
            assert_eq!(
                (&origin.path, origin.position, &origin.id, origin.refers_back),
                (&expected.path, expected.position, &expected.id, expected.refers_back)
            );
            records.push(record);
        }
        Ok(())
    };
    let (mut log, ended) = ExtractionLog::open(path.to_owned(), maker, (sources, &reading())).unwrap();
    log.replay(take).unwrap();
    (records, ended.len())
}

#[test]
fn a_run_goes_on_behind_the_last_file_that_ended() {
    let (home, log) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (sources, path) = (files(home.path()), log.path().join("log"));
    let (mut written, none) = ExtractionLog::open(path.clone(), "maker", (&sources.all, &reading())).unwrap();
    assert!(none.is_empty());
    batches(&sources).iter().for_each(|batch| written.add(batch).unwrap());
    let whole = fs::read(&path).unwrap();
    assert_eq!(replayed(&path, "maker", &sources.all), (vec![0, 1, 2, 3], 2));
    // The part that was cut off is not replayed, and new batches follow the kept part.
    assert!(fs::metadata(&path).unwrap().len() < whole.len() as u64);
    let (mut log, _) = ExtractionLog::open(path.clone(), "maker", (&sources.all, &reading())).unwrap();
    let end = FileEnd { source: 2, before: 2, ingested: ingested(&sources.all[2]) };
    log.add(&ExtractedBatch { pages: vec![page(0), page(1)], ended: vec![end] }).unwrap();
    assert_eq!(replayed(&path, "maker", &sources.all), (vec![0, 1, 2, 3, 0, 1], 3));
    // A log that is cut anywhere, or has any byte changed, replays whole files or nothing.
    for at in 0..whole.len() {
        for damaged in [whole[..at].to_vec(), {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        }] {
            fs::write(&path, damaged).unwrap();
            let replayed = replayed(&path, "maker", &sources.all);
            assert!(replayed == (vec![], 0) || replayed == (vec![0, 1, 2, 3], 2), "{at}: {replayed:?}");
        }
    }
}

#[test]
fn other_signatures_and_other_inputs_are_not_replayed() {
    let (home, log) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (sources, path) = (files(home.path()), log.path().join("log"));
    let write = || {
        let _ = fs::remove_file(&path);
        let (mut log, _) = ExtractionLog::open(path.clone(), "maker", (&sources.all, &reading())).unwrap();
        batches(&sources).iter().for_each(|batch| log.add(batch).unwrap());
    };
    for (maker, names) in
        [("other", &["a", "b", "c"][..]), ("maker", &["b", "a", "c"]), ("maker", &["b"]), ("maker", &["a"])]
    {
        write();
        let inputs: Vec<_> = names.iter().map(|name| home.path().join(format!("{name}.jsonl"))).collect();
        let replayed = replayed(&path, maker, &sources::sources(&inputs).unwrap().all);
        assert_eq!(replayed, (vec![], 0), "{maker} {names:?}");
    }
    // The replay ends at the first file whose end is not in the log.
    let _ = fs::remove_file(&path);
    let (mut log, _) = ExtractionLog::open(path.clone(), "maker", (&sources.all, &reading())).unwrap();
    let [first, mut second, _] = batches(&sources).try_into().unwrap();
    second.ended[1].source = 2;
    log.add(&first).unwrap();
    log.add(&second).unwrap();
    assert!(log.has_files());
    log.add(&ExtractedBatch { pages: vec![page(6)], ended: vec![] }).unwrap();
    assert_eq!(replayed(&path, "maker", &sources.all), (vec![0, 1], 1));
    // A changed file is read again, and so are all files after it.
    write();
    fs::write(home.path().join("b.jsonl"), "changed").unwrap();
    assert_eq!(replayed(&path, "maker", &sources.all), (vec![], 0));
}
