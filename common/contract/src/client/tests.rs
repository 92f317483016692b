//! Tests of the client against a minimal server.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;

use socket2::{Domain, Socket, Type};

use super::*;
use crate::answer::PurgeResult;

/// Starts a server that answers one connection after the other with these heads and bodies. Returns the URL
/// of the server.
fn server(answers: Vec<(&'static str, &'static str)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (head, body) in answers {
            reply(&listener.accept().unwrap().0, head, body);
        }
    });
    url
}

fn reply(mut stream: &TcpStream, head: &str, body: &str) {
    let request = BufReader::new(stream).lines();
    request.map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
    let length = body.len();
    write!(stream, "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
}

fn get(client: &Client) -> RequestBuilder {
    client.request(Method::GET, &["v1", "a b"])
}

#[test]
fn only_the_url_of_a_server_is_accepted() {
    for bad in ["", "a", "http://", "ftp://a/", "http://a/?b", "https://a/#b", "http://u@a/"] {
        assert!(matches!(Client::new(bad), Err(ClientError::Base(given)) if given == bad), "{bad}");
    }
    let client = Client::new("http://localhost:7700").unwrap();
    let request = get(&client).build().unwrap();
    assert_eq!(request.url().as_str(), "http://localhost:7700/v1/a%20b", "path segments are escaped");
    for behind in ["http://localhost:7700/doppel", "http://localhost:7700/doppel/"] {
        let request = get(&Client::new(behind).unwrap()).build().unwrap();
        assert_eq!(request.url().as_str(), "http://localhost:7700/doppel/v1/a%20b");
    }
}

#[test]
fn an_answer_has_a_typed_value_and_its_text() {
    let body = r#"{ "purged": 3, "added_later": [] }"#;
    let client = Client::new(&server(vec![("200 OK", body), ("200 OK", r#"{"purged": "3"}"#)])).unwrap();
    let ParsedAnswer { text, value } = client.ask::<PurgeResult>(get(&client)).unwrap();
    assert_eq!((text.get(), value), (body, PurgeResult { purged: 3 }));
    let error = client.json::<PurgeResult>(get(&client)).unwrap_err();
    assert!(matches!(&error, ClientError::Answer { url, .. } if url.ends_with("/v1/a%20b")), "{error}");
}

#[test]
fn an_error_contains_the_servers_words() {
    let problem = r#"{"type":"urn:doppel:problem:bad-request","title":"Bad Request","status":400,"detail":"no URL","field":"url","request_id":"r"}"#;
    for (head, body, expected, is_too_large) in [
        ("400 Bad Request", problem, "the server refused it (400 Bad Request): url: no URL", false),
        (
            "500 Internal Server Error",
            r#"{"type":"urn:doppel:problem:internal","title":"","status":500,"detail":"see the log","request_id":"r"}"#,
            "the server refused it (500 Internal Server Error): see the log (request r)",
            false,
        ),
        ("502 Bad Gateway", "a proxy\nsays", "the server refused it (502 Bad Gateway): a proxy", false),
        (
            "504 Gateway Timeout",
            r#"{"detail":"slow"}"#,
            "the server refused it (504 Gateway Timeout): slow",
            false,
        ),
        ("413 Payload Too Large", "", "the server refused it (413 Payload Too Large): ", true),
    ] {
        let client = Client::new(&server(vec![(head, body)])).unwrap();
        let error = client.send(get(&client)).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_too_large()), (expected, is_too_large));
    }
}

#[test]
fn a_patient_call_outlasts_a_busy_server_and_ends_in_time() {
    let busy = ("503 Service Unavailable\r\nretry-after: 0", "{}");
    let client = Client::new(&server(vec![busy, busy, ("200 OK", "done")])).unwrap();
    assert_eq!(client.send_patiently(&get(&client), Duration::from_secs(20)).unwrap(), "done");

    let later = ("429 Too Many Requests\r\nretry-after: 60", "{}");
    let client = Client::new(&server(vec![later])).unwrap();
    let error = client.send_patiently(&get(&client), Duration::from_secs(1)).unwrap_err();
    assert!(matches!(error, ClientError::Refused { status: StatusCode::TOO_MANY_REQUESTS, .. }), "{error}");

    let client = Client::new(&server(vec![("404 Not Found", "{}")])).unwrap();
    let error = client.send_patiently(&get(&client), Duration::from_secs(60)).unwrap_err();
    assert!(matches!(error, ClientError::Refused { status: StatusCode::NOT_FOUND, .. }), "{error}");
}

#[test]
fn opening_a_streamed_answer_is_as_patient() {
    let client =
        Client::new(&server(vec![("503 Service Unavailable\r\nretry-after: 0", ""), ("200 OK", "done")]));
    let client = client.unwrap();
    let answer = client.open_patiently(&get(&client), Duration::from_secs(20)).unwrap();
    let mut read = Vec::new();
    assert_eq!((copy(answer, &mut read).unwrap(), &*read), (4, &b"done"[..]));
}

#[test]
fn an_unreachable_server_and_its_return_give_one_notice_each() {
    // The socket reserves the port, but does not listen yet.
    let silent = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    silent.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    let address = silent.local_addr().unwrap().as_socket().unwrap();
    let notices = Arc::new(Mutex::new(Vec::new()));
    let client = Client::new(&format!("http://{address}")).unwrap().with_notices({
        let notices = Arc::clone(&notices);
        move |notice| notices.lock().unwrap().push(matches!(notice, Notice::Away { .. }))
    });
    let error = client.send_patiently(&get(&client), Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    assert!(notices.lock().unwrap().is_empty(), "a call that gives up at once gives no notice");
    let back = thread::spawn(move || {
        sleep(Duration::from_millis(400));
        silent.listen(1).unwrap();
        reply(&TcpListener::from(silent).accept().unwrap().0, "200 OK", "1");
    });
    let answer: ParsedAnswer<u8> = client.ask_patiently(&get(&client), Duration::from_secs(30)).unwrap();
    assert_eq!((answer.value, notices.lock().unwrap().as_slice()), (1, &[true, false][..]));
    back.join().unwrap();
}

#[test]
fn a_server_that_does_not_answer_in_time_is_late_and_not_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let busy = "503 Service Unavailable\r\nretry-after: 0";
        let silent = listener.accept().unwrap();
        reply(&listener.accept().unwrap().0, busy, r#"{"detail":"range 1 has no owner"}"#);
        let more = listener.accept().unwrap();
        drop(listener.accept());
        drop((silent, more));
    });
    let client = Client::new(&url).unwrap();
    let error = client.send_patiently(&get(&client), Duration::from_millis(300)).unwrap_err();
    assert!(matches!(&error, ClientError::Late { .. }), "{error}");
    assert!(error.to_string().starts_with(&format!("no answer came from {url}/ in time")), "{error}");
    // The server says that it is busy, and then stops answering.
    let error = client.send_patiently(&get(&client), Duration::from_millis(600)).unwrap_err();
    assert!(error.to_string().ends_with("range 1 has no owner"), "{error}");
}

#[test]
fn tls_is_tried_once_and_never_after_an_answer_began() {
    /// Starts a server that records the first byte of each connection, which is 22 for TLS. The server then
    /// closes the connection; without TLS it sends `answer` first.
    fn first_bytes(answer: &'static [u8]) -> (Client, Arc<Mutex<Vec<u8>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut request = [0; 16 << 10];
                if stream.read(&mut request).unwrap_or(0) > 0 {
                    noted.lock().unwrap().push(request[0]);
                    let _ = stream.write_all(if request[0] == 22 { b"" } else { answer });
                }
            }
        });
        (client, seen)
    }
    let patience = Duration::from_millis(700);
    for (answer, attempts) in [(&b""[..], 1), (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbroken", 0)] {
        let (client, seen) = first_bytes(answer);
        let error = client.clone().send_patiently(&get(&client), patience).unwrap_err();
        assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
        let seen = seen.lock().unwrap();
        let of_tls = seen.iter().filter(|byte| **byte == 22).count();
        assert_eq!(of_tls, attempts, "{seen:?}");
        assert!(seen.len() - of_tls >= 2, "{seen:?}");
    }
}
