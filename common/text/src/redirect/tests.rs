use super::*;
use crate::{Extracted, Extractor};

const URL: &str = "http://a.org/d/page.html";

fn redirect(html: &str) -> Option<String> {
    match Extractor::default().html(&PageUrl::parse(URL).unwrap(), html.as_bytes(), None) {
        Extracted::Redirect(target) => Some(target.as_str().to_owned()),
        Extracted::Page(_) => None,
    }
}

#[test]
fn meta_refresh() {
    let meta =
        |content: &str| format!("<title>Moved</title><META content='{content}' http-equiv=Refresh><p>Go on");
    let to = |html: String| redirect(&html).unwrap_or_default();
    assert_eq!(to(meta("0;../x")), "http://a.org/x");
    assert_eq!(to(meta("0;//b.org#f")), "http://b.org/");
    assert_eq!(to(format!("<noscript>{}</noscript>", meta("0;x"))), "http://a.org/d/x");
    assert_eq!(to(format!("{}<base href='/b/'>", meta("0;x"))), "http://a.org/b/x");
    assert_eq!(to(format!("<base href='::'>{}", meta("0;x"))), "http://a.org/d/x");
    assert_eq!(to(format!("{}{}", meta("0;x"), meta("0;y"))), "http://a.org/d/x");
    for page_itself in ["3", "0;url=", "0;page.html", "0;#top", "0;http://a.org:80/d/page.html"] {
        assert_eq!(redirect(&meta(page_itself)), None, "{page_itself}");
    }
    assert_eq!(redirect(&format!("<base href='/b/'>{}", meta("0"))), None);
    assert_eq!(redirect(&meta("0;javascript:go()")), None);
    assert_eq!(redirect(&format!("<template>{}</template>", meta("0;x"))), None);
    assert_eq!(redirect(&format!("<!--{}-->", meta("0;x"))), None);
    // A browser without frames follows the redirect in the rest of such a page.
    for frames in ["<frameset><frame src=y><noframes>", "<noframes>", "<iframe src=y>", "<iframe><noframes>"]
    {
        assert_eq!(to(format!("{frames}{}", meta("0;x"))), "http://a.org/d/x", "{frames}");
        assert_eq!(redirect(&format!("<template>{frames}{}", meta("0;x"))), None, "{frames}");
        assert_eq!(redirect(&format!("{frames}<!--{}-->", meta("0;x"))), None, "{frames}");
    }
}

#[test]
fn large_pages_are_content() {
    let padded = |bytes: usize| format!("{:<bytes$}", "<meta http-equiv=refresh content=0;x>");
    assert!(redirect(&padded(HTML_BYTES - 1)).is_some());
    assert!(redirect(&padded(HTML_BYTES)).is_none());
}

#[test]
fn scripts_that_set_the_location() {
    for script in [
        "window.location = 'x'",
        "location.href=\"x\";",
        "var a = 1; document.location='x'",
        "self.location.replace( 'x' )",
        "top.location.assign(`x`)",
        "window.location.href = 'x' + location.search + location.hash",
        "if (location.hash) {} location = 'x'",
        "frames.location = 'y'; location = 'x'",
    ] {
        let html = format!("<title>Moved</title><script>{script}</script><noscript>Go to x</noscript>");
        assert_eq!(redirect(&html).as_deref(), Some("http://a.org/d/x"), "{script}");
    }
}

#[test]
fn scripts_that_do_not() {
    for script in [
        "",
        "location == 'x'",
        "mylocation = 'x'",
        "frames.location = 'x'",
        "location.hash = 'x'",
        "location = x",
        "location.replace(x)",
        "location = `${x}`",
        "location = 'x",
        "location = 'a\\'b'",
        "location = '#top'",
    ] {
        assert_eq!(redirect(&format!("<script>{script}</script>")), None, "{script}");
    }
    let script = "<script>location = 'x'</script>";
    for body in
        ["text", "<iframe src=y></iframe>", "<frame src=y>", "<noframes><p>text", "<form></form>", "&#x65E5;"]
    {
        assert_eq!(redirect(&format!("{script}{body}")), None, "{body}");
    }
}
