//! Text of strangers in the page: pages, names of files, errors.
//!
//! Invariant: it cannot be taken for a part of the page, and has no character that reorders what stands around it.

use doppel_terminal::escape;
use maud::Render;

/// Such text, on one line.
pub(super) struct Escaped<'t>(pub(super) &'t str);

impl Render for Escaped<'_> {
    fn render_to(&self, page: &mut String) {
        escape::on_one_line(self.0).as_ref().render_to(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_text() {
        let text = "<a href='x'>&amp;\" \u{202e}\u{200b}\n";
        let page = Escaped(text).render().into_string();
        assert_eq!(page, "&lt;a href='x'&gt;&amp;amp;&quot; \\u{202e}\\u{200b}\\u{a}");
    }
}
