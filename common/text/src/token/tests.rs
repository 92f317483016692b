use proptest::prelude::*;

use super::*;

/// The rule, word for word: runs of alphanumeric characters, split by class, each lower-cased.
fn naive(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        let chars: Vec<char> = run.chars().collect();
        for same in chars.chunk_by(|a, b| Class::of(*a) == Class::of(*b)) {
            if Class::of(same[0]) == Class::Spaced {
                tokens.push(same.iter().flat_map(|c| c.to_lowercase()).collect());
            } else if let [single] = same {
                tokens.push(single.to_string());
            } else {
                tokens.extend(same.windows(2).map(|pair| pair.iter().collect::<String>()));
            }
        }
    }
    tokens
}

fn check(text: &str) {
    let expected: Vec<u64> = naive(text).iter().map(|t| stable_hash64(t.as_bytes())).collect();
    let mut bytes = text.as_bytes().to_vec();
    let mut tokeniser = Tokeniser::default();
    assert_eq!(tokeniser.tokens(&mut bytes), expected, "{text:?}");
    let all: Vec<u8> = expected.iter().flat_map(|token| token.to_le_bytes()).collect();
    let whole = (!expected.is_empty()).then(|| stable_hash64(&all));
    assert_eq!(tokeniser.hash(&mut text.as_bytes().to_vec()), whole, "{text:?}");
}

#[test]
fn rule_by_example() {
    for (text, tokens) in [
        ("", vec![]),
        ("Don't STOP, 2nd-hand", vec!["don", "t", "stop", "2nd", "hand"]),
        ("snake_case ½ x²", vec!["snake", "case", "½", "x²"]),
        ("Café ΣΑΣ İ", vec!["café", "σασ", "i\u{307}"]),
        ("日本語", vec!["日本", "本語"]),
        ("日", vec!["日"]),
        ("東京タワー", vec!["東京", "タワ", "ワー"]),
        ("iPhone用ケース", vec!["iphone", "用", "ケー", "ース"]),
        ("2024年", vec!["2024", "年"]),
        ("한국어", vec!["한국어"]),
        ("ไทย", vec!["ไท", "ทย"]),
    ] {
        assert_eq!(naive(text), tokens);
        check(text);
    }
}

#[test]
fn words_across_blocks() {
    for length in 1..200 {
        check(&"a".repeat(length));
        check(&format!("{} b", "é".repeat(length)));
        check(&format!("{}é", "a".repeat(length)));
        check(&format!("{}日本{}", "-".repeat(length), "a b ".repeat(40)));
    }
}

#[test]
fn bytes_that_are_no_text_separate() {
    let mut tokeniser = Tokeniser::default();
    let words = ["ab".as_bytes(), "cd".as_bytes()].map(stable_hash64);
    assert_eq!(tokeniser.tokens(&mut b"ab\xffcd".to_owned()), words);
    assert_eq!(tokeniser.tokens(&mut b"ab\xe6\x97cd\xe6".to_owned()), words);
}

#[test]
fn every_byte_in_every_place_of_a_block() {
    for byte in 0..=0x7f {
        for place in 0..BLOCK {
            let mut text = "x".repeat(BLOCK).into_bytes();
            text[place] = byte;
            check(std::str::from_utf8(&text).unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_as_the_rule_says(text in "\\PC{0,300}") {
        check(&text);
    }

    #[test]
    fn words_of_all_kinds_as_the_rule_says(
        text in "([a-zA-Z0-9]{1,12}|[ .,<>_'\\n]{1,3}|[àÉßİΣчЖ漢字かナーｱกขມក་က１½²]{1,3}){0,60}"
    ) {
        check(&text);
    }
}
