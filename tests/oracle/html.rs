//! Converts HTML to text by the full HTML standard, without scripts and without frames. The tree builder gets
//! unknown names in place of `iframe` and `noframes`, so that it reads their content as markup.
//!
//! The text comes from the tokens, not from the tree: every tag except `wbr` separates words, even a tag that
//! the tree ignores. The tree builder still runs, without keeping nodes, because the standard lets it decide
//! how to read the text after a tag (raw text, foreign content, CDATA).

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TokenizerResult, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, ExpandedName, LocalName, QualName, ns};

/// The text of an HTML page, and its tags.
#[derive(Default)]
pub(crate) struct Page {
    /// The text, with a space for every tag except `wbr`.
    pub(crate) text: String,
    /// Position in the text of the space of each other tag, with the name of its element. The name of an end
    /// tag has a slash before it.
    pub(crate) tags: Vec<(usize, String)>,
}

/// Parses a whole page.
pub(crate) fn parse(html: &str) -> Page {
    let options = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let tap = Tap { builder: TreeBuilder::new(NoTree, options), state: RefCell::default() };
    let tokenizer = Tokenizer::new(tap, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
    tokenizer.end();
    tokenizer.sink.state.into_inner().page
}

/// Reads each token before it passes the token to the tree builder.
struct Tap {
    builder: TreeBuilder<Element, NoTree>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    page: Page,
    /// The open script or style element whose text is dropped.
    dropping: Option<LocalName>,
}

impl TokenSink for Tap {
    type Handle = Element;

    fn process_token(&self, mut token: Token, line: u64) -> TokenSinkResult<Element> {
        let foreign = self.adjusted_current_node_present_but_not_in_html_namespace();
        match &token {
            Token::TagToken(tag) => self.state.borrow_mut().tag(tag, foreign),
            Token::CharacterTokens(text) => self.state.borrow_mut().text(text),
            Token::NullCharacterToken => self.state.borrow_mut().text("\u{fffd}"),
            Token::DoctypeToken(_) | Token::CommentToken(_) | Token::ParseError(_) | Token::EOFToken => {}
        }
        if let Token::TagToken(tag) = &mut token {
            forget_frames(tag);
        }
        self.builder.process_token(token, line)
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

impl State {
    fn text(&mut self, text: &str) {
        if self.dropping.is_none() {
            self.page.text.push_str(text);
        }
    }

    fn tag(&mut self, tag: &Tag, foreign: bool) {
        if let Some(name) = &self.dropping {
            if tag.kind == TagKind::EndTag && tag.name == *name {
                self.dropping = None;
            }
            return;
        }
        if &*tag.name == "wbr" {
            return;
        }
        let slash = if tag.kind == TagKind::EndTag { "/" } else { "" };
        self.page.tags.push((self.page.text.len(), format!("{slash}{}", tag.name)));
        self.page.text.push(' ');
        // Only foreign content has self-closing elements.
        let is_dropped = matches!(&*tag.name, "script" | "style") && !(tag.self_closing && foreign);
        if tag.kind == TagKind::StartTag && is_dropped {
            self.dropping = Some(tag.name.clone());
        }
    }
}

/// Renames the elements that a browser without frames does not know.
fn forget_frames(tag: &mut Tag) {
    let unknown = match &*tag.name {
        "frameset" => "no-frameset",
        "frame" => "no-frame",
        "iframe" => "no-iframe",
        "noframes" => "no-noframes",
        _ => return,
    };
    tag.name = LocalName::from(unknown);
}

/// An element of the tree: only its name and its identity.
type Element = Rc<QualName>;

/// A sink that takes the orders of the tree builder and builds no tree.
struct NoTree;

fn element(name: QualName) -> Element {
    Rc::new(name)
}

fn nameless() -> Element {
    element(QualName::new(None, ns!(), LocalName::from("")))
}

impl TreeSink for NoTree {
    type Handle = Element;
    type Output = ();
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) {}

    fn get_document(&self) -> Element {
        nameless()
    }

    fn get_template_contents(&self, _: &Element) -> Element {
        nameless()
    }

    fn same_node(&self, x: &Element, y: &Element) -> bool {
        Rc::ptr_eq(x, y)
    }

    fn elem_name<'a>(&'a self, target: &'a Element) -> ExpandedName<'a> {
        target.expanded()
    }

    fn create_element(&self, name: QualName, _: Vec<Attribute>, _: ElementFlags) -> Element {
        element(name)
    }

    fn create_comment(&self, _: StrTendril) -> Element {
        nameless()
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Element {
        nameless()
    }

    fn append(&self, _: &Element, _: NodeOrText<Element>) {}
    fn append_before_sibling(&self, _: &Element, _: NodeOrText<Element>) {}
    fn append_based_on_parent_node(&self, _: &Element, _: &Element, _: NodeOrText<Element>) {}
    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}
    fn add_attrs_if_missing(&self, _: &Element, _: Vec<Attribute>) {}
    fn remove_from_parent(&self, _: &Element) {}
    fn reparent_children(&self, _: &Element, _: &Element) {}
    fn parse_error(&self, _: Cow<'static, str>) {}
    fn set_quirks_mode(&self, _: QuirksMode) {}
}
