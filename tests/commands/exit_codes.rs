//! What an exit code and its message say about a failure.

use crate::harness::ports::free_port;
use crate::harness::{OwnServer, doppel, run, run_ok};
use crate::{A, ask, code, errors};

#[test]
fn exit_codes_say_what_happened() {
    let wrong = run(["dedup"]);
    assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
    for (command, takes) in
        [("purge", "<URL|--file <FILE>|--host <HOST>>"), ("delete", "<URL|--file <FILE>>")]
    {
        let wrong = run([command]);
        assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
        assert!(errors(&wrong).contains(takes), "{}", errors(&wrong));
        let wrong = run([command, A, "--file", "none"]);
        assert!(errors(&wrong).contains("cannot be used with"), "{}", errors(&wrong));
    }
    let wrong = run(["token", "new", "ann", "--role", "read", "--expires", "0s", "--tokens", "none/none"]);
    assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
    assert!(errors(&wrong).contains("expired before anybody had it"), "{}", errors(&wrong));
    let wrong = run(["status", "--server", "ftp://a.example/", A]);
    assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
    for wrong in
        ["127.0.0.1:7700", "localhost:7700", "http://127.0.0.1:7700/doppel?a=b", "http://a@b/", "https://a#b"]
    {
        let wrong = run(["status", "--server", wrong, A]);
        assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
        assert!(errors(&wrong).contains("a URL such as http://127.0.0.1:7700 "), "{}", errors(&wrong));
    }
    for (option, value, says) in [
        ("--listen", "localhost:80", "an IP address and a port are expected, such as 127.0.0.1:7700"),
        ("--listen", "203.0.113.7:7702", "is reached by other machines"),
        ("--pending-max", "0", "a number of at least 1000 is expected"),
        ("--snapshot-every", "-1s", "a number and a unit are expected, as in 30d, 12h, 5m or 45s"),
        ("--keep-dead", "-1d", "a number and a unit are expected"),
    ] {
        let wrong = run(["serve", "--data", "none", option, value]);
        assert!(errors(&wrong).contains(says), "{}", errors(&wrong));
    }
    let elsewhere = ["serve", "--data", "none", "--no-tokens-on-any-address", "--listen", "203.0.113.7:7702"];
    assert!(errors(&run(elsewhere)).contains("--listen takes an address of this machine"));
    let free = format!("127.0.0.1:{}", free_port());
    let unset = doppel().env("DOPPEL_SERVER", "").args(["group", "nonsense"]).output().unwrap();
    assert!(!errors(&unset).contains("--server"), "{}", errors(&unset));
    let nobody = run(["status", "--server", &format!("http://{free}"), A]);
    assert_eq!(code(&nobody), 3, "{}", errors(&nobody));
    assert!(errors(&nobody).contains("doppel serve --data DIR"), "{}", errors(&nobody));
    let server = OwnServer::start(&[]);
    let refused = ask(&server, &["group", "g999999-0"]);
    assert_eq!(code(&refused), 4);
    assert!(errors(&refused).contains("there is no group g999999-0"), "{}", errors(&refused));
    let refused = ask(&server, &["explain", "nonsense", A]);
    assert!(errors(&refused).contains("a: not an absolute URL"), "{}", errors(&refused));
    for (cursor, says) in [("foo", "400"), ("1.2", "410")] {
        let refused = ask(&server, &["changes", "--cursor", cursor]);
        assert!(errors(&refused).contains(says), "{}", errors(&refused));
    }
    let help = run_ok(["--help"]);
    for line in ["Exit codes:", "3  the server cannot be reached", "5  done, but"] {
        assert!(help.contains(line), "{help}");
    }
}
