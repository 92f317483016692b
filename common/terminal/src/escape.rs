//! Escapes text that people read. Characters that a terminal would interpret, or that reorder the text around
//! them, are written as escapes such as `\u{202e}`. Otherwise a URL in an untrusted page could look like
//! another URL, or clear the screen.

use std::borrow::Cow;
use std::io::{self, Write};

/// Whether a terminal interprets the character, or shows nothing for it. The set consists of the C0 and C1
/// controls, direction marks and overrides, line and paragraph separators, and the code points that are
/// ignorable by default (Unicode property Default_Ignorable_Code_Point).
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Escapes the text for output on one line: a line break is escaped, too.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// A writer that escapes the characters that a terminal would interpret, but not line breaks. Each call of
/// `write` must receive whole characters, as formatting does: incomplete UTF-8 becomes U+FFFD.
#[derive(Debug)]
pub struct EscapingWriter<W>(pub W);

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(escaped(&text, |c| c != '\n' && is_obeyed(c)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        for (text, shown) in [
            ("http://a.example/ä/漢字?q=%E2%80%AE", "http://a.example/ä/漢字?q=%E2%80%AE"),
            ("http://a.example/\u{202e}lmth.exe", "http://a.example/\\u{202e}lmth.exe"),
            ("\u{202a}\u{202b}\u{202c}\u{202d}", "\\u{202a}\\u{202b}\\u{202c}\\u{202d}"),
            ("\u{2066}\u{2067}\u{2068}\u{2069}", "\\u{2066}\\u{2067}\\u{2068}\\u{2069}"),
            ("\u{200e}\u{200f}\u{61c}", "\\u{200e}\\u{200f}\\u{61c}"),
            ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"),
            ("\u{1b}[2J\u{9b}\0\u{7f}\r\t", "\\u{1b}[2J\\u{9b}\\u{0}\\u{7f}\\u{d}\\u{9}"),
        ] {
            assert_eq!(on_one_line(text), shown);
            let mut out = EscapingWriter(Vec::new());
            writeln!(out, "{text}").unwrap();
            assert_eq!(String::from_utf8(out.0).unwrap(), format!("{shown}\n"));
        }
        assert_eq!(on_one_line("a\nb"), "a\\u{a}b");
    }
}
