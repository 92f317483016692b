//! The tree of a page, as html5ever builds it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::{Attribute, ExpandedName, QualName};

pub(crate) struct Element {
    name: QualName,
    attributes: RefCell<Vec<(String, String)>>,
    template: Option<Rc<Node>>,
}

pub(crate) enum Kind {
    Element(Element),
    Text(RefCell<String>),
    /// The document, a comment, or the content of a template.
    Other,
}

pub(crate) struct Node {
    pub(crate) kind: Kind,
    parent: RefCell<Weak<Node>>,
    pub(crate) children: RefCell<Vec<Rc<Node>>>,
}

impl Drop for Node {
    /// Drops deep trees without recursion.
    fn drop(&mut self) {
        let mut work = self.children.take();
        while let Some(node) = work.pop() {
            work.append(&mut node.children.borrow_mut());
        }
    }
}

impl Node {
    fn new(kind: Kind) -> Rc<Self> {
        Rc::new(Self { kind, parent: RefCell::default(), children: RefCell::default() })
    }

    pub(crate) fn text(text: &str) -> Rc<Self> {
        Self::new(Kind::Text(RefCell::new(text.to_owned())))
    }

    pub(crate) fn as_text(&self) -> Option<String> {
        if let Kind::Text(text) = &self.kind { Some(text.borrow().clone()) } else { None }
    }

    fn remove(self: &Rc<Self>) -> Option<(Rc<Self>, usize)> {
        let parent = self.parent.borrow().upgrade()?;
        let at = parent.children.borrow().iter().position(|child| Rc::ptr_eq(child, self))?;
        parent.children.borrow_mut().remove(at);
        *self.parent.borrow_mut() = Weak::new();
        Some((parent, at))
    }

    fn insert(self: &Rc<Self>, at: usize, child: NodeOrText<Rc<Self>>) {
        let child = match child {
            NodeOrText::AppendNode(node) => node,
            NodeOrText::AppendText(text) => {
                let before = at.checked_sub(1).and_then(|at| self.children.borrow().get(at).cloned());
                if let Some(Kind::Text(before)) = before.as_ref().map(|before| &before.kind) {
                    return before.borrow_mut().push_str(&text);
                }
                Self::text(&text)
            }
        };
        child.remove();
        *child.parent.borrow_mut() = Rc::downgrade(self);
        let at = at.min(self.children.borrow().len());
        self.children.borrow_mut().insert(at, child);
    }

    fn append(self: &Rc<Self>, child: NodeOrText<Rc<Self>>) {
        let at = self.children.borrow().len();
        self.insert(at, child);
    }
}

impl Element {
    pub(crate) fn name(&self) -> &str {
        &self.name.local
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let attributes = self.attributes.borrow();
        attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }
}

pub(crate) struct Dom {
    pub(crate) root: Rc<Node>,
}

impl Default for Dom {
    fn default() -> Self {
        Self { root: Node::new(Kind::Other) }
    }
}

fn named(attributes: Vec<Attribute>) -> Vec<(String, String)> {
    attributes.into_iter().map(|one| (one.name.local.to_string(), one.value.to_string())).collect()
}

impl TreeSink for Dom {
    type Handle = Rc<Node>;
    type Output = Self;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Self {
        self
    }

    fn get_document(&self) -> Rc<Node> {
        self.root.clone()
    }

    fn get_template_contents(&self, target: &Rc<Node>) -> Rc<Node> {
        match &target.kind {
            Kind::Element(Element { template: Some(template), .. }) => template.clone(),
            _ => target.clone(),
        }
    }

    fn same_node(&self, x: &Rc<Node>, y: &Rc<Node>) -> bool {
        Rc::ptr_eq(x, y)
    }

    fn elem_name<'a>(&'a self, target: &'a Rc<Node>) -> ExpandedName<'a> {
        match &target.kind {
            Kind::Element(element) => element.name.expanded(),
            _ => panic!("it is no element"),
        }
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> Rc<Node> {
        let template = (&*name.local == "template").then(|| Node::new(Kind::Other));
        Node::new(Kind::Element(Element { name, attributes: RefCell::new(named(attributes)), template }))
    }

    fn create_comment(&self, _: StrTendril) -> Rc<Node> {
        Node::new(Kind::Other)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Rc<Node> {
        Node::new(Kind::Other)
    }

    fn append(&self, parent: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        parent.append(child);
    }

    fn append_before_sibling(&self, sibling: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        if let Some((parent, at)) = sibling.remove() {
            parent.insert(at, NodeOrText::AppendNode(sibling.clone()));
            parent.insert(at, child);
        }
    }

    fn append_based_on_parent_node(
        &self,
        element: &Rc<Node>,
        previous: &Rc<Node>,
        child: NodeOrText<Rc<Node>>,
    ) {
        if element.parent.borrow().upgrade().is_some() {
            self.append_before_sibling(element, child);
        } else {
            previous.append(child);
        }
    }

    fn add_attrs_if_missing(&self, target: &Rc<Node>, attributes: Vec<Attribute>) {
        let Kind::Element(element) = &target.kind else { return };
        for (name, value) in named(attributes) {
            if element.attribute(&name).is_none() {
                element.attributes.borrow_mut().push((name, value));
            }
        }
    }

    fn remove_from_parent(&self, target: &Rc<Node>) {
        target.remove();
    }

    fn reparent_children(&self, node: &Rc<Node>, new_parent: &Rc<Node>) {
        let children = node.children.take();
        for child in children {
            *child.parent.borrow_mut() = Weak::new();
            new_parent.append(NodeOrText::AppendNode(child));
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}
    fn parse_error(&self, _: Cow<'static, str>) {}
    fn set_quirks_mode(&self, _: QuirksMode) {}
}
