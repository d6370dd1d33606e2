//! NATS' side: three servers, a stream of three replicas kept in files, each value acknowledged by the stream.
//!
//! Its acknowledgement means that two of three servers have written the value to a file. Syncing the file is a setting
//! of later versions (`sync_interval: always`); it is set if the server supports it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::{Buf, BytesMut};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::putters::{Putter, Values, drive};
use super::tool::{Running, free_ports, program, version};
use super::{PeerLoad, PeerSide};

const READY_WAIT_MAX: Duration = Duration::from_secs(60);
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(200);
const STREAM: &str = "bench";
/// One line of the protocol; the first one of a server names all it can do.
const LINE_BYTES_MAX: usize = 64 << 10;

pub fn measure(runtime: &Runtime, load: &PeerLoad, dir: &Path) -> anyhow::Result<PeerSide> {
    std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
    let nats = program("nats-server", "nats-server", &dir.join("package"))?;
    let [c1, c2, c3, r1, r2, r3] = free_ports::<6>()?;
    let (clients, routes) = ([c1, c2, c3], [r1, r2, r3]);
    let synced = takes(&nats, &configuration(0, clients[0], &routes, dir, true), dir)?;
    let mut servers = Vec::new();
    for (at, client) in clients.iter().enumerate() {
        let file = dir.join(format!("server-{}.conf", at + 1));
        std::fs::write(&file, configuration(at, *client, &routes, dir, synced))?;
        servers.push(Running::start(Command::new(&nats).arg("-c").arg(&file), &file.with_extension("stderr"))?);
    }
    runtime.block_on(make_stream(clients[0])).with_context(|| servers[0].said())?;
    let mut putters = Vec::new();
    for client in 0..load.clients {
        let session = runtime.block_on(Session::open(clients[client % clients.len()]))?;
        putters.push(NatsClient { session, values: Arc::clone(&load.values) });
    }
    let processes: Vec<_> = servers.iter().map(Running::process).collect();
    let measured = drive(runtime, putters, load.time, &processes)?;
    let name = format!("NATS {} R3", version(&nats)?);
    eprintln!("{name}: {:.2} MB/s", measured.mb_per_second());
    let durability = match synced {
        true => "files of two of three servers synced before the answer",
        false => "written by two of three servers, not synced: this version cannot",
    };
    Ok(PeerSide { name, durability, measured })
}

fn configuration(at: usize, client: SocketAddr, routes: &[SocketAddr; 3], dir: &Path, synced: bool) -> String {
    let routes_to: Vec<String> = routes.iter().map(|route| format!("nats://{route}")).collect();
    let sync = if synced { ", sync_interval: always" } else { "" };
    format!(
        "server_name: server-{number}\nlisten: {client}\njetstream {{ store_dir: \"{dir}/server-{number}\"{sync} }}\n\
         cluster {{ name: assay-bench, listen: {route}, routes: [{routes}] }}\n",
        number = at + 1,
        dir = dir.display(),
        route = routes[at],
        routes = routes_to.join(", "),
    )
}

/// Returns whether this version accepts all settings of a configuration.
fn takes(nats: &Path, configuration: &str, dir: &Path) -> anyhow::Result<bool> {
    let file = dir.join("asked.conf");
    std::fs::write(&file, configuration)?;
    let mut command = Command::new(nats);
    command.args(["-t", "-c"]).arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command.status().context("asking nats-server about its settings")?.success())
}

/// Creates the stream; retries until the servers have found each other.
async fn make_stream(address: SocketAddr) -> anyhow::Result<()> {
    let wanted = json!({ "name": STREAM, "subjects": [format!("{STREAM}.>")], "storage": "file", "num_replicas": 3,
        "retention": "limits", "discard": "old", "max_age": 0, "max_msgs": -1, "max_bytes": -1 });
    let began = Instant::now();
    loop {
        let made = async {
            let mut session = Session::open(address).await?;
            session.ask(&format!("$JS.API.STREAM.CREATE.{STREAM}"), wanted.to_string().as_bytes()).await
        };
        let why = match made.await {
            Ok(answer) if answer["error"].is_null() => return Ok(()),
            Ok(answer) => answer["error"].to_string(),
            Err(error) => format!("{error:#}"),
        };
        if began.elapsed() > READY_WAIT_MAX {
            bail!("NATS made no stream within {} s: {why}", READY_WAIT_MAX.as_secs());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A connection with one request at a time, in the text protocol of NATS.
struct Session {
    stream: TcpStream,
    received: BytesMut,
    asked: u64,
}

impl Session {
    async fn open(address: SocketAddr) -> anyhow::Result<Session> {
        let stream = TcpStream::connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let mut session = Session { stream, received: BytesMut::with_capacity(LINE_BYTES_MAX), asked: 0 };
        let greeting = session.line().await?;
        ensure!(greeting.starts_with("INFO "), "a greeting of `{greeting}`");
        // Every connection has a room of its own for answers: nobody else knows its address.
        let room = session.room()?;
        let hello = format!(
            "CONNECT {{\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}}\r\nSUB {room}.* 1\r\n"
        );
        session.stream.write_all(hello.as_bytes()).await?;
        Ok(session)
    }

    fn room(&self) -> anyhow::Result<String> {
        Ok(format!("_INBOX.{}", self.stream.local_addr()?.port()))
    }

    async fn ask(&mut self, subject: &str, message: &[u8]) -> anyhow::Result<Value> {
        self.asked += 1;
        let answer_to = format!("{}.{}", self.room()?, self.asked);
        let mut request = format!("PUB {subject} {answer_to} {}\r\n", message.len()).into_bytes();
        request.extend_from_slice(message);
        request.extend_from_slice(b"\r\n");
        self.stream.write_all(&request).await?;
        timeout(ANSWER_WAIT_MAX, self.answer(&answer_to)).await.context("no answer")?
    }

    async fn answer(&mut self, to: &str) -> anyhow::Result<Value> {
        loop {
            let line = self.line().await?;
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["MSG", subject, _, bytes] => {
                    let body = self.bytes(bytes.parse()?).await?;
                    if *subject == to {
                        return serde_json::from_slice(&body).context("an answer that is no JSON");
                    }
                }
                ["HMSG", _, _, _, bytes] => {
                    let head = self.bytes(bytes.parse()?).await?;
                    bail!("nobody answers: {}", String::from_utf8_lossy(&head).trim());
                }
                ["PING"] => self.stream.write_all(b"PONG\r\n").await?,
                ["PONG" | "+OK"] | ["INFO", ..] => {}
                _ => bail!("the server says `{line}`"),
            }
        }
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        loop {
            if let Some(end) = self.received.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8(self.received.split_to(end).to_vec()).context("a line that is no text")?;
                self.received.advance(2);
                return Ok(line);
            }
            ensure!(self.received.len() <= LINE_BYTES_MAX, "a line without an end");
            self.more().await?;
        }
    }

    async fn bytes(&mut self, count: usize) -> anyhow::Result<BytesMut> {
        while self.received.len() < count + 2 {
            self.more().await?;
        }
        let bytes = self.received.split_to(count);
        self.received.advance(2);
        Ok(bytes)
    }

    async fn more(&mut self) -> anyhow::Result<()> {
        let read = self.stream.read_buf(&mut self.received).await.context("receiving")?;
        ensure!(read > 0, "the server closed the connection");
        Ok(())
    }
}

struct NatsClient {
    session: Session,
    values: Arc<Values>,
}

impl Putter for NatsClient {
    async fn put(&mut self, number: u64) -> anyhow::Result<u64> {
        let answer = self.session.ask(&format!("{STREAM}.{number}"), self.values.value(number)).await?;
        ensure!(answer["seq"].is_u64(), "the stream answered {answer}");
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_are_told_from_what_else_a_server_says() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            let (mut stream, from) = listener.accept().await.expect("a client");
            stream.write_all(b"INFO {}\r\n").await.expect("a listener");
            let room = format!("_INBOX.{}", from.port());
            let mut heard = vec![0; 1 << 12];
            for _ in 0..2 {
                let _ = stream.read(&mut heard).await.expect("words");
            }
            let said = format!("PING\r\nMSG {room}.0 1 2\r\n{{}}\r\nMSG {room}.1 1 9\r\n{{\"seq\":7}}\r\n");
            stream.write_all(said.as_bytes()).await.expect("a listener");
            let _ = stream.read(&mut heard).await;
        });
        let mut session = Session::open(address).await.expect("a session");
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(session.ask("bench.1", b"value").await.expect("an answer")["seq"], 7);
    }
}
