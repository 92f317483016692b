//! Compares what `--reference` and `--reference-only` remove with all pairs of a training set and a reference.
//!
//! `DOPPEL_TRAINING_ROWS=40000` makes a larger set.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use doppel_baseline::{Contents, Tau, similar_contents};
use doppel_model::Random;
use serde_json::Value;

/// Number of rows of the training set, unless the environment names another one. The reference has a twentieth.
const ROWS: usize = 2_000;

/// Number of words of the vocabulary.
const VOCABULARY: u64 = 20_000;

/// A text of words, of which the first ones of the vocabulary are the most frequent.
fn words(random: &mut Random, count: usize) -> Vec<String> {
    let word = |random: &mut Random| {
        let number = random.below(VOCABULARY) * random.below(VOCABULARY) / VOCABULARY;
        format!("word{}", number * random.below(VOCABULARY) / VOCABULARY)
    };
    (0..count).map(|_| word(random)).collect()
}

/// A copy in which a part of the words is changed, from none to a thirtieth.
fn changed(text: &[String], random: &mut Random) -> Vec<String> {
    let mut text = text.to_vec();
    let changes = random.index(1 + text.len() / 30);
    for _ in 0..changes {
        let at = random.index(text.len());
        text[at] = format!("changed{}", random.below(VOCABULARY));
    }
    text
}

/// A training set and its reference.
struct Sets {
    training: Vec<String>,
    reference: Vec<String>,
}

impl Sets {
    /// A reference, and a training set in which every third row of the reference occurs changed. A tenth of the
    /// rows have a common frame, and a tenth are near-copies of others.
    fn generate(rows: usize) -> Self {
        let mut random = Random::new(11);
        let frame = words(&mut random, 150);
        let text = |random: &mut Random| {
            let length = 40 + random.index(300);
            let mut text = words(random, length);
            if random.below(10) == 0 {
                text.splice(0..0, frame.iter().cloned());
            }
            text
        };
        let reference: Vec<Vec<String>> = (0..rows / 20).map(|_| text(&mut random)).collect();
        let mut training: Vec<Vec<String>> = (0..rows).map(|_| text(&mut random)).collect();
        for at in (0..rows).step_by(10) {
            training[at] = changed(&training[random.index(rows)], &mut random);
        }
        for number in (0..reference.len()).step_by(3) {
            training[random.index(rows)] = changed(&reference[number], &mut random);
        }
        let texts = |rows: Vec<Vec<String>>| rows.into_iter().map(|row| row.join(" ")).collect();
        Self { training: texts(training), reference: texts(reference) }
    }
}

fn write(path: &Path, name: &str, texts: &[String]) -> Result<Vec<u8>> {
    let line = |(number, text): (usize, &String)| {
        serde_json::json!({"id": format!("{name}{number}"), "text": text}).to_string() + "\n"
    };
    let lines = texts.iter().enumerate().map(line).collect::<String>();
    fs::write(path, &lines)?;
    Ok(lines.into_bytes())
}

/// Runs `doppel dedup` in a directory with `training.jsonl` and `reference.jsonl`. Returns the lines of the files.
fn run(home: &Path, options: &[&str], files: &[&str]) -> Result<Vec<Vec<Value>>> {
    let run = Command::new(env!("CARGO_BIN_EXE_doppel"))
        .current_dir(home)
        .args(["dedup", "training.jsonl", "--reference", "reference.jsonl"])
        .args(options)
        .output()?;
    ensure!(run.status.success(), "{}: {}", run.status, String::from_utf8_lossy(&run.stderr));
    let lines = |file: &&str| -> Result<Vec<Value>> {
        fs::read_to_string(home.join(file))?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    };
    files.iter().map(lines).collect()
}

fn text_of<'v>(line: &'v Value, field: &str) -> &'v str {
    line[field].as_str().unwrap_or_default()
}

#[test]
fn references_remove_exactly_the_near_duplicates_of_all_pairs() {
    let rows = std::env::var("DOPPEL_TRAINING_ROWS").map_or(ROWS, |rows| rows.parse().unwrap());
    let Sets { training, reference } = Sets::generate(rows);
    let home = tempfile::tempdir().unwrap();
    write(&home.path().join("training.jsonl"), "t", &training).unwrap();
    let of_reference = write(&home.path().join("reference.jsonl"), "r", &reference).unwrap();
    let mut contents = Contents::default();
    let mut intern =
        |texts: &[String]| -> Vec<usize> { texts.iter().map(|text| contents.intern(text).index()).collect() };
    let (of_training, of_references) = (intern(&training), intern(&reference));
    let above: BTreeSet<(usize, usize)> =
        similar_contents(contents.all(), Tau::ratio(4, 5).unwrap()).above.into_iter().collect();
    let near = |a: usize, b: usize| a == b || above.contains(&(a.min(b), a.max(b)));
    let mut expected: BTreeSet<(String, String)> = BTreeSet::new();
    for (row, content) in of_training.iter().enumerate() {
        for (number, other) in of_references.iter().enumerate().filter(|(_, other)| near(*content, **other)) {
            // A pair names the first record with a content.
            if of_references.iter().position(|first| first == other) == Some(number) {
                expected.insert((format!("t{row}"), format!("r{number}")));
            }
        }
    }
    let contaminated: BTreeSet<&str> = expected.iter().map(|(row, _)| row.as_str()).collect();
    assert!(
        contaminated.len() > rows / 400,
        "{} rows are near-duplicates of the reference",
        contaminated.len()
    );

    let options =
        ["--reference-only", "--pairs", "pairs", "--out", "out", "--kept", "kept", "--removed", "removed"];
    let files = ["pairs", "out", "kept/training.jsonl", "removed/training.jsonl"];
    let [pairs, out, kept, removed] =
        <[_; 4]>::try_from(run(home.path(), &options, &files).unwrap()).unwrap();
    let name = |line: &Value, record: &str| text_of(&line[record], "id").to_owned();
    let found: BTreeSet<(String, String)> =
        pairs.iter().map(|pair| (name(pair, "record"), name(pair, "reference_record"))).collect();
    assert_eq!(found, expected);
    assert_eq!(removed.iter().map(|row| text_of(row, "id")).collect::<BTreeSet<_>>(), contaminated);
    assert_eq!(kept.len() + removed.len(), rows);
    for line in out.iter().filter(|line| text_of(line, "status") == "duplicate") {
        let pair = (name(line, "record"), name(line, "duplicate_of_record"));
        assert!(expected.contains(&pair), "{line}");
    }

    let options = ["--out", "out", "--kept", "rest"];
    let [out, rest] =
        <[_; 2]>::try_from(run(home.path(), &options, &["out", "rest/training.jsonl"]).unwrap()).unwrap();
    let rest: BTreeSet<&str> = rest.iter().map(|row| text_of(row, "id")).collect();
    assert!(rest.is_disjoint(&contaminated), "a near-duplicate of the reference is kept");
    let numbers: HashMap<String, usize> = (0..rows)
        .map(|row| (format!("t{row}"), of_training[row]))
        .chain((0..reference.len()).map(|number| (format!("r{number}"), of_references[number])))
        .collect();
    assert_eq!(out.len(), rows, "a line for each row of the training set, and none for the reference");
    let mut of_others = 0;
    for line in &out {
        let own = name(line, "record");
        if text_of(line, "status") != "duplicate" {
            assert!(rest.contains(own.as_str()), "{line}");
            continue;
        }
        let by = name(line, "duplicate_of_record");
        assert!(by.starts_with('r') || rest.contains(by.as_str()), "{by} is not kept: {line}");
        assert!(near(numbers[&own], numbers[&by]), "{line}");
        assert_eq!(by.starts_with('r'), contaminated.contains(own.as_str()), "{line}");
        of_others += usize::from(by.starts_with('t'));
    }
    assert!(of_others > rows / 50, "only {of_others} rows are duplicates of other rows");
    assert_eq!(
        fs::read(home.path().join("reference.jsonl")).unwrap(),
        of_reference,
        "the reference has changed"
    );
    println!(
        "{} of {rows} rows are near-duplicates of the reference, in {} pairs",
        contaminated.len(),
        expected.len()
    );
}
