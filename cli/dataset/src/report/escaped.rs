//! Escapes foreign text in the page: text of pages, names of files, errors.
//!
//! Invariant: a browser cannot take such text for markup, and it contains no character that reorders the text
//! around it.

use doppel_terminal::escape;
use maud::Render;

/// Foreign text, shown on one line.
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
    fn foreign_text_is_not_markup() {
        let text = "<a href='x'>&amp;\" \u{202e}\u{200b}\n";
        let page = Escaped(text).render().into_string();
        assert_eq!(page, "&lt;a href='x'&gt;&amp;amp;&quot; \\u{202e}\\u{200b}\\u{a}");
    }
}
