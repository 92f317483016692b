use proptest::prelude::*;

use super::*;

/// Slow implementation of the rule: takes the form of the whole text, cuts it into runs of letters with their
/// marks, and splits the runs by class.
fn naive(text: &str) -> Vec<String> {
    let letters = Letters::new();
    let mut runs = vec![Vec::<String>::new()];
    for c in Form::default().fold(text).chars() {
        match (letters.category(c), runs.last_mut().unwrap()) {
            (CharCategory::Letter, run) => run.push(c.to_string()),
            (CharCategory::Mark, run) if !run.is_empty() => run.last_mut().unwrap().push(c),
            _ => runs.push(Vec::new()),
        }
    }
    let class = |letter: &String| Class::of(letter.chars().next().unwrap());
    let mut tokens = Vec::new();
    for same in runs.iter().flat_map(|run| run.chunk_by(|a, b| class(a) == class(b))) {
        if class(&same[0]) == Class::Spaced || same.len() == 1 {
            tokens.push(same.concat());
        } else {
            tokens.extend(same.windows(2).map(<[String]>::concat));
        }
    }
    tokens
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let take = |token: &[u8], _| tokens.push(String::from_utf8(token.to_vec()).unwrap());
    Tokeniser::default().visit_tokens(&mut text.as_bytes().to_vec(), take);
    tokens
}

fn check(text: &str) {
    let words = naive(text);
    assert_eq!(tokens(text), words, "{text:?}");
    let expected: Vec<u64> = words.iter().map(|t| stable_hash64(t.as_bytes())).collect();
    let mut bytes = text.as_bytes().to_vec();
    let mut tokeniser = Tokeniser::default();
    assert_eq!(tokeniser.tokens(&mut bytes), expected, "{text:?}");
    let all: Vec<u8> = expected.iter().flat_map(|token| token.to_le_bytes()).collect();
    let whole = (!expected.is_empty()).then(|| stable_hash64(&all));
    assert_eq!(tokeniser.hash(&mut text.as_bytes().to_vec()), whole, "{text:?}");
}

/// Tokens by an independent implementation.
fn oracle(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    doppel_baseline::tokens::each_token(text, |token| tokens.push(token.to_owned()));
    tokens
}

/// Examples of docs/reference/text.md.
#[test]
fn examples_have_the_expected_tokens() {
    for (text, words) in [
        ("", ""),
        ("Don't STOP, 2nd-hand", "don t stop 2nd hand"),
        ("snake_case ½ x²", "snake case 1 2 x2"),
        ("Café ΣΑΣ ΟΔΌΣ İ", "café σασ οδόσ i\u{307}"),
        ("co\u{ad}opera\u{200b}tion", "cooperation"),
        ("ﬁne ＡＢＣ１２ Straße", "fine abc12 strasse"),
        ("Dvořák", "dvořák"),
        ("Dvor\u{30c}a\u{301}k", "dvořák"),
        ("\u{301}a =\u{338}b c \u{301}d", "a b c d"),
        ("日本語", "日本 本語"),
        ("日", "日"),
        ("東京タワー", "東京 タワ ワー"),
        ("ﾀﾜｰ か\u{3099}っこう", "タワ ワー がっ っこ こう"),
        ("iPhone用ケース", "iphone 用 ケー ース"),
        ("2024年", "2024 年"),
        ("한국어 \u{1112}\u{1161}\u{11ab}", "한국어 한"),
        ("ไทย ที่นี่ น้ำ", "ไท ทย ที่นี่ น้\u{e4d}า"),
        ("ខ្មែរ", "ខ្មែ មែរ"),
        ("မြန်မာ", "မြန် န်မာ"),
        ("ລາວ", "ລາ າວ"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("العـــربية مُحَمَّد", "العربية مُحَم\u{64e}\u{651}د"),
        ("می\u{200c}خواهم", "میخواهم"),
        ("שָׁלוֹם", "שָׁלוֹם"),
        ("Tiếng Việt", "tiếng việt"),
        ("👩\u{200d}🔬 a❤\u{fe0f}b", "a b"),
    ] {
        let words: Vec<&str> = words.split_whitespace().collect();
        // The expected words above have their marks in writing order, which NFC may change.
        let sorted: Vec<String> = words.iter().map(|word| Form::default().fold(word).to_owned()).collect();
        assert_eq!(tokens(text), sorted, "{text:?}");
        assert_eq!(oracle(text), sorted, "{text:?}");
        check(text);
    }
}

#[test]
fn every_character_is_read_like_by_the_rule_and_the_oracle() {
    let mut differ = Vec::new();
    // No plane between the two ranges has characters.
    for c in ('\0'..'\u{34000}').chain('\u{e0000}'..'\u{e1000}') {
        for text in
            [format!("{c}"), format!("a{c}b"), format!("ก{c}\u{ad}\u{323}ข"), format!("\u{1100}{c}\u{301}")]
        {
            assert_eq!(tokens(&text), naive(&text), "{text:?}");
            // The oracle knows the letters of an older Unicode version.
            let is_known = c.is_alphanumeric() || Letters::new().category(c) != CharCategory::Letter;
            if is_known && oracle(&text) != tokens(&text) {
                differ.push((text.clone(), oracle(&text), tokens(&text)));
            }
        }
    }
    assert!(differ.is_empty(), "{}: {:?}", differ.len(), &differ[..differ.len().min(40)]);
}

#[test]
fn words_may_cross_blocks() {
    for length in 1..200 {
        check(&"a".repeat(length));
        check(&format!("{} b", "é".repeat(length)));
        check(&format!("{}é", "a".repeat(length)));
        check(&format!("{}日本{}", "-".repeat(length), "a b ".repeat(40)));
    }
}

#[test]
fn invalid_utf_8_separates_words() {
    let mut tokeniser = Tokeniser::default();
    let words = ["ab".as_bytes(), "cd".as_bytes()].map(stable_hash64);
    assert_eq!(tokeniser.tokens(&mut b"ab\xffcd".to_owned()), words);
    assert_eq!(tokeniser.tokens(&mut b"ab\xe6\x97cd\xe6".to_owned()), words);
}

#[test]
fn every_ascii_byte_is_read_at_every_position_of_a_block() {
    for byte in 0..=0x7f {
        for position in 0..BLOCK {
            let mut text = "x".repeat(BLOCK).into_bytes();
            text[position] = byte;
            check(std::str::from_utf8(&text).unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_text_is_read_by_the_rule(text in "\\PC{0,300}") {
        check(&text);
    }

    #[test]
    fn random_words_of_all_scripts_are_read_by_the_rule_and_the_oracle(
        text in "([a-zA-Z0-9]{1,12}|[ .,<>_'\\n]{1,3}|[àÉßİΣчЖ漢字かナーｱกขມက་က１½²]{1,3}|\
            [\u{300}\u{301}\u{308}\u{323}\u{327}\u{338}\u{345}\u{3099}\u{e48}\u{e34}\u{5b0}\u{5bc}\u{64e}\u{651}\u{93c}\u{94d}]{1,3}|\
            [\u{ad}\u{200b}\u{200d}\u{640}\u{fe0f}]{1,2}|[각\u{1100}\u{1161}\u{11a8}ﾀﾞ，！ﬁ𝐀ﷺ]{1,3}){0,60}"
    ) {
        check(&text);
        prop_assert_eq!(oracle(&text), tokens(&text));
    }

    #[test]
    fn random_characters_are_read_by_the_rule(chars in prop::collection::vec(any::<char>(), 0..60)) {
        check(&chars.iter().collect::<String>());
    }
}

/// Long runs of irregular characters: joined clusters, invisible characters, and letters with many marks.
#[test]
fn long_clusters_are_read_by_the_rule() {
    for text in [
        "e\u{301}".repeat(5_000),
        "\u{1112}\u{1161}\u{11ab}".repeat(5_000),
        "𝐀ﷺ".repeat(5_000),
        format!("a{}b", "\u{ad}".repeat(20_000)),
        format!("a{}", "\u{323}\u{301}".repeat(10_000)),
        format!("か{}", "\u{3099}".repeat(10_000)),
        "ｶﾞ".repeat(5_000),
    ] {
        check(&text);
    }
}

#[test]
fn a_megabyte_of_marks_takes_bounded_time_and_memory() {
    let begin = std::time::Instant::now();
    for marks in ["\u{301}\u{323}", "\u{344}", "\u{3099}", "\u{ad}", "\u{64e}\u{651}", "\u{ffa0}"] {
        let text = format!("a{}", marks.repeat((1 << 20) / marks.len()));
        let mut tokeniser = Tokeniser::default();
        assert_eq!(tokeniser.tokens(&mut text.clone().into_bytes()).len(), 1);
        assert!(tokeniser.form.bytes() < 32 << 20, "{marks:?}: {}", tokeniser.form.bytes());
    }
    // Each of these letters has a form of 18 characters. They are not normalised all together.
    let mut tokeniser = Tokeniser::default();
    tokeniser.tokens(&mut "ﷺ".repeat(1 << 18).into_bytes());
    assert!(tokeniser.form.bytes() < 1 << 20, "{}", tokeniser.form.bytes());
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
}
