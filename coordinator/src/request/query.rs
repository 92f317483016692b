//! Deserialises the parameters of a query string. An error names the invalid parameter.

use std::error::Error;
use std::fmt;

use serde::de::value::MapDeserializer;
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::problem::Problem;

/// Maximum number of characters of a parameter name that an answer repeats.
const NAME_CHARS: usize = 60;

/// Deserialises parameters from pairs of a name and a text. Unknown parameters are errors if `T` denies
/// unknown fields.
pub(crate) fn parameters<T: DeserializeOwned>(pairs: Vec<(String, String)>) -> Result<T, Problem> {
    let pairs = pairs.into_iter().map(|(name, text)| (name.clone(), QueryParameter { name, text }));
    T::deserialize(MapDeserializer::new(pairs)).map_err(|ParameterError { name, reason }| match name {
        Some(name) => Problem::field(&*name, format!("the query: {name}: {reason}")),
        None => Problem::bad_request(format!("the query: {reason}")),
    })
}

/// Error of a query: the reason, and the name of the invalid parameter if it is known.
#[derive(Debug)]
struct ParameterError {
    name: Option<String>,
    reason: String,
}

impl ParameterError {
    fn new(name: &str, reason: impl Into<String>) -> Self {
        Self { name: Some(name.chars().take(NAME_CHARS).collect()), reason: reason.into() }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Error for ParameterError {}

impl de::Error for ParameterError {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self { name: None, reason: reason.to_string() }
    }

    fn unknown_field(name: &str, expected: &'static [&'static str]) -> Self {
        Self::new(name, format!("unknown parameter; the operation has {}", expected.join(", ")))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(name, "missing")
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::new(name, "given more than once")
    }
}

/// A parameter, whose text is parsed as the type that the target field needs.
struct QueryParameter {
    name: String,
    text: String,
}

impl IntoDeserializer<'_, ParameterError> for QueryParameter {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Defines deserialiser methods that parse the text.
macro_rules! parsed {
    ($($method:ident => $visit:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParameterError> {
            let parsed = self.text.parse();
            visitor.$visit(parsed.map_err(|reason| ParameterError::new(&self.name, format!("{reason}")))?)
        }
    )*};
}

impl<'de> Deserializer<'de> for QueryParameter {
    type Error = ParameterError;

    parsed! {
        deserialize_bool => visit_bool,
        deserialize_u8 => visit_u8,
        deserialize_u16 => visit_u16,
        deserialize_u32 => visit_u32,
        deserialize_u64 => visit_u64,
        deserialize_i64 => visit_i64,
        deserialize_f64 => visit_f64,
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParameterError> {
        visitor.visit_string(self.text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParameterError> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ParameterError> {
        if !variants.contains(&&*self.text) {
            let reason = format!("unknown value; use one of {}", variants.join(", "));
            return Err(ParameterError::new(&self.name, reason));
        }
        visitor.visit_enum(self.text.into_deserializer())
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u128 f32 char str string bytes byte_buf unit unit_struct newtype_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        All,
        Any,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        url: String,
        limit: Option<usize>,
        #[serde(default)]
        wait: bool,
        kind: Option<Kind>,
    }

    fn read(pairs: &[(&str, &str)]) -> Result<Wanted, (Option<String>, String)> {
        let pairs = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        parameters(pairs)
            .map_err(|problem| (problem.about_field().map(str::to_owned), problem.detail().to_owned()))
    }

    #[test]
    fn parameters_are_read_by_their_types() {
        let all = [("wait", "true"), ("url", "http://a/"), ("limit", "7"), ("kind", "any")];
        let url = "http://a/".to_owned();
        assert_eq!(read(&all), Ok(Wanted { url, limit: Some(7), wait: true, kind: Some(Kind::Any) }));
        let wanted = Wanted { url: String::new(), limit: None, wait: false, kind: None };
        assert_eq!(read(&[("url", "")]), Ok(wanted));
    }

    #[test]
    fn an_invalid_parameter_is_named() {
        let url = ("url", "http://a/");
        for (pairs, name, detail) in [
            (&[][..], "url", "the query: url: missing"),
            (
                &[url, ("ulr", "x")],
                "ulr",
                "the query: ulr: unknown parameter; the operation has url, limit, wait, kind",
            ),
            (&[url, url], "url", "the query: url: given more than once"),
            (&[url, ("limit", "-1")], "limit", "the query: limit: invalid digit found in string"),
            (&[url, ("wait", "x")], "wait", "the query: wait: provided string was not `true` or `false`"),
            (&[url, ("kind", "x")], "kind", "the query: kind: unknown value; use one of all, any"),
        ] {
            assert_eq!(read(pairs), Err((Some(name.to_owned()), detail.to_owned())));
        }
        let long = "x".repeat(10_000);
        let (name, _) = read(&[url, (&long, "")]).unwrap_err();
        assert_eq!(name.unwrap().len(), NAME_CHARS);
    }
}
