//! The stored form of what the router must not forget: the plan, and the requests of an operator. Both are items of
//! an [`IndexState`](doppel_protocol::IndexState).

pub(crate) mod stored_plan;
pub(crate) mod stored_requests;
