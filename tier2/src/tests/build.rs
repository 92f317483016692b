//! An index that is built together with a new collection.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use doppel_model::PageId;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_protocol::{
    ContentSource, EachSignature, IndexOrders as _, SignaturePlace, SourceError, StoredSignatures,
    Tier2Api as _,
};
use tempfile::TempDir;

use super::model::{signature_of, text};
use super::reference::Exhaustive;
use super::service::{TIMEOUT, puts};
use super::source::{Source, orders};
use crate::{Config, Tier2};

/// The signatures of all pages. The place of a signature is its number.
struct NumberedSignatures(Vec<(PageId, Arc<Signature>)>);

impl NumberedSignatures {
    fn place_of(&self, number: usize) -> SignaturePlace {
        SignaturePlace { at: number as u64, bytes: self.0[number].1.as_bytes().len() as u32 }
    }
}

impl StoredSignatures for NumberedSignatures {
    fn place(&self, page: PageId) -> Result<Option<SignaturePlace>, SourceError> {
        Ok(self.0.iter().position(|(one, _)| *one == page).map(|number| self.place_of(number)))
    }

    fn read(&self, place: SignaturePlace, buffer: &mut Vec<u8>) -> Result<(), SourceError> {
        let found = self.0.get(place.at as usize);
        let (_, found) =
            found.ok_or_else(|| SourceError::Damaged("no signature has this number".to_owned()))?;
        found.as_bytes().clone_into(buffer);
        Ok(())
    }

    fn each(&self, each: &mut EachSignature<'_>) -> Result<(), SourceError> {
        for (number, (_, signature)) in self.0.iter().enumerate() {
            if !each(self.place_of(number), signature.as_bytes()) {
                break;
            }
        }
        Ok(())
    }
}

#[test]
fn the_first_start_begins_with_the_snapshot_of_the_build() {
    let dir = TempDir::new().unwrap();
    let policy = Policy::default();
    let config = Config::new(dir.path(), policy);
    let (pages, commands) = puts(300);
    let source = Source::new(&pages, drop);
    *source.log.lock().unwrap() = Some(Vec::new());
    let signatures = pages.lock().unwrap().iter().map(|(page, one)| (*page, Arc::clone(one))).collect();
    let stored = Arc::new(NumberedSignatures(signatures)) as Arc<dyn StoredSignatures>;
    let of_contents = || Arc::clone(&source) as Arc<dyn ContentSource>;
    Tier2::build(config.clone(), of_contents(), &stored).unwrap();
    assert_eq!(source.full_reads.load(Ordering::Relaxed), 1);

    let tier2 = Tier2::open_beside(config, of_contents(), Some(&stored)).unwrap();
    let begin = Instant::now();
    while tier2.load().is_err() {
        assert!(begin.elapsed() < TIMEOUT, "the index was not fed in time");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(source.full_reads.load(Ordering::Relaxed), 1, "the start read all contents again");
    let reference = Exhaustive::new(policy, Box::new(drop));
    reference.submit(orders(0, commands)).unwrap();
    let mut with_partners = 0;
    for member in 0..60 {
        let unseen = signature_of(&text(member % 40, 1_000 + member));
        let pairs = tier2.probe(&unseen).unwrap();
        assert_eq!(pairs.is_empty(), reference.probe(&unseen).unwrap().is_empty());
        with_partners += usize::from(!pairs.is_empty());
    }
    assert!(with_partners > 0);
}

#[test]
fn a_build_without_a_snapshot_is_an_error() {
    let dir = TempDir::new().unwrap();
    let (pages, _) = puts(20);
    let source = Source::new(&pages, drop);
    let signatures = pages.lock().unwrap().iter().map(|(page, one)| (*page, Arc::clone(one))).collect();
    let stored = Arc::new(NumberedSignatures(signatures)) as Arc<dyn StoredSignatures>;
    let build = || {
        let source = Arc::clone(&source) as Arc<dyn ContentSource>;
        Tier2::build(Config::new(dir.path(), Policy::default()), source, &stored)
    };
    // Tier 1 names no moment.
    build().unwrap_err();
    *source.log.lock().unwrap() = Some(Vec::new());
    fs::create_dir(dir.path().join("node-0/snapshot.dat")).unwrap();
    let error = build().unwrap_err().to_string();
    assert!(error.contains(&format!("cannot write a snapshot in {}: ", dir.path().display())), "{error}");
    fs::remove_dir(dir.path().join("node-0/snapshot.dat")).unwrap();
    build().unwrap();
}
