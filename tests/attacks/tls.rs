//! TLS of the HTTP listener: which clients the server answers, which servers a client trusts, and how
//! certificates are replaced.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};
use reqwest::blocking::Client;
use reqwest::{Certificate, Identity};

use super::{PATIENCE, new_token};
use crate::harness::{Server, doppel, wait_until};

/// A certificate authority. Each of its certificates is for certain names.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Certificate and key, in PEM.
    fn certificate(&self, names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// The certificate files of a server.
struct Files {
    home: tempfile::TempDir,
    token: String,
}

impl Files {
    fn new(authority: &Authority) -> Self {
        let home = tempfile::tempdir().unwrap();
        let token = new_token(&home.path().join("tokens"), "ann", "operate");
        let this = Self { home, token };
        this.write("ca.pem", &authority.pem);
        this.certify(authority);
        this
    }

    fn certify(&self, authority: &Authority) {
        let (certificate, key) = authority.certificate(&["localhost", "127.0.0.1"]);
        self.write("cert.pem", &certificate);
        self.write("key.pem", &key);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn serve(&self, options: &[&str], http: Client) -> Server {
        let mut command = doppel();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(self.path("data"));
        command.arg("--tokens").arg(self.path("tokens")).arg("--tls-cert").arg(self.path("cert.pem"));
        command.arg("--tls-key").arg(self.path("key.pem")).args(options).current_dir(self.home.path());
        Server::start_as(command, http)
    }

    fn http(&self, authority: &Authority, identity: Option<&str>) -> Client {
        let token = format!("Bearer {}", self.token).parse().unwrap();
        let ca = Certificate::from_pem(authority.pem.as_bytes()).unwrap();
        let http = doppel_contract::client::builder_without_tls().timeout(PATIENCE).tls_certs_only([ca]);
        let http = http.default_headers([(reqwest::header::AUTHORIZATION, token)].into_iter().collect());
        match identity {
            None => http,
            Some(pem) => http.identity(Identity::from_pem(pem.as_bytes()).unwrap()),
        }
        .build()
        .unwrap()
    }

    /// Queries a status with the command line.
    fn ask(&self, url: &str, ca: Option<&Path>, more: &[&str]) -> Output {
        let mut command = doppel();
        command.args(["status", "--server", url, "http://a.example/"]).args(more);
        command.env("DOPPEL_TOKEN", &self.token).current_dir(self.home.path());
        if let Some(ca) = ca {
            command.arg("--ca").arg(ca);
        }
        command.output().unwrap()
    }
}

fn says(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn clients_trust_an_https_server_only_by_its_authority() {
    let (authority, other) = (Authority::new("ours"), Authority::new("another"));
    let files = Files::new(&authority);
    let server = files.serve(&[], files.http(&authority, None));
    let url = server.url.replace("127.0.0.1", "localhost");
    assert!(url.starts_with("https://"));
    let asked = files.ask(&url, Some(&files.path("ca.pem")), &[]);
    assert!(
        asked.status.success() && says(&asked).contains("unknown  http://a.example/"),
        "{}",
        says(&asked)
    );
    files.write("other.pem", &other.pem);
    for ca in [None, Some(files.path("other.pem"))] {
        let asked = files.ask(&url, ca.as_deref(), &[]);
        assert_eq!(asked.status.code(), Some(3), "{}", says(&asked));
        assert!(
            says(&asked).contains("is not trusted: its certificate was issued by an unknown authority;"),
            "{}",
            says(&asked)
        );
    }
    files.write("not.pem", "nothing");
    let asked = files.ask(&url, Some(&files.path("not.pem")), &[]);
    assert!(!asked.status.success() && says(&asked).contains("authority's certificate"), "{}", says(&asked));

    // A client without TLS gets no answer, nor does a client with an unfinished handshake. Others get theirs.
    let address = server.url.strip_prefix("https://").unwrap();
    let mut clear = std::net::TcpStream::connect(address).unwrap();
    clear.set_read_timeout(Some(PATIENCE)).unwrap();
    clear.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = clear.read_to_end(&mut answer);
    assert!(!answer.windows(4).any(|part| part == b"HTTP"), "{answer:?}");
    let half: Vec<_> = (0..200).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    assert_eq!(server.get("/healthz").status(), 200);
    drop(half);

    // SIGHUP makes the server read its certificate again. An unusable certificate changes nothing.
    files.certify(&other);
    server.signal("HUP");
    wait_until("the new certificate", PATIENCE, || {
        files.ask(&url, Some(&files.path("other.pem")), &[]).status.success().then_some(())
    });
    files.write("cert.pem", "nothing");
    server.signal("HUP");
    wait_until("the log to report the unusable certificate", PATIENCE, || {
        server.log().contains("certificate and key stay as they were").then_some(())
    });
    assert!(files.ask(&url, Some(&files.path("other.pem")), &[]).status.success());
    assert!(server.terminate());
}

#[test]
fn a_client_is_told_if_the_server_expects_the_other_of_http_and_https() {
    let authority = Authority::new("ours");
    let files = Files::new(&authority);
    let server = files.serve(&[], files.http(&authority, None));
    let http = server.url.replace("https://127.0.0.1", "http://localhost");
    for ca in [None, Some(files.path("ca.pem"))] {
        let asked = files.ask(&http, ca.as_deref(), &[]);
        let said = format!(
            "doppel: cannot connect to {http}/: the server there speaks TLS; use https:// instead of http://\n"
        );
        assert_eq!(asked.status.code(), Some(3));
        assert_eq!(says(&asked), said);
    }
    let clear = Server::start(&files.path("clear"), &[]);
    let https = clear.url.replace("http:", "https:");
    let asked = files.ask(&https, Some(&files.path("ca.pem")), &[]);
    let said = format!(
        "doppel: cannot connect to {https}/: the server there does not speak TLS; use http:// instead of https://\n"
    );
    assert_eq!(asked.status.code(), Some(3));
    assert_eq!(says(&asked), said);
}

#[test]
fn a_client_without_the_required_certificate_gets_no_answer() {
    let (authority, clients) = (Authority::new("ours"), Authority::new("clients"));
    let files = Files::new(&authority);
    files.write("clients.pem", &clients.pem);
    let (certificate, key) = clients.certificate(&["ann"]);
    let pair = certificate + &key;
    files.write("pair.pem", &pair);
    let options = ["--tls-client-ca", "clients.pem"];
    let server = files.serve(&options, files.http(&authority, Some(&pair)));
    let url = server.url.replace("127.0.0.1", "localhost");
    let ca = files.path("ca.pem");
    let asked = files.ask(&url, Some(&ca), &["--client-cert", "pair.pem"]);
    assert!(asked.status.success(), "{}", says(&asked));
    let asked = files.ask(&url, Some(&ca), &[]);
    assert_eq!(asked.status.code(), Some(3), "{}", says(&asked));
    assert!(says(&asked).contains("--client-cert"), "{}", says(&asked));
    let (certificate, key) = authority.certificate(&["ann"]);
    files.write("wrong.pem", &(certificate + &key));
    let asked = files.ask(&url, Some(&ca), &["--client-cert", "wrong.pem"]);
    assert_eq!(asked.status.code(), Some(3), "{}", says(&asked));
    assert!(
        says(&asked).contains("the server does not accept the certificate of --client-cert"),
        "{}",
        says(&asked)
    );
}

/// A client authority, and a certificate of it in X.509 version 1 with its key, in PEM. `None` if openssl is
/// not installed.
fn of_version_1(dir: &Path) -> Option<(PathBuf, PathBuf)> {
    let openssl = |line: &str| {
        let mut command = Command::new("openssl");
        command.args(line.split_whitespace()).current_dir(dir);
        command.output().is_ok_and(|output| output.status.success())
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let made = openssl(&format!("req -x509 {key} -subj /CN=clients -keyout old-ca.key -out old-ca.pem"))
        && openssl(&format!("req {key} -subj /CN=ann -keyout old.key -out old.csr"))
        && openssl("x509 -req -in old.csr -CA old-ca.pem -CAkey old-ca.key -CAcreateserial -out old.crt");
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    made.then(|| {
        fs::write(dir.join("old.pem"), read("old.crt") + &read("old.key")).unwrap();
        (dir.join("old-ca.pem"), dir.join("old.pem"))
    })
}

#[test]
fn the_message_says_that_a_certificate_of_an_old_version_is_refused() {
    let authority = Authority::new("ours");
    let files = Files::new(&authority);
    let Some((clients, pair)) = of_version_1(files.home.path()) else {
        println!("tls: there is no openssl");
        return;
    };
    let mut command = doppel();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(files.path("data"));
    command.arg("--tls-cert").arg(files.path("cert.pem")).arg("--tls-key").arg(files.path("key.pem"));
    let mut server = command
        .arg("--tls-client-ca")
        .arg(clients)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().rsplit(' ').next().unwrap().replace("127.0.0.1", "localhost");
    let asked = files.ask(&url, Some(&files.path("ca.pem")), &["--client-cert", pair.to_str().unwrap()]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(asked.status.code(), Some(1), "{}", says(&asked));
    assert_eq!(
        says(&asked),
        "doppel: the client cannot identify itself by TLS: its certificate is not of X.509 version 3\n"
    );
}

#[test]
fn unusable_certificate_files_are_named() {
    let authority = Authority::new("ours");
    let files = Files::new(&authority);
    let (_, another_key) = authority.certificate(&["localhost"]);
    files.write("another.pem", &another_key);
    for (options, part) in [
        (&["--tls-cert", "none.pem", "--tls-key", "key.pem"][..], "cannot read a certificate in none.pem"),
        (&["--tls-cert", "key.pem", "--tls-key", "key.pem"], "cannot read a certificate in key.pem"),
        (&["--tls-cert", "cert.pem", "--tls-key", "cert.pem"], "cannot read a private key in cert.pem"),
        (&["--tls-cert", "cert.pem", "--tls-key", "another.pem"], "cannot be used together"),
        (&["--tls-cert", "cert.pem"], "--tls-key"),
        (&["--tls-client-ca", "ca.pem"], "--tls-cert"),
        (&["--tokens", "cert.pem"], "cert.pem, line 1"),
        (&["--tokens", "none"], "cannot read none"),
        (&["--body-memory", "1MiB"], "at least 16MiB"),
        (&["--client-requests", "0"], "at least 1"),
        (&["--client-requests", "9999999999999999999"], "at most 384"),
        (&["--client-body-memory", "1KiB"], "at least 4MiB"),
    ] {
        let mut command = doppel();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data", "data"]).args(options);
        let refused = command.current_dir(files.home.path()).output().unwrap();
        let says = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && says.contains(part), "{options:?}: {says}");
    }
    assert!(!files.path("data").exists());
}
