use super::*;

#[track_caller]
fn check(html: &[u8], declared: Option<&str>, expected: &str) {
    let mut buffer = String::new();
    assert_eq!(decode(html, declared, &mut buffer), expected);
    assert_eq!(is_read_in_place(html, declared), buffer.capacity() == 0);
}

#[test]
fn sources_of_the_charset_are_asked_in_the_documented_order() {
    check(b"\xef\xbb\xbf\xc3\xa9", Some("latin1"), "é");
    check(b"\xff\xfea\0", Some("utf-8"), "a");
    check(b"\xfe\xff\0a", None, "a");
    check(b"\xc3\xa9<meta charset=utf-8>", Some(" Latin1 "), "Ã©<meta charset=utf-8>");
    check(b"\xc3\xa9<meta charset=latin1>", None, "Ã©<meta charset=latin1>");
    check(b"\xc3\xa9<meta charset=latin1>", Some("klingon"), "Ã©<meta charset=latin1>");
    check(b"\xc3\xa9", None, "é");
    check(b"\xc3\xa9<meta charset=utf-16le>", None, "é<meta charset=utf-16le>");
    check(b"\xe9<meta charset=x-user-defined>", None, "é<meta charset=x-user-defined>");
}

#[test]
fn a_page_whose_meta_tag_claims_utf_16_is_utf_8() {
    for label in ["utf-16", "utf-16le", "UTF-16BE", "unicodefeff", "unicodefffe", "ucs-2"] {
        for tag in [
            format!("<meta charset={label}>"),
            format!("<meta http-equiv=content-type content='text/html; charset={label}'>"),
        ] {
            check(format!("é{tag}").as_bytes(), None, &format!("é{tag}"));
            // Malformed pages are read as UTF-8, too, without a guess.
            check(&[b"\xe9", tag.as_bytes()].concat(), None, &format!("\u{fffd}{tag}"));
        }
    }
    // A charset of the response may be UTF-16.
    check(b"\0a", Some("utf-16be"), "a");
    check(b"a\0", Some("utf-16le"), "a");
}

#[test]
fn text_that_is_not_utf_8_is_guessed() {
    let (text, _, _) =
        encoding_rs::WINDOWS_1251.encode("Съешь ещё этих мягких французских булок, да выпей чаю.");
    check(&text, None, "Съешь ещё этих мягких французских булок, да выпей чаю.");
    let (text, _, _) = encoding_rs::SHIFT_JIS.encode("吾輩は猫である。名前はまだ無い。");
    check(&text, None, "吾輩は猫である。名前はまだ無い。");
}

#[test]
fn malformed_bytes_become_replacements() {
    check(b"a\xffb", Some("utf-8"), "a\u{fffd}b");
    check(b"a", Some("utf-16le"), "\u{fffd}");
}

#[test]
fn a_buffer_is_used_again() {
    let mut buffer = String::from("before");
    assert_eq!(decode(b"caf\xe9", Some("latin1"), &mut buffer), "café");
    assert_eq!(decode(b"\xe0", Some("latin1"), &mut buffer), "à");
}

#[test]
fn valid_utf_8_is_not_copied() {
    let html = "déjà vu".as_bytes();
    assert_eq!(decode(html, None, &mut String::new()).as_ptr(), html.as_ptr());
    assert_eq!(decode(html, Some("utf-8"), &mut String::new()).as_ptr(), html.as_ptr());
}

/// Encodes a text that the encoding can represent completely.
fn encoded(text: &str, encoding: &'static Encoding) -> Vec<u8> {
    let (bytes, _, malformed) = encoding.encode(text);
    assert!(!malformed, "{text}");
    bytes.into_owned()
}

fn utf_16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}

#[track_caller]
fn check_text_of(bytes: &[u8], declared: Option<&str>, expected: &str) {
    assert_eq!(decode_text(bytes, declared, &mut String::new()), expected);
}

const RUSSIAN: &str = "Съешь ещё этих мягких французских булок, да выпей чаю.";
const CHINESE: &str = "图书馆星期一至星期五开放，周末休息。请在门口领取号码，然后等候工作人员叫号。";
const JAPANESE: &str = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。";
const KOREAN: &str = "도서관은 평일 아침 아홉 시부터 저녁 여섯 시까지 문을 엽니다.";
const POLISH: &str = "Zażółć gęślą jaźń. Biblioteka jest czynna w dni powszednie od dziewiątej do szóstej.";
const GREEK: &str = "Η βιβλιοθήκη είναι ανοιχτή τις καθημερινές από τις εννέα έως τις έξι.";
const HEBREW: &str = "הספרייה פתוחה בימי חול מתשע בבוקר עד שש בערב.";
const ARABIC: &str = "المكتبة مفتوحة في أيام الأسبوع من التاسعة حتى السادسة.";
const THAI: &str = "ห้องสมุดเปิดวันธรรมดาตั้งแต่เก้าโมงเช้าถึงหกโมงเย็น";
const ENGLISH: &str = "The library is open on weekdays from nine to six.";

#[test]
fn text_and_html_without_a_label_are_guessed_alike() {
    use encoding_rs::*;
    for (text, encoding) in [
        (RUSSIAN, WINDOWS_1251),
        (RUSSIAN, KOI8_U),
        (RUSSIAN, IBM866),
        (RUSSIAN, ISO_8859_5),
        (CHINESE, GBK),
        (CHINESE, GB18030),
        ("圖書館星期一至星期五開放，週末休息。請在門口領取號碼。", BIG5),
        (JAPANESE, SHIFT_JIS),
        (JAPANESE, EUC_JP),
        (JAPANESE, ISO_2022_JP),
        (KOREAN, EUC_KR),
        (POLISH, ISO_8859_2),
        (POLISH, WINDOWS_1250),
        (GREEK, WINDOWS_1253),
        (HEBREW, WINDOWS_1255),
        (ARABIC, WINDOWS_1256),
        (THAI, WINDOWS_874),
        ("Un café, s'il vous plaît – voilà.", WINDOWS_1252),
    ] {
        let bytes = encoded(text, encoding);
        assert_eq!(decode_text(&bytes, None, &mut String::new()), text, "{}", encoding.name());
        assert_eq!(decode(&bytes, None, &mut String::new()), text, "{}", encoding.name());
        check_text_of(&bytes, Some("klingon"), text);
        check_text_of(&bytes, Some(encoding.name()), text);
    }
}

#[test]
fn utf_16_needs_no_byte_order_mark() {
    for text in [
        RUSSIAN,
        CHINESE,
        JAPANESE,
        KOREAN,
        POLISH,
        GREEK,
        HEBREW,
        ARABIC,
        // Thai needs an ASCII character: without one, its UTF-16 is valid UTF-8 without NUL.
        &format!("{THAI}\n"),
        ENGLISH,
        "a b",
        "<p>猫 \u{1f408}\n",
    ] {
        for bytes in [utf_16(text, u16::to_le_bytes), utf_16(text, u16::to_be_bytes)] {
            check_text_of(&bytes, None, text);
            check(&bytes, None, text);
        }
    }
    let cut = utf_16(RUSSIAN, u16::to_le_bytes);
    check_text_of(&cut[..cut.len() - 1], None, &RUSSIAN.replace('.', "\u{fffd}"));
    let long = ENGLISH.repeat(1_000) + RUSSIAN;
    check_text_of(&utf_16(&long, u16::to_be_bytes), None, &long);
}

#[test]
fn text_with_a_stray_control_character_is_not_read_as_utf_16() {
    for text in [
        ENGLISH.replace('.', "\0") + &ENGLISH.repeat(9),
        ENGLISH.repeat(10) + "\x1b",
        ENGLISH.to_owned() + "\x1b[31m" + &ENGLISH.repeat(9),
    ] {
        check_text_of(text.as_bytes(), None, &text);
        check(text.as_bytes(), None, &text);
    }
    // Bytes that are not UTF-16 either are read as UTF-8.
    for bytes in
        [&b"\0"[..], b"a\0b", b"\0a\0", b"\0\0\0\0", b"\x01\x02\x03\x04\x05\x06\x07", b"\x1b\x1b\x1b$"]
    {
        check_text_of(bytes, None, std::str::from_utf8(bytes).unwrap());
    }
}

/// Joins the words of UTF-8 and Latin-1 sentences, and of a coloured log, by control characters.
#[test]
fn text_with_many_control_characters_is_not_read_as_utf_16() {
    let latin = encoded("Déjà vu: le café est fermé jusqu'à neuf heures ce matin. ", WINDOWS_1252);
    let log = "\x1b[32mINFO\x1b[0m ready\n\x1b[31mERROR\x1b[0m no such file\n";
    for text in [ENGLISH.as_bytes(), POLISH.as_bytes(), RUSSIAN.as_bytes(), log.as_bytes(), &latin] {
        for (separator, every) in [("\x01", 1), ("\x1f", 2), ("\x1f", 5), ("\x02\x03", 3), ("\x1b[0m", 1)] {
            for ends in ["", " ", "\0", "\0\n"] {
                let mut bytes = Vec::new();
                for (number, word) in text.repeat(20).split(|byte| *byte == b' ').enumerate() {
                    bytes.extend(word);
                    bytes.extend(if number % every == 0 { separator } else { " " }.as_bytes());
                }
                bytes.extend(ends.as_bytes());
                let mut buffer = String::new();
                let read = decode_text(&bytes, None, &mut buffer);
                let what = format!("{:?} at every {every}: {read:?}", String::from_utf8_lossy(text));
                let controls = |text: &str| text.matches(separator).count();
                assert_eq!(
                    controls(read),
                    controls(&String::from_utf8_lossy(&bytes)),
                    "{separator:?} in {what}"
                );
                assert!(every > 2 || check_text(read).is_err(), "{separator:?} in {what}");
            }
        }
    }
}

#[test]
fn meta_tags_in_plain_text_are_ignored() {
    let text = "Write <meta charset=utf-8> into the head. ".to_owned() + RUSSIAN;
    check_text_of(&encoded(&text, encoding_rs::WINDOWS_1251), None, &text);
    check_text_of(b"\xef\xbb\xbf<meta charset=latin1>\xc3\xa9", None, "<meta charset=latin1>é");
}

#[test]
fn a_label_that_browsers_do_not_decode_is_ignored() {
    for label in ["iso-2022-kr", "hz-gb-2312", "iso-2022-cn", "iso-2022-cn-ext", "replacement"] {
        check("Книга".as_bytes(), Some(label), "Книга");
        let html = format!("<meta charset={label}>Книга");
        check(html.as_bytes(), None, &html);
        assert_ne!(decode(b"~{<:Ky~}", Some(label), &mut String::new()), "\u{fffd}");
    }
}

#[test]
fn known_spellings_of_a_label_count_and_unknown_ones_are_ignored() {
    for label in ["utf8", "UTF8", "utf-8", " UTF-8 ", "unicode-1-1-utf-8", "x-unicode20utf8"] {
        check("é".as_bytes(), Some(label), "é");
        check_text_of(b"\xe9", Some(label), "\u{fffd}");
    }
    for label in ["", "none", "binary", "utf_8", "utf-8-sig", "en", "windows1251", "\u{442}"] {
        check_text_of("é".as_bytes(), Some(label), "é");
        check_text_of(&encoded(RUSSIAN, encoding_rs::WINDOWS_1251), Some(label), RUSSIAN);
    }
}

#[test]
fn the_guess_examines_letters_behind_much_ascii() {
    let text = "{a: 1}\n".repeat(20_000) + RUSSIAN;
    check_text_of(&encoded(&text, encoding_rs::WINDOWS_1251), None, &text);
    check(&encoded(&text, encoding_rs::WINDOWS_1251), None, &text);
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, declared in proptest::option::of("utf-8|utf-16|gbk|iso-2022-jp|x")) {
        let _ = decode(&bytes, declared.as_deref(), &mut String::new());
        let _ = decode_text(&bytes, declared.as_deref(), &mut String::new());
    }

    #[test]
    fn valid_utf_8_text_stays_as_it_is(text in "[a-zé猫\u{400}-\u{4ff} \n]{0,200}") {
        let mut buffer = String::new();
        proptest::prop_assert_eq!(decode_text(text.as_bytes(), None, &mut buffer), &*text);
    }

    #[test]
    fn long_random_bytes_are_not_text(seed: u64) {
        let mut state = seed | 1;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        }).take(400).collect();
        proptest::prop_assert!(check_text(decode_text(&bytes, None, &mut String::new())).is_err());
    }
}

#[test]
fn a_content_type_names_a_charset() {
    for (content_type, expected) in [
        ("text/html; charset=utf-8", Some("utf-8")),
        ("text/html;Charset = \"Shift_JIS\"", Some("Shift_JIS")),
        ("text/html; a=b; charset='latin1'; charset=utf-8", Some("latin1")),
        ("text/html; charset=utf-8, text/html", Some("utf-8")),
        ("text/html; charset=", None),
        ("text/html; charset", None),
        ("charset=utf-8", None),
        ("", None),
    ] {
        assert_eq!(label(content_type), expected, "{content_type}");
    }
    assert_eq!(label(&format!("text/html; charset={}", "x".repeat(41))), None);
}
