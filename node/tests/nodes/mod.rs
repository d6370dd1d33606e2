//! The built program as these tests run it: nodes, commands, and requests that are written by hand.

// Each test file uses a part of it.
#![allow(dead_code, reason = "every test file includes this one, and none uses all of it")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_assay");
/// No secret: the nodes are gone when their tests end.
pub const KEY: &str = "sk-test0000000000000000000000000000000000000000";
/// A debug build on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A command of the program, without what the one who runs the tests has set.
pub fn assay(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    without_settings(&mut command);
    command
}

pub fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ASSAY_")) {
        command.env_remove(name);
    }
}

/// What a command said: stdout, and stderr.
pub fn said(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// What `serve` says that is refused; it must end by itself.
#[track_caller]
pub fn refused(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = assay(&["serve"]);
    command.args(arguments).envs(environment.iter().copied());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("it started: {arguments:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success(), "it ended well: {arguments:?}");
    said(&output).1
}

/// A node that is ready. It is killed with this.
pub struct Node {
    process: Child,
    pub address: SocketAddr,
    pub otlp: Option<SocketAddr>,
    log: Arc<Mutex<String>>,
}

impl Node {
    /// On a directory, with these arguments behind `serve`.
    pub fn start(dir: &Path, arguments: &[&str]) -> Node {
        Node::of(assay(&[]), dir, arguments)
    }

    /// With a limit of open files, as a shell sets it: `-n 256` for both limits, `-Sn 256` for the soft one.
    pub fn with_limit(limit: &str, dir: &Path, arguments: &[&str]) -> Node {
        let mut command = Command::new("sh");
        without_settings(&mut command);
        command.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\""), PROGRAM]);
        Node::of(command, dir, arguments)
    }

    fn of(mut command: Command, dir: &Path, arguments: &[&str]) -> Node {
        command.args(["serve", "--set", "store.shards=4", "--data-dir"]).arg(dir).args(arguments);
        if !arguments.iter().any(|word| ["--listen", "--port"].contains(word)) {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.env("ASSAY_API_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (err, kept) = (process.stderr.take().unwrap(), Arc::clone(&log));
        std::thread::spawn(move || {
            for line in BufReader::new(err).lines().map_while(Result::ok) {
                kept.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        let out = BufReader::new(process.stdout.take().unwrap());
        let mut node = Node { process, address: SocketAddr::from(([0; 4], 0)), otlp: None, log };
        for line in out.lines().map_while(Result::ok) {
            let address = line.rsplit_once("://").and_then(|(_, address)| address.parse().ok());
            if line.starts_with("Exporters of OpenTelemetry") {
                node.otlp = address;
            } else if line.starts_with("Assay is ready at") {
                node.address = address.expect("an address");
                return node;
            }
        }
        std::thread::sleep(Duration::from_millis(200));
        panic!("it did not become ready:\n{}", node.log());
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn lives(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// What it wrote to stderr so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub fn get(&self, path: &str) -> HttpAnswer {
        HttpAnswer::of(self.address, "GET", path, "")
    }

    pub fn post(&self, path: &str, body: &str) -> HttpAnswer {
        HttpAnswer::of(self.address, "POST", path, body)
    }

    /// As an operator does: by its own process id. True where it ends well.
    pub fn stop(mut self) -> bool {
        signal("TERM", self.id());
        self.process.wait().unwrap().success()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([format!("-{name}"), process.to_string()]).status().unwrap().success());
}

/// What a node answered on a connection of its own.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    pub text: String,
    pub took: Duration,
}

impl HttpAnswer {
    pub fn of(at: SocketAddr, method: &str, path: &str, body: &str) -> HttpAnswer {
        HttpAnswer::with_key(at, KEY, method, path, body)
    }

    pub fn with_key(at: SocketAddr, key: &str, method: &str, path: &str, body: &str) -> HttpAnswer {
        let begun = Instant::now();
        let stream = TcpStream::connect(at).expect("a connection");
        let text = exchange(&stream, &request(key, method, path, body, body.len()));
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        HttpAnswer { status: status.unwrap_or_else(|| panic!("no answer but {text:?}")), text, took: begun.elapsed() }
    }
}

/// A request whose connection closes behind its answer; `length` is what it says its body has.
pub fn request(key: &str, method: &str, path: &str, body: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Sends, and reads until the other side closes.
pub fn exchange(mut stream: &TcpStream, sent: &str) -> String {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(sent.as_bytes()).expect("sends");
    let mut received = Vec::new();
    match stream.read_to_end(&mut received) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => String::from_utf8_lossy(&received).into_owned(),
    }
}

/// Whether the other side has closed, at the latest after a time.
pub fn is_closed(mut stream: &TcpStream, within: Duration) -> bool {
    stream.set_read_timeout(Some(within)).unwrap();
    let mut received = [0; 1024];
    loop {
        match stream.read(&mut received) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return true,
            Err(_) => return false,
        }
    }
}
