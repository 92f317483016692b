//! Refuses files that store records by columns. For programs that were built without the feature `columns`.

use std::convert::Infallible;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use doppel_streams::{InputPosition, Reason, Stream};

use crate::Item;
use crate::record::{IdRows, Records, Setup};

/// The rows of a Parquet or Arrow file. No value of this type exists.
pub(crate) struct Rows(Infallible);

impl Rows {
    /// Refuses a Parquet file.
    pub(crate) fn parquet(_: &Arc<Path>, _: File, _: Setup) -> Result<Self, Reason> {
        Err(Reason::WithoutColumns)
    }

    /// Refuses an Arrow file.
    pub(crate) fn arrow_file(_: &Arc<Path>, _: File, _: Setup) -> Result<Self, Reason> {
        Err(Reason::WithoutColumns)
    }

    /// Refuses an Arrow stream.
    pub(crate) fn arrow_stream(_: &Arc<Path>, _: Stream, _: Setup) -> Result<Self, Reason> {
        Err(Reason::WithoutColumns)
    }

    /// Proves that no value of this type exists, in any place that has one.
    pub(crate) fn never(&self) -> ! {
        match self.0 {}
    }

    pub(crate) fn broke_off(&self) -> bool {
        self.never()
    }

    pub(crate) fn input_position(&self) -> InputPosition {
        self.never()
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.never()
    }

    pub(crate) fn records(&self) -> Option<&Records> {
        self.never()
    }
}

impl Iterator for Rows {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        self.never()
    }
}

impl IdRows for Rows {
    fn next_id(&mut self, _: &[String]) -> Option<(u64, Option<String>)> {
        self.never()
    }
}

#[cfg(test)]
mod tests {
    use doppel_model::Timestamp;

    use crate::{Limits, open};

    #[test]
    fn a_program_without_columns_says_how_it_is_built_with_them() {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in [("a.parquet", "PAR1"), ("b", "ARROW1\0\0"), ("c.arrows", "")] {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            let error = open(&path, Limits::at(Timestamp::now())).err().unwrap().to_string();
            assert!(error.contains(name) && error.contains("--no-default-features"), "{error}");
        }
    }
}
