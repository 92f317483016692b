//! Mends a line of JSON with common deviations from the standard. Without mending, a deviation makes a bad
//! record even if it is in a value that no field needs.
//!
//! | a line with | is mended to |
//! |---|---|
//! | `NaN` | null |
//! | `Infinity`, or a number that is too large for a 64-bit floating-point number | a number that is not a date, a popularity or an id |
//! | a lone surrogate, as `\ud800` or as its three bytes | U+FFFD |
//!
//! Callers mend only a line that the strict parser refuses, so correct lines cost nothing. Brackets, commas
//! and quotes stay as they are, and the parser of the mended line checks them.

use doppel_contract::page::ItemError;

use super::json::JsonRow;

/// The number that replaces numbers which are too large. It is negative, so it is not a popularity, and it is
/// far from every date.
const TOO_LARGE: &[u8] = b"-1e308";

/// A line of JSON that was mended.
#[derive(Debug)]
pub(crate) struct MendedLine {
    /// The mended line, with U+FFFD for each lone surrogate.
    json: Vec<u8>,
    /// The mended line without its lone surrogates. `None` if it has none. The values that differ between the
    /// two lines are the values with lone surrogates.
    without_surrogates: Option<Vec<u8>>,
}

impl MendedLine {
    /// Mends a line. `None` if the line has nothing that can be mended.
    pub(crate) fn of(json: &[u8]) -> Option<Self> {
        let RewrittenLine { json: mended, surrogates, numbers } = rewrite(json, b"\\ufffd");
        let without_surrogates = (surrogates > 0).then(|| rewrite(json, b"").json);
        (surrogates + numbers > 0).then_some(Self { json: mended, without_surrogates })
    }

    /// The mended line, with U+FFFD for each lone surrogate.
    pub(crate) fn json(&self) -> &[u8] {
        &self.json
    }

    /// The mended line without its lone surrogates. `None` if it has none.
    pub(crate) fn without_surrogates(&self) -> Option<&[u8]> {
        self.without_surrogates.as_deref()
    }

    /// Parses the mended line. Texts with lone surrogates become [`Broken`](super::Value::Broken).
    ///
    /// # Errors
    /// The errors of [`JsonRow::parse`].
    pub(crate) fn row<'w, 'l>(
        &'l self,
        wanted: &'w [String],
        with_names: bool,
    ) -> Result<JsonRow<'w, 'l>, ItemError> {
        let mut row = JsonRow::parse(&self.json, wanted, with_names)?;
        if let Some(without_surrogates) = &self.without_surrogates {
            row.mark_broken(&JsonRow::parse(without_surrogates, wanted, false)?);
        }
        Ok(row)
    }
}

/// A copy of a line in which everything outside strict JSON is replaced.
struct RewrittenLine {
    json: Vec<u8>,
    /// The number of lone surrogates that were replaced.
    surrogates: usize,
    /// The number of words and numbers that were replaced.
    numbers: usize,
}

/// Copies a line. Replaces each lone surrogate by `surrogate`, and the words and numbers that strict JSON
/// refuses.
fn rewrite(json: &[u8], surrogate: &[u8]) -> RewrittenLine {
    let mut out = RewrittenLine { json: Vec::with_capacity(json.len() + 16), surrogates: 0, numbers: 0 };
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        let begin = at;
        at = match byte {
            b'"' => {
                out.copy_string(json, at, surrogate);
                at = end_of_string(json, at);
                continue;
            }
            byte if is_word_byte(*byte) => {
                let rest = &json[at..];
                at + rest.iter().position(|byte| !is_word_byte(*byte)).unwrap_or(rest.len())
            }
            _ => at + 1,
        };
        out.copy_word(&json[begin..at]);
    }
    out
}

/// Whether a byte can be part of a number, or of a word such as `NaN`.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// The offset of the first byte after the string that begins at `begin`.
fn end_of_string(json: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(next) = json.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += next;
        if json[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    json.len()
}

impl RewrittenLine {
    /// Copies a number, a word or a punctuation mark outside strings, or its replacement.
    fn copy_word(&mut self, word: &[u8]) {
        let unsigned = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
        let is = |name: &str| unsigned.eq_ignore_ascii_case(name.as_bytes());
        let copied: &[u8] = if is("nan") {
            b"null"
        } else if is("infinity") || is("inf") || is_too_large(word) {
            TOO_LARGE
        } else {
            word
        };
        self.numbers += usize::from(copied != word);
        self.json.extend_from_slice(copied);
    }

    /// Copies the string that begins at `begin`, and replaces its lone surrogates.
    fn copy_string(&mut self, json: &[u8], begin: usize, surrogate: &[u8]) {
        let string = &json[begin..end_of_string(json, begin)];
        let mut at = 0;
        while let Some(next) = memchr::memchr2(b'\\', 0xed, &string[at..]) {
            self.json.extend_from_slice(&string[at..at + next]);
            at += next;
            let rest = &string[at..];
            let (length, is_lone) = match rest {
                [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => (3, true),
                [0xed, ..] => (1, false),
                [_, b'u', ..] => match utf16_unit(rest) {
                    Some(0xd800..0xdc00)
                        if matches!(rest.get(6..).and_then(utf16_unit), Some(0xdc00..0xe000)) =>
                    {
                        (12, false)
                    }
                    Some(0xd800..0xe000) => (6, true),
                    _ => (2, false),
                },
                _ => (rest.len().min(2), false),
            };
            self.surrogates += usize::from(is_lone);
            self.json.extend_from_slice(if is_lone { surrogate } else { &rest[..length] });
            at += length;
        }
        self.json.extend_from_slice(&string[at..]);
    }
}

/// The UTF-16 code unit of an escape such as `\ud800` at the beginning of a text.
fn utf16_unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digits =
        str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

/// Whether a word is a number that strict JSON refuses only because of its size.
fn is_too_large(word: &[u8]) -> bool {
    let is_number = word.last().is_some_and(u8::is_ascii_digit)
        && word.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    // Most numbers are short, and no number of 4 characters is too large.
    is_number
        && word.len() > 4
        && str::from_utf8(word).ok().and_then(|word| word.parse::<f64>().ok()).is_some_and(f64::is_infinite)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;

    use super::super::row::{Row, Value};
    use super::*;

    fn mended(json: &str) -> Option<String> {
        MendedLine::of(json.as_bytes()).map(|mended| String::from_utf8(mended.json).unwrap())
    }

    #[test]
    fn numbers_that_strict_json_refuses_are_replaced() {
        let json = r#"{"a":NaN,"b":[Infinity,-Infinity,{"c":1e999}],"d":-nan,"e":"NaN","f":1e9,"g":+inf}"#;
        let expected = r#"{"a":null,"b":[-1e308,-1e308,{"c":-1e308}],"d":null,"e":"NaN","f":1e9,"g":-1e308}"#;
        assert_eq!(mended(json).as_deref(), Some(expected));
        let long = format!("{{\"a\":{}}}", "9".repeat(400));
        assert_eq!(mended(&long).as_deref(), Some(r#"{"a":-1e308}"#));
        for sound in
            [r#"{"a":1e300,"b":"\ud83d\ude00 \\ud800","c":12345678901234567890}"#, "{", "", "\"\\", "x"]
        {
            assert_eq!(mended(sound), None, "{sound}");
        }
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_not() {
        let json = r#"{"a":"x\ud800","b":"\udc00\uDBFFy","c":"\ud83d\ude00","\ud800":"\ufffd"}"#;
        let found = MendedLine::of(json.as_bytes()).unwrap();
        let expected = r#"{"a":"x\ufffd","b":"\ufffd\ufffdy","c":"\ud83d\ude00","\ufffd":"\ufffd"}"#;
        assert_eq!(str::from_utf8(found.json()), Ok(expected));
        let wanted = ["a", "b", "c", "d"].map(str::to_owned);
        let mut row = found.row(&wanted, false).unwrap();
        assert_eq!(row.take("a"), Some(Value::Broken("x\u{fffd}".to_owned())));
        assert_eq!(row.take("b"), Some(Value::Broken("\u{fffd}\u{fffd}y".to_owned())));
        assert_eq!(row.take("c"), Some(Value::Text("\u{1f600}".into())));
        let bytes = b"{\"a\":\"x\xed\xa0\x80\xed\x95\x9c\"}";
        let found = MendedLine::of(bytes).unwrap();
        let mut row = found.row(&wanted, false).unwrap();
        assert_eq!(row.take("a"), Some(Value::Broken("x\u{fffd}\u{d55c}".to_owned())));
    }

    fn json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            "\\PC{0,8}|[\\\\\"u{}d8\u{d55c}]{0,8}".prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::btree_map("[a-c\\\\\"]{0,3}", inner, 0..4)
                    .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn valid_json_is_not_mended(json in json()) {
            prop_assert_eq!(mended(&json.to_string()), None);
        }

        #[test]
        fn an_invalid_value_does_not_change_the_values_of_other_fields(
            json in json(),
            odd in prop::sample::select(vec!["NaN", "-Infinity", "1e999", "\"\\ud800\"", "[[NaN]]", "{\"x\":\"\\udfff\"}"]),
            text in "\\PC{0,8}",
        ) {
            let (json, quoted) = (json.to_string(), Json::from(text.as_str()).to_string());
            for line in [
                format!(r#"{{"a":{odd},"b":{json},"text":{quoted}}}"#),
                format!(r#"{{"text":{quoted},"b":[{json},{odd}]}}"#),
            ] {
                let found = MendedLine::of(line.as_bytes()).unwrap();
                let wanted = ["text".to_owned()];
                let mut row = found.row(&wanted, true).unwrap();
                prop_assert_eq!(row.take("text"), Some(Value::Text(text.as_str().into())));
            }
        }

        #[test]
        fn mending_any_bytes_makes_them_at_most_three_times_as_long(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"\"\\uNaNd8.e9-{}".to_vec())], 0..64)) {
            if let Some(mended) = MendedLine::of(&bytes) {
                prop_assert!(mended.json.len() <= 3 * bytes.len());
            }
        }
    }
}
