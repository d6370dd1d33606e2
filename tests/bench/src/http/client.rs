//! One keep-alive connection to a server, one request at a time. Little code is between the bytes and the socket, so
//! that the processor's time is the server's.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use bytes::{Buf, Bytes};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::http_message::{Chunks, Head, Length, read_head, request_head};

/// Timeout of a response, after which the measurement fails.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(60);
/// Maximum size of a response, far above any page or list requested here.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;
/// Characters of an unexpected answer that are shown.
const SHOWN_CHARS: usize = 400;

/// Address of a server, and credentials for it.
#[derive(Clone, Debug)]
pub struct Target {
    pub address: SocketAddr,
    pub key: Option<String>,
}

#[derive(Clone, Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// The answer of a request that must succeed.
    pub fn ok(self, asked: &str) -> anyhow::Result<Vec<u8>> {
        if self.status == 200 {
            return Ok(self.body);
        }
        let text: String = String::from_utf8_lossy(&self.body).chars().take(SHOWN_CHARS).collect();
        Err(anyhow!("{asked} was answered {}: {text}", self.status))
    }

    pub fn json<T: DeserializeOwned>(self, asked: &str) -> anyhow::Result<T> {
        serde_json::from_slice(&self.ok(asked)?).with_context(|| format!("the answer to {asked}"))
    }
}

#[derive(Debug)]
pub struct Connection {
    target: Target,
    host: String,
    /// Headers of every request, instead of the JSON content type.
    said: Vec<(&'static str, &'static str)>,
    /// None before the first request, and after an answer that closed it.
    stream: Option<TcpStream>,
    received: Vec<u8>,
}

impl Connection {
    pub fn new(target: &Target) -> Connection {
        Connection {
            target: target.clone(),
            host: target.address.to_string(),
            said: Vec::new(),
            stream: None,
            received: Vec::with_capacity(READ_BYTES),
        }
    }

    /// Creates a client with these headers.
    pub fn saying(target: &Target, said: &[(&'static str, &'static str)]) -> Connection {
        Connection { said: said.to_vec(), ..Connection::new(target) }
    }

    /// Connects, unless it is connected. After an error the following request was surely not sent.
    pub async fn open(&mut self) -> anyhow::Result<()> {
        // As any client's library looks whether the server has closed an idle connection.
        if self.stream.as_ref().is_some_and(|stream| stream.try_read(&mut [0; 1]).is_ok()) {
            self.stream = None;
        }
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.target.address).await.context("connecting")?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        Ok(())
    }

    pub async fn post(&mut self, path: &str, body: &Bytes) -> anyhow::Result<HttpResponse> {
        self.ask("POST", path, body).await
    }

    pub async fn put(&mut self, path: &str, body: &Bytes) -> anyhow::Result<HttpResponse> {
        self.ask("PUT", path, body).await
    }

    pub async fn get(&mut self, path: &str) -> anyhow::Result<HttpResponse> {
        self.ask("GET", path, &Bytes::new()).await
    }

    /// Requests what may be larger than memory: the body goes to `sink` as it arrives. Returns the start of the next
    /// page, if there is one.
    pub async fn post_into(
        &mut self,
        path: &str,
        body: &Bytes,
        sink: &mut (impl Write + Send),
    ) -> anyhow::Result<Option<String>> {
        let head = timeout(ANSWER_WAIT_MAX, self.send("POST", path, body)).await;
        let head = head.map_err(|_| anyhow!("no answer within {} s", ANSWER_WAIT_MAX.as_secs())).flatten();
        let head = head.with_context(|| format!("POST {path}"))?;
        let mut stream = self.stream.take().context("a connection")?;
        if head.status != 200 {
            let body = self.body(&mut stream, &head).await?;
            HttpResponse { status: head.status, retry_after: head.retry_after, body }.ok(path)?;
        }
        self.received.drain(..head.bytes);
        match head.length {
            Length::Bytes(bytes) => self.pour(&mut stream, bytes, sink).await?,
            Length::Chunked => self.pour_chunks(&mut stream, sink).await?,
        }
        ensure!(self.received.is_empty(), "the server goes on after its answer");
        if !head.closes {
            self.stream = Some(stream);
        }
        Ok(head.cursor)
    }

    async fn pour(&mut self, stream: &mut TcpStream, bytes: usize, sink: &mut impl Write) -> anyhow::Result<()> {
        let mut left = bytes;
        loop {
            let some = left.min(self.received.len());
            sink.write_all(&self.received[..some])?;
            self.received.drain(..some);
            left -= some;
            if left == 0 {
                return Ok(());
            }
            timeout(ANSWER_WAIT_MAX, read_more(stream, &mut self.received)).await.context("no more of the body")??;
        }
    }

    async fn pour_chunks(&mut self, stream: &mut TcpStream, sink: &mut impl Write) -> anyhow::Result<()> {
        let mut piece = Vec::new();
        loop {
            let mut chunks = Chunks::from(0);
            let end = chunks.read(&self.received, &mut piece).map_err(anyhow::Error::msg)?;
            sink.write_all(&piece)?;
            piece.clear();
            self.received.drain(..end.unwrap_or(chunks.at()));
            if end.is_some() {
                return Ok(());
            }
            timeout(ANSWER_WAIT_MAX, read_more(stream, &mut self.received)).await.context("no more of the body")??;
        }
    }

    async fn ask(&mut self, method: &str, path: &str, body: &Bytes) -> anyhow::Result<HttpResponse> {
        let answer = timeout(ANSWER_WAIT_MAX, self.exchange(method, path, body)).await;
        if !matches!(answer, Ok(Ok(_))) {
            // What is left of it would be taken for the next answer.
            self.stream = None;
        }
        let answer = answer.map_err(|_| anyhow!("no answer within {} s", ANSWER_WAIT_MAX.as_secs())).flatten();
        answer.with_context(|| format!("{method} {path}"))
    }

    async fn exchange(&mut self, method: &str, path: &str, body: &Bytes) -> anyhow::Result<HttpResponse> {
        let head = self.send(method, path, body).await?;
        let mut stream = self.stream.take().context("a connection")?;
        let body = self.body(&mut stream, &head).await?;
        if !head.closes {
            self.stream = Some(stream);
        }
        Ok(HttpResponse { status: head.status, retry_after: head.retry_after, body })
    }

    /// Sends a request and reads the head of its answer, and what came with it. The connection is there only where this
    /// succeeds.
    async fn send(&mut self, method: &str, path: &str, body: &Bytes) -> anyhow::Result<Head> {
        self.open().await?;
        let mut stream = self.stream.take().context("a connection")?;
        let head = request_head(method, path, &self.host, self.target.key.as_deref(), &self.said, body.len());
        let mut request = Bytes::from(head).chain(body.clone());
        stream.write_all_buf(&mut request).await.context("sending")?;
        self.received.clear();
        let head = loop {
            if let Some(head) = read_head(&self.received).map_err(anyhow::Error::msg)? {
                break head;
            }
            read_more(&mut stream, &mut self.received).await?;
        };
        self.stream = Some(stream);
        Ok(head)
    }

    async fn body(&mut self, stream: &mut TcpStream, head: &Head) -> anyhow::Result<Vec<u8>> {
        let (end, body) = match head.length {
            Length::Bytes(bytes) => {
                ensure!(bytes <= ANSWER_BYTES_MAX, "an answer of {bytes} bytes");
                let end = head.bytes + bytes;
                self.received.reserve(end.saturating_sub(self.received.len()));
                while self.received.len() < end {
                    read_more(stream, &mut self.received).await?;
                }
                (end, self.received[head.bytes..end].to_vec())
            }
            Length::Chunked => {
                let (mut chunks, mut body) = (Chunks::from(head.bytes), Vec::new());
                let end = loop {
                    if let Some(end) = chunks.read(&self.received, &mut body).map_err(anyhow::Error::msg)? {
                        break end;
                    }
                    read_more(stream, &mut self.received).await?;
                };
                (end, body)
            }
        };
        ensure!(self.received.len() == end, "the server goes on after its answer");
        Ok(body)
    }
}

async fn read_more(stream: &mut TcpStream, received: &mut Vec<u8>) -> anyhow::Result<()> {
    ensure!(received.len() <= ANSWER_BYTES_MAX, "an answer of more than {ANSWER_BYTES_MAX} bytes");
    received.reserve(READ_BYTES);
    if stream.read_buf(received).await.context("receiving")? == 0 {
        bail!("the server closed the connection in the middle of an answer");
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A server that reads requests without looking at them and gives these answers in turn, then closes.
    pub async fn scripted(answers: &'static [&'static str]) -> Target {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            let mut answers = answers.iter();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 1 << 16];
                while let Ok(1..) = stream.read(&mut request).await {
                    let Some(answer) = answers.next() else { return };
                    stream.write_all(answer.as_bytes()).await.expect("a client that listens");
                    if answer.contains("connection: close") {
                        break;
                    }
                }
            }
        });
        Target { address, key: None }
    }

    #[tokio::test]
    async fn a_body_is_poured_however_it_is_sent_and_the_next_page_is_named() {
        let target = scripted(&[
            "HTTP/1.1 200 OK\r\nx-bt-cursor: abc\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\nno",
        ])
        .await;
        let (mut connection, body) = (Connection::new(&target), Bytes::from_static(b"{}"));
        let mut poured = Vec::new();
        let cursor = connection.post_into("/", &body, &mut poured).await.expect("an answer");
        assert_eq!((poured.as_slice(), cursor.as_deref()), (&b"hello"[..], Some("abc")));
        poured.clear();
        assert_eq!(connection.post_into("/", &body, &mut poured).await.expect("an answer"), None);
        assert_eq!(poured, b"[1,2]");
        let refused = connection.post_into("/", &body, &mut poured).await.expect_err("not 200");
        assert!(refused.to_string().contains("400: no"), "{refused}");
    }

    #[tokio::test]
    async fn answers_follow_each_other_on_one_connection_or_on_a_new_one() {
        let target = scripted(&[
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n",
            "HTTP/1.1 503 Not Now\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nlate",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        ])
        .await;
        let mut connection = Connection::new(&target);
        assert_eq!(connection.get("/").await.expect("an answer").body, b"{}");
        assert_eq!(connection.get("/").await.expect("an answer").json::<Vec<u8>>("it").expect("JSON"), [1, 2]);
        let late = connection.post("/", &Bytes::from_static(b"{}")).await.expect("an answer");
        assert_eq!((late.status, late.retry_after), (503, Some(Duration::from_secs(1))));
        assert!(late.ok("it").expect_err("not 200").to_string().contains("503: late"));
        assert_eq!(connection.get("/").await.expect("on a new connection").status, 200);
        assert!(connection.get("/").await.is_err(), "closed without an answer");
    }

    #[tokio::test]
    async fn bytes_after_an_answer_are_an_error_and_not_the_next_answer() {
        let target = scripted(&["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP"]).await;
        assert!(Connection::new(&target).get("/").await.is_err());
    }
}
