//! The centers that a search gives: to the entry that is searched for, and to partners that have none.

use doppel_model::InsertSeq;
use doppel_model::pairwise::{Comparison, Similarity};
use doppel_model::signature::Signature;

use super::NodeSearch;
use crate::node::columns::Center;
use crate::node::found::Partner;

impl NodeSearch<'_, '_> {
    /// The center of a partner that never searched, or whose center has left: the oldest of the entry that searches
    /// and its partners. None when it is that itself.
    pub(super) fn adopt(
        &self,
        insert_seq: InsertSeq,
        link: &Comparison,
        candidate: &Signature,
    ) -> Option<Center> {
        let (_, own) = self.own?;
        let (oldest, signature) = match self.found.partners.first().zip(self.oldest.as_ref()) {
            None if own > insert_seq => return None,
            Some((oldest, signature)) if own > oldest.insert_seq => (oldest.insert_seq, signature),
            _ => return Some(center(own, link)),
        };
        let link = self.index.tables.policy.compare(signature, candidate);
        let linked = link.similar && self.index.tables.policy.meets(signature, candidate);
        Some(if linked { center(oldest, &link) } else { Center::NONE })
    }

    /// The oldest partner, if it is older than the entry itself: whichever is the older is a center now. And the second
    /// center.
    pub(super) fn choose_centers(&mut self) {
        let Some((own, own_insert_seq)) = self.own else { return };
        let Some((partner, signature)) = self.found.partners.first().zip(self.oldest.as_ref()) else {
            self.found.centers = Some((own, [Center::NONE; 2]));
            return;
        };
        let (center, new_center, new_center_signature) = if partner.insert_seq < own_insert_seq {
            let distance = distance(partner.similarity).1;
            (Center { insert_seq: partner.insert_seq, distance }, partner.entry, &**signature)
        } else {
            (Center::NONE, own, self.signature)
        };
        self.found.centers = Some((own, [center, self.second_center(own_insert_seq)]));
        if !self.columns(new_center.partition).is_center(new_center.slot) {
            self.found.new_center = Some((new_center, self.index.tables.band_keys(new_center_signature)));
        }
    }

    /// The nearest of the partners that are older than the entry itself and centers already, but for the oldest.
    fn second_center(&self, own: InsertSeq) -> Center {
        let older = self.found.partners.iter().skip(1).take_while(|partner| partner.insert_seq < own);
        let as_center = |Partner { entry, insert_seq, similarity }: &Partner| {
            let columns = self.columns(entry.partition);
            let distance = distance(*similarity).1;
            columns.is_center(entry.slot).then_some(Center { insert_seq: *insert_seq, distance })
        };
        older.filter_map(as_center).min_by_key(|center| center.distance).unwrap_or(Center::NONE)
    }
}

fn center(insert_seq: InsertSeq, link: &Comparison) -> Center {
    Center { insert_seq, distance: distance(link.similarity).1 }
}

/// A distance in 255ths, rounded down and up.
pub(super) fn distance(similarity: Similarity) -> (u8, u8) {
    let byte = |distance: u64| u8::try_from(distance).unwrap_or(u8::MAX);
    let (down, up) = similarity.distance(255);
    (byte(down), byte(up))
}
