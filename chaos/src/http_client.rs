//! Plain HTTP/1.1 client on one persistent connection, without a library between the harness and the bytes.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

type Headers = Vec<(String, String)>;

const BODY_BYTES_MAX: usize = 256 << 20;

#[derive(Debug)]
pub struct HttpClient {
    connection: BufReader<TcpStream>,
    key: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HttpResponse {
    pub status: u16,
    /// Names in small letters.
    pub headers: Headers,
    pub body: Value,
}

impl HttpResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

impl HttpClient {
    /// `wait`: an answer that does not come within this time is none.
    pub fn connect(address: SocketAddr, key: &str, wait: Duration) -> anyhow::Result<HttpClient> {
        let connection =
            TcpStream::connect_timeout(&address, wait).with_context(|| format!("connecting to {address}"))?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(wait))?;
        connection.set_write_timeout(Some(wait))?;
        Ok(HttpClient { connection: BufReader::new(connection), key: key.to_owned() })
    }

    /// Returns whether the other side seems to hold the connection: a send on a closed one would have an unknown
    /// outcome for no reason.
    pub fn is_open(&self) -> bool {
        let stream = self.connection.get_ref();
        let peeked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
        let quiet = peeked.is_err_and(|why| why.kind() == ErrorKind::WouldBlock);
        stream.set_nonblocking(false).is_ok() && quiet
    }

    /// Sets the timeout of the following requests.
    pub fn set_wait(&self, wait: Duration) -> anyhow::Result<()> {
        self.connection.get_ref().set_read_timeout(Some(wait)).context("setting how long to wait")
    }

    /// Sends a POST. An error means an incomplete response: the outcome of the request is unknown.
    pub fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<HttpResponse> {
        self.send("POST", path, &[], &serde_json::to_vec(body)?)
    }

    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> anyhow::Result<HttpResponse> {
        let (key, length) = (&self.key, body.len());
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: assay\r\nAuthorization: Bearer {key}\r\nContent-Length: {length}\r\n"
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        let mut request = request.into_bytes();
        request.extend_from_slice(body);
        self.connection.get_mut().write_all(&request)?;
        self.answer()
    }

    /// A page that is no JSON.
    pub fn text(&mut self, path: &str) -> anyhow::Result<String> {
        // Metrics are given to whoever names the node by its address.
        let host = self.connection.get_ref().peer_addr()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.connection.get_mut().write_all(request.as_bytes())?;
        Ok(String::from_utf8_lossy(&self.bytes()?.2).into_owned())
    }

    /// Returns the server's time, in seconds of the day, from a response's header.
    pub fn time_of_day(&mut self) -> anyhow::Result<i64> {
        self.connection.get_mut().write_all(b"GET /healthz HTTP/1.1\r\nHost: assay\r\n\r\n")?;
        let (_, headers, _) = self.bytes()?;
        let date = headers.iter().find(|(name, _)| name == "date").context("no date")?;
        seconds_of_day(&date.1).with_context(|| format!("the date {}", date.1))
    }

    fn answer(&mut self) -> anyhow::Result<HttpResponse> {
        let (status, headers, body) = self.bytes()?;
        // Not `from_slice`: that would be compiled here and not with its crate, which is built to be fast.
        let body = std::str::from_utf8(&body).ok().and_then(|text| text.parse().ok()).unwrap_or(Value::Null);
        Ok(HttpResponse { status, headers, body })
    }

    fn bytes(&mut self) -> anyhow::Result<(u16, Headers, Vec<u8>)> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok()).context("a status line")?;
        let (mut headers, mut length) = (Vec::new(), 0);
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').context("a header")?;
            let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
            if name == "content-length" {
                length = value.parse().context("a length")?;
            }
            anyhow::ensure!(name != "transfer-encoding", "answers are to have a length");
            headers.push((name, value));
        }
        anyhow::ensure!(length <= BODY_BYTES_MAX, "an answer of {length} bytes");
        let mut body = vec![0; length];
        self.connection.read_exact(&mut body)?;
        Ok((status, headers, body))
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        anyhow::ensure!(self.connection.read_line(&mut line)? > 0, "the connection was closed");
        Ok(line.trim_end().to_owned())
    }
}

/// Seconds of the day in a date like `Tue, 15 Nov 1994 08:12:31 GMT`.
fn seconds_of_day(date: &str) -> Option<i64> {
    let mut parts = date.split(' ').nth(4)?.split(':').map(|part| part.parse::<i64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    Some((hours * 60 + minutes) * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_tells_the_time_of_day() {
        assert_eq!(seconds_of_day("Tue, 15 Nov 1994 08:12:31 GMT"), Some(29_551));
        assert_eq!(seconds_of_day("yesterday"), None);
    }
}
