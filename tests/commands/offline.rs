//! Commands that need no collection: they check a file of winner rules and the readiness of a server, and
//! print completions and manual pages.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::json;

use crate::harness::ports::free_port;
use crate::harness::{OwnServer, lines_of, run, run_ok};
use crate::{answer, code, errors};

#[test]
fn a_file_of_winner_rules_is_checked_and_tried() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = home.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let rules =
        file("rules.toml", "rules = ['static_url', 'first_seen']\n[markets]\ngerman = ['de', '.at']\n");
    let (long, short) = ("http://a.example/longer", "http://a.example/?q");
    assert_eq!(
        run_ok(["winners", &rules, short, long]),
        format!(
            "rules: static_url, first_seen, url\nmarket german: de, at\nwinner  {long}\n        {short}      behind the winner (without a query string)\n"
        )
    );
    let pages = file(
        "pages.jsonl",
        "{\"url\": \"http://a.example/\", \"text\": \"a\", \"fetched_at\": \"2024-05-02T00:00:00Z\"}\n\
         {\"url\": \"http://b.de/\", \"text\": \"a\", \"fetched_at\": \"2024-05-03T00:00:00Z\"}\n\
         {\"url\": \"http://c.example/\", \"dead\": true, \"fetched_at\": \"2024-05-01T00:00:00Z\"}\n",
    );
    let json = lines_of(&run_ok(["winners", "--json", "--market", "german", &rules, &pages]));
    assert_eq!(
        json,
        [json!({
            "rules": ["static_url", "first_seen", "url"],
            "rules_are_named": true,
            "markets": {"german": ["de", "at"]},
            "pages": [{"url": "http://b.de/", "rule": null}, {"url": "http://a.example/", "rule": "market"}],
        })]
    );
    let usual = run_ok(["winners", &file("empty.toml", ""), &pages]);
    assert!(
        usual.starts_with("rules (the file names none: those of a new directory): popularity, "),
        "{usual}"
    );
    assert!(usual.contains("winner  http://a.example/\n") && !usual.contains("c.example"), "{usual}");

    let wrong = run(["winners", &file("wrong.toml", "\nrules = ['beauty']")]);
    assert_eq!(code(&wrong), 1);
    assert!(
        errors(&wrong).contains("wrong.toml, line 2: \"beauty\" is no rule; the rules are"),
        "{}",
        errors(&wrong)
    );
    let neither = run(["winners", &rules, "no/such/page"]);
    assert_eq!(code(&neither), 2);
    assert!(
        errors(&neither).contains("no/such/page is neither a file nor a page URL"),
        "{}",
        errors(&neither)
    );
    let unknown = run(["winners", &rules, &pages, "--market", "d e"]);
    assert_eq!(code(&unknown), 2, "{}", errors(&unknown));
    // A market that the file does not define can be a suffix of hosts. The command warns if no page has that
    // suffix.
    for (market, says) in
        [("german", ""), ("de", ""), ("germany", " has no market germany, so it is taken for a suffix")]
    {
        let asked = run(["winners", &rules, &pages, "--market", market]);
        assert_eq!(code(&asked), 0, "{}", errors(&asked));
        let said = errors(&asked);
        assert!(said.contains(says) && said.is_empty() == says.is_empty(), "{market}: {said}");
    }
}

#[test]
fn readiness_is_an_exit_code() {
    let server = OwnServer::start(&[]);
    assert_eq!(answer(&server, &["ready"]), "ready\n");
    let nobody = run(["ready", "--server", &format!("http://127.0.0.1:{}", free_port())]);
    assert_eq!(code(&nobody), 3, "{}", errors(&nobody));
}

#[test]
fn shell_completions_cover_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run_ok(["completions", shell]);
        for word in ["dev-cluster", "purge", "allow-host"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("doppel");
    fs::write(&path, run_ok(["completions", "bash"])).unwrap();
    let asked = "source \"$0\"; COMP_WORDS=(doppel purg); COMP_CWORD=1; _doppel doppel purg doppel; echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", asked]).arg(&path).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "purge\n", "{}", errors(&output));
}

#[test]
fn every_command_has_a_manual_page() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("man").join("man1");
    run_ok(["man", dir.to_str().unwrap()]);
    let pages: BTreeSet<String> =
        fs::read_dir(&dir).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    let help = run_ok(["--help"]);
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let named = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let commands: Vec<&str> = named.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"purge"), "{commands:?}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        assert!(pages.contains(&format!("doppel-{command}.1")), "{command} is not among {pages:?}");
    }
    let purge = fs::read_to_string(dir.join("doppel-purge.1")).unwrap();
    assert!(purge.starts_with(".ie") && purge.contains("Forget pages altogether"), "{purge}");
    let main = fs::read_to_string(dir.join("doppel.1")).unwrap();
    assert!(main.contains("Exit codes"), "{main}");
}
