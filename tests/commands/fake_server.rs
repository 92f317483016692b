//! Fake servers, whose responses a test chooses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

/// The response of a fake server to a request line and a body. `None` means that it does not respond.
pub(crate) type Responder = fn(&str, &str) -> Option<(u16, String)>;

/// Runs a fake server as long as the test runs. Returns its URL.
pub(crate) fn fake_server(answer: Responder) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || respond_once(&stream.unwrap(), answer));
        }
    });
    url
}

/// Responds to one request and closes the connection.
fn respond_once(mut stream: &TcpStream, answer: Responder) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap() == 0 {
            return;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    match answer(head.lines().next().unwrap(), std::str::from_utf8(&body).unwrap()) {
        Some((status, body)) => {
            let head = format!("HTTP/1.1 {status} Played\r\nContent-Length: {}\r\n", body.len());
            stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).unwrap();
        }
        // Wait until the client gives up.
        None => drop(reader.read_to_end(&mut body)),
    }
}

/// Runs a fake server whose response stops in the middle; the connection closes when the returned sender is
/// dropped. Returns its URL as well.
pub(crate) fn fake_server_that_breaks_off() -> (String, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, gone) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"url\":").unwrap();
        let _ = gone.recv();
    });
    (url, sender)
}

/// The response of a server that accepts every line.
pub(crate) fn taken(body: &str) -> (u16, String) {
    let answer = |line: &str| {
        let page: Value = serde_json::from_str(line).unwrap();
        format!("{}\n", json!({"url": page["url"], "outcome": "pending"}))
    };
    (200, body.lines().map(answer).collect())
}
