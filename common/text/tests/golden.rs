//! Golden signatures, which must not change while [`TOKENISER_VERSION`] and [`FORMAT`] stay the same, because
//! stores contain such signatures.
//!
//! The expected bytes come from a second implementation of the documented layout in another language.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use doppel_model::pairwise::Signer;
use doppel_model::signature::{FORMAT, Signature, SignatureError};
use doppel_model::{PageUrl, stable_hash64};
use doppel_text::{Extraction, Extractor, TOKENISER_VERSION};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// Parts of the layout in hexadecimal, a line each: head, content, counts, sketch, set, checksum.
fn parts(signature: &Signature) -> String {
    let bytes = signature.as_bytes();
    let (body, checksum) = bytes.split_at(bytes.len() - 8);
    let parts = [&body[..4], &body[4..20], &body[20..28], &body[28..92], &body[92..], checksum];
    parts.map(hex).join("\n")
}

#[track_caller]
fn check(text: &str, golden: &str) {
    let signature = Extractor::default().text(text).signature;
    let golden: String = golden.split_whitespace().collect();
    assert_eq!(hex(signature.as_bytes()), golden, "the signature of {text:?} is now\n{}", parts(&signature));
    assert_eq!(Signature::from_bytes(signature.as_bytes()), Ok(signature));
}

#[test]
fn the_versions_are_those_of_the_golden_signatures() {
    let hint = "a new version needs new golden signatures beside the old ones";
    assert_eq!((FORMAT, TOKENISER_VERSION), (0xd1, 5), "{hint}");
}

/// Version 1 of the tokeniser read the tags inside `noframes` and `iframe` as words.
#[test]
fn signatures_of_the_first_tokeniser_are_refused() {
    let mut bytes = Extractor::default().text("...").signature.as_bytes().to_vec();
    let end = bytes.len() - 8;
    bytes[1] = 1;
    bytes[end..].copy_from_slice(&[0x9c, 0x8f, 0xf8, 0x35, 0xb3, 0xe6, 0xcc, 0x44]);
    assert_eq!(Signature::from_bytes(&bytes), Err(SignatureError::Tokeniser(1)));
}

#[test]
fn a_text_without_tokens_has_the_golden_signature() {
    check(
        "...",
        "
        d1050005
        99aa06d3014798d86001c324468d497f
        0000000000000000
        0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
        0000000000000000000000000000
        fd96d4635a6d846c",
    );
}

#[test]
fn a_single_token_has_the_golden_signature() {
    check(
        "Doppel",
        "
        d1050005
        e2368745179be4580cc64b11e1a4826c
        0100000001000000
        03a7d4ddf1200096da97cbd96db2c3040996998d2146bf49d2b59cdcce21977145998905e3105ffe63884f128361bbf71d12
        1bb8185115042a2d59fe3504871b
        9c0733b6ad
        f9a8bdbfdd425022",
    );
}

#[test]
fn ascii_words_have_the_golden_signature() {
    check(
        "To be, or not to be: that is the question.",
        "
        d1050005
        63f56d2fa93a5f3037ae2d1270ceeece
        0a0000000a000000
        81716175faf0bbdfec6a1e01508ee41e03fd7915fd4141cafb749b2ef91de5db598118d3c8103934b5495b39706e63c4f317
        eb549206c1a132cc002818fc61de
        650e745718a1fa4e6d60b9aa2d6f60e9902823770976012b77c3716ea0822a3c40ce9c2ea08f10cbd97ff6cdf2359a4bcdfa
        399cf32227cc4275",
    );
}

#[test]
fn several_scripts_have_the_golden_signature() {
    check(
        "Ça va? ΟΔΟΣ 東京タワー ไทย 2nd",
        "
        d1050005
        c7044cfed5ed561016d63b94a59eea31
        0900000009000000
        0e7fbd939a63087ca3b2788334016b0bcfe5ac9ef30c2cfa74511b132634950744cc6607670bb55cf8eda2dcb805f86b0dcb
        f3c7737f03bfa4630fe15eb259eb
        575366a20e984f779c2b9583f43b33b288dd9746d5bab03773bdb2901781893e030c95c88316d8a21cab3ff3f4
        1b41760e53d34f0b",
    );
}

#[test]
fn equal_texts_in_different_spellings_have_equal_signatures() {
    let signature = |text: &str| Extractor::default().text(text).signature;
    let composed = signature("Ça va? ΟΔΟΣ 東京タワー ไทย 2nd");
    for text in [
        "C\u{327}a va? οδος 東京ﾀﾜｰ ไท\u{200b}ย ２ｎｄ",
        "ç\u{ad}a v\u{200d}a ΟΔ\u{2060}ΟΣ 東\u{fe00}京タワー ไทย 2ⁿᵈ",
    ] {
        assert_eq!(signature(text), composed, "{text}");
    }
}

#[test]
fn html_has_the_signature_of_its_text() {
    let url = PageUrl::parse("http://example.org/").unwrap();
    let html = "<title>To be</title><p>or<!-- a -->&nbsp;n&#111;t<b>to</b> be<style>a</style>: that is the question.";
    let Extraction::Page(page) = Extractor::default().html(&url, html.as_bytes(), None) else {
        panic!("unexpected redirect")
    };
    assert_eq!(
        page.signature,
        Extractor::default().text("To be, or not to be: that is the question.").signature
    );
}

/// Terms of texts that have some words in common.
fn sample() -> Vec<Vec<u64>> {
    let mut reader = Extractor::default();
    let mut terms = |first: u32| {
        let words: Vec<String> = (first..first + 20).map(|n| format!("word{n}")).collect();
        reader.text_terms(&words.join(" ")).terms.to_vec()
    };
    (0..8).map(|text| terms(5 * text)).collect()
}

/// Compares only a hash of each signature, because the test `reference` compares signatures byte for byte.
#[test]
fn every_policy_has_its_golden_signature() {
    let url = PageUrl::parse("http://www.example.co.uk/a").unwrap();
    let words: Vec<String> = (0..60).map(|n| format!("word{} the", n % 45)).collect();
    let golden = [
        ("jaccard", 0x4056_b33c_dfb3_b0f3),
        ("supershingle", 0xa79b_e4a6_d732_0d66),
        ("projection", 0x91d7_e9dc_03d7_9ea3),
        ("combined", 0x165b_3c4c_1255_fff6),
        ("by-site", 0xc46f_2ca6_c8ce_809f),
        ("simhash", 0x206f_051d_b71b_a83a),
        ("imatch", 0x33d1_abe3_a276_8cd7),
        ("multi-simhash", 0xa66c_9ca2_08dd_d899),
        ("overlap:lines=1", 0x8808_7e9c_0856_b2e1),
        ("content", 0xabfb_a100_acda_d356),
        ("copies", 0x2b45_9625_e4fe_cdc3),
    ];
    let now = golden.map(|(policy, _)| {
        let signer = Signer::learnt(policy.parse().unwrap(), sample());
        let signature = Extractor::signing(signer).text_at(&url, &words.join(" ")).signature;
        assert_eq!(Signature::from_bytes(signature.as_bytes()).as_ref(), Ok(&signature));
        (policy, stable_hash64(signature.as_bytes()))
    });
    assert_eq!(now, golden);
}

/// Creates a page with an article of `article` words. Around the article, the page has an example of each
/// rule of the main content, and elements that resemble boilerplate but are content.
fn page(article: u32) -> String {
    let words: String = (0..article).map(|n| format!("<p>word{n} the")).collect();
    format!(
        "<title>A title</title><body class='nav sidebar'><a class=skip-link>b1</a><header>b2</header><nav>b3<ul><li>b4</ul></nav>
        <div role=banner>b5</div><ul class=nav-list><li>b6</ul><div id=siteSearch>b7</div><ol class=breadcrumb><li>b8<li>b9</ol>
        <div class=header>c1</div><p class=legalCopy>b10<div hidden>b11</div><p style='display:none'>b12</p><button>b13</button>
        <div class=nav-pusher>c2</div><ul class=share><li>b14</ul><noscript>b15</noscript><aside>b16</aside>
        <article><header>c3</header>{words}<aside>c4</aside><nav>b17</nav></article><footer>b18</footer>"
    )
}

/// A change of the rules for the main content also changes signatures in stores.
#[test]
fn main_contents_have_golden_signatures() {
    let url = PageUrl::parse("http://www.example.co.uk/a").unwrap();
    let pages = [page(60), page(7), page(2), format!("{}<main>{}</main>", page(30), page(40))];
    let now = ["content", "copies"].map(|policy| {
        let mut extractor = Extractor::new(policy.parse().unwrap());
        pages.each_ref().map(|html| {
            let Extraction::Page(page) = extractor.html(&url, html.as_bytes(), None) else {
                panic!("unexpected redirect")
            };
            (page.signature.tokens(), stable_hash64(page.signature.as_bytes()))
        })
    });
    // The main contents are, in order: 124 tokens of the page without boilerplate, 18 such tokens and the
    // title, the whole page, and the main element. Ids do not count in the main element.
    let golden = [
        [
            (124, 0xa50a_30e0_238b_1283),
            (20, 0x8eef_d3be_7270_7e3e),
            (28, 0x5a8f_428e_78bc_dfe2),
            (88, 0xb74c_8e50_b73b_c473),
        ],
        [
            (124, 0xa52e_662a_33cd_2a2c),
            (20, 0x9c45_f8d5_19b5_54aa),
            (28, 0xb2ee_cebf_0630_7438),
            (88, 0xefde_53ab_9ace_eeb2),
        ],
    ];
    assert_eq!(now, golden);
}

/// A change of the rules for source tokens also changes signatures in stores.
#[test]
fn source_tokens_have_a_golden_signature() {
    let url = PageUrl::parse("http://www.example.co.uk/a").unwrap();
    let html = "<title>A title</title>See <b>f</b>or (http://Www.a-b.org/c_d.html?e=f), <img src=/g/h.png?i>ΟΔΟΣ 東京 \
        <img src='//cdn.example/j.gif#k'>www.l-m.n/o-p.";
    let mut extractor = Extractor::new("by-site:tokens=source".parse().unwrap());
    let Extraction::Page(page) = extractor.html(&url, html.as_bytes(), None) else {
        panic!("unexpected redirect")
    };
    assert_eq!(
        (page.signature.tokens(), stable_hash64(page.signature.as_bytes())),
        (18, 0x563a_f3c3_93be_f1bd)
    );
}
