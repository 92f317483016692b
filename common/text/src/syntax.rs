//! What decides how a page is read: its syntax, elements that contain no tags, and what is to be found.

use html5gum::State;

use super::xhtml;

/// The syntax of a page.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    #[default]
    Html,
    /// HTML that says it is XML, and is not: self-closed elements with raw text are empty, and CDATA sections are text.
    BrokenXml,
    Xml,
}

impl Syntax {
    /// The syntax of a page, by its media type and its beginning.
    pub(super) fn of(text: &str, is_xhtml: bool) -> Self {
        if is_xhtml || xhtml::begins_with_xml_declaration(text) { Self::Xml } else { Self::Html }
    }
}

/// What is to be found beside the text.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Wanted {
    /// The main content.
    pub(super) main: bool,
    /// Lines.
    pub(super) lines: bool,
    /// What the tokens of a source are made of. Nobody asks for these and for lines.
    pub(super) source: bool,
}

/// How the content of an HTML element is read, if it has no tags.
pub(super) fn raw_state(element: &[u8]) -> Option<State> {
    match element {
        b"title" | b"textarea" => Some(State::RcData),
        // `iframe` and `noframes` are not raw text here: a browser without frames reads their content as markup.
        b"style" | b"xmp" | b"noembed" => Some(State::RawText),
        b"script" => Some(State::ScriptData),
        b"plaintext" => Some(State::PlainText),
        _ => None,
    }
}

/// Whether an HTML element has no tags for some browsers, with scripts or without.
pub(super) fn holds_raw_text(element: &[u8]) -> bool {
    raw_state(element).is_some() || matches!(element, b"iframe" | b"noframes" | b"noscript")
}

/// The element whose text is being dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    Nothing,
    Script,
    Style,
}

impl Dropped {
    pub(super) fn by(name: &[u8]) -> Self {
        match name {
            b"script" => Self::Script,
            b"style" => Self::Style,
            _ => Self::Nothing,
        }
    }
}
