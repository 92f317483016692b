//! Reads the dates of records, which writers store in several forms.

use doppel_model::Timestamp;

use super::row::Value;

/// The least number that is read as seconds since 1970, which is a moment in 1973. Smaller numbers may be
/// years, or dates without separators such as 20190425.
const SECONDS_MIN: f64 = 1e8;
/// The least number that is read as milliseconds since 1970, which is a moment in 1973. As seconds it would
/// be in the year 5138.
const MILLIS_MIN: f64 = 1e11;

/// The date that a value stands for. `None` if the value is in none of these forms:
///
/// - a value of a date type;
/// - text in the form of RFC 3339;
/// - text with a date or a date-time without a zone, which is read as UTC;
/// - a number, or text with a number, of seconds or milliseconds since 1970.
pub(super) fn date(value: &Value<'_>) -> Option<Timestamp> {
    match value {
        Value::Date(date) => Some(*date),
        Value::Text(text) => {
            let text = text.trim();
            text.parse()
                .or_else(|_| Timestamp::parse_without_zone(text))
                .ok()
                .or_else(|| since_1970(text.parse().ok()?))
        }
        Value::Whole(number) => since_1970(*number as f64),
        Value::Float(number) => since_1970(*number),
        Value::Broken(_) | Value::Bytes(_) | Value::Bool(_) | Value::Other(_) => None,
    }
}

fn since_1970(number: f64) -> Option<Timestamp> {
    let millis = match number {
        SECONDS_MIN..MILLIS_MIN => number * 1e3,
        MILLIS_MIN..1e15 => number,
        _ => return None,
    };
    Some(Timestamp::from_millis(millis.round() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_every_supported_form() {
        let text = |text: &'static str| date(&Value::Text(text.into())).map(|date| date.to_string());
        for (given, expected) in [
            ("2023-11-14T22:13:20Z", "2023-11-14T22:13:20Z"),
            ("2023-11-14T23:13:20.5+01:00", "2023-11-14T22:13:20.5Z"),
            ("2019-04-25T12:57:54", "2019-04-25T12:57:54Z"),
            ("2019-04-25 12:57:54", "2019-04-25T12:57:54Z"),
            (" 2019-04-25 ", "2019-04-25T00:00:00Z"),
            ("20190425", "2019-04-25T00:00:00Z"),
            ("1700000000", "2023-11-14T22:13:20Z"),
            ("1700000000.25", "2023-11-14T22:13:20.25Z"),
            ("1700000000123", "2023-11-14T22:13:20.123Z"),
        ] {
            assert_eq!(text(given).as_deref(), Some(expected), "{given}");
        }
        for none in ["", "2019", "yesterday", "25.4.2019", "NaN", "inf", "-1700000000", "99999999"] {
            assert_eq!(text(none), None, "{none}");
        }
        let seconds = Some(Timestamp::from_millis(1_700_000_000_000));
        assert_eq!(date(&Value::Whole(1_700_000_000)), seconds);
        assert_eq!(date(&Value::Whole(1_700_000_000_000)), seconds);
        assert_eq!(date(&Value::Float(1.7e9)), seconds);
        assert_eq!(date(&Value::Whole(20_190_425)), None);
        assert_eq!(date(&Value::Bool(true)), None);
    }
}
