//! Things of the machine that no function may reach: a file, a process, sockets.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};

/// Time in which a connection says what it wants.
const WORDS_TIME: Duration = Duration::from_secs(2);
/// Bytes of a connection that are read.
const WORDS_BYTES: usize = 200;
/// Upper bound of noted messages.
const NOTED_MAX: usize = 1_000;
/// Names of processes that attempts start and that must end with their calls.
const NAMES: [&str; 3] = ["assay-left", "assay-bomb", "assay-unread"];

/// Messages that arrived where none may arrive.
#[derive(Clone, Debug, Default)]
pub struct Messages(Arc<Mutex<Vec<String>>>);

impl Messages {
    fn note(&self, message: String) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < NOTED_MAX {
            all.push(message);
        }
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug)]
pub struct Canaries {
    pub secret: PathBuf,
    pub secret_text: String,
    /// Process with the user of the server.
    bystander: Child,
    bystander_state: String,
    /// Port that functions may not reach.
    pub port: u16,
    /// Port that the node lets functions reach.
    pub listed_port: u16,
    pub unix: PathBuf,
    pub datagrams: PathBuf,
    pub abstract_name: String,
    pub messages: Messages,
}

impl Canaries {
    /// Makes them in a directory that everybody may enter. `run_as` are the words that start a process as the server.
    pub fn make(directory: &Path, run_as: &[String]) -> Result<Canaries> {
        let messages = Messages::default();
        let secret = directory.join("secret");
        let secret_text = format!("canary-{}-of-the-machine", std::process::id());
        std::fs::write(&secret, &secret_text)?;
        open(&secret, 0o644)?;
        let (port, listed_port) = listen(&messages)?;
        let (unix, datagrams) = (directory.join("socket"), directory.join("datagrams"));
        let abstract_name = directory.file_name().context("a name")?.display().to_string();
        let stream = UnixListener::bind(&unix)?;
        let named = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name)?)?;
        for (listener, name) in [(stream, "the Unix socket"), (named, "the abstract socket")] {
            let messages = messages.clone();
            std::thread::spawn(move || {
                for mut one in listener.incoming().map_while(Result::ok) {
                    let _ = one.set_read_timeout(Some(WORDS_TIME));
                    messages.note(format!("{name}: {}", words(&mut one)));
                }
            });
        }
        receive(UnixDatagram::bind(&datagrams)?, messages.clone());
        open(&unix, 0o777)?;
        open(&datagrams, 0o777)?;
        let mut words = run_as.iter().map(String::as_str).chain(["sleep", "100000"]);
        let program = words.next().context("a program")?;
        let bystander = Command::new(program).args(words).stdin(Stdio::null()).spawn().context("the bystander")?;
        let mut made = Canaries {
            secret,
            secret_text,
            bystander,
            bystander_state: String::new(),
            port,
            listed_port,
            unix,
            datagrams,
            abstract_name,
            messages,
        };
        made.bystander_state = made.settled()?;
        Ok(made)
    }

    pub fn bystander(&self) -> u32 {
        self.bystander.id()
    }

    /// Returns the state of the bystander once it has executed its program.
    fn settled(&self) -> Result<String> {
        for _ in 0..500 {
            std::thread::sleep(Duration::from_millis(10));
            let name = std::fs::read_to_string(format!("/proc/{}/comm", self.bystander()))?;
            if name.trim() == "sleep" {
                return state_of(self.bystander());
            }
        }
        anyhow::bail!("the bystander does not start")
    }

    /// Returns what has changed since the canaries were made.
    pub fn complaints(&mut self) -> Vec<String> {
        let mut found = self.messages.all();
        if std::fs::read_to_string(&self.secret).ok().as_ref() != Some(&self.secret_text) {
            found.push("the file of the machine has changed".into());
        }
        if !matches!(self.bystander.try_wait(), Ok(None)) {
            found.push("the bystander has ended".into());
        } else if state_of(self.bystander.id()).ok().as_ref() != Some(&self.bystander_state) {
            found.push("limits, priority or processors of the bystander have changed".into());
        }
        found
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
    }
}

/// Returns limits, priority and processors of a process.
pub fn state_of(process: u32) -> Result<String> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}"));
    let status = read("status")?;
    let processors = status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap_or_default().to_owned();
    let stat = read("stat")?;
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap_or_default()..].split_ascii_whitespace().collect();
    // The fields 18, 19 and 41: priority, niceness and policy.
    let priority = [16, 17, 39].map(|field| fields.get(field).copied().unwrap_or_default()).join(" ");
    Ok(format!("{}{processors}\n{priority}", read("limits")?))
}

/// Returns the processes of attempts that still run.
pub fn survivors() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        NAMES.contains(&name.trim()).then(|| format!("process {} named {}", entry.file_name().display(), name.trim()))
    });
    names.collect()
}

/// Listens at two ports. The second one belongs to the functions, and sends them to the first.
fn listen(messages: &Messages) -> Result<(u16, u16)> {
    let (closed, listed) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let ports = (closed.local_addr()?.port(), listed.local_addr()?.port());
    let (noted, survivors) = (messages.clone(), messages.clone());
    std::thread::spawn(move || {
        for mut one in closed.incoming().map_while(Result::ok) {
            let _ = one.set_read_timeout(Some(WORDS_TIME));
            noted.note(format!("the port of the machine: {}", words(&mut one)));
        }
    });
    std::thread::spawn(move || {
        for one in listed.incoming().map_while(Result::ok) {
            let survivors = survivors.clone();
            std::thread::spawn(move || serve(one, ports.0, &survivors));
        }
    });
    Ok(ports)
}

/// Answers a request with a redirect to a port that functions may not reach, and notes words of survivors.
fn serve(mut one: TcpStream, port: u16, messages: &Messages) {
    let _ = one.set_read_timeout(Some(WORDS_TIME));
    let said = words(&mut one);
    if said.contains("survivor:") {
        messages.note(format!("the listed port: {said}"));
    }
    let answer = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    // A send fails only if the client closed the connection.
    let _ = one.write_all(answer.as_bytes());
}

fn receive(socket: UnixDatagram, messages: Messages) {
    std::thread::spawn(move || {
        let mut buffer = [0; WORDS_BYTES];
        while let Ok(count) = socket.recv(&mut buffer) {
            messages.note(format!("the datagram socket: {}", String::from_utf8_lossy(&buffer[..count])));
        }
    });
}

/// Returns the first words of a connection.
fn words(stream: &mut impl Read) -> String {
    let mut buffer = [0; WORDS_BYTES];
    let count = stream.read(&mut buffer).unwrap_or_default();
    String::from_utf8_lossy(&buffer[..count]).lines().next().unwrap_or_default().to_owned()
}

fn open(path: &Path, mode: u32) -> Result<()> {
    Ok(std::fs::set_permissions(path, PermissionsExt::from_mode(mode))?)
}
