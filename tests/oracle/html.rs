//! HTML to text, by the full HTML standard, scripting off and without frames: the tree builder is given
//! elements it has no rule for in their place, so that what `iframe` and `noframes` hold is markup.
//!
//! The text is that of the tokens, not of the tree: every tag but `wbr` separates, also one that the tree
//! has no place for. The tree is built all the same, without its nodes, because the standard lets
//! it decide how the text after a tag is read (raw text, foreign content, CDATA).

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

/// What the oracle keeps of an HTML page.
#[derive(Default)]
pub(crate) struct Page {
    /// The text; a space stands for every tag but `wbr`.
    pub(crate) text: String,
    /// Where in the text the space of each other tag is, with the name of its element, behind a slash that of an end tag.
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

/// Sees each token on its way to the tree builder.
struct Tap {
    builder: TreeBuilder<Element, NoTree>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    page: Page,
    /// The script or style element that the text now belongs to.
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
        // An empty element is one only in foreign content.
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

/// An element of the tree that is not kept: its name, and an identity.
type Element = Rc<QualName>;

/// Takes the tree builder's orders and builds nothing.
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
