//! The lines of a page, as a browser without style sheets shows them on paper of any width. What it does not show, but the text has,
//! is in lines, too: the title, and the content of `template`, `noscript` and hidden elements.
//!
//! The beginning and the end of a block element end a line, and so do `br` and `hr`; within `pre` and the like a line feed does. Cells of a
//! table row are on one line. White space is one space, none at either end; a line without anything else is no line. Case and
//! punctuation stay; a line is in NFKC and without default-ignorable characters such as soft hyphens. Unlike in the text of tokens, other tags leave no space: `a<b>b</b>` is `ab`.
//!
//! A renderer such as the crate `html2text` makes a tree first. Trees of `html5ever` take time that grows with the square of the depth, so
//! half a megabyte of tags takes more than a minute, and no option bounds it; lines would be wrapped to a width as well. Here time and
//! memory are linear in the page.

use super::form::tidy;
use doppel_model::stable_hash64;

/// The text of a page in which each line feed ends a line. The buffers are reused for the next page.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: Vec<u8>,
    /// The number of elements around the current place in which line feeds count.
    preformatted: u32,
    line: String,
    hashes: Vec<u64>,
}

impl Lines {
    /// Forgets the page before.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.preformatted = 0;
    }

    /// Takes the start tag of an element.
    pub(super) fn start(&mut self, name: &[u8]) {
        self.tag(name);
        self.preformatted += u32::from(is_preformatted(name));
    }

    /// Takes the end tag of an element.
    pub(super) fn end(&mut self, name: &[u8]) {
        self.tag(name);
        self.preformatted = self.preformatted.saturating_sub(u32::from(is_preformatted(name)));
    }

    fn tag(&mut self, name: &[u8]) {
        match name {
            b"td" | b"th" => self.text.push(b' '),
            _ if ends_line(name) => self.text.push(b'\n'),
            _ => {}
        }
    }

    /// Takes text of HTML.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(piece);
        if self.preformatted == 0 {
            for byte in self.text[start..].iter_mut().filter(|byte| is_line_end(**byte)) {
                *byte = b' ';
            }
        }
    }

    /// Takes plain text in place of the page before.
    pub(super) fn set_text(&mut self, text: &str) {
        self.clear();
        self.text.extend_from_slice(text.as_bytes());
    }

    /// The hashes of the lines, in order.
    pub(super) fn hashes(&mut self) -> &[u64] {
        self.hashes.clear();
        // Growing step by step would take up to twice the room.
        self.hashes.reserve_exact(1 + self.text.iter().filter(|byte| is_line_end(**byte)).count());
        for line in self.text.split(|byte| is_line_end(*byte)) {
            self.line.clear();
            for word in tidy(&String::from_utf8_lossy(line)).split_whitespace() {
                if !self.line.is_empty() {
                    self.line.push(' ');
                }
                self.line.push_str(word);
            }
            if !self.line.is_empty() {
                self.hashes.push(stable_hash64(self.line.as_bytes()));
            }
        }
        &self.hashes
    }

    /// The same, given away.
    pub(super) fn take_hashes(&mut self) -> Vec<u64> {
        self.hashes();
        std::mem::take(&mut self.hashes)
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Elements that keep the line feeds of their text.
fn is_preformatted(name: &[u8]) -> bool {
    matches!(name, b"pre" | b"listing" | b"plaintext" | b"textarea" | b"xmp")
}

/// Elements that begin and end a line.
#[rustfmt::skip]
fn ends_line(name: &[u8]) -> bool {
    matches!(
        name,
        b"address" | b"article" | b"aside" | b"blockquote" | b"body" | b"br" | b"caption" | b"center" | b"dd" | b"details"
            | b"dialog" | b"dir" | b"div" | b"dl" | b"dt" | b"fieldset" | b"figcaption" | b"figure" | b"footer" | b"form"
            | b"frameset" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"head" | b"header" | b"hgroup" | b"hr"
            | b"html" | b"legend" | b"li" | b"listing" | b"main" | b"menu" | b"nav" | b"ol" | b"optgroup" | b"option"
            | b"p" | b"plaintext" | b"pre" | b"search" | b"section" | b"summary" | b"table" | b"tbody" | b"textarea"
            | b"tfoot" | b"thead" | b"title" | b"tr" | b"ul" | b"xmp"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::html::Document;
    use crate::syntax::{Syntax, ReadOptions};

    fn lines_of_html(html: &str) -> Vec<u64> {
        let mut document = Document::default();
        document.read(html, Syntax::Html, ReadOptions { lines: true, ..ReadOptions::default() });
        document.lines.hashes().to_vec()
    }

    fn hashes(lines: &[&str]) -> Vec<u64> {
        lines.iter().map(|line| stable_hash64(line.as_bytes())).collect()
    }

    #[test]
    fn lines_are_those_of_a_browser() {
        for (html, lines) in [
            ("", &[][..]),
            (" one\n two<b>three</b>\t<i> four </i>", &["one twothree four"]),
            ("<title>T</title>a<br>b<br/>c<hr>d", &["T", "a", "b", "c", "d"]),
            ("<template><p>a</template><p>b<noscript>c</noscript><p hidden>d", &["a", "bc", "d"]),
            ("<ul><li>a<li>b</ul>c<p>d<p>e", &["a", "b", "c", "d", "e"]),
            ("<div><div>a</div></div><div> &nbsp; </div>b", &["a", "b"]),
            ("<table><tr><td>a</td><td>b<tr><th>c</th><td>d</table>", &["a b", "c d"]),
            ("a\nb<pre>c\n d  e\n\n</pre>f\ng", &["a b", "c", "d e", "f g"]),
            ("<pre>a<b>\nb</b></pre></pre>c\nd", &["a", "b", "c d"]),
            ("<textarea>a\nb</textarea><p>c&#10;d", &["a", "b", "c d"]),
            ("a<script>x<br>\n</script>b<style><br></style>c<!-- <br> -->d", &["abcd"]),
            ("Case, and (punctuation)!", &["Case, and (punctuation)!"]),
            ("<plaintext>a\n<br>b", &["a", "<br>b"]),
        ] {
            assert_eq!(lines_of_html(html), hashes(lines), "{html}");
        }
    }

    #[test]
    fn plain_text_has_its_own_lines() {
        let mut lines = Lines::default();
        lines.set_text("one  two\r\n\n\tthree\rfour\u{a0}five<br>\n \u{2003}\n");
        assert_eq!(lines.hashes(), hashes(&["one two", "three", "four five<br>"]));
        lines.set_text("six");
        assert_eq!(lines.hashes(), hashes(&["six"]));
    }

    #[test]
    fn deep_nesting_takes_no_more_than_its_bytes() {
        let html = "<ul><li>x<pre>".repeat(200_000);
        assert_eq!(lines_of_html(&html).len(), 200_000);
    }

    proptest! {
        /// Against lines that are split first and tidied afterwards.
        #[test]
        fn lines_of_plain_text_are_those_of_a_slow_reader(text in "[a-c \\t\\n\\r\u{a0}é]{0,60}") {
            let expected: Vec<u64> = text
                .replace('\r', "\n")
                .split('\n')
                .map(|line| line.split(char::is_whitespace).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
                .filter(|line| !line.is_empty())
                .map(|line| stable_hash64(line.as_bytes()))
                .collect();
            let mut lines = Lines::default();
            lines.set_text(&text);
            prop_assert_eq!(lines.hashes(), &expected);
            // The same in HTML, where each is a paragraph.
            let html: String = text.split(['\r', '\n']).map(|line| format!("<p>{line}")).collect();
            prop_assert_eq!(lines_of_html(&html), expected);
        }
    }
}
