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
pub(super) struct ReadOptions {
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

/// Elements of which the reader of HTML knows more than that their tags separate words, beside those of foreign content, lines, main
/// content and sources.
const KNOWN: [&str; 17] = [
    "base",
    "iframe",
    "link",
    "math",
    "meta",
    "noembed",
    "noframes",
    "noscript",
    "plaintext",
    "script",
    "style",
    "svg",
    "template",
    "textarea",
    "title",
    "wbr",
    "xmp",
];

/// The lengths of the names of [`KNOWN`] elements, as bits, by the [place](place) of their first two letters.
const LENGTHS: [u16; 256] = {
    let mut lengths = [0; 256];
    let mut at = 0;
    while at < KNOWN.len() {
        let name = KNOWN[at].as_bytes();
        lengths[place(name[0], name[1])] |= 1 << name.len();
        at += 1;
    }
    lengths
};

/// Few common names have a place in common.
const fn place(first: u8, second: u8) -> usize {
    (first.wrapping_mul(31) ^ second) as usize
}

/// Whether an element is certainly none of the [`KNOWN`] ones, as most are.
pub(super) fn is_ordinary(element: &[u8]) -> bool {
    let [first, second, ..] = *element else { return true };
    let length = 1_u16.checked_shl(element.len() as u32).unwrap_or_default();
    LENGTHS[place(first, second)] & length == 0
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::html::Document;

    #[test]
    fn known_elements_are_told_from_most_others() {
        assert!(KNOWN.iter().all(|element| !is_ordinary(element.as_bytes())));
        for element in
            ["div", "p", "a", "span", "li", "td", "h1", "code", "blockquote", "annotation-xml-long", ""]
        {
            assert!(is_ordinary(element.as_bytes()), "{element}");
        }
    }

    /// A tag, a piece of text, or what may be in a script or an attribute.
    fn piece() -> impl Strategy<Value = String> {
        let others = "a abbr address area article aside audio b bdi blockquote body br button canvas caption center cite code col data \
                      datalist dd del desc details dialog dir div dl dt em embed fieldset figure font footer form frame frameset h1 head \
                      header hgroup hr html i image img input ins isindex kbd label legend li listing main map mark marquee menu mi meter \
                      nav nextid nobr noindex object ol optgroup option output p param picture pre progress q rp rt ruby s samp search \
                      section select slot small source span strike strong sub summary sup table tbody td time tr track tt u ul var video";
        let names = KNOWN.iter().copied().chain(others.split_whitespace());
        let tag = (prop::sample::select(names.collect::<Vec<_>>()), "/?", " a=b|[ ]?|/")
            .prop_map(|(name, end, rest)| format!("<{end}{name}{rest}>"));
        let meta = "<(meta http-equiv=refresh content=\"0;b\"|link rel=canonical href=b|base href=c|!--)>";
        prop_oneof![4 => tag, 1 => "[a-c]{1,3}", 1 => meta, 1 => "location=\"d\"|-->|\0|<!\\[CDATA\\[|\\]\\]>"]
    }

    proptest! {
        #[test]
        fn ordinary_elements_only_separate_words(pieces in prop::collection::vec(piece(), 0..24), is_xhtml: bool) {
            let page = pieces.concat();
            let url = doppel_model::PageUrl::parse("http://a/").unwrap();
            let read = |lines| {
                let mut document = Document::default();
                document.read(&page, Syntax::of(&page, is_xhtml), ReadOptions { lines, ..ReadOptions::default() });
                let text = String::from_utf8(document.text.clone()).unwrap();
                let links = (document.base(&url), document.canonical(&url));
                (text, links, document.may_redirect, document.swallowed_at, document.syntax)
            };
            // Where lines are read, no tag is passed over.
            prop_assert_eq!(read(false), read(true), "{}", page);
        }
    }
}
