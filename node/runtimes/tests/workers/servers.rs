//! Servers that functions reach: a tunnel, an HTTP server, and an HTTPS server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use assay_node_runtimes::RuntimeKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::interpreter;

/// Tunnel that dials only the destinations that it was given, by their names.
pub struct Tunnel {
    directory: TempDir,
    opened: Arc<Mutex<Vec<String>>>,
}

impl Tunnel {
    /// Accepts connections to the given `host:port`, each of which is a port here.
    pub fn start(destinations: &[(&str, u16)]) -> Tunnel {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("tunnel")).unwrap();
        let known: BTreeMap<String, u16> =
            destinations.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect();
        let opened = Arc::new(Mutex::new(Vec::new()));
        let tunnel = Tunnel { directory, opened: opened.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (known, opened) = (known.clone(), opened.clone());
                std::thread::spawn(move || serve_stream(stream, &known, &opened));
            }
        });
        tunnel
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("tunnel")
    }

    /// Returns the first lines of all streams so far.
    pub fn opened(&self) -> Vec<String> {
        self.opened.lock().unwrap().clone()
    }
}

fn serve_stream(mut stream: UnixStream, known: &BTreeMap<String, u16>, opened: &Mutex<Vec<String>>) {
    let mut name = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).is_ok_and(|count| count == 1) && byte != *b"\n" {
        name.push(byte[0]);
    }
    let name = String::from_utf8(name).unwrap();
    if name.is_empty() {
        return;
    }
    opened.lock().unwrap().push(name.clone());
    let Some(port) = known.get(&name) else { return };
    let mut target = TcpStream::connect(("127.0.0.1", *port)).unwrap();
    let (mut back, mut forth) = (target.try_clone().unwrap(), stream.try_clone().unwrap());
    std::thread::spawn(move || {
        // either side may have closed
        let _ = std::io::copy(&mut back, &mut forth);
        let _ = forth.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut stream, &mut target);
    let _ = target.shutdown(Shutdown::Write);
}

/// Request as the server saw it.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub line: String,
    pub authorization: String,
    pub body: Value,
}

/// HTTP server whose answers a function makes.
pub struct HttpServer {
    pub port: u16,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
}

impl HttpServer {
    /// Answers each request with the status and the value of `answer`.
    pub fn start(answer: impl Fn(&HttpRequest) -> (u16, Value) + Send + Sync + 'static) -> HttpServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (requests.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (seen, answer) = (seen.clone(), answer.clone());
                std::thread::spawn(move || serve_connection(stream, &seen, &*answer));
            }
        });
        HttpServer { port, requests }
    }

    /// Answers each request with its first line and its body.
    pub fn echo() -> HttpServer {
        HttpServer::start(|request| (200, json!([request.line, request.body])))
    }

    pub fn requests(&self) -> Vec<HttpRequest> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve_connection(
    stream: TcpStream,
    seen: &Mutex<Vec<HttpRequest>>,
    answer: &(impl Fn(&HttpRequest) -> (u16, Value) + ?Sized),
) {
    let mut output = stream.try_clone().unwrap();
    let mut input = BufReader::new(stream);
    while let Some(request) = read_request(&mut input) {
        seen.lock().unwrap().push(request.clone());
        let (status, value) = answer(&request);
        let body = value.to_string();
        let head = format!("HTTP/1.1 {status} Status\r\ncontent-length: {}\r\n\r\n", body.len());
        if output.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn read_request(input: &mut impl BufRead) -> Option<HttpRequest> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let mut pairs = lines.iter().filter_map(|line| line.split_once(": "));
        pairs.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    input.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(HttpRequest { line: lines[0].clone(), authorization: header("authorization"), body })
}

/// HTTPS server of `secure.test`, in a process of its own.
pub struct HttpsServer {
    child: Child,
    pub port: u16,
}

impl HttpsServer {
    pub fn start() -> HttpsServer {
        let program = data("tls_server.py");
        let mut command = Command::new(interpreter(RuntimeKind::Python));
        command.arg(program).arg(certificate()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        HttpsServer { child, port: line.trim().parse().unwrap() }
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workers/data").join(name)
}

/// Returns the file with the certificate of `secure.test`.
pub fn certificate() -> PathBuf {
    data("secure.test.pem")
}
