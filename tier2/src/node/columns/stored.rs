//! The columns in a snapshot.

use std::io;

use super::{Bitmaps, Columns};
use crate::node::codec::{Reader, Unreadable, Writer};

impl Columns {
    pub(crate) fn write(&self, out: &mut Writer) -> io::Result<()> {
        out.number(self.dimensions as u64)?;
        out.column(&self.content)?;
        out.column(&self.lengths)?;
        self.bitmaps.write(out)?;
        out.column(&self.offset)?;
        out.column(&self.bytes)?;
        out.column(&self.insert_seq)?;
        out.column(&self.center)?;
        out.column(&self.distance)?;
        out.column(&self.second_center)?;
        out.column(&self.second_distance)?;
        // Numbers of passes that are over: whoever was searched for comes before all that follow.
        out.items(self.query_order.len(), self.query_order.iter().map(|order| (*order).min(1)))?;
        out.column(&self.page)?;
        out.column(&self.marks)?;
        out.column(&self.free)
    }

    pub(crate) fn read(input: &mut Reader) -> Result<Self, Unreadable> {
        Ok(Self {
            dimensions: input.number()? as usize,
            content: input.column()?,
            lengths: input.column()?,
            bitmaps: Bitmaps::read(input)?,
            offset: input.column()?,
            bytes: input.column()?,
            insert_seq: input.column()?,
            center: input.column()?,
            distance: input.column()?,
            second_center: input.column()?,
            second_distance: input.column()?,
            query_order: input.column()?,
            page: input.column()?,
            marks: input.column()?,
            free: input.column()?,
        })
    }
}
