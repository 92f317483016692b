//! Decides how a page is read: its syntax, the outputs that the caller needs, and the elements that need
//! special treatment.
//!
//! *Raw text* is the content of an element that contains no tags, such as `script` and `title`. *Special*
//! elements change how the reader of HTML continues. All other elements are *ordinary*: for most readers,
//! their tags only separate words.

use html5gum::State;

use crate::xhtml;

/// Syntax by which a page is read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// HTML, as a browser reads it.
    #[default]
    Html,
    /// HTML that claims to be XML, but is not well-formed. Self-closed elements with raw text are empty, and
    /// CDATA sections are text.
    BrokenXml,
    /// XML. If it is not well-formed, the page is read again as `BrokenXml`.
    Xml,
}

impl Syntax {
    /// Returns the syntax that the media type and the beginning of the page claim.
    pub(crate) fn of(text: &str, is_xhtml: bool) -> Self {
        if is_xhtml || xhtml::begins_with_xml_declaration(text) { Self::Xml } else { Self::Html }
    }
}

/// Outputs that the reader of a page produces in addition to the text.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ReadOptions {
    /// Regions of the main content.
    pub(crate) main: bool,
    /// Lines as a browser shows them.
    pub(crate) lines: bool,
    /// Text and images for source tokens. Ignored if `lines` is set.
    pub(crate) source: bool,
}

/// Returns the tokenizer state for the content of the element, or `None` if the content is markup.
pub(crate) fn raw_state(element: &[u8]) -> Option<State> {
    match element {
        b"title" | b"textarea" => Some(State::RcData),
        // The content of `iframe` and `noframes` is markup, because pages are read like a browser without
        // frames.
        b"style" | b"xmp" | b"noembed" => Some(State::RawText),
        b"script" => Some(State::ScriptData),
        b"plaintext" => Some(State::PlainText),
        _ => None,
    }
}

/// Whether some browser, with or without scripts and frames, reads the content of the element as raw text.
pub(crate) fn has_raw_text(element: &[u8]) -> bool {
    raw_state(element).is_some() || matches!(element, b"iframe" | b"noframes" | b"noscript")
}

/// Elements that the reader of HTML always treats specially, even if the caller requests no lines, main
/// content or source tokens. Foreign content (SVG and MathML) has further rules.
const SPECIAL_ELEMENTS: [&str; 17] = [
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

/// Filter for [`SPECIAL_ELEMENTS`]: for each [`hash_slot`] of the first two letters, a bit for each length of
/// a name.
const SPECIAL_LENGTHS: [u16; 256] = {
    let mut lengths = [0; 256];
    let mut at = 0;
    while at < SPECIAL_ELEMENTS.len() {
        let name = SPECIAL_ELEMENTS[at].as_bytes();
        lengths[hash_slot(name[0], name[1])] |= 1 << name.len();
        at += 1;
    }
    lengths
};

/// Returns a hash of the first two letters of a name. Few common names share a slot.
const fn hash_slot(first: u8, second: u8) -> usize {
    (first.wrapping_mul(31) ^ second) as usize
}

/// Whether an element is certainly not in [`SPECIAL_ELEMENTS`]. True for most elements, but never for a
/// special one.
pub(crate) fn is_ordinary(element: &[u8]) -> bool {
    let [first, second, ..] = *element else { return true };
    let length = 1_u16.checked_shl(element.len() as u32).unwrap_or_default();
    SPECIAL_LENGTHS[hash_slot(first, second)] & length == 0
}

/// Element whose text the reader drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoredElement {
    None,
    Script,
    Style,
}

impl IgnoredElement {
    pub(crate) fn of(name: &[u8]) -> Self {
        match name {
            b"script" => Self::Script,
            b"style" => Self::Style,
            _ => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::html::Document;

    #[test]
    fn special_elements_are_not_ordinary_and_most_others_are() {
        assert!(SPECIAL_ELEMENTS.iter().all(|element| !is_ordinary(element.as_bytes())));
        for element in
            ["div", "p", "a", "span", "li", "td", "h1", "code", "blockquote", "annotation-xml-long", ""]
        {
            assert!(is_ordinary(element.as_bytes()), "{element}");
        }
    }

    /// A tag, a piece of text, or text that changes meaning inside a script or an attribute.
    fn piece() -> impl Strategy<Value = String> {
        let others = "a abbr address area article aside audio b bdi blockquote body br button canvas caption center cite code col data \
                      datalist dd del desc details dialog dir div dl dt em embed fieldset figure font footer form frame frameset h1 head \
                      header hgroup hr html i image img input ins isindex kbd label legend li listing main map mark marquee menu mi meter \
                      nav nextid nobr noindex object ol optgroup option output p param picture pre progress q rp rt ruby s samp search \
                      section select slot small source span strike strong sub summary sup table tbody td time tr track tt u ul var video";
        let names = SPECIAL_ELEMENTS.iter().copied().chain(others.split_whitespace());
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
            // The reader of lines never takes the fast path for ordinary elements.
            prop_assert_eq!(read(false), read(true), "{}", page);
        }
    }
}
