//! Notifications that a server sends to the service manager that started it, over a real socket.

use std::os::unix::net::UnixDatagram;

use crate::harness::{PATIENCE, Server, doppel};

/// The service manager's end of the socket.
struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    fn next(&self) -> String {
        let mut buffer = [0; 4096];
        let read = self.socket.recv(&mut buffer).expect("the server sent no notification");
        String::from_utf8(buffer[..read].to_vec()).unwrap()
    }
}

#[test]
fn a_server_notifies_its_manager_when_it_is_ready_alive_and_ending() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notify");
    let manager = Manager { socket: UnixDatagram::bind(&path).unwrap() };
    manager.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = doppel();
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "400000").env("DOPPEL_LISTEN", "127.0.0.1:0");
    command.args(["serve", "--data"]).arg(home.path().join("data"));
    let mut server = Server::start_command(command);
    assert_eq!(manager.next(), "READY=1\n");
    assert_eq!([manager.next(), manager.next(), manager.next()], ["WATCHDOG=1\n"; 3].map(str::to_owned));
    server.signal("TERM");
    let ending = std::iter::repeat_with(|| manager.next()).find(|said| said != "WATCHDOG=1\n");
    assert_eq!(ending.as_deref(), Some("STOPPING=1\n"));
    assert!(server.wait());
}

/// A server keeps running although the manager's socket does not exist.
#[test]
fn a_server_runs_on_without_its_service_manager() {
    let home = tempfile::tempdir().unwrap();
    let mut command = doppel();
    command.env("NOTIFY_SOCKET", home.path().join("gone")).args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
    ]);
    command.arg(home.path().join("data"));
    let server = Server::start_command(command);
    assert!(server.log().contains("cannot notify the service manager"), "{}", server.log());
    assert!(server.terminate());
}
