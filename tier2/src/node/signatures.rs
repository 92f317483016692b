//! Access to the signatures of a node. They are in a file of the node, or in the store of tier 1 if it runs
//! in the same process.

pub(crate) mod fetch;
pub(crate) mod file;
pub(crate) mod signature_cache;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use doppel_model::PageId;
use doppel_model::signature::Signature;
use doppel_protocol::{SignaturePlace, StoredSignatures};

use super::partition::columns::SignatureRecord;
use file::{SignatureFile, SignatureFileError};

/// Name of an empty file in the directory of a node whose signatures tier 1 stores.
pub(crate) const IN_TIER1: &str = "signatures-are-in-tier1";

/// The signatures of a node.
pub(crate) enum NodeSignatures {
    /// In a file of the node.
    Own(SignatureFile),
    /// In the store of tier 1.
    Tier1(Tier1Signatures),
}

/// Access to the signatures that tier 1 stores.
pub(crate) struct Tier1Signatures {
    pub(crate) stored: Arc<dyn StoredSignatures>,
    /// Path of a file that is created with the first content. An index with this file shows that tier 1
    /// cannot be empty.
    mark: Option<PathBuf>,
}

impl Tier1Signatures {
    /// Access for a node with the directory `dir`.
    pub(crate) fn new(stored: Arc<dyn StoredSignatures>, dir: &Path) -> Self {
        Self { stored, mark: Some(dir.join(IN_TIER1)) }
    }

    /// Where tier 1 stores the present signature of a page.
    fn place(&mut self, page: PageId) -> SignatureRecord {
        if let Some(mark) = self.mark.take()
            && let Err(error) = std::fs::File::create(&mark)
        {
            tracing::warn!(
                path = %mark.display(),
                %error,
                "cannot create the file that marks the index as not empty"
            );
        }
        match self.stored.place(page) {
            Ok(Some(SignaturePlace { at, bytes })) => SignatureRecord { offset: at, bytes },
            Ok(None) | Err(_) => SignatureRecord::NOWHERE,
        }
    }
}

impl NodeSignatures {
    /// The signature file of the node, if it has one.
    pub(crate) fn own(&self) -> Option<&SignatureFile> {
        match self {
            Self::Own(file) => Some(file),
            Self::Tier1(_) => None,
        }
    }

    /// Like [`own`](Self::own), but mutable.
    pub(crate) fn own_mut(&mut self) -> Option<&mut SignatureFile> {
        match self {
            Self::Own(file) => Some(file),
            Self::Tier1(_) => None,
        }
    }

    /// Stores a signature that `page` has. If tier 1 stores signatures, this only looks up its place. If the
    /// page has another signature there already, this one is fetched when it is needed.
    pub(crate) fn keep(&mut self, page: PageId, signature: &Signature) -> SignatureRecord {
        match self {
            Self::Own(file) => file.append(signature),
            Self::Tier1(shared) => shared.place(page),
        }
    }

    /// The record of an entry's signature after `page` has become its first page. `None` if the record stays
    /// valid.
    pub(crate) fn record_for_page(&mut self, page: PageId) -> Option<SignatureRecord> {
        match self {
            Self::Own(_) => None,
            Self::Tier1(shared) => {
                Some(shared.place(page)).filter(|record| *record != SignatureRecord::NOWHERE)
            }
        }
    }

    /// Reads the signature of a record. `buffer` is scratch space.
    pub(crate) fn read(
        &self,
        record: SignatureRecord,
        buffer: &mut Vec<u8>,
    ) -> Result<Signature, SignatureFileError> {
        match self {
            Self::Own(file) => file.read(record, buffer),
            Self::Tier1(shared) => {
                shared.stored.read(SignaturePlace { at: record.offset, bytes: record.bytes }, buffer)?;
                Ok(Signature::from_bytes(buffer)?)
            }
        }
    }

    /// Notes that a record is in use.
    pub(crate) fn retain(&mut self, record: SignatureRecord) {
        if let Some(file) = self.own_mut() {
            file.retain(record);
        }
    }

    /// Notes that a record is no longer in use.
    pub(crate) fn release(&mut self, record: SignatureRecord) {
        if let Some(file) = self.own_mut() {
            file.release(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use doppel_model::ContentHash;
    use doppel_model::signature::Builder;
    use doppel_protocol::{EachSignature, SourceError};

    use super::*;

    /// A store of tier 1 in memory: signatures by place, and the place of each page.
    #[derive(Default)]
    struct MemoryStore {
        signatures: Mutex<Vec<Arc<Signature>>>,
        places: Mutex<HashMap<PageId, SignaturePlace>>,
    }

    impl MemoryStore {
        fn put(&self, page: PageId, signature: &Arc<Signature>) {
            let mut signatures = self.signatures.lock().unwrap();
            signatures.push(Arc::clone(signature));
            let (at, bytes) = (signatures.len() as u64 - 1, signature.as_bytes().len() as u32);
            self.places.lock().unwrap().insert(page, SignaturePlace { at, bytes });
        }
    }

    impl StoredSignatures for MemoryStore {
        fn place(&self, page: PageId) -> Result<Option<SignaturePlace>, SourceError> {
            Ok(self.places.lock().unwrap().get(&page).copied())
        }

        fn read(&self, place: SignaturePlace, buffer: &mut Vec<u8>) -> Result<(), SourceError> {
            let signatures = self.signatures.lock().unwrap();
            let found = signatures.get(place.at as usize);
            let found =
                found.ok_or_else(|| SourceError::Damaged("no signature has this number".to_owned()))?;
            found.as_bytes().clone_into(buffer);
            Ok(())
        }

        fn each(&self, _: &mut EachSignature<'_>) -> Result<(), SourceError> {
            Ok(())
        }
    }

    fn signature(number: u64) -> Arc<Signature> {
        Arc::new(Builder::new().build(&(number..number + 40).collect::<Vec<u64>>()))
    }

    #[test]
    fn a_signature_is_read_from_tier_1_and_is_not_confused_with_the_next_one_of_its_page() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(MemoryStore::default());
        let mut signatures = NodeSignatures::Tier1(Tier1Signatures::new(
            Arc::clone(&store) as Arc<dyn StoredSignatures>,
            dir.path(),
        ));
        let page = PageId::from_bytes([1; 16]);
        assert!(!dir.path().join(IN_TIER1).exists());
        assert_eq!(signatures.keep(page, &signature(1)), SignatureRecord::NOWHERE);
        assert!(dir.path().join(IN_TIER1).exists());
        store.put(page, &signature(1));
        let first = signatures.keep(page, &signature(1));
        let content = |record| -> Option<ContentHash> {
            signatures.read(record, &mut Vec::new()).ok().map(|found| found.content())
        };
        assert_eq!(content(first), Some(signature(1).content()));
        assert_eq!(content(SignatureRecord::NOWHERE), None);
        // The page has another content by now. A reader recognises the other signature by its content hash.
        store.put(page, &signature(2));
        let second = signatures.keep(page, &signature(1));
        let content = signatures.read(second, &mut Vec::new()).unwrap().content();
        assert_eq!(content, signature(2).content());
    }
}
