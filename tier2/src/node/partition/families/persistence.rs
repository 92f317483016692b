//! The form of families in a snapshot.

use std::io;
use std::sync::Arc;

use doppel_model::pairwise::family::FamilyOrder;
use doppel_model::pairwise::family::shape::MemberShape;
use doppel_snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};

use super::{FAMILIES_MAX, Families};
use crate::node::partition::candidates::TableKey;

impl Families {
    pub(crate) fn write(&self, out: &mut SnapshotWriter) -> io::Result<()> {
        out.number(self.orders.len() as u64)?;
        for (order, shapes) in self.orders.iter().zip(&self.shapes) {
            out.column(order.template())?;
            let (hashes, ranks): (Vec<u64>, Vec<u64>) = order.ranks().unzip();
            out.column(&hashes)?;
            out.column(&ranks)?;
            out.items(shapes.len(), shapes.iter().map(|shape| shape.number()))?;
        }
        out.items(self.refined.len(), self.refined.keys().map(|band| band.number()))?;
        out.items(self.refined.len(), self.refined.values().copied())?;
        out.items(self.split.len(), self.split.iter().map(|list| list.number()))
    }

    pub(crate) fn read(input: &mut SnapshotReader) -> Result<Self, SnapshotError> {
        let mut families = Self::default();
        let orders = input.number()?;
        if orders > FAMILIES_MAX as u64 {
            return Err(SnapshotError::Damaged);
        }
        for _ in 0..orders {
            let template = input.column::<u64>()?;
            let (hashes, ranks) = (input.column::<u64>()?, input.column::<u64>()?);
            let order = FamilyOrder::from_parts(template, hashes.into_iter().zip(ranks));
            families.orders.push(Arc::new(order.ok_or(SnapshotError::Damaged)?));
            let shapes = input.column::<u64>()?.into_iter().map(MemberShape::of_number).collect();
            families.shapes.push(Option::ok_or(shapes, SnapshotError::Damaged)?);
        }
        let (bands, of) = (input.column::<u64>()?, input.column::<u32>()?);
        if bands.len() != of.len() {
            return Err(SnapshotError::Damaged);
        }
        for (band, family) in bands.into_iter().zip(of) {
            let band = TableKey::of_number(band).filter(|_| u64::from(family) < orders);
            families.refined.insert(band.ok_or(SnapshotError::Damaged)?, family);
        }
        for list in input.column::<u64>()? {
            families.split.insert(TableKey::of_number(list).ok_or(SnapshotError::Damaged)?);
        }
        Ok(families)
    }
}
