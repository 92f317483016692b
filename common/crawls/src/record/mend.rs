//! Mends a line of JSON that has what writers of JSON put there and strict JSON does not have, so that a value that nobody reads costs no record.
//!
//! | the line has | it is read as |
//! |---|---|
//! | `NaN` | null |
//! | `Infinity`, or a number that is too large for 64 bits of floating point | a number that is no date, popularity or id |
//! | a lone surrogate, as `\ud800` or as its three bytes | U+FFFD |
//!
//! Only a line that strict JSON refuses comes here, so others cost nothing. Brackets, commas and quotes stay as they are: who reads the mended line
//! checks these.

use doppel_protocol::page::ItemError;

use super::json::JsonRow;

/// What stands for a number that is too large: negative, and far from every date.
const TOO_LARGE: &[u8] = b"-1e308";

/// A line that was mended.
#[derive(Debug)]
pub(crate) struct Mended {
    /// The line, with U+FFFD for each lone surrogate.
    json: Vec<u8>,
    /// The line without its lone surrogates, if there are any: the values that differ are those that had them.
    without: Option<Vec<u8>>,
}

impl Mended {
    /// Mends a line; `None` where there is nothing to mend.
    pub(crate) fn of(json: &[u8]) -> Option<Self> {
        let Rewritten { json: mended, surrogates, numbers } = rewrite(json, b"\\ufffd");
        let without = (surrogates > 0).then(|| rewrite(json, b"").json);
        (surrogates + numbers > 0).then_some(Self { json: mended, without })
    }

    /// The mended line.
    pub(crate) fn json(&self) -> &[u8] {
        &self.json
    }

    /// The line without its lone surrogates, if it has any.
    pub(crate) fn without_surrogates(&self) -> Option<&[u8]> {
        self.without.as_deref()
    }

    /// The wanted values of the mended line; those that had lone surrogates are [`Broken`](super::Value::Broken).
    ///
    /// # Errors
    /// Those of [`JsonRow::parse`].
    pub(crate) fn row<'w, 'l>(
        &'l self,
        wanted: &'w [String],
        with_names: bool,
    ) -> Result<JsonRow<'w, 'l>, ItemError> {
        let mut row = JsonRow::parse(&self.json, wanted, with_names)?;
        if let Some(without) = &self.without {
            row.mark_broken(&JsonRow::parse(without, wanted, false)?);
        }
        Ok(row)
    }
}

/// A line with other values in the place of what strict JSON does not have.
struct Rewritten {
    json: Vec<u8>,
    /// How many lone surrogates it had.
    surrogates: usize,
    /// How many numbers strict JSON does not have.
    numbers: usize,
}

fn rewrite(json: &[u8], surrogate: &[u8]) -> Rewritten {
    let mut out = Rewritten { json: Vec::with_capacity(json.len() + 16), surrogates: 0, numbers: 0 };
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        let begin = at;
        at = match byte {
            b'"' => {
                out.string(json, at, surrogate);
                // The string is copied by then.
                at = end_of_string(json, at);
                continue;
            }
            byte if is_of_word(*byte) => {
                let rest = &json[at..];
                at + rest.iter().position(|byte| !is_of_word(*byte)).unwrap_or(rest.len())
            }
            _ => at + 1,
        };
        out.word(&json[begin..at]);
    }
    out
}

/// Whether a byte may be of a number, or of a word such as `NaN`.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// The place behind a string that begins at `begin`.
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

impl Rewritten {
    /// Copies bytes outside strings, or what stands for them.
    fn word(&mut self, word: &[u8]) {
        let bare = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
        let is = |name: &str| bare.eq_ignore_ascii_case(name.as_bytes());
        let stands_for: &[u8] = if is("nan") {
            b"null"
        } else if is("infinity") || is("inf") || is_too_large(word) {
            TOO_LARGE
        } else {
            word
        };
        self.numbers += usize::from(stands_for != word);
        self.json.extend_from_slice(stands_for);
    }

    /// Copies the string that begins at `begin`.
    fn string(&mut self, json: &[u8], begin: usize, surrogate: &[u8]) {
        let string = &json[begin..end_of_string(json, begin)];
        let mut at = 0;
        while let Some(next) = memchr::memchr2(b'\\', 0xed, &string[at..]) {
            self.json.extend_from_slice(&string[at..at + next]);
            at += next;
            let rest = &string[at..];
            let (length, is_lone) = match rest {
                [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => (3, true),
                [0xed, ..] => (1, false),
                [_, b'u', ..] => match unit(rest) {
                    Some(0xd800..0xdc00) if matches!(rest.get(6..).and_then(unit), Some(0xdc00..0xe000)) => {
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

/// The UTF-16 unit of an escape such as `\ud800` that text begins with.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digits =
        str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

/// Whether it is a number of JSON that strict JSON refuses for its size alone.
fn is_too_large(word: &[u8]) -> bool {
    let is_number = word.last().is_some_and(u8::is_ascii_digit)
        && word.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    // Short ones are the most, and none of them is that large.
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
        Mended::of(json.as_bytes()).map(|mended| String::from_utf8(mended.json).unwrap())
    }

    #[test]
    fn numbers_that_strict_json_does_not_have_are_replaced() {
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
    fn lone_surrogates_are_replaced_and_told_from_others() {
        let json = r#"{"a":"x\ud800","b":"\udc00\uDBFFy","c":"\ud83d\ude00","\ud800":"\ufffd"}"#;
        let found = Mended::of(json.as_bytes()).unwrap();
        let expected = r#"{"a":"x\ufffd","b":"\ufffd\ufffdy","c":"\ud83d\ude00","\ufffd":"\ufffd"}"#;
        assert_eq!(str::from_utf8(found.json()), Ok(expected));
        let wanted = ["a", "b", "c", "d"].map(str::to_owned);
        let mut row = found.row(&wanted, false).unwrap();
        assert_eq!(row.take("a"), Some(Value::Broken("x\u{fffd}".to_owned())));
        assert_eq!(row.take("b"), Some(Value::Broken("\u{fffd}\u{fffd}y".to_owned())));
        assert_eq!(row.take("c"), Some(Value::Text("\u{1f600}".into())));
        let bytes = b"{\"a\":\"x\xed\xa0\x80\xed\x95\x9c\"}";
        let found = Mended::of(bytes).unwrap();
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
        fn sound_json_is_left_as_it_is(json in json()) {
            prop_assert_eq!(mended(&json.to_string()), None);
        }

        #[test]
        fn values_of_unused_fields_do_no_harm(
            json in json(),
            odd in prop::sample::select(vec!["NaN", "-Infinity", "1e999", "\"\\ud800\"", "[[NaN]]", "{\"x\":\"\\udfff\"}"]),
            text in "\\PC{0,8}",
        ) {
            let (json, quoted) = (json.to_string(), Json::from(text.as_str()).to_string());
            for line in [
                format!(r#"{{"a":{odd},"b":{json},"text":{quoted}}}"#),
                format!(r#"{{"text":{quoted},"b":[{json},{odd}]}}"#),
            ] {
                let found = Mended::of(line.as_bytes()).unwrap();
                let wanted = ["text".to_owned()];
                let mut row = found.row(&wanted, true).unwrap();
                prop_assert_eq!(row.take("text"), Some(Value::Text(text.as_str().into())));
            }
        }

        #[test]
        fn any_bytes_are_bounded(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"\"\\uNaNd8.e9-{}".to_vec())], 0..64)) {
            if let Some(mended) = Mended::of(&bytes) {
                prop_assert!(mended.json.len() <= 3 * bytes.len());
            }
        }
    }
}
