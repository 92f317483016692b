//! The connections between the processes: each goes through a proxy of its own, which can hold back what is sent, delay it, or
//! break the connection.
//!
//! What is held back is not lost: it arrives when the way is free again, as where packets are sent again. So a request may
//! arrive long after its sender has given up.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long a held or slow pump sleeps.
const PAUSE: Duration = Duration::from_millis(20);

/// What happens on the way from one process to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// All arrives at once.
    Free,
    /// Nothing arrives until it is free again.
    Held,
    /// Each piece takes [`PAUSE`] longer.
    Slow,
    /// Connections are broken, and new ones closed at once.
    Broken,
}

/// The ways between all processes, by their numbers.
pub(crate) struct Network {
    count: usize,
    ways: Mutex<Vec<Way>>,
    connections: Mutex<Vec<Connection>>,
    /// Connections so far.
    made: AtomicU64,
}

/// Both ends of a connection through a proxy.
struct Connection {
    id: u64,
    ends: [usize; 2],
    streams: [TcpStream; 2],
}

impl Network {
    /// Between so many processes all ways are free.
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

    /// Changes one way between two processes.
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

    /// The address at which a process reaches another one, which listens at `address`.
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

    /// Carries one connection. Where the other process does not listen it is closed.
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
        // It may have been broken since it was looked at.
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

    /// Waits while nothing passes.
    fn pass(&self, from: usize, to: usize) {
        while self.way(from, to) == Way::Held {
            thread::sleep(PAUSE);
        }
    }

    /// Carries bytes one way, until one of the ends is closed.
    fn pump(&self, from: usize, to: usize, (mut reader, mut writer): (TcpStream, TcpStream)) {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let read = reader.read(&mut bytes).unwrap_or(0);
            if self.way(from, to) == Way::Slow {
                thread::sleep(PAUSE);
            }
            // That it was closed is held back, too.
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
