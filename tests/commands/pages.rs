//! Commands about single pages: `probe`, `delete` and `purge`.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::pages::{html, text};
use crate::harness::{OwnServer, doppel, lines_of};
use crate::{A, answer, ask, code, errors};

const B: &str = "http://b.example/";
/// A URL with a character that makes terminals show its end as `lmth.exe`, from right to left.
const OVERRIDE: &str = "http://c.example/\u{202e}exe.html";

fn with_pages(pages: &[Value]) -> OwnServer {
    let server = OwnServer::start(&[]);
    server.push(pages);
    server.flush();
    server
}

fn page(url: &str, seed: u64) -> Value {
    json!({"url": url, "html": html("page", &text(seed, 100)), "fetched_at": "2024-05-01T00:00:00Z"})
}

#[test]
fn pages_are_purged_one_by_one_from_a_list_and_by_host() {
    let server = with_pages(&[page(A, 1), page(B, 2), page("http://b.example/2", 3), page(OVERRIDE, 4)]);
    let output = ask(&server, &["purge", A, "nonsense", "http://nowhere.example/"]);
    assert_eq!(code(&output), 5);
    assert!(errors(&output).starts_with("doppel: nonsense is no page URL: "), "{}", errors(&output));
    let human = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = human.lines().collect();
    assert_eq!(lines[0], format!("purged   {A}"));
    assert!(lines[1].starts_with("error    nonsense  not an absolute URL"), "{human}");
    assert_eq!(lines[2], "unknown  http://nowhere.example/");
    assert_eq!(server.status(A)["status"], "unknown");

    let mut command = doppel();
    command.env("DOPPEL_SERVER", &server.url).args(["purge", "--json", "--file", "-"]);
    let mut purge = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    write!(purge.stdin.take().unwrap(), "{OVERRIDE}\r\n\n{A}\n").unwrap();
    let output = purge.wait_with_output().unwrap();
    assert!(output.status.success());
    let lines = lines_of(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(lines, [json!({"url": OVERRIDE, "purged": 1}), json!({"url": A, "purged": 0})]);

    assert_eq!(answer(&server, &["purge", "--host", "b.example"]), "2 pages of b.example purged\n");
    let json = lines_of(&answer(&server, &["purge", "--json", "--host", "b.example"]));
    assert_eq!(json, [json!({"host": "b.example", "purged": 0})]);
    let refused = ask(&server, &["purge", "--host", "B.example"]);
    assert_eq!(code(&refused), 4);
    for wrong in [&["purge"][..], &["purge", A, "--host", "b.example"], &["purge", A, "--file", "x"]] {
        assert_eq!(code(&ask(&server, wrong)), 2, "{wrong:?}");
    }
    let absent = ask(&server, &["purge", "--file", "no/such/file"]);
    assert_eq!(code(&absent), 1);
    assert!(errors(&absent).contains("cannot read no/such/file"));
    assert_eq!(server.export(), "");
}

#[test]
fn pages_are_deleted_with_the_date_given() {
    let server = with_pages(&[page(A, 1), page(B, 2)]);
    let old = ["delete", "--fetched-at", "2024-04-01T00:00:00Z", A];
    assert_eq!(answer(&server, &old), format!("stale  {A}\n"));
    let home = tempfile::tempdir().unwrap();
    let list = home.path().join("gone.txt");
    fs::write(&list, format!("{A}\nnonsense\n{B}\n")).unwrap();
    let output = ask(&server, &["delete", "--json", "--file", list.to_str().unwrap()]);
    assert_eq!(code(&output), 5, "{}", errors(&output));
    let lines = lines_of(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(lines[0], json!({"url": A, "outcome": "confirmed"}));
    assert_eq!(lines[1]["url"], json!("nonsense"));
    assert!(lines[1]["error"].is_string());
    assert_eq!(lines[2], json!({"url": B, "outcome": "confirmed"}));
    assert_eq!(server.status(B)["status"], "dead");
    let wrong = ask(&server, &["delete", "--fetched-at", "yesterday", A]);
    assert_eq!(code(&wrong), 4);
    assert!(errors(&wrong).contains("fetched_at: "), "{}", errors(&wrong));
}

#[test]
fn a_probe_says_what_a_page_would_be_and_stores_nothing() {
    let server = with_pages(&[page(A, 1)]);
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, content: String| {
        let path = home.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (copy, other) =
        (file("copy.html", html("page", &text(1, 100))), file("other.txt", text(9, 100).join(" ")));
    let human = answer(&server, &["probe", &copy]);
    assert!(human.starts_with("duplicate  ") && human.contains(&format!("copy.html  of {A}")), "{human}");
    // HTML has no empty script element, so as HTML the script would swallow the text.
    let xhtml = format!(
        "<html xmlns='http://www.w3.org/1999/xhtml'><script src='a.js'/><p>{}</p></html>",
        text(1, 100).join(" ")
    );
    let human = answer(&server, &["probe", &file("copy.xhtml", xhtml)]);
    assert!(human.starts_with("duplicate  "), "{human}");
    let own = lines_of(&answer(&server, &["probe", "--json", "--url", A, &copy]));
    assert_ne!(
        own[0]["status"], "duplicate",
        "the page itself must not be a partner of the probe: {}",
        own[0]
    );
    let human = answer(&server, &["probe", "--url", B, &other]);
    assert!(human.starts_with(&format!("unique  {B}")), "{human}");
    assert_eq!(server.status(B)["status"], "unknown");

    let crawl = file(
        "crawl.jsonl",
        format!("{}\n{}\n", page(B, 1), json!({"url": "http://r.example/", "redirect_to": A})),
    );
    let json = lines_of(&answer(&server, &["probe", "--json", &crawl]));
    assert_eq!(json[0]["url"], json!(B));
    assert_eq!(json[0]["duplicate_of"], json!(A));
    let nothing = ask(&server, &["probe", "--url", "http://r.example/", &crawl]);
    assert_eq!(code(&nothing), 5);
    assert!(
        errors(&nothing).contains("redirects to http://a.example/: there is nothing"),
        "{}",
        errors(&nothing)
    );
    assert_eq!(code(&ask(&server, &["probe", "-"])), 2);
    assert_eq!(code(&ask(&server, &["probe", "no/such/file"])), 5);
}

/// Text for people shows such a URL with escapes. JSON output for programs keeps the URL unchanged.
#[test]
fn a_url_cannot_change_the_direction_of_text_on_a_terminal() {
    let server = with_pages(&[page(OVERRIDE, 1), page("http://d.example/", 1)]);
    let escaped = "http://c.example/\\u{202e}exe.html";
    let group = server.status(OVERRIDE)["group"].as_str().unwrap().to_owned();
    let explain = ["explain", OVERRIDE, "http://d.example/"];
    for arguments in
        [&["status", OVERRIDE][..], &["group", &group], &["changes"], &["repair", &group], &explain]
    {
        let Output { human, errors } = shown(&server, arguments);
        assert!(
            !human.contains('\u{202e}') && !errors.contains('\u{202e}'),
            "{arguments:?}: {human:?} {errors:?}"
        );
        if arguments[0] != "explain" {
            assert!(human.contains(escaped), "{arguments:?}: {human}");
        }
    }
    let Output { errors, .. } = shown(&server, &["status", "no\u{202e}url\u{1b}[2J"]);
    assert!(errors.contains("no\\u{202e}url\\u{1b}[2J is no page URL"), "{errors:?}");
    let json = lines_of(&answer(&server, &["status", "--json", OVERRIDE]));
    assert_eq!(json[0]["url"], OVERRIDE);
}

struct Output {
    human: String,
    errors: String,
}

fn shown(server: &OwnServer, arguments: &[&str]) -> Output {
    let output = ask(server, arguments);
    Output { human: String::from_utf8(output.stdout.clone()).unwrap(), errors: errors(&output) }
}
