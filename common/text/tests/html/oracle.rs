//! Finds the text of HTML with a full parser: the text in the tree outside script and style, with a space for
//! every tag except `wbr`. The product reads pages like a browser without frames, so frame elements are
//! renamed before the parser sees them.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TokenizerResult, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, ExpandedName, LocalName, QualName, ns};

/// Returns the text of `html`, parsed without scripting.
pub(crate) fn text(html: &str) -> String {
    let options = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let tree = Tree { text: RefCell::default(), document: node("") };
    let tokenizer = Tokenizer::new(Tags(TreeBuilder::new(tree, options)), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
    tokenizer.end();
    tokenizer.sink.0.sink.text.take()
}

/// Adds a space for each tag, after the tree builder has added all text before the tag.
struct Tags(TreeBuilder<Rc<Node>, Tree>);

impl TokenSink for Tags {
    type Handle = Rc<Node>;

    fn process_token(&self, mut token: Token, line: u64) -> TokenSinkResult<Rc<Node>> {
        if let Token::TagToken(tag) = &mut token
            && matches!(&*tag.name, "frameset" | "frame" | "iframe" | "noframes")
        {
            // Each of these elements gets a name to which no rule applies.
            tag.name = LocalName::from(format!("x-{}", tag.name));
        }
        // `wbr` marks where a line may break inside a word; it does not end the word.
        let is_tag = matches!(&token, Token::TagToken(tag) if &*tag.name != "wbr");
        let result = self.0.process_token(token, line);
        if is_tag {
            self.0.sink.text.borrow_mut().push(' ');
        }
        result
    }

    fn end(&self) {
        self.0.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.0.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// Properties of an element that decide whether its text counts.
pub(crate) struct Node {
    name: QualName,
    parent: RefCell<Option<Rc<Node>>>,
    template: OnceCell<Rc<Node>>,
}

fn node(name: &str) -> Rc<Node> {
    Rc::new(Node {
        name: QualName::new(None, ns!(), LocalName::from(name)),
        parent: RefCell::default(),
        template: OnceCell::new(),
    })
}

impl Drop for Node {
    /// Drops a chain of parents in a loop, because recursion would overflow the stack on deep pages.
    fn drop(&mut self) {
        let mut parent = self.parent.take();
        while let Some(mut node) = parent.and_then(Rc::into_inner) {
            parent = node.parent.get_mut().take();
        }
    }
}

/// Sink of the tree builder that stores only the text.
struct Tree {
    text: RefCell<String>,
    document: Rc<Node>,
}

impl Tree {
    fn add(&self, parent: Option<&Rc<Node>>, child: NodeOrText<Rc<Node>>) {
        match child {
            NodeOrText::AppendNode(node) => *node.parent.borrow_mut() = parent.cloned(),
            NodeOrText::AppendText(text) => {
                let mut ancestor = parent.cloned();
                while let Some(node) = ancestor {
                    if matches!(&*node.name.local, "script" | "style") {
                        return;
                    }
                    ancestor = node.parent.borrow().clone();
                }
                self.text.borrow_mut().push_str(&text);
            }
        }
    }
}

impl TreeSink for Tree {
    type Handle = Rc<Node>;
    type Output = ();
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) {}

    fn get_document(&self) -> Rc<Node> {
        self.document.clone()
    }

    fn get_template_contents(&self, target: &Rc<Node>) -> Rc<Node> {
        target.template.get_or_init(|| node("")).clone()
    }

    fn same_node(&self, x: &Rc<Node>, y: &Rc<Node>) -> bool {
        Rc::ptr_eq(x, y)
    }

    fn elem_name<'a>(&'a self, target: &'a Rc<Node>) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(&self, name: QualName, _: Vec<Attribute>, _: ElementFlags) -> Rc<Node> {
        Rc::new(Node { name, parent: RefCell::default(), template: OnceCell::new() })
    }

    fn create_comment(&self, _: StrTendril) -> Rc<Node> {
        node("")
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Rc<Node> {
        node("")
    }

    fn append(&self, parent: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        self.add(Some(parent), child);
    }

    fn append_before_sibling(&self, sibling: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        self.add(sibling.parent.borrow().as_ref(), child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Rc<Node>,
        previous: &Rc<Node>,
        child: NodeOrText<Rc<Node>>,
    ) {
        let parent = element.parent.borrow();
        self.add(parent.as_ref().or(Some(previous)), child);
    }

    fn remove_from_parent(&self, target: &Rc<Node>) {
        *target.parent.borrow_mut() = None;
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}
    fn add_attrs_if_missing(&self, _: &Rc<Node>, _: Vec<Attribute>) {}
    fn reparent_children(&self, _: &Rc<Node>, _: &Rc<Node>) {}
    fn parse_error(&self, _: Cow<'static, str>) {}
    fn set_quirks_mode(&self, _: QuirksMode) {}
}
