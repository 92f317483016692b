//! Generates HTML from pieces of every kind that changes how the following bytes are read.
//!
//! The generator avoids markup whose meaning depends on the tree. Such markup is elements that a parser
//! ignores in the wrong place (columns), and elements of SVG or MathML that are closed out of order.

use proptest::prelude::*;
use proptest::sample::select;

const TAGS: &str = "p b div a br td table tr select option h1 li pre span template noscript title textarea style script \
    xmp iframe noembed noframes frameset frame body head html form button object image font x-y TITLE Script ruby rt wbr WBR \
    caption";

const ATTRIBUTES: [&str; 12] =
    ["", " a", " a=b", " a='b>c'", " a=\"b<c\"", " a=&amp;", "/", " /", " a=\"&lt\"", " =", " a = 'é'", "\n"];

const ENTITIES: &str = "&amp; &eacute; &eacute &notin; &notit; &#65; &#x42 &#0; &#128; &#xD800; & &# &#x; &bogus; &nbsp; \
    &shy; &zwj; &NotEqualTilde; &CounterClockwiseContourIntegral;";

const COMMENTS: [&str; 22] = [
    "<!-- a -->",
    "<!---->",
    "<!-->",
    "<!--->",
    "<!-- a --!>",
    "<!-- <b> --",
    "<!--",
    "-->",
    "<!-",
    "<!a>",
    "<?php x ?>",
    "</ x>",
    "</>",
    "<>",
    "< b",
    "<3",
    "<",
    "</",
    "<é",
    "<!doctype html>",
    "<![CDATA[ a <b> ]]>",
    "]]>",
];

const RAW: [&str; 11] = [
    "<script><!-- <script> a </script> b --></script>",
    "<script>a</script x>",
    "<script>\"</scr\"</script>",
    "<style>a</style >",
    "<textarea>&lt;b</textarea>",
    "<title>a &amp; <b></title>",
    "<plaintext>",
    "日本語",
    "\0",
    "\r\n",
    "\u{c}",
];

const FOREIGN: [&str; 13] = [
    "a",
    "<g>",
    "<g>a</g>",
    "<path/>",
    "<style>a <g> b</style>",
    "<style/>",
    "<script>a</script>",
    "<title>a</title>",
    "<foreignObject><p>a</p></foreignObject>",
    "<mi>a</mi>",
    "<![CDATA[a<b>c]]>",
    "<p>",
    "\0",
];

fn piece() -> impl Strategy<Value = String> {
    let tag = || select(TAGS.split_ascii_whitespace().collect::<Vec<_>>());
    let inside = prop::collection::vec(select(&FOREIGN[..]), 0..5);
    let foreign = (select(vec!["svg", "math"]), inside, select(vec!["", "<style>a<g>b", "<script>a"]));
    prop_oneof![
        8 => "[a-z]{1,6}",
        4 => "[ \n.,]",
        8 => (tag(), select(&ATTRIBUTES[..])).prop_map(|(tag, attribute)| format!("<{tag}{attribute}>")),
        8 => tag().prop_map(|tag| format!("</{tag}>")),
        2 => tag().prop_map(|tag| format!("<{tag}/>")),
        4 => select(ENTITIES.split_ascii_whitespace().collect::<Vec<_>>()).prop_map(str::to_owned),
        4 => select(&COMMENTS[..]).prop_map(str::to_owned),
        2 => select(&RAW[..]).prop_map(str::to_owned),
        1 => foreign.prop_map(|(root, inside, open)| format!("<{root}>{}{open}</{root}>", inside.concat())),
    ]
}

/// Generates a page of up to 40 pieces.
pub(crate) fn html() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..40).prop_map(|pieces| pieces.concat())
}
