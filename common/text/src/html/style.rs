//! Decides whether a `style` attribute hides its element (CSS Syntax, "parse a block's contents", and CSS
//! Cascade).
//!
//! The reader covers the part of CSS that real styles use. A style that it cannot read with certainty never
//! hides an element, so no text is lost by a misreading.

/// Whether the style hides the element. The last declaration of a property counts, unless only an earlier one
/// is important. A style that cannot be read with certainty hides no element.
pub(crate) fn is_hidden_by_style(style: &str) -> bool {
    let has =
        |word: &[u8]| style.as_bytes().windows(word.len()).any(|piece| piece.eq_ignore_ascii_case(word));
    // Most styles contain none of these words and need no reading.
    let may_hide = has(b"display") && has(b"none") || has(b"visibility") && has(b"hidden");
    may_hide && read(style).is_some_and(|cascade| cascade.display.hides || cascade.visibility.hides)
}

/// Declaration of a property that wins the cascade so far.
#[derive(Debug, Default)]
struct CascadedDeclaration {
    hides: bool,
    is_important: bool,
}

impl CascadedDeclaration {
    fn declare(&mut self, hides: bool, is_important: bool) {
        if is_important || !self.is_important {
            *self = Self { hides, is_important };
        }
    }
}

/// Winning declarations of the properties that can hide an element.
#[derive(Debug, Default)]
struct CascadedStyle {
    display: CascadedDeclaration,
    visibility: CascadedDeclaration,
}

impl CascadedStyle {
    /// Takes a declaration, from which the comments have been removed. An unknown value shows the element,
    /// although a browser may ignore the declaration.
    fn declare(&mut self, declaration: &str) {
        let Some((property, value)) = declaration.split_once(':') else { return };
        let (value, is_important) = match value.rsplit_once('!') {
            None => (value, false),
            Some((value, word)) if word.trim_ascii().eq_ignore_ascii_case("important") => (value, true),
            Some(_) => ("", false),
        };
        let is_property = |name: &str| property.trim_ascii().eq_ignore_ascii_case(name);
        let is_value = |name: &str| value.trim_ascii().eq_ignore_ascii_case(name);
        if is_property("display") {
            self.display.declare(is_value("none"), is_important);
        } else if is_property("visibility") {
            self.visibility.declare(is_value("hidden"), is_important);
        } else if is_property("all") {
            self.display.declare(false, is_important);
            self.visibility.declare(false, is_important);
        }
    }
}

/// Reads all declarations. Returns `None` if it is uncertain where a declaration ends, or if a backslash may hide the name of a
/// property.
fn read(style: &str) -> Option<CascadedStyle> {
    let mut cascade = CascadedStyle::default();
    let mut declaration = String::new();
    let mut brackets = 0_u32;
    let mut rest = style;
    while let Some(next) = rest.chars().next() {
        let mut length = next.len_utf8();
        match next {
            '/' if rest.starts_with("/*") => {
                length = rest[2..].find("*/").map_or(rest.len(), |end| end + 4);
                declaration.push(' ');
            }
            ';' if brackets == 0 => {
                cascade.declare(&declaration);
                declaration.clear();
            }
            '"' | '\'' => {
                length = string_length(rest)?;
                declaration.push(next);
            }
            '(' => {
                brackets += 1;
                if is_url(&declaration) && !rest[1..].trim_ascii_start().starts_with(['"', '\'']) {
                    // Inside an unquoted URL, quotes and comments have no meaning.
                    length = rest.find(')')?;
                    if rest[..length].contains('\\') {
                        return None;
                    }
                }
                declaration.push(next);
            }
            ')' => brackets = brackets.checked_sub(1)?,
            // An escape may hide the name of a property, and the others may nest rules.
            '\\' | '@' | '[' | ']' | '{' | '}' => return None,
            _ => declaration.push(next),
        }
        rest = &rest[length..];
    }
    cascade.declare(&declaration);
    (brackets == 0).then_some(cascade)
}

/// Whether the text ends with the function name `url`, whose argument may have no quotes.
fn is_url(before: &str) -> bool {
    let Some((before, name)) = before.len().checked_sub(3).and_then(|at| before.split_at_checked(at)) else {
        return false;
    };
    let continues_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '#') || !c.is_ascii();
    name.eq_ignore_ascii_case("url") && !before.ends_with(continues_name)
}

/// Returns the length of the string at the beginning of `text`, including its quotes. `None` if the string is
/// not closed on its line.
fn string_length(text: &str) -> Option<usize> {
    let quote = *text.as_bytes().first()?;
    let mut bytes = text.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'\n' | b'\r' | b'\x0c' => return None,
            _ if byte == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::is_hidden_by_style;

    #[test]
    fn the_last_declaration_of_a_property_counts() {
        for style in [
            "display:none",
            " DISPLAY : None ",
            "visibility:hidden",
            "display:block;display:none;",
            "display:none;visibility:visible",
            "display:none;visibility:hidden;display:block",
            "display:none !important;display:block",
            "display:none! IMPORTANT;display:block!ie",
            "display:block;display:none!important",
            "*display:inline;display:none;_zoom:1",
            "color:red display:block;display:none",
        ] {
            assert!(is_hidden_by_style(style), "{style}");
        }
        for style in [
            "",
            "display",
            "color:red",
            "text-decoration:none;display:block",
            "display:none;display:block",
            "display:none;DISPLAY:flex",
            "display:none;display:bogus",
            "display:none;display:",
            "visibility:hidden;visibility:visible",
            "visibility:hidden;display:none;display:block;visibility:inherit",
            "display:block !important;display:none",
            "display:none!important;display:block!important",
            "display:none!ie",
            "display:none\\9",
            "display:nonesuch",
            "display:none;all:initial",
            "display:none;disp\\6cay:block",
            "display:none;@x{}display:block",
            "color:red display:none",
        ] {
            assert!(!is_hidden_by_style(style), "{style}");
        }
    }

    #[test]
    fn comments_strings_and_brackets_contain_no_declarations() {
        for style in [
            "/*a*/display:/*b*/none",
            "display/**/:none/**/!/**/important/**/;display:block",
            "display:none;/*display:block",
            "display:none/*;display:block*/",
            "display:none;content:';display:block'",
            "font-family:'\\5b8b\\4f53';display:none",
            "content:'/*';display:none;quotes:'*/'",
            "background:url(//a.org/*;display:block;*/);display:none",
            "display:none;x:#url(');display:block;x:')",
            "background:URL( 'a)b' );width:calc((1px + 2px)*2);display:none",
        ] {
            assert!(is_hidden_by_style(style), "{style}");
        }
        for style in [
            "/*display:none*/",
            "/*;display:none;*/color:red",
            "dis/**/play:none",
            "display:no/**/ne",
            "content:';display:none;'",
            "content:'\\';display:none;'",
            "background:url(a;display:none;b)",
            "display:none;background:url(a'b);display:block;background:url(c'd)",
            "display:none;background:url(a\\);display:block;)",
            "x:([)];display:none",
            "x:(;display:none",
            "x:);display:none",
            "display:none;x:'a\n;display:block;'",
            "display:none;x:'",
        ] {
            assert!(!is_hidden_by_style(style), "{style}");
        }
    }
}
