//! A plain HTTP/1.1 client on one connection that is kept: no library between the harness and the bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use super::server::API_KEY;

/// An answer that does not come within this time is none.
const WAIT: Duration = Duration::from_secs(20);
const BODY_BYTES_MAX: usize = 256 << 20;

#[derive(Debug)]
pub struct Client {
    connection: BufReader<TcpStream>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Client {
    pub fn connect(address: SocketAddr) -> anyhow::Result<Client> {
        let connection = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(WAIT))?;
        connection.set_write_timeout(Some(WAIT))?;
        Ok(Client { connection: BufReader::new(connection) })
    }

    /// An error means that there was no whole answer: nobody knows what became of the request.
    pub fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send("POST", path, &serde_json::to_vec(body)?)
    }

    fn send(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<Answer> {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: assay\r\nAuthorization: Bearer {API_KEY}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.connection.get_mut().write_all(&request)?;
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok()).context("a status line")?;
        let mut length = 0;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').context("a header")?;
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().context("a length")?;
            }
            anyhow::ensure!(!name.eq_ignore_ascii_case("transfer-encoding"), "answers are to have a length");
        }
        anyhow::ensure!(length <= BODY_BYTES_MAX, "an answer of {length} bytes");
        let mut body = vec![0; length];
        self.connection.read_exact(&mut body)?;
        Ok(Answer { status, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        anyhow::ensure!(self.connection.read_line(&mut line)? > 0, "the connection was closed");
        Ok(line.trim_end().to_owned())
    }
}
