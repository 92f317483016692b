//! Where a node has its signatures: in a file of its own, or where tier 1 keeps them, in the same process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use doppel_model::PageId;
use doppel_model::signature::Signature;
use doppel_protocol::{SignaturePlace, StoredSignatures};

use super::columns::Record;
use super::file::{SignatureFile, Unreadable};

/// The name of an empty file in the directory of a node whose signatures tier 1 keeps.
pub(crate) const IN_TIER1: &str = "signatures-are-in-tier1";

/// The signatures of a node.
pub(crate) enum Signatures {
    /// In its file.
    Own(SignatureFile),
    /// Where tier 1 keeps them.
    Shared(Shared),
}

/// What there is of the signatures that tier 1 keeps.
pub(crate) struct Shared {
    pub(crate) stored: Arc<dyn StoredSignatures>,
    /// A file that is made with the first content: an index that has one shows that tier 1 cannot be empty.
    mark: Option<PathBuf>,
}

impl Shared {
    /// Those of a node with a directory of its own.
    pub(crate) fn new(stored: Arc<dyn StoredSignatures>, dir: &Path) -> Self {
        Self { stored, mark: Some(dir.join(IN_TIER1)) }
    }

    fn place(&mut self, page: PageId) -> Record {
        if let Some(mark) = self.mark.take()
            && let Err(error) = std::fs::File::create(&mark)
        {
            tracing::warn!(path = %mark.display(), %error, "cannot mark that the index has contents");
        }
        match self.stored.place(page) {
            Ok(Some(SignaturePlace { at, bytes })) => Record { offset: at, bytes },
            Ok(None) | Err(_) => Record::NOWHERE,
        }
    }
}

impl Signatures {
    /// The file of the node.
    pub(crate) fn own(&self) -> Option<&SignatureFile> {
        match self {
            Self::Own(file) => Some(file),
            Self::Shared(_) => None,
        }
    }

    pub(crate) fn own_mut(&mut self) -> Option<&mut SignatureFile> {
        match self {
            Self::Own(file) => Some(file),
            Self::Shared(_) => None,
        }
    }

    /// Keeps a signature that `page` has. Where tier 1 keeps it, nothing is written; if the page has another one
    /// already, this one is fetched when it is needed.
    pub(crate) fn keep(&mut self, page: PageId, signature: &Signature) -> Record {
        match self {
            Self::Own(file) => file.append(signature),
            Self::Shared(shared) => shared.place(page),
        }
    }

    /// The record of the same signature as `page` has it, when another page had it until now; none if it stays where it is.
    pub(crate) fn handed_on(&mut self, page: PageId) -> Option<Record> {
        match self {
            Self::Own(_) => None,
            Self::Shared(shared) => Some(shared.place(page)).filter(|record| *record != Record::NOWHERE),
        }
    }

    /// The signature of a record. `buffer` is scratch.
    pub(crate) fn read(&self, record: Record, buffer: &mut Vec<u8>) -> Result<Signature, Unreadable> {
        match self {
            Self::Own(file) => file.read(record, buffer),
            Self::Shared(shared) => {
                shared.stored.read(SignaturePlace { at: record.offset, bytes: record.bytes }, buffer)?;
                Ok(Signature::from_bytes(buffer)?)
            }
        }
    }

    /// A record that is in use.
    pub(crate) fn retain(&mut self, record: Record) {
        if let Some(file) = self.own_mut() {
            file.retain(record);
        }
    }

    /// A record that is no longer in use.
    pub(crate) fn release(&mut self, record: Record) {
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

    /// What tier 1 keeps: signatures by place, and the place of each page.
    #[derive(Default)]
    struct Kept {
        signatures: Mutex<Vec<Arc<Signature>>>,
        places: Mutex<HashMap<PageId, SignaturePlace>>,
    }

    impl Kept {
        fn put(&self, page: PageId, signature: &Arc<Signature>) {
            let mut signatures = self.signatures.lock().unwrap();
            signatures.push(Arc::clone(signature));
            let (at, bytes) = (signatures.len() as u64 - 1, signature.as_bytes().len() as u32);
            self.places.lock().unwrap().insert(page, SignaturePlace { at, bytes });
        }
    }

    impl StoredSignatures for Kept {
        fn place(&self, page: PageId) -> Result<Option<SignaturePlace>, SourceError> {
            Ok(self.places.lock().unwrap().get(&page).copied())
        }

        fn read(&self, place: SignaturePlace, buffer: &mut Vec<u8>) -> Result<(), SourceError> {
            let signatures = self.signatures.lock().unwrap();
            let found = signatures.get(place.at as usize);
            let found = found.ok_or_else(|| SourceError::Damaged("there is nothing".to_owned()))?;
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
    fn a_signature_is_read_where_tier_1_keeps_it_and_another_pages_is_not_taken_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Arc::new(Kept::default());
        let mut signatures =
            Signatures::Shared(Shared::new(Arc::clone(&kept) as Arc<dyn StoredSignatures>, dir.path()));
        let page = PageId::from_bytes([1; 16]);
        assert!(!dir.path().join(IN_TIER1).exists());
        assert_eq!(signatures.keep(page, &signature(1)), Record::NOWHERE);
        assert!(dir.path().join(IN_TIER1).exists());
        kept.put(page, &signature(1));
        let first = signatures.keep(page, &signature(1));
        let content = |record| -> Option<ContentHash> {
            signatures.read(record, &mut Vec::new()).ok().map(|found| found.content())
        };
        assert_eq!(content(first), Some(signature(1).content()));
        assert_eq!(content(Record::NOWHERE), None);
        // The page has another one by now: whoever reads sees that it is not what was meant.
        kept.put(page, &signature(2));
        let second = signatures.keep(page, &signature(1));
        let content = signatures.read(second, &mut Vec::new()).unwrap().content();
        assert_eq!(content, signature(2).content());
    }
}
