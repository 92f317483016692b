//! What single records say of themselves.

use doppel_model::ShardId;

use super::*;

#[test]
fn a_message_overtakes_only_a_question_that_is_under_way() {
    let (group, content) = (GroupId::new(1, ShardId(0)), ContentHash([1; 16]));
    let after = |resolving| {
        let mut membership = Membership {
            group,
            enrolled_at: group,
            content,
            compared: true,
            winner: None,
            verdict: None,
            resolving,
            covered_by: None,
            cover_number: 0,
            dissimilar: false,
        };
        membership.message_sent();
        membership.resolving
    };
    assert_eq!(after(Resolving::Asked), Resolving::Overtaken);
    assert_eq!(after(Resolving::Overtaken), Resolving::Overtaken);
    assert_eq!(after(Resolving::No), Resolving::No);
}
