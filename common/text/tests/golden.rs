//! Signatures that must never change while [`TOKENISER_VERSION`] and [`FORMAT`] stay: stores hold them.
//!
//! The vectors come from a second implementation of the documented layout, in another language.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use doppel_model::pairwise::Signer;
use doppel_model::signature::{FORMAT, Signature, SignatureError};
use doppel_model::{PageUrl, stable_hash64};
use doppel_text::{Extracted, Extractor, TOKENISER_VERSION};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// The parts of the layout in order: head, content, counts, sketch, set, checksum.
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
    assert_eq!(hex(signature.as_bytes()), golden, "{text:?} is now\n{}", parts(&signature));
    assert_eq!(Signature::from_bytes(signature.as_bytes()), Ok(signature));
}

#[test]
fn versions() {
    assert_eq!((FORMAT, TOKENISER_VERSION), (0xd1, 4), "new versions need new vectors beside the old");
}

/// Version 1 read the tags inside `noframes` and `iframe` as words.
#[test]
fn signatures_of_the_first_tokeniser_are_refused() {
    let mut bytes = Extractor::default().text("...").signature.as_bytes().to_vec();
    let end = bytes.len() - 8;
    bytes[1] = 1;
    bytes[end..].copy_from_slice(&[0x9c, 0x8f, 0xf8, 0x35, 0xb3, 0xe6, 0xcc, 0x44]);
    assert_eq!(Signature::from_bytes(&bytes), Err(SignatureError::Tokeniser(1)));
}

#[test]
fn no_tokens() {
    check(
        "...",
        "
        d1040005
        99aa06d3014798d86001c324468d497f
        0000000000000000
        0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
        0000000000000000000000000000
        19d62cd256225bb2",
    );
}

#[test]
fn one_token() {
    check(
        "Doppel",
        "
        d1040005
        e2368745179be4580cc64b11e1a4826c
        0100000001000000
        03a7d4ddf1200096da97cbd96db2c3040996998d2146bf49d2b59cdcce21977145998905e3105ffe63884f128361bbf71d12
        1bb8185115042a2d59fe3504871b
        9c0733b6ad
        902542800990b1b8",
    );
}

#[test]
fn words() {
    check(
        "To be, or not to be: that is the question.",
        "
        d1040005
        63f56d2fa93a5f3037ae2d1270ceeece
        0a0000000a000000
        81716175faf0bbdfec6a1e01508ee41e03fd7915fd4141cafb749b2ef91de5db598118d3c8103934b5495b39706e63c4f317
        eb549206c1a132cc002818fc61de
        650e745718a1fa4e6d60b9aa2d6f60e9902823770976012b77c3716ea0822a3c40ce9c2ea08f10cbd97ff6cdf2359a4bcdfa
        6a44423ceb403e11",
    );
}

#[test]
fn scripts() {
    check(
        "Ça va? ΟΔΟΣ 東京タワー ไทย 2nd",
        "
        d1040005
        c7044cfed5ed561016d63b94a59eea31
        0900000009000000
        0e7fbd939a63087ca3b2788334016b0bcfe5ac9ef30c2cfa74511b132634950744cc6607670bb55cf8eda2dcb805f86b0dcb
        f3c7737f03bfa4630fe15eb259eb
        575366a20e984f779c2b9583f43b33b288dd9746d5bab03773bdb2901781893e030c95c88316d8a21cab3ff3f4
        c0a8ff8168cd624e",
    );
}

/// Equal texts have one signature, however they are written.
#[test]
fn forms_of_a_text() {
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
fn html_is_its_text() {
    let url = PageUrl::parse("http://example.org/").unwrap();
    let html = "<title>To be</title><p>or<!-- a -->&nbsp;n&#111;t<b>to</b> be<style>a</style>: that is the question.";
    let Extracted::Page(page) = Extractor::default().html(&url, html.as_bytes(), None) else { panic!() };
    assert_eq!(
        page.signature,
        Extractor::default().text("To be, or not to be: that is the question.").signature
    );
}

/// The terms of texts that have some words in common.
fn sample() -> Vec<Vec<u64>> {
    let mut reader = Extractor::default();
    let mut terms = |first: u32| {
        let words: Vec<String> = (first..first + 20).map(|n| format!("word{n}")).collect();
        reader.text_terms(&words.join(" ")).terms.to_vec()
    };
    (0..8).map(|text| terms(5 * text)).collect()
}

/// Every policy, by a hash of the whole signature: `reference` compares signatures byte for byte with those of a slow reader.
#[test]
fn every_policy() {
    let url = PageUrl::parse("http://www.example.co.uk/a").unwrap();
    let words: Vec<String> = (0..60).map(|n| format!("word{} the", n % 45)).collect();
    let golden = [
        ("jaccard", 0xf717_53db_a265_e876),
        ("supershingle", 0x78fa_7463_573f_f95b),
        ("projection", 0x897d_da3c_2750_8954),
        ("combined", 0xdde5_cb22_8655_40ad),
        ("by-site", 0xb0d1_ab2c_cb50_2908),
        ("simhash", 0x9ccb_9cee_1298_2f47),
        ("imatch", 0xb01c_a311_8cdf_849a),
        ("multi-simhash", 0xd032_1e2f_2517_5724),
        ("overlap:lines=1", 0x7785_61f3_1db8_635c),
        ("content", 0x01cf_645e_8804_6760),
        ("copies", 0x757e_2069_a99c_8a83),
    ];
    let now = golden.map(|(policy, _)| {
        let signer = Signer::learnt(policy.parse().unwrap(), sample());
        let signature = Extractor::signing(signer).text_at(&url, &words.join(" ")).signature;
        assert_eq!(Signature::from_bytes(signature.as_bytes()).as_ref(), Ok(&signature));
        (policy, stable_hash64(signature.as_bytes()))
    });
    assert_eq!(now, golden);
}

/// A page with what each rule of the main content leaves out, and what it does not, around an article of this many words.
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

/// A change of the rules for the main content changes what stores hold, too.
#[test]
fn main_contents() {
    let url = PageUrl::parse("http://www.example.co.uk/a").unwrap();
    let pages = [page(60), page(7), page(2), format!("{}<main>{}</main>", page(30), page(40))];
    let now = ["content", "copies"].map(|policy| {
        let mut extractor = Extractor::new(policy.parse().unwrap());
        pages.each_ref().map(|html| {
            let Extracted::Page(page) = extractor.html(&url, html.as_bytes(), None) else { panic!() };
            (page.signature.tokens(), stable_hash64(page.signature.as_bytes()))
        })
    });
    // All 124 words without the rest; those of 18 and the title; the whole page; what stands in `main`, where ids do not count.
    let golden = [
        [
            (124, 0xb480_569c_0a30_c86f),
            (20, 0xd84b_f9a1_7df3_ccaa),
            (28, 0x74db_dbbb_00e9_7887),
            (88, 0x7866_bdd7_923f_b2af),
        ],
        [
            (124, 0x42fd_aa1b_a61d_32d5),
            (20, 0xf176_e1ed_34f4_2e54),
            (28, 0x539c_7436_8cc2_84af),
            (88, 0x2586_b9c2_eff8_796e),
        ],
    ];
    assert_eq!(now, golden);
}

/// So does a change of what the tokens of a source are.
#[test]
fn tokens_of_a_source() {
    let url = PageUrl::parse("http://www.example.co.uk/a").unwrap();
    let html = "<title>A title</title>See <b>f</b>or (http://Www.a-b.org/c_d.html?e=f), <img src=/g/h.png?i>ΟΔΟΣ 東京 \
        <img src='//cdn.example/j.gif#k'>www.l-m.n/o-p.";
    let mut extractor = Extractor::new("by-site:tokens=source".parse().unwrap());
    let Extracted::Page(page) = extractor.html(&url, html.as_bytes(), None) else { panic!() };
    assert_eq!(
        (page.signature.tokens(), stable_hash64(page.signature.as_bytes())),
        (18, 0x2264_6068_3e6e_3841)
    );
}
