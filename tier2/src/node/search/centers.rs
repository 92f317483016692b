//! The centers that a search assigns: to the searched entry, and to partners without a center.

use doppel_model::InsertSeq;
use doppel_model::pairwise::{Comparison, Similarity};
use doppel_model::signature::Signature;

use super::ActiveSearch;
use crate::node::partition::columns::Center;
use crate::node::search::findings::FoundPartner;

impl ActiveSearch<'_, '_> {
    /// The center for a partner that never searched or whose center has left. It is the oldest entry among
    /// the searched entry and its partners. `None` if that is the partner itself.
    pub(super) fn adoptable_center(
        &self,
        insert_seq: InsertSeq,
        link: &Comparison,
        candidate: &Signature,
    ) -> Option<Center> {
        let (_, own) = self.own?;
        let (oldest, signature) = match self.findings.partners.first().zip(self.oldest.as_ref()) {
            None if own > insert_seq => return None,
            Some((oldest, signature)) if own > oldest.insert_seq => (oldest.insert_seq, signature),
            _ => return Some(center(own, link)),
        };
        let link = self.index.tables.policy.compare(signature, candidate);
        let linked = link.similar && self.index.tables.policy.meets(signature, candidate);
        Some(if linked { center(oldest, &link) } else { Center::NONE })
    }

    /// Assigns the centers of the searched entry. Its center is its oldest partner, if that partner is older
    /// than the entry. Whichever of the two is older becomes a center.
    pub(super) fn choose_centers(&mut self) {
        let Some((own, own_insert_seq)) = self.own else { return };
        let Some((partner, signature)) = self.findings.partners.first().zip(self.oldest.as_ref()) else {
            self.findings.centers = Some((own, [Center::NONE; 2]));
            return;
        };
        let (center, new_center, new_center_signature) = if partner.insert_seq < own_insert_seq {
            let distance = distance(partner.similarity).1;
            (Center { insert_seq: partner.insert_seq, distance }, partner.entry, &**signature)
        } else {
            (Center::NONE, own, self.signature)
        };
        self.findings.centers = Some((own, [center, self.second_center(own_insert_seq)]));
        if !self.columns(new_center.partition).is_center(new_center.slot) {
            self.findings.new_center =
                Some((new_center, self.index.tables.entry_keys(new_center.partition, new_center_signature)));
        }
    }

    /// The second center of the searched entry: among its older partners except the oldest, the nearest one
    /// that is a center already.
    fn second_center(&self, own: InsertSeq) -> Center {
        let older = self.findings.partners.iter().skip(1).take_while(|partner| partner.insert_seq < own);
        let as_center = |FoundPartner { entry, insert_seq, similarity }: &FoundPartner| {
            let columns = self.columns(entry.partition);
            let distance = distance(*similarity).1;
            columns.is_center(entry.slot).then_some(Center { insert_seq: *insert_seq, distance })
        };
        older.filter_map(as_center).min_by_key(|center| center.distance).unwrap_or(Center::NONE)
    }
}

/// A center at the distance of a comparison.
fn center(insert_seq: InsertSeq, link: &Comparison) -> Center {
    Center { insert_seq, distance: distance(link.similarity).1 }
}

/// Converts a similarity to a distance in 255ths. Returns the distance rounded down, and rounded up.
pub(super) fn distance(similarity: Similarity) -> (u8, u8) {
    let byte = |distance: u64| u8::try_from(distance).unwrap_or(u8::MAX);
    let (down, up) = similarity.distance(255);
    (byte(down), byte(up))
}
