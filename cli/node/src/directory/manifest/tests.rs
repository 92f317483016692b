//! Manifests are created once and read back; contradictions and damage are refused.

use doppel_contract::WinnerRule;

use super::*;

fn wanted(tau: &str, shards: u16) -> ManifestRequest {
    ManifestRequest {
        policy: Some(Policy::jaccard(tau.parse().unwrap())),
        shards: Some(shards),
        ..ManifestRequest::default()
    }
}

const DEFAULTS: Defaults = Defaults { shards: 4, ranges: 1 };

#[test]
fn a_manifest_is_created_once_and_then_kept() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("a/b");
    let made = Manifest::open_or_create(&dir, wanted("0.9", 3), DEFAULTS).unwrap();
    assert_eq!(Manifest::open_or_create(&dir, ManifestRequest::default(), DEFAULTS).unwrap(), made);
    assert_eq!(Manifest::open_or_create(&dir, wanted("0.90", 3), DEFAULTS).unwrap(), made);
    assert_eq!((made.policy.to_string().as_str(), made.shards), ("jaccard:tau=0.9", 3));
    let tau = Manifest::open_or_create(&dir, wanted("0.8", 3), DEFAULTS).unwrap_err();
    assert!(tau.to_string().contains("made with --policy jaccard:tau=0.9, not jaccard:tau=0.8"), "{tau}");
    let shards = Manifest::open_or_create(&dir, wanted("0.9", 4), DEFAULTS).unwrap_err();
    assert!(shards.to_string().contains("made with --shards 3, not 4"), "{shards}");
}

#[test]
fn ranges_are_kept_and_bring_their_shards() {
    let home = tempfile::tempdir().unwrap();
    let open = |name: &str, shards, ranges| {
        let wanted = ManifestRequest { shards, ranges, ..ManifestRequest::default() };
        Manifest::open_or_create(&home.path().join(name), wanted, DEFAULTS)
    };
    let counts = |manifest: Manifest| (manifest.shards, manifest.ranges);
    assert_eq!(counts(open("usual", None, None).unwrap()), (4, 1));
    assert_eq!(counts(open("more", None, Some(6)).unwrap()), (6, 6));
    assert_eq!(counts(open("both", Some(9), Some(2)).unwrap()), (9, 2));
    assert_eq!(counts(open("both", None, None).unwrap()), (9, 2));
    let conflict = open("both", None, Some(3)).unwrap_err().to_string();
    assert!(conflict.contains("made with --ranges 2, not 3"), "{conflict}");
    let many = open("many", Some(2), Some(3)).unwrap_err().to_string();
    assert!(many.starts_with("3 ranges for 2 shards"), "{many}");
    assert!(!home.path().join("many").exists());
}

#[test]
fn the_order_of_winners_is_kept_and_the_usual_one_not_written() {
    let home = tempfile::tempdir().unwrap();
    let [usual, other] = ["usual", "other"].map(|name| home.path().join(name));
    let order = WinnerOrder::new(&[WinnerRule::Https, WinnerRule::FirstSeen]).unwrap();
    let by = |winners| ManifestRequest { winners: Some(winners), ..ManifestRequest::default() };
    let open = |dir, wanted| Manifest::open_or_create(dir, wanted, DEFAULTS);
    assert_eq!(open(&usual, by(WinnerOrder::DEFAULT)).unwrap().winners, WinnerOrder::DEFAULT);
    assert!(!fs::read_to_string(usual.join(NAME)).unwrap().contains("winners"));
    assert_eq!(open(&other, by(order)).unwrap().winners, order);
    assert_eq!(open(&other, by(order)).unwrap(), open(&other, ManifestRequest::default()).unwrap());
    let conflict = open(&other, by(WinnerOrder::DEFAULT)).unwrap_err().to_string();
    assert!(conflict.contains("by https, first_seen, url, not by popularity, "), "{conflict}");
    assert!(matches!(open(&usual, by(order)), Err(ManifestError::Winners { .. })));
}

#[test]
fn tables_belong_to_the_policy_and_are_kept() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("data");
    let hash = |digit: &str| Some(digit.repeat(32).parse().unwrap());
    let wanted = |policy: &str, tables| ManifestRequest {
        policy: Some(policy.parse().unwrap()),
        tables,
        ..ManifestRequest::default()
    };
    let open = |wanted| Manifest::open_or_create(&dir, wanted, DEFAULTS);
    let refused = |wanted| open(wanted).unwrap_err().to_string();
    assert!(refused(wanted("imatch", None)).contains("the policy imatch needs tables"));
    assert!(refused(wanted("simhash", hash("1"))).contains("the policy simhash reads no tables"));
    let made = open(wanted("imatch", hash("1"))).unwrap();
    assert_eq!(made.tables, hash("1"));
    assert_eq!(open(wanted("imatch", None)).unwrap(), made);
    let other = refused(wanted("imatch", hash("2")));
    assert!(other.contains(&"1".repeat(32)) && other.contains(&"2".repeat(32)), "{other}");
    // A manifest without tables has no field for them, so that earlier manifests stay as they are.
    let none = home.path().join("none");
    Manifest::open_or_create(&none, ManifestRequest::default(), DEFAULTS).unwrap();
    assert!(!fs::read_to_string(none.join(NAME)).unwrap().contains("tables"));
    let forged = Manifest { tables: None, ..made };
    let read = Manifest::read(forged.seal().unwrap().as_bytes(), Path::new("manifest.json"));
    assert!(matches!(read, Err(ManifestError::Damaged { .. })), "{read:?}");
}

/// A process that opens a directory while others create it gets the one manifest, or an error that the
/// manifest is not the wanted one.
#[test]
fn one_of_many_creations_at_once_counts() {
    const AT_ONCE: u16 = 8;
    for _ in 0..50 {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("data");
        let barrier = std::sync::Barrier::new(usize::from(AT_ONCE));
        let open = |shards| {
            barrier.wait();
            let opened = Manifest::open_or_create(&dir, wanted("0.8", shards), DEFAULTS);
            // After the manifest, a process creates other files.
            opened.inspect(|_| fs::create_dir_all(dir.join("tier1")).unwrap())
        };
        let opened: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=AT_ONCE).map(|shards| scope.spawn(move || open(shards))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let kept = Manifest::open_or_create(&dir, ManifestRequest::default(), DEFAULTS).unwrap();
        let right = |opened: &Result<Manifest, ManifestError>| match opened {
            Ok(manifest) => *manifest == kept,
            Err(error) => matches!(error, ManifestError::Conflict { option: "shards", .. }),
        };
        assert!(opened.iter().all(right), "{kept:?} is kept: {opened:?}");
        assert_eq!(opened.iter().filter(|opened| opened.is_ok()).count(), 1);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
    }
}

#[test]
fn an_interrupted_creation_is_done_again() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(ASIDE), b"{\"mani").unwrap();
    assert!(Manifest::open_or_create(dir.path(), ManifestRequest::default(), DEFAULTS).is_ok());
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("photo.jpg"), b"").unwrap();
    let error = Manifest::open_or_create(dir.path(), ManifestRequest::default(), DEFAULTS).unwrap_err();
    assert!(matches!(error, ManifestError::Foreign(_)), "{error}");
}

#[test]
fn every_damaged_byte_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let made = Manifest::open_or_create(dir.path(), ManifestRequest::default(), DEFAULTS).unwrap();
    let path = dir.path().join(NAME);
    let sound = fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        // White space and the order of the fields have no meaning, so some changes may be harmless.
        if let Ok(read) = Manifest::read(&bytes, &path) {
            assert_eq!(read, made, "byte {at}");
        }
        assert!(Manifest::read(&sound[..at], &path).is_err() || at + 1 == sound.len());
    }
}

#[test]
fn other_versions_are_named() {
    let path = Path::new("d/manifest.json");
    let read = |manifest: serde_json::Value| {
        let sealed = Sealed { checksum: checksum(&manifest), manifest };
        Manifest::read(&serde_json::to_vec(&sealed).unwrap(), path).unwrap_err()
    };
    let newer = read(serde_json::json!({"format": FORMAT + 1, "more": true}));
    assert!(
        matches!(newer, ManifestError::Format { found, .. } if found == u64::from(FORMAT) + 1),
        "{newer}"
    );
    let older = read(serde_json::json!({"format": 1, "shards": 4}));
    let says = format!("format 1, and this program reads format {FORMAT}; load the pages");
    assert!(older.to_string().contains(&says), "{older}");
    let manifest = Manifest {
        format: FORMAT,
        collection: String::new(),
        policy: Policy::default(),
        tokeniser: TOKENISER_VERSION + 1,
        shards: 1,
        ranges: 1,
        winners: WinnerOrder::DEFAULT,
        tables: None,
    };
    let policy = read(serde_json::to_value(&manifest).unwrap());
    assert!(matches!(policy, ManifestError::Tokeniser { .. }), "{policy}");
}
