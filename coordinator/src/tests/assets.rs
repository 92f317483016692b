//! Tests of the operator's page and its files.

use std::collections::BTreeSet;

use super::*;

/// What a page names between `before` and `after`.
fn named<'t>(text: &'t str, before: &str, after: char) -> BTreeSet<&'t str> {
    text.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

#[tokio::test]
async fn the_page_and_all_files_that_it_names_exist() {
    let service = TestService::new();
    let page = service.get("/").await;
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let text = page.text();
    assert!(text.contains("jaccard:tau=0.8") && !text.contains("{version}") && !text.contains("{policy}"));
    let mut left: Vec<String> = named(text, "\"assets/", '"').into_iter().map(str::to_owned).collect();
    let mut read = BTreeSet::new();
    // Below the path that a proxy gives it, too.
    assert!(!text.contains("\"/"), "a link starts at the root");
    while let Some(name) = left.pop() {
        if !read.insert(name.clone()) {
            continue;
        }
        let file = service.get(&format!("/assets/{name}")).await;
        assert_eq!(file.status, 200, "{name}");
        let kind = file.headers["content-type"].to_str().unwrap();
        let wanted = match name.rsplit_once('.').unwrap().1 {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            other => panic!("{other}"),
        };
        assert_eq!(kind, wanted, "{name}");
        left.extend(named(file.text(), "from \"./", '"').into_iter().map(str::to_owned));
    }
    for name in ["main.js", "load.js", "uplot.js", "uplot.css", "style.css"] {
        assert!(read.contains(name), "{name} is not used: {read:?}");
    }
    let licence = service.get("/assets/uplot-licence.txt").await;
    assert!(licence.text().contains("MIT License") && licence.text().contains("1.6.32"));
    service.get("/assets/nothing.js").await.problem(404);
    service.get("/assets/..%2findex.html").await.problem(404);
    service.get("/assets/%ff").await.problem(404);
}

#[tokio::test]
async fn the_page_has_no_inline_code() {
    let service = TestService::new();
    for path in ["/", "/assets/main.js"] {
        let reply = service.get(path).await;
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff");
    }
    let page = service.get("/").await;
    let (text, lower) = (page.text(), page.text().to_lowercase());
    assert!(!text.contains("<style") && !text.contains(" style=") && !lower.contains("onclick"));
    assert!(named(text, "<script", '>').iter().all(|script| script.contains("src=")), "{text}");
}

#[tokio::test]
async fn a_cached_file_is_not_sent_again() {
    let service = TestService::new();
    for path in ["/", "/assets/style.css"] {
        let first = service.get(path).await;
        assert_eq!(first.headers["cache-control"], "no-cache");
        let tag = first.headers["etag"].to_str().unwrap().to_owned();
        let ask = async |known: &str| {
            service.send(Request::get(path).header("if-none-match", known).body(Body::empty()).unwrap()).await
        };
        for known in [tag.clone(), format!("\"other\", W/{tag}")] {
            let again = ask(&known).await;
            assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{known}");
            assert_eq!(again.headers["etag"], tag.as_str());
        }
        assert_eq!(ask("\"other\"").await.status, 200);
    }
}
