//! Access control of the coordinator: the host names that it answers to, the tokens of clients, and the
//! operations that each listener offers.
//!
//! Invariants, if the service has tokens:
//!
//! - An operation is answered only for a known token that has not expired and has the required role, unless
//!   [`role::required`] leaves the operation open.
//! - A refused caller learns the reason of the refusal and no data.
//!
//! The fast path for status requests (module `front`) follows the same rules.

mod clients;
pub mod hosts;
mod pauses;
pub(crate) mod role;
mod tokens;

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use doppel_model::Timestamp;

pub(crate) use clients::{Caller, Clients};
pub use hosts::{HostName, HostNameError, Hosts};
pub use role::{Role, RoleError};
use tokens::TokenRefusal;
pub use tokens::{ClientTokens, Token, TokenHash, TokenHashError, TokenName, TokenNameError, new_token};

use crate::problem::Problem;

/// The access rules of a coordinator.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Host names that a request may use.
    pub hosts: Hosts,
    /// Tokens of the clients. `None` allows every client every operation.
    pub tokens: Option<ClientTokens>,
}

/// Listener at which a request arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    /// The only listener, which answers every operation.
    Only,
    /// Listener for clients. It refuses operations that need the role [`Role::Operate`].
    Clients,
    /// Listener for operators, which answers every operation.
    Operators,
}

/// Admission check for the requests at a listener. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AdmissionCheck {
    access: Access,
    listener: Listener,
    clients: Arc<Clients>,
}

impl AdmissionCheck {
    pub(crate) fn new(access: Access, listener: Listener, clients: Arc<Clients>) -> Self {
        Self { access, listener, clients }
    }

    pub(crate) fn hosts(&self) -> &Hosts {
        &self.access.hosts
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Checks whether a request may perform an operation that requires this role. Returns the name and role
    /// of the token, if the service has tokens and the operation needs one.
    ///
    /// # Errors
    /// 401 if the request has no known token. 403 if the token has a lesser role, or if the operation belongs
    /// to the other listener.
    pub(crate) fn admit(
        &self,
        headers: &HeaderMap,
        required: Option<Role>,
        now: Timestamp,
    ) -> Result<Option<(TokenName, Role)>, Problem> {
        let (Some(tokens), Some(required)) = (&self.access.tokens, required) else {
            return self.at_this_listener(required).map(|()| None);
        };
        let (name, role) = tokens.find(bearer(headers)?, now)?;
        if role < required {
            return Err(Problem::forbidden(format!(
                "this operation needs a token with the role {required}, and the token of {name} has the role {role}"
            )));
        }
        self.at_this_listener(Some(required))?;
        Ok(Some((name, role)))
    }

    fn at_this_listener(&self, required: Option<Role>) -> Result<(), Problem> {
        if self.listener == Listener::Clients && required == Some(Role::Operate) {
            return Err(Problem::forbidden(
                "this operation is available only at the listener for operators (--operate-listen)",
            ));
        }
        Ok(())
    }
}

/// Reads the token from `Authorization: Bearer` (RFC 6750, section 2.1).
///
/// Tokens are accepted nowhere else, because servers log URLs and browsers send cookies on their own.
fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let none =
        || Problem::unauthorized("this operation needs a token, in the header Authorization: Bearer TOKEN");
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or_else(none)?;
    if values.next().is_some() {
        return Err(Problem::unauthorized("the request has more than one header Authorization"));
    }
    let (scheme, token) = value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or_else(none)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(none());
    }
    Ok(token.trim_start_matches(' '))
}

impl From<TokenRefusal> for Problem {
    fn from(refusal: TokenRefusal) -> Self {
        match refusal {
            TokenRefusal::NotKnown => Self::unauthorized("the token is not known to this server"),
            TokenRefusal::Expired(name, at) => Self::unauthorized(format!(
                "the token of {name} expired at {at}; create a new token with `doppel token new`"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::limits::ClientLimits;
    use crate::request::memory::BodyMemory;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn admission(listener: Listener, with_tokens: bool) -> AdmissionCheck {
        let token = |name: &str, role, expires| Token {
            name: name.parse().unwrap(),
            role,
            expires: Timestamp::from_millis(expires),
            hash: TokenHash::of(name),
        };
        let tokens = vec![
            token("reader", Role::Read, 2_000),
            token("writer", Role::Write, 2_000),
            token("ann", Role::Operate, 2_000),
            token("old", Role::Operate, 999),
        ];
        let access = Access { tokens: with_tokens.then(|| tokens.into()), ..Access::default() };
        let limits = ClientLimits {
            requests: 1,
            long_polls: 1,
            exports: 1,
            flushes: 1,
            scrapes: 1,
            body_bytes: 1,
            unpacking: 1,
        };
        AdmissionCheck::new(access, listener, Arc::new(Clients::new(limits, BodyMemory::new(1))))
    }

    fn headers(values: &[&str]) -> HeaderMap {
        let values =
            values.iter().map(|value| (header::AUTHORIZATION, HeaderValue::from_str(value).unwrap()));
        values.collect()
    }

    fn status(admission: &AdmissionCheck, authorization: &[&str], required: Option<Role>) -> u16 {
        admission
            .admit(&headers(authorization), required, NOW)
            .map_or_else(|no| no.status().as_u16(), |_| 200)
    }

    #[test]
    fn a_token_allows_what_its_role_includes() {
        let admission = admission(Listener::Only, true);
        for (token, allowed) in [("reader", 1), ("writer", 2), ("ann", 3)] {
            for (n, role) in Role::ALL.into_iter().enumerate() {
                let expected = if n < allowed { 200 } else { 403 };
                assert_eq!(
                    status(&admission, &[&format!("Bearer {token}")], Some(role)),
                    expected,
                    "{token} {role}"
                );
            }
        }
        let admitted = admission.admit(&headers(&["bearer  writer"]), Some(Role::Read), NOW).unwrap();
        assert_eq!(admitted, Some(("writer".parse().unwrap(), Role::Write)));
    }

    #[test]
    fn without_a_valid_token_only_open_operations_are_answered() {
        let admission = admission(Listener::Only, true);
        for wrong in [
            &[][..],
            &[""],
            &["Bearer"],
            &["Bearer "],
            &["ann"],
            &["Basic ann"],
            &["Bearer nobody"],
            &["Bearer old"],
            &["Bearer ann "],
            &["Bearer ann", "Bearer ann"],
        ] {
            assert_eq!(status(&admission, wrong, Some(Role::Read)), 401, "{wrong:?}");
            assert_eq!(status(&admission, wrong, None), 200, "{wrong:?}");
        }
    }

    #[test]
    fn operators_have_a_listener_of_their_own_if_there_are_two() {
        for with_tokens in [false, true] {
            let ann: &[&str] = &["Bearer ann"];
            let at = |listener| admission(listener, with_tokens);
            assert_eq!(status(&at(Listener::Clients), ann, Some(Role::Operate)), 403);
            assert_eq!(status(&at(Listener::Clients), ann, Some(Role::Write)), 200);
            assert_eq!(status(&at(Listener::Operators), ann, Some(Role::Operate)), 200);
            assert_eq!(status(&at(Listener::Operators), ann, Some(Role::Read)), 200);
        }
    }

    #[test]
    fn without_tokens_every_operation_is_allowed() {
        let admission = admission(Listener::Only, false);
        assert_eq!(status(&admission, &[], Some(Role::Operate)), 200);
        assert_eq!(admission.admit(&headers(&["Bearer ann"]), Some(Role::Read), NOW), Ok(None));
    }
}
