//! Splits a page into lines as a browser without style sheets would show them on a screen of unlimited width.
//! Time and memory are linear in the page.
//!
//! Lines also contain text that a browser does not show, because the text of the page contains it: the title,
//! and the content of `template`, `noscript` and hidden elements.
//!
//! - A line ends at the start tag and the end tag of a block element, at `br` and at `hr`. Inside `pre` and
//!   similar elements it also ends at a line feed. The cells of a table row share a line, with a space
//!   between them.
//! - White space becomes a single space, and is removed at both ends. Empty lines are dropped.
//! - Case and punctuation stay. A line is in NFKC, without default-ignorable characters such as soft hyphens.
//! - All other tags leave no space, unlike in the text for tokens: `a<b>b</b>` is `ab`.
//!
//! A renderer such as the crate `html2text` builds a tree first. The trees of `html5ever` take time that is
//! quadratic in the depth, so half a megabyte of tags takes more than a minute, and no option bounds the
//! time. It would also wrap lines to a width.

use crate::tokens::form::normalise_line;
use doppel_model::stable_hash64;

/// Text of a page in which each line feed ends a line. The buffers are reused for the next page.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: Vec<u8>,
    /// Number of open elements in which line feeds count.
    preformatted: u32,
    line: String,
    hashes: Vec<u64>,
}

impl Lines {
    /// Forgets the previous page.
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
            _ if is_line_break(name) => self.text.push(b'\n'),
            _ => {}
        }
    }

    /// Appends text of HTML.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(piece);
        if self.preformatted == 0 {
            for byte in self.text[start..].iter_mut().filter(|byte| is_line_end(**byte)) {
                *byte = b' ';
            }
        }
    }

    /// Replaces the previous page with a plain text.
    pub(super) fn set_text(&mut self, text: &str) {
        self.clear();
        self.text.extend_from_slice(text.as_bytes());
    }

    /// Returns the hashes of the lines, in page order.
    pub(super) fn hashes(&mut self) -> &[u64] {
        self.hashes.clear();
        // Growing the vector step by step would take up to twice the memory.
        self.hashes.reserve_exact(1 + self.text.iter().filter(|byte| is_line_end(**byte)).count());
        for line in self.text.split(|byte| is_line_end(*byte)) {
            self.line.clear();
            for word in normalise_line(&String::from_utf8_lossy(line)).split_whitespace() {
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

    /// Like [`hashes`](Self::hashes), but returns the vector itself.
    pub(super) fn take_hashes(&mut self) -> Vec<u64> {
        self.hashes();
        std::mem::take(&mut self.hashes)
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Whether line feeds end a line inside the element.
fn is_preformatted(name: &[u8]) -> bool {
    matches!(name, b"pre" | b"listing" | b"plaintext" | b"textarea" | b"xmp")
}

/// Whether the tags of the element end a line.
#[rustfmt::skip]
fn is_line_break(name: &[u8]) -> bool {
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
    use crate::html::syntax::{ReadOptions, Syntax};

    fn lines_of_html(html: &str) -> Vec<u64> {
        let mut document = Document::default();
        document.read(html, Syntax::Html, ReadOptions { lines: true, ..ReadOptions::default() });
        document.lines.hashes().to_vec()
    }

    fn hashes(lines: &[&str]) -> Vec<u64> {
        lines.iter().map(|line| stable_hash64(line.as_bytes())).collect()
    }

    #[test]
    fn html_has_the_lines_that_a_browser_shows() {
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
    fn plain_text_is_split_at_its_line_ends() {
        let mut lines = Lines::default();
        lines.set_text("one  two\r\n\n\tthree\rfour\u{a0}five<br>\n \u{2003}\n");
        assert_eq!(lines.hashes(), hashes(&["one two", "three", "four five<br>"]));
        lines.set_text("six");
        assert_eq!(lines.hashes(), hashes(&["six"]));
    }

    #[test]
    fn deep_nesting_takes_linear_time() {
        let html = "<ul><li>x<pre>".repeat(200_000);
        assert_eq!(lines_of_html(&html).len(), 200_000);
    }

    proptest! {
        /// The slow reader splits the text into lines first and normalises each line afterwards.
        #[test]
        fn lines_of_plain_text_equal_those_of_a_slow_reader(text in "[a-c \\t\\n\\r\u{a0}é]{0,60}") {
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
            // HTML with a paragraph for each line has the same lines.
            let html: String = text.split(['\r', '\n']).map(|line| format!("<p>{line}")).collect();
            prop_assert_eq!(lines_of_html(&html), expected);
        }
    }
}
