//! Proxies between the processes. Each connection passes through a proxy, which can hold back bytes, delay
//! them, or break the connection.
//!
//! Held bytes are not lost. They arrive when the way is free again, as on a network that sends packets again.
//! A request may therefore arrive long after its sender has given up.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long the proxy sleeps before it looks at a held way again, or passes on bytes on a slow way.
const PAUSE: Duration = Duration::from_millis(20);

/// State of the way from one process to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Bytes arrive at once.
    Free,
    /// No bytes arrive until the way is free again.
    Held,
    /// Each piece arrives [`PAUSE`] later.
    Slow,
    /// Open connections are broken, and new connections are closed at once.
    Broken,
}

/// The ways between all processes, which are numbered.
pub(crate) struct Network {
    count: usize,
    ways: Mutex<Vec<Way>>,
    connections: Mutex<Vec<Connection>>,
    /// Number of connections so far.
    made: AtomicU64,
}

/// Both ends of a connection through a proxy.
struct Connection {
    id: u64,
    ends: [usize; 2],
    streams: [TcpStream; 2],
}

impl Network {
    /// A network between `count` processes, with all ways free.
    pub(crate) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            count,
            ways: Mutex::new(vec![Way::Free; count * count]),
            connections: Mutex::default(),
            made: AtomicU64::new(0),
        })
    }

    fn way(&self, from: usize, to: usize) -> Way {
        self.ways.lock().unwrap()[from * self.count + to]
    }

    /// Changes the way from one process to another.
    pub(crate) fn set(&self, from: usize, to: usize, way: Way) {
        self.ways.lock().unwrap()[from * self.count + to] = way;
        if way == Way::Broken {
            let connections = self.connections.lock().unwrap();
            connections
                .iter()
                .filter(|one| one.ends == [from, to] || one.ends == [to, from])
                .for_each(Connection::close);
        }
    }

    /// Starts a proxy. Returns the address at which the process `from` reaches the process `to`, which
    /// listens at `address`.
    pub(crate) fn proxy(self: &Arc<Self>, from: usize, to: usize, address: &str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = listener.local_addr().unwrap().to_string();
        let (this, address) = (Arc::clone(self), address.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (this, address) = (Arc::clone(&this), address.clone());
                thread::spawn(move || this.connect(from, to, client, &address));
            }
        });
        proxy
    }

    /// Carries one connection. Closes it if the other process does not listen.
    fn connect(self: &Arc<Self>, from: usize, to: usize, client: TcpStream, address: &str) {
        self.pass(from, to);
        if self.way(from, to) == Way::Broken {
            return;
        }
        let Ok(server) = TcpStream::connect(address) else { return };
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
        }
        let copy = |stream: &TcpStream| stream.try_clone().unwrap();
        let id = self.made.fetch_add(1, Ordering::Relaxed);
        let connection = Connection { id, ends: [from, to], streams: [copy(&client), copy(&server)] };
        self.connections.lock().unwrap().push(connection);
        // The way may have been broken since the proxy looked at it.
        if [(from, to), (to, from)].iter().any(|(one, other)| self.way(*one, *other) == Way::Broken) {
            self.connections.lock().unwrap().iter().filter(|one| one.id == id).for_each(Connection::close);
        }
        let back = {
            let (this, ends) = (Arc::clone(self), (copy(&server), copy(&client)));
            thread::spawn(move || this.pump(to, from, ends))
        };
        self.pump(from, to, (client, server));
        back.join().unwrap();
        self.connections.lock().unwrap().retain(|one| one.id != id);
    }

    /// Waits while the way is held.
    fn pass(&self, from: usize, to: usize) {
        while self.way(from, to) == Way::Held {
            thread::sleep(PAUSE);
        }
    }

    /// Carries bytes in one direction until one end is closed.
    fn pump(&self, from: usize, to: usize, (mut reader, mut writer): (TcpStream, TcpStream)) {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let read = reader.read(&mut bytes).unwrap_or(0);
            if self.way(from, to) == Way::Slow {
                thread::sleep(PAUSE);
            }
            // The end of the connection is held back, too.
            self.pass(from, to);
            if read == 0 || writer.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        for stream in [reader, writer] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Connection {
    fn close(&self) {
        for stream in &self.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
