use std::os::unix::fs::symlink;

use super::*;
use crate::arguments::InputArgs;
use crate::sources::Sources;

fn sources(path: &Path) -> Sources {
    crate::sources::sources(&[path.to_owned()]).unwrap()
}

/// List entry of a file after `reading` has read it.
fn ended(reading: &ReadingPlan, source: &InputSource, bad: u64) -> Option<IngestedFile> {
    let had = FileStatistics {
        records: 3,
        bad,
        latest: Some(Timestamp::from_millis(7)),
        ..FileStatistics::default()
    };
    reading.ended(source, source.version(), had)
}

fn reading() -> ReadingPlan {
    ReadingPlan::new(&FieldArgs::default(), false).leaving_out(false)
}

#[test]
fn a_file_is_known_as_long_as_it_is_as_it_was_and_is_read_in_the_same_way() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.jsonl");
    fs::write(&path, "one").unwrap();
    let found = sources(&path);
    let ingested = ended(&reading(), &found.all[0], 0).unwrap();
    let before = found.all[0].version().unwrap();
    let (mut list, _) = IngestedList::open(home.path()).unwrap();
    list.add([&ingested]).unwrap();
    let knows = |reading: ReadingPlan, path: &Path| {
        let reading = reading.with_list(IngestedList::open(home.path()).unwrap().1);
        reading.known(&sources(path).all[0]).map(|known| known.had().records)
    };
    assert_eq!(knows(reading(), &path), Some(3));
    // The file is not known to a run with other options, or to a run that may leave out no file.
    let fields = FieldArgs { text_field: Some("body".to_owned()), ..FieldArgs::default() };
    assert_eq!(knows(ReadingPlan::new(&fields, false).leaving_out(false), &path), None);
    assert_eq!(knows(ReadingPlan::new(&FieldArgs::default(), true).leaving_out(false), &path), None);
    assert_eq!(knows(ReadingPlan::new(&FieldArgs::default(), false), &path), None);
    // A link counts as the file if their records carry the same name, and as another file if not.
    fs::create_dir(home.path().join("dir")).unwrap();
    let (alike, other) = (home.path().join("dir/a.jsonl"), home.path().join("dir/b.jsonl"));
    symlink(&path, &alike).unwrap();
    symlink(&path, &other).unwrap();
    assert_eq!(knows(reading(), &alike), Some(3));
    assert_eq!(knows(reading(), &other), None);
    // New content has the same size and, as far as a user can set it, the same time.
    let was = fs::metadata(&path).unwrap().modified().unwrap();
    let set = || File::options().write(true).open(&path).unwrap().set_modified(was).unwrap();
    // The clock of a file system may tick only a hundred times a second.
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(&path, "two").unwrap();
    set();
    assert!(found.all[0].version().unwrap().is_as_written(&before));
    assert_eq!(knows(reading(), &path), None);
}

#[test]
fn what_changes_while_it_is_read_or_can_be_read_once_is_not_listed() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.jsonl");
    fs::write(&path, "one").unwrap();
    let found = sources(&path);
    let before = found.all[0].version();
    fs::write(&path, "longer").unwrap();
    assert_eq!(reading().ended(&found.all[0], before, FileStatistics::default()), None);
    fs::write(home.path().join("page.html"), "x").unwrap();
    for other in [home.path(), Path::new("-")] {
        assert_eq!(ended(&reading(), &sources(other).all[0], 0), None, "{}", other.display());
    }
    let mut copied = InputArgs::from(vec![home.path().join("pipe")]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        home.path().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let writer = home.path().join("pipe");
    let writer = std::thread::spawn(move || fs::write(writer, "{}").unwrap());
    let spool = copied.spool().unwrap();
    writer.join().unwrap();
    let source = &copied.sources().unwrap().all[0];
    assert!(spool.is_some() && source.version().is_some() && source.path().ends_with("pipe"));
    assert_eq!(ended(&reading(), source, 0), None, "the next run cannot find the copy of a pipe");
}

#[test]
fn files_with_bad_records_are_read_again_where_these_are_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.jsonl");
    fs::write(&path, "one").unwrap();
    let found = sources(&path);
    let ingested = ended(&reading(), &found.all[0], 0).unwrap().without(1);
    assert_eq!((ingested.had().records, ingested.had().bad), (2, 1));
    IngestedList::open(home.path()).unwrap().0.add([&ingested]).unwrap();
    let knows = |asks| {
        let reading = reading().leaving_out(asks).with_list(IngestedList::open(home.path()).unwrap().1);
        reading.known(&found.all[0]).is_some()
    };
    assert_eq!((knows(false), knows(true)), (true, false));
}

#[test]
fn a_list_with_a_torn_line_goes_on_and_one_with_many_old_lines_is_written_anew() {
    let home = tempfile::tempdir().unwrap();
    let paths = ["a.jsonl", "b.jsonl"].map(|name| home.path().join(name));
    paths.iter().for_each(|path| fs::write(path, "one").unwrap());
    let all = paths.each_ref().map(|path| ended(&reading(), &sources(path).all[0], 0).unwrap());
    let (mut list, _) = IngestedList::open(home.path()).unwrap();
    list.add(&all).unwrap();
    let listed = home.path().join(NAME);
    let knows = || {
        let reading = reading().with_list(IngestedList::open(home.path()).unwrap().1);
        paths.each_ref().map(|path| reading.known(&sources(path).all[0]).is_some())
    };
    assert_eq!(knows(), [true, true]);
    let text = fs::read(&listed).unwrap();
    fs::write(&listed, &text[..text.len() - 9]).unwrap();
    assert_eq!(knows(), [true, false]);
    IngestedList::open(home.path()).unwrap().0.add([&all[1]]).unwrap();
    assert_eq!(knows(), [true, true]);
    let (mut list, _) = IngestedList::open(home.path()).unwrap();
    for _ in 0..OLD_LINES + 4 {
        list.add([&all[0]]).unwrap();
    }
    drop(list);
    IngestedList::open(home.path()).unwrap();
    assert_eq!(fs::read_to_string(&listed).unwrap().lines().count(), 2);
    assert_eq!(knows(), [true, true]);
    // Files that no longer exist leave the list.
    let gone = |number: usize| {
        let mut gone = all[0].clone();
        gone.file.file = home.path().join(format!("gone-{number}")).to_str().unwrap().to_owned();
        gone
    };
    let gone: Vec<_> = (0..OLD_LINES + 10).map(gone).collect();
    IngestedList::open(home.path()).unwrap().0.add(&gone).unwrap();
    IngestedList::open(home.path()).unwrap();
    assert_eq!(fs::read_to_string(&listed).unwrap().lines().count(), 2);
    assert_eq!(knows(), [true, true]);
}
