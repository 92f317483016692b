//! The form of the columns in a snapshot.

use std::io;

use doppel_model::InsertSeq;
use doppel_snapshot::{SnapshotError, SnapshotItem, SnapshotReader, SnapshotWriter};

use super::{BitmapName, Bitmaps, Columns, EntryHead, OWED};

impl SnapshotItem for EntryHead {
    const BYTES: usize = 27;

    fn write(self, to: &mut [u8]) {
        let numbers = [
            self.insert_seq.0,
            self.center.0,
            self.second_center.0,
            // Numbers of query orders start again after the snapshot is read. Entries that were searched for
            // get 1, which precedes all new numbers. Owed searches count as not made, because they are
            // requested again.
            u32::from(!matches!(self.query_order, 0 | OWED)),
            self.total,
            self.bitmap.0,
        ];
        to.chunks_exact_mut(4).zip(numbers).for_each(|(place, number)| number.write(place));
        to[24..].copy_from_slice(&[self.distance, self.second_distance, self.marks]);
    }

    fn read(from: &[u8]) -> Self {
        let number = |at: usize| u32::read(&from[4 * at..]);
        Self {
            insert_seq: InsertSeq(number(0)),
            center: InsertSeq(number(1)),
            second_center: InsertSeq(number(2)),
            query_order: number(3),
            total: number(4),
            bitmap: BitmapName(number(5)),
            distance: from[24],
            second_distance: from[25],
            marks: from[26],
        }
    }
}

impl Columns {
    pub(crate) fn write(&self, out: &mut SnapshotWriter) -> io::Result<()> {
        out.number(self.dimensions as u64)?;
        out.column(&self.heads)?;
        out.column(&self.content)?;
        out.column(&self.lengths)?;
        self.bitmaps.write(out)?;
        out.column(&self.offset)?;
        out.column(&self.bytes)?;
        out.column(&self.page)?;
        out.column(&self.free)
    }

    pub(crate) fn read(input: &mut SnapshotReader) -> Result<Self, SnapshotError> {
        Ok(Self {
            dimensions: input.number()? as usize,
            heads: input.column()?,
            content: input.column()?,
            lengths: input.column()?,
            bitmaps: Bitmaps::read(input)?,
            offset: input.column()?,
            bytes: input.column()?,
            page: input.column()?,
            free: input.column()?,
        })
    }
}
