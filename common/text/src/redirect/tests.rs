use doppel_model::{PageUrl, RawContent};

use crate::{Extraction, Extractor};

const URL: &str = "http://a.org/d/page.html";

fn read(raw: RawContent<'_>, url: &str) -> Option<String> {
    match Extractor::default().extract(&PageUrl::parse(url).unwrap(), raw) {
        Extraction::Redirect(target) => Some(target.as_str().to_owned()),
        Extraction::Page(_) => None,
    }
}

fn redirect(html: &str) -> Option<String> {
    read(RawContent::Html { bytes: html.as_bytes(), charset: None }, URL)
}

fn meta(content: &str) -> String {
    format!("<META content='{content}' http-equiv=Refresh>")
}

fn words(count: usize) -> String {
    (0..count).map(|number| format!("word{number} ")).collect()
}

#[track_caller]
fn leads_to(html: &str, target: &str) {
    assert_eq!(redirect(html).as_deref(), Some(target), "{html}");
}

#[track_caller]
fn is_content(html: &str) {
    assert_eq!(redirect(html), None, "{html}");
}

#[test]
fn a_refresh_leads_where_a_browser_goes() {
    let stub = |content: &str| format!("<title>Moved</title>{}<p>Go on", meta(content));
    leads_to(&stub("0;../x"), "http://a.org/x");
    leads_to(&stub("1; url=\"x\""), "http://a.org/d/x");
    leads_to(&stub("0;//b.org#f"), "http://b.org/");
    leads_to(&stub("0;URL=x&amp;amp;y"), "http://a.org/d/x&amp;y");
    for nowhere in [
        "3",
        "0;url=",
        "0;page.html",
        "0;#top",
        "0;http://a.org:80/d/page.html",
        "0;javascript:go()",
        "0;data:text/html,x",
        "0;mailto:a@b.org",
        "-1;x",
        "0;http://[",
    ] {
        is_content(&stub(nowhere));
    }
    // The first valid refresh counts.
    leads_to(&format!("{}{}", meta("0;x"), meta("0;y")), "http://a.org/d/x");
    leads_to(
        &format!("{}{}{}{}", meta("x"), meta("0;javascript:a"), meta("0;http://["), meta("0;y")),
        "http://a.org/d/y",
    );
    is_content(&format!("{}{}", meta("30;x"), meta("0;y")));
    is_content(&format!("{}{}", meta("0"), meta("0;y")));
    is_content(&format!("{}{}", meta("0;mailto:a@b.org"), meta("0;y")));
    is_content("<meta http-equiv=refresh content>");
    is_content("<meta name=refresh content='0;x'>");
}

#[test]
fn the_base_before_a_refresh_counts() {
    let refresh = meta("0;x");
    leads_to(&format!("<base href='/b/'>{refresh}<base href='/c/'>"), "http://a.org/b/x");
    leads_to(&format!("{refresh}<base href='/b/'>"), "http://a.org/d/x");
    leads_to(&format!("<base href='::'><base href='/b/'>{refresh}"), "http://a.org/d/x");
    leads_to(&format!("<base target=a><base href='/b/'>{refresh}"), "http://a.org/b/x");
    leads_to(
        &format!("<noscript><base href='/b/'></noscript><template><base href='/b/'></template>{refresh}"),
        "http://a.org/d/x",
    );
    leads_to("<base href='/b/'><script>location = 'x'</script>", "http://a.org/b/x");
    is_content(&format!("<base href='/b/'>{}", meta("0")));
}

#[test]
fn signs_inside_fallback_content_are_ignored() {
    let refresh = meta("0;x");
    let text = words(40);
    for element in [
        "noscript", "template", "iframe", "noembed", "noframes", "textarea", "title", "style", "script",
        "xmp",
    ] {
        is_content(&format!("<{element}>{refresh}</{element}>{text}"));
        is_content(&format!("<{element}>{refresh}</{element}>"));
        is_content(&format!("<{element}><script>location = 'x'</script></{element}>"));
    }
    is_content(&format!("<!--{refresh}-->"));
    is_content(&format!("<!--[if IE]>{refresh}<![endif]-->"));
    is_content(&format!("<![CDATA[{refresh}]]>x"));
    is_content(&format!("<frameset>{refresh}<frame src=y><noframes>{refresh}</noframes></frameset>"));
    is_content(&format!("<frameset><frame src=y></frameset>{refresh}"));
    is_content("<frameset><script>location = 'x'</script><frame src=y></frameset>");
    // A refresh or script before the frames is in the head, and a browser follows it.
    leads_to(&format!("{refresh}<frameset><frame src=y></frameset>"), "http://a.org/d/x");
    leads_to(
        "<head><script>location = 'x'</script></head><frameset><frame src=y></frameset>",
        "http://a.org/d/x",
    );
    for element in ["svg", "math"] {
        is_content(&format!("<{element}><script>location = 'x'</script></{element}>"));
    }
    leads_to(&format!("<svg>{refresh}"), "http://a.org/d/x");
    leads_to(&format!("<noscript><!-- </noscript>{refresh}<!-- -->"), "http://a.org/d/x");
    leads_to(&format!("<iframe><style></iframe>{refresh}"), "http://a.org/d/x");
    // Only the refresh outside the fallback content counts.
    leads_to(&format!("<noscript>{}</noscript>{refresh}", meta("0;y")), "http://a.org/d/x");
}

#[test]
fn a_page_that_shows_twenty_words_is_content() {
    let refresh = meta("0;x");
    let with = |body: &str| format!("<title>{}</title>{refresh}{body}", words(30));
    leads_to(&with(&words(19)), "http://a.org/d/x");
    is_content(&with(&words(20)));
    is_content(&with(&format!("{}{}", words(10), words(10).replace("wor", "<p>wor"))));
    // The size of the page does not matter.
    leads_to(&with(&" ".repeat(100_000)), "http://a.org/d/x");
    leads_to(
        &with(&format!("<script>{}</script><style>{}</style>", words(9_000), words(9_000))),
        "http://a.org/d/x",
    );
    let many = words(50);
    for hidden in [
        format!("<noscript>{many}</noscript>"),
        format!("<template><p>{many}</template>"),
        format!("<div hidden>{many}<div>{many}</div></div>"),
        format!("<p hidden>{many}<p>shown"),
        format!("<ul><li hidden>{many}<li>shown</ul>"),
        format!("<table><tr hidden><td>{many}<tr><td>shown</table>"),
        format!("<div style='color: red; DISPLAY : none !important'>{many}</div>"),
        format!("<span style='visibility:hidden'>{many}</span>"),
        format!("<div style='display:block;display:none'>{many}</div>"),
        format!("<div style='display:none!important;display:block'>{many}</div>"),
        format!("<div style='/*a*/display:/*b*/none'>{many}</div>"),
        format!("<iframe>{many}</iframe><noembed>{many}</noembed><noframes>{many}</noframes>"),
        format!("<svg><title>{many}</title><style>{many}</style></svg>"),
    ] {
        leads_to(&with(&hidden), "http://a.org/d/x");
    }
    for shown in [
        format!("<p aria-hidden=true>{many}"),
        format!("<p hidden=until-found>{many}"),
        format!("<div style='display:none;display:block'>{many}</div>"),
        format!("<div style='display:none;display:flex'>{many}</div>"),
        format!("<div style='visibility:hidden;visibility:visible'>{many}</div>"),
        format!("<div style='/*;display:none;*/color:red'>{many}</div>"),
        format!("<p hidden>a<p>{many}"),
        format!("<p hidden>a<div>{many}"),
        format!("<input hidden>{many}"),
        format!("<div hidden><div></div></div>{many}"),
        format!("<div hidden><p></div>{many}"),
        format!("<textarea>{many}</textarea>"),
        format!("<svg><text>{many}</text></svg>"),
        format!("<xmp>{many}</xmp>"),
        format!("<ul><li hidden>a<li>{many}</ul>"),
        "日本語の文章はとても長いのでリダイレクトではありません".to_owned(),
    ] {
        is_content(&with(&shown));
    }
    // The bigrams of scripts without spaces count as words.
    leads_to(&with("日本語の文章はとても長いの"), "http://a.org/d/x");
}

#[test]
fn a_delayed_refresh_is_a_redirect_only_if_the_page_shows_its_target() {
    let page =
        |delay: u32, body: &str| format!("{}<p>{body}", meta(&format!("{delay};url=http://b.org/New/")));
    for body in [
        "<a href='http://b.org/New/'>on</a>",
        "<a href='//b.org/New/#top'>on</a>",
        "<map><area href='http://b.org/New/'></map>",
        "Go to http://b.org/New/.",
        "Go to (b.org/new)",
        "Go to HTTPS://B.ORG/New",
        "b.org/N<b></b>ew/ b.org/New/",
    ] {
        for delay in [2, 5, 10] {
            leads_to(&page(delay, body), "http://b.org/New/");
        }
        is_content(&page(11, body));
        is_content(&page(5, &format!("{body} {}", words(20))));
    }
    for body in [
        "on",
        "<a href='http://b.org/'>on</a>",
        "<a name='http://b.org/New/'>on</a>",
        "<a hidden href='http://b.org/New/'>on</a>",
        "<noscript><a href='http://b.org/New/'>on</a> http://b.org/New/</noscript>",
        "<!-- http://b.org/New/ -->",
        "b.org/New/er",
    ] {
        is_content(&page(5, body));
        leads_to(&page(1, body), "http://b.org/New/");
    }
    leads_to(&format!("{}<p>Please see other.html!", meta("5;other.html")), "http://a.org/d/other.html");
}

#[test]
fn a_script_that_sets_the_location_is_a_redirect() {
    let script = "<script>location = 'x'</script>";
    let target = "http://a.org/d/x";
    leads_to(&format!("<title>Moved</title>{script}<noscript>{}</noscript>", words(40)), target);
    for body in ["text", "<iframe src=y></iframe>", "<form></form>", "&#x65E5;"] {
        leads_to(&format!("{script}{body}"), target);
    }
    is_content(&format!("{script}{}", words(20)));
    for kind in [
        "",
        "type=''",
        "type=text/javascript",
        "type='Application/JavaScript '",
        "language=JavaScript1.2",
        "async",
        "defer",
    ] {
        leads_to(&format!("<script {kind}>location = 'x'</script>"), target);
    }
    for kind in [
        "src=y",
        "type=text/template",
        "type=application/ld+json",
        "type=module",
        "type=text/vbscript",
        "language=vbscript",
        "nomodule",
        "for=window event=onload",
    ] {
        is_content(&format!("<script {kind}>location = 'x'</script>"));
    }
    is_content("<script>location = 'x'");
    is_content("<script>location = /* y */ 'x'</script>");
    is_content("<script>location = '#top'</script>");
    is_content("<script>location = 'mailto:a@b.org'</script>");
    is_content("<body onload=\"location = 'x'\">");
    is_content("<a href=\"javascript:location = 'x'\">y</a>");
    // Each script is read on its own, and the last script that sets the location counts.
    leads_to("<script>if (</script><script>location = 'y'</script><script>location = 'x'</script>", target);
    leads_to(&format!("<script>location = 'y'</script>{}", meta("0;x")), target);
    leads_to(&format!("{script}{}", meta("0")), target);
    leads_to(&format!("{script}{}", meta("30;y")), target);
    let html = "<script>location = 'x' + location.search + location.hash</script>";
    let raw = RawContent::Html { bytes: html.as_bytes(), charset: None };
    assert_eq!(read(raw, "http://a.org/d/?q=1").as_deref(), Some("http://a.org/d/x?q=1"));
    assert_eq!(read(raw, "http://a.org/d/").as_deref(), Some(target));
}

#[test]
fn redirects_in_xhtml_follow_the_same_rule() {
    let page = |head: &str, body: &str| {
        format!(
            "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head>{head}</head><body>{body}</body></html>"
        )
    };
    let refresh = "<meta http-equiv='refresh' content='0; url=x'/>";
    let target = "http://a.org/d/x";
    leads_to(&page(&format!("<title/><script src='y'/>{refresh}"), &words(19)), target);
    is_content(&page(&format!("<title/><script src='y'/>{refresh}"), &words(20)));
    is_content(&page(&format!("<noscript>{refresh}</noscript>"), ""));
    is_content(&page(&format!("<template>{refresh}</template>"), ""));
    is_content(&page(&format!("<![CDATA[{refresh}]]>"), ""));
    is_content(&page("<meta xmlns='http://b.org/' http-equiv='refresh' content='0; url=x'/>", ""));
    leads_to(&page(refresh, &format!("<p hidden=''>{}</p>", words(40))), target);
    leads_to(&page(refresh, &format!("<p hidden=''/>{}", words(9))), target);
    is_content(&page(refresh, &format!("<p hidden=''/>{}", words(40))));
    leads_to(&page("<script><![CDATA[if (1 < 2) {} location = 'x']]></script>", ""), target);
    let svg = "<svg xmlns='http://www.w3.org/2000/svg'><script>location = 'x'</script></svg>";
    is_content(&page("", svg));
    leads_to(&page("<script>//<![CDATA[\nlocation = 'x'\n//]]></script>", ""), target);
    // A page that is not well-formed XML follows the same rule.
    leads_to(&page(&format!("<script src='y'/>{refresh}<br>"), &words(19)), target);
    is_content(&page(&format!("<script src='y'/>{refresh}<br>"), &words(20)));
}

#[test]
fn reading_takes_time_linear_in_the_size_of_the_page() {
    let deep = format!("{}{}", meta("0;x"), "<div hidden>".repeat(200_000));
    leads_to(&deep, "http://a.org/d/x");
    leads_to(&format!("{deep}{}", "</p>".repeat(200_000)), "http://a.org/d/x");
    leads_to(&format!("{}{}", meta("0;x"), ", ".repeat(1_000_000)), "http://a.org/d/x");
}
