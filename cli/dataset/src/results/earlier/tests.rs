//! Lists of results survive killed runs, and only stale results of earlier runs are removed.

use super::*;

const INPUT: &str = "/crawl/a.jsonl";

fn begin(dir: &Path) -> EarlierResults {
    let dirs = Sides { kept: Some(dir.to_owned()), removed: None, superseded: None };
    EarlierResults::of(&dirs, false, NamedInputs::default()).unwrap()
}

fn put(earlier: &mut EarlierResults, dir: &Path, name: &Path, input: &str) {
    let path = dir.join(name);
    let mut file = PartFile::begin(&path).unwrap();
    file.write_all(b"a record").unwrap();
    file.finish(|written| earlier.note((CopySide::Kept, name), input, written)).unwrap();
}

/// Simulates a run over an input that is no longer readable.
fn run_over_bad(dir: &Path, name: &Path) -> anyhow::Result<()> {
    let mut earlier = begin(dir);
    earlier.note_side(name, None);
    earlier.note_input(INPUT.to_owned(), Reading::Bad);
    earlier.end()
}

fn lines(dir: &Path) -> usize {
    fs::read_to_string(dir.join(NAME)).unwrap().lines().count() - 1
}

#[test]
fn the_next_run_knows_the_results_of_a_killed_run() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    // Names may consist of any bytes.
    let names = [Path::new("a.jsonl").to_owned(), to_path("b\u{ff}\n.jsonl")];
    for name in &names {
        // Each of these runs is killed, so its list is never finished.
        put(&mut begin(dir), dir, name, INPUT);
        let mut list = File::options().append(true).open(dir.join(NAME)).unwrap();
        list.write_all(b"{\"path\":\"half of a li").unwrap();
    }
    put(&mut begin(dir), dir, Path::new("other"), "/crawl/other");
    for name in &names {
        run_over_bad(dir, name).unwrap();
        assert!(!dir.join(name).exists());
    }
    assert!(dir.join("other").exists());
    assert_eq!(lines(dir), 1);
}

#[test]
fn the_list_has_a_line_for_each_result_and_no_more() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    for turn in 0..5 {
        let mut earlier = begin(dir);
        for name in ["a", "b"] {
            put(&mut earlier, dir, Path::new(name), INPUT);
        }
        put(&mut earlier, dir, Path::new(&format!("of turn {turn}")), &format!("/crawl/{turn}"));
        earlier.note_input(INPUT.to_owned(), Reading::File);
        earlier.note_input(format!("/crawl/{turn}"), Reading::File);
        earlier.end().unwrap();
        assert_eq!(lines(dir), 3 + turn);
    }
    assert_eq!(fs::read_dir(dir).unwrap().count(), 8);
}

#[test]
fn foreign_and_changed_files_stay_and_are_an_error() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    let name = Path::new("a.jsonl");
    fs::write(dir.join(name), "of the user").unwrap();
    let foreign = run_over_bad(dir, name).unwrap_err().to_string();
    assert!(foreign.contains("a.jsonl would be taken for a result of this run"), "{foreign}");
    fs::remove_file(dir.join(name)).unwrap();
    put(&mut begin(dir), dir, name, INPUT);
    fs::write(dir.join(name), "changed by the user").unwrap();
    for _ in 0..2 {
        run_over_bad(dir, name).unwrap_err();
        assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), "changed by the user");
    }
}

#[test]
fn a_list_cannot_remove_files_outside_its_directory() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("kept");
    fs::create_dir(&dir).unwrap();
    put(&mut begin(&dir), &dir, Path::new("../outside"), INPUT);
    run_over_bad(&dir, Path::new("a")).unwrap();
    assert!(home.path().join("outside").exists());
}

#[test]
fn a_file_with_the_name_of_the_list_that_is_no_list_stays() {
    let home = tempfile::tempdir().unwrap();
    let dirs = Sides { kept: Some(home.path().to_owned()), removed: None, superseded: None };
    for foreign in ["{\"doppel_results\":2}\nlines", "mine"] {
        fs::write(home.path().join(NAME), foreign).unwrap();
        let error = EarlierResults::of(&dirs, false, NamedInputs::default()).unwrap_err().to_string();
        assert!(error.contains("is no list of results of this version of Doppel"), "{error}");
        assert_eq!(fs::read_to_string(home.path().join(NAME)).unwrap(), foreign);
    }
    // A run that was killed while it began its list left a part of the first line.
    fs::write(home.path().join(NAME), &HEAD[..5]).unwrap();
    put(&mut begin(home.path()), home.path(), Path::new("a"), INPUT);
    assert_eq!(lines(home.path()), 1);
}
