//! Text formats that several requests and answers share. The OpenAPI document defines each format once.
//!
//! A pattern is a necessary condition, not a sufficient one. The server also refuses some texts that match,
//! such as a URL without a host.

use std::borrow::Cow;

use doppel_model::PageUrl;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

use crate::market::{HostSuffix, Markets};

macro_rules! forms {
    ($($(#[$says:meta])* $form:ident $name:literal: $schema:expr;)+) => {$(
        $(#[$says])*
        #[derive(Debug)]
        pub struct $form;

        impl PartialSchema for $form {
            fn schema() -> RefOr<Schema> {
                Schema::from($schema.build()).into()
            }
        }

        impl ToSchema for $form {
            fn name() -> Cow<'static, str> {
                $name.into()
            }
        }
    )+};
}

fn text(says: &str, pattern: &str, example: &str) -> ObjectBuilder {
    let object = ObjectBuilder::new().schema_type(Type::String).description(Some(says));
    object.pattern(Some(pattern)).examples([example])
}

forms! {
    /// Text format of a page URL.
    PageUrlForm "PageUrl": text(
        "An absolute http, https or file URL by the WHATWG rules, at most 8,192 bytes long. The server removes \
         the fragment. A record of a file that has no URL is named `record:FILE#ID` or `record:FILE#row=N`, \
         and keeps the text after `#`.",
        "^(([Hh][Tt][Tt][Pp][Ss]?|[Ff][Ii][Ll][Ee]):[^\\x00-\\x1f\\x7f]*|record:[^/#\\x00-\\x1f\\x7f][^#\\x00-\\x1f\\x7f]*#[^\\x00-\\x1f\\x7f]+)$",
        "https://example.org/a",
    )
    .max_length(Some(PageUrl::BYTES_MAX));

    /// Text format of a group id.
    GroupIdForm "GroupId": text(
        "The id of a group: a number below 2^48, and a shard.",
        "^g(0|[1-9][0-9]{0,14})-(0|[1-9][0-9]{0,4})$",
        "g12-0",
    );

    /// Text format of a repair id.
    RepairIdForm "RepairId": text(
        "The id of a repair: a number, and a shard.",
        "^r(0|[1-9][0-9]{0,19})-(0|[1-9][0-9]{0,4})$",
        "r7-0",
    );

    /// Text format of a market.
    MarketForm "Market": text(
        "A market: a name that `GET /v1/winners` lists, or a host suffix such as `de`. The answer prefers pages of its \
         hosts as winners.",
        &format!(
            "^(\\.?[A-Za-z0-9-]+(\\.[A-Za-z0-9-]+)*|[A-Za-z][A-Za-z0-9_-]{{0,{}}})$",
            Markets::NAME_BYTES_MAX - 1
        ),
        "de",
    )
    .max_length(Some(1 + HostSuffix::BYTES_MAX));

    /// Text format of a time.
    TimeForm "Time": ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("A time (RFC 3339)."))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .examples(["2026-01-31T08:00:00Z"]);

    /// Number format of a similarity.
    SimilarityForm "Similarity": ObjectBuilder::new()
        .schema_type(Type::Number)
        .description(Some("A similarity from 0 to 1, by the measure of the policy."))
        .minimum(Some(0))
        .maximum(Some(1));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, to_value};

    use super::*;

    #[test]
    fn forms_have_length_limits_and_examples() {
        let longest = |schema: RefOr<Schema>| -> Value { to_value(schema).unwrap()["maxLength"].clone() };
        assert_eq!(longest(PageUrlForm::schema()), 8_192);
        assert_eq!(longest(MarketForm::schema()), 254);
        assert_eq!(to_value(GroupIdForm::schema()).unwrap()["examples"], Value::from(vec!["g12-0"]));
    }
}
