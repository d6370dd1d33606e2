//! Servers on loopback with scripted replies, and a scripted resolver.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_node_egress::{
    EgressClient, EgressConfig, EgressOptions, EgressPolicy, EgressPurpose, EgressRequest, EgressSettings, EgressTimes,
    EgressUrl, NameResolver, OwnEndpoints, PoolLimits, TrustedRoots,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

pub const WITHIN: Duration = Duration::from_secs(5);

/// Action of a server after its reply.
#[derive(Clone, Copy, Debug)]
pub enum Behind {
    Keep,
    Close,
    /// The server keeps the connection open without sending anything.
    Hang,
}

/// Reply of a server: pieces with pauses before them.
#[derive(Clone, Debug)]
pub struct ScriptedReply {
    pub pieces: Vec<(Duration, Vec<u8>)>,
    pub behind: Behind,
}

pub fn reply(text: &str, behind: Behind) -> ScriptedReply {
    ScriptedReply { pieces: vec![(Duration::ZERO, text.as_bytes().to_vec())], behind }
}

pub fn ok(body: &str) -> ScriptedReply {
    reply(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()), Behind::Keep)
}

/// Observations of a server.
#[derive(Debug, Default)]
pub struct Witness {
    pub connections: AtomicUsize,
    pub closed: AtomicUsize,
    pub requests: Mutex<Vec<String>>,
}

impl Witness {
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no test panics with it").clone()
    }

    /// Waits until the peers have closed a number of connections.
    pub async fn closed(&self, number: usize) {
        let closed = async {
            while self.closed.load(Ordering::SeqCst) < number {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(WITHIN, closed).await.expect("the connection is closed");
    }
}

type Script = Arc<dyn Fn(&str) -> ScriptedReply + Send + Sync>;

/// Server on loopback.
#[derive(Debug)]
pub struct ScriptedServer {
    pub port: u16,
    pub witness: Arc<Witness>,
}

impl ScriptedServer {
    pub async fn new(script: impl Fn(&str) -> ScriptedReply + Send + Sync + 'static) -> ScriptedServer {
        ScriptedServer::at("127.0.0.1", script).await
    }

    pub async fn at(ip: &str, script: impl Fn(&str) -> ScriptedReply + Send + Sync + 'static) -> ScriptedServer {
        let listener = TcpListener::bind((ip, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let (witness, script) = (Arc::new(Witness::default()), Arc::new(script) as Script);
        let seen = Arc::clone(&witness);
        tokio::spawn(async move {
            loop {
                let Ok((socket, _)) = listener.accept().await else { return };
                seen.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(socket, Arc::clone(&seen), Arc::clone(&script)));
            }
        });
        ScriptedServer { port, witness }
    }

    pub fn url(&self, host: &str, path: &str) -> EgressUrl {
        format!("http://{host}:{}{path}", self.port).parse().expect("a URL of a test")
    }
}

/// Reads requests and sends replies until one side closes.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut socket: S, seen: Arc<Witness>, script: Script) {
    while let Some(request) = read_request(&mut socket).await {
        let reply = script(&request);
        seen.requests.lock().expect("no test panics with it").push(request);
        for (pause, piece) in reply.pieces {
            tokio::time::sleep(pause).await;
            if socket.write_all(&piece).await.is_err() || socket.flush().await.is_err() {
                break;
            }
        }
        match reply.behind {
            Behind::Keep => {}
            Behind::Close => return drop(socket.shutdown().await),
            Behind::Hang => {
                let mut rest = Vec::new();
                drop(socket.read_to_end(&mut rest).await);
                break;
            }
        }
    }
    seen.closed.fetch_add(1, Ordering::SeqCst);
}

async fn read_request<S: AsyncRead + Unpin>(socket: &mut S) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a length")) {
                return Some(text);
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// Names with their answers. Each query takes the next answer, and the last one stays.
#[derive(Debug, Default)]
pub struct ScriptedResolver {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    pub questions: AtomicUsize,
}

impl ScriptedResolver {
    pub fn new(names: &[(&str, &[&[&str]])]) -> Arc<ScriptedResolver> {
        let addresses = |texts: &&[&str]| texts.iter().map(|text| text.parse().expect("an address")).collect();
        let answers = names.iter().map(|(name, answers)| ((*name).to_owned(), answers.iter().map(addresses).collect()));
        Arc::new(ScriptedResolver { answers: Mutex::new(answers.collect()), questions: AtomicUsize::new(0) })
    }
}

impl NameResolver for ScriptedResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.questions.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().expect("no test panics with it");
        let answer =
            answers.get_mut(name).map(|answers| if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() });
        async move { answer.ok_or_else(|| io::Error::other("no such name")) }.boxed()
    }
}

/// Settings that list loopback by address, and `up.example` by name.
pub const LISTED: &str = r#"
public = true
[[allow]]
cidr = "127.0.0.1"
ports = ["1-65535"]
for = ["models", "media", "webhooks"]
[[allow]]
host = "up.example"
ports = ["1-65535"]
for = ["models", "media", "webhooks"]
"#;

pub fn policy(settings: &str) -> EgressPolicy {
    let settings: EgressSettings = toml::from_str(settings).expect("settings of a test");
    EgressPolicy::new(&settings, OwnEndpoints::default()).expect("a policy of a test")
}

pub fn config(resolver: &Arc<ScriptedResolver>) -> EgressConfig {
    EgressConfig {
        roots: TrustedRoots::none(),
        resolver: Arc::clone(resolver) as Arc<dyn NameResolver>,
        proxy: None,
        pool: PoolLimits::default(),
    }
}

/// Creates a client for which `up.example` and `other.example` are loopback.
pub fn client() -> EgressClient {
    let resolver = ScriptedResolver::new(&[("up.example", &[&["127.0.0.1"]]), ("other.example", &[&["127.0.0.1"]])]);
    EgressClient::new(config(&resolver), policy(LISTED))
}

pub fn options() -> EgressOptions {
    let times = EgressTimes { total: WITHIN, between_chunks: Duration::MAX, ..EgressTimes::WHOLE };
    EgressOptions { times, ..EgressOptions::new(EgressPurpose::Models, Uuid::from_u128(1)) }
}

pub async fn get(client: &EgressClient, url: EgressUrl, options: &EgressOptions) -> String {
    let sent = client.send(&EgressRequest::get(url), options).await;
    let response = sent.unwrap_or_else(|error| panic!("{error}: {}", error.operator_reason()));
    String::from_utf8(response.body.collect().await.expect("a whole body").to_vec()).expect("a text")
}

/// Waits for a condition, with the patience of a test.
pub async fn soon<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(WITHIN, what).await.expect("in time")
}
