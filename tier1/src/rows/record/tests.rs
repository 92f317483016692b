//! Tests of single records, without a machine or a store.

use doppel_model::{ClientId, ShardId};

use super::*;

#[test]
fn a_message_overtakes_only_a_probe_that_is_under_way() {
    let (group, content) = (GroupId::new(1, ShardId(0)), ContentHash([1; 16]));
    let after = |forward_probe| {
        let mut membership = Membership {
            group,
            enrolled_at: group,
            content,
            compared: true,
            winner: None,
            verdict: None,
            forward_probe,
            covered_by: None,
            cover_number: 0,
            dissimilar: false,
        };
        membership.message_sent();
        membership.forward_probe
    };
    assert_eq!(after(ForwardProbe::InFlight), ForwardProbe::Overtaken);
    assert_eq!(after(ForwardProbe::Overtaken), ForwardProbe::Overtaken);
    assert_eq!(after(ForwardProbe::Idle), ForwardProbe::Idle);
}

#[test]
fn a_purged_page_is_recognised_by_the_start_of_its_row() {
    let url = |at: &str| PageUrl::parse(&format!("http://a.example/{at}")).unwrap();
    let content = ContentState {
        client: ClientId::NONE,
        content: ContentHash([1; 16]),
        tokens: 3,
        size: 3,
        search: SearchState::Compared,
        partner_query: None,
        membership: None,
        measured: Vec::new(),
    };
    let redirect = RedirectState { to: url("b"), stands_for: None, resolution: None, target: None };
    for state in [State::Content(content), State::Redirect(redirect), State::Dead, State::Purged] {
        for (popularity, language, canonical) in [(None, None, None), (Some(0.5), Some("en"), Some("c"))] {
            let record = PageRecord {
                rank: Rank { url: url("a"), popularity, first_seen: Timestamp::from_millis(3) },
                fetched_at: Timestamp::from_millis(3),
                popularity_at: popularity.map(|_| Timestamp::from_millis(3)),
                language: language.map(Into::into),
                canonical: canonical.map(url),
                state: state.clone(),
                membership_number: 3,
                ticket: 3,
                inbound_redirects: 3,
                ended: None,
                event: 3,
                published: PublicState::of(Status::Unknown),
            };
            let mut row = encode(&record).unwrap();
            assert_eq!(is_purged_page(b"k", &row), record.state == State::Purged, "{record:?}");
            *row.last_mut().unwrap() ^= 1;
            assert!(!is_purged_page(b"k", &row), "a damaged row is not recognised as purged");
        }
    }
    assert!(!is_purged_page(b"k", &[]));
}
