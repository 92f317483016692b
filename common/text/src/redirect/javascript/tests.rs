use super::*;

fn set_location(script: &str) -> Option<(String, bool)> {
    let found = location(script);
    assert!(found.is_none() || can_set_location(script.as_bytes()), "{script}");
    found.map(|location| (location.reference, location.with_query))
}

#[test]
fn top_level_statements_set_the_location() {
    for script in [
        "location = 'x'",
        "location='x';",
        "window.location = \"x\"",
        "location.href=\"x\";",
        "var a = 1; document.location='x'",
        "var a = 1\nlocation = 'x'",
        "self.location.replace( 'x' )",
        "top.location.assign(`x`)",
        "window.parent.location='x'",
        "globalThis.location = 'x'",
        "if (location.hash) {} location = 'x'",
        "if (a) b(); else c(); location = 'x'",
        "if (a) { location = 'y' } else { location = 'z' }\nlocation = 'x'",
        "frames.location = 'y'; location = 'x'",
        "location = 'y'; location = 'x'",
        "location = 'x'; if (a) location = 'y'",
        "function f() { location = 'y' } location = 'x'",
        "async function f() { location = 'y' } class A extends B {} location = 'x'",
        "try { a() } catch (e) { b() } finally { c() } location = 'x'",
        "for (;;) { break } do a(); while (b); location = 'x'",
        "/* location = 'y' */ location = 'x' // location = 'z'",
        "<!-- a\nlocation = 'x'\n//-->",
        "'use strict';\n(function () { location = 'y' })();\nlocation = 'x'\nga('send')",
        "var r = /['\"(]/, d = 4 / 2 / 1; location = 'x'",
        "var t = `a ${b} (`; location = 'x'",
        "location = 'x' + location.hash",
        "location.replace('\\u0078')",
        "{ a } location = 'x'",
        ";;location = 'x'\n\n",
    ] {
        assert_eq!(set_location(script), Some(("x".to_owned(), false)), "{script}");
    }
    let with_query = "window.location.href = 'x' + location.search + window.location.hash";
    assert_eq!(set_location(with_query), Some(("x".to_owned(), true)));
    assert_eq!(
        set_location(r#"location = "http:\/\/a.org\/\x41\'""#),
        Some(("http://a.org/A'".to_owned(), false))
    );
}

#[test]
fn other_scripts_set_no_certain_location() {
    for script in [
        "",
        "location == 'x'",
        "location === 'x'",
        "location += 'x'",
        "mylocation = 'x'",
        "a.location = 'x'",
        "frames.location = 'x'",
        "location.hash = 'x'",
        "location.pathname = 'x'",
        "location = x",
        "location.replace(x)",
        "location.replace('x', y)",
        "location = 'x' + y",
        "location = 'x' ? 'y' : 'z'",
        "location = 'x'\n+ y",
        "location = `${x}`",
        "location = 'x",
        "location = 'x\ny'",
        "location = 'x'; a(",
        "location = 'x'; }",
        "location = 'x'; throw a",
        "if (a) location = 'x'",
        "if (a)\nlocation = 'x'",
        "if (a) b();\nelse\nlocation = 'x'",
        "if (a) if (b) c(); else location = 'x'",
        "while (a) location = 'x'",
        "for (a of b) location = 'x'",
        "with (a) location = 'x'",
        "do location = 'x'; while (a)",
        "{ location = 'x' }",
        "if (a) { location = 'x' }",
        "try { location = 'x' } catch (e) {}",
        "switch (a) { default: location = 'x' }",
        "function f() { location = 'x' }",
        "var f = function () { location = 'x' }",
        "var f = () => { location = 'x' }",
        "var f = () => location = 'x'",
        "(function () { location = 'x' })()",
        "onload = function () { location = 'x' }",
        "document.addEventListener('a', function () { location = 'x' })",
        "setTimeout(\"location = 'x'\", 0)",
        "setTimeout(() => location = 'x', 0)",
        "a && (location = 'x')",
        "a = 1, location = 'x'",
        "a: location = 'x'",
        "var location = 'x'",
        "var window = a; window.location = 'x'",
        "var a = 1, location = 'x'",
        "function location() {} location = 'x'",
        "// location = 'x'",
        "/* location = 'x'",
        "'location = \"x\"'",
        "`location = 'x'`",
        "/location = 'x'/",
        "if (a) /'/.test(b); location = 'x'",
        "loc\\u0061tion = 'x'",
        "return; location = 'x'",
        "import a from 'b'; location = 'x'",
        "location = 'x' location",
        "<![CDATA[ location = 'x'; ]]>",
    ] {
        assert_eq!(set_location(script), None, "{script}");
    }
}

#[test]
fn deeply_nested_scripts_do_not_overflow_the_stack() {
    for piece in ["(", "{", "[", "if(a)", "else ", "do ", "`${", "function f(){", "a=>"] {
        assert_eq!(location(&format!("{}location='x'", piece.repeat(100_000))), None, "{piece}");
    }
}
