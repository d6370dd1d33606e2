//! What this program asks of servers of others: https, or plain http on this machine alone; no redirects; and limits of time
//! and size.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use assay_node_auth::{JWKS_BYTES_MAX, Secret};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::remote;

/// From the question to the last byte.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The body of an answer. Nothing that is asked for is longer than a set of keys.
const ANSWER_BYTES_MAX: usize = JWKS_BYTES_MAX;
pub const HEAD_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 16 << 10;
/// Where systems keep the certificates of the authorities they trust.
const TRUSTED: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// One place at a server.
#[derive(Clone, Debug)]
pub struct Server {
    place: Place,
    tls: Option<Arc<ClientConfig>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub is_tls: bool,
    host: String,
    port: u16,
    /// With its query.
    path: String,
}

/// It answered, and not 200.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadStatus(pub String);

impl fmt::Display for BadStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it answered with the status `{}`", self.0)
    }
}

impl std::error::Error for BadStatus {}

/// Says what is wrong with an address before anything is asked of it.
pub fn place_of(url: &str) -> Result<Place, String> {
    let wrong = |why: &str| Err(format!("`{url}`: {why}; it should be like https://issuer.example/path"));
    let (is_tls, rest) = match url.split_once("://") {
        Some(("https", rest)) => (true, rest),
        Some(("http", rest)) => (false, rest),
        _ => return wrong("it is neither https nor http"),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = match authority.rsplit_once(':') {
        // The colons within brackets are those of an address.
        Some((host, port)) if !port.ends_with(']') => match port.parse() {
            Ok(port) => (host, port),
            Err(_) => return wrong("its port is no number"),
        },
        _ => (authority, if is_tls { 443 } else { 80 }),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte)) {
        return wrong("it names no host, or more than a host");
    }
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains('#') {
        return wrong("its path has letters that do not belong there");
    }
    let is_here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback());
    if !is_tls && !is_here {
        return wrong("what comes in plain text is changed on the way by anybody: use https");
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok(Place { is_tls, host: host.to_owned(), port, path })
}

fn trusted(ca: Option<&Path>) -> anyhow::Result<Arc<ClientConfig>> {
    if let Some(file) = ca {
        return remote::trusting_file(file);
    }
    let file = TRUSTED.iter().map(Path::new).find(|file| file.exists());
    let file = file.context("this system has no file of authorities to trust: name one with jwt.ca or oidc.ca")?;
    remote::trusting_file(file)
}

impl Server {
    pub fn of(url: &str, ca: Option<&Path>) -> anyhow::Result<Server> {
        let place = place_of(url).map_err(anyhow::Error::msg)?;
        let tls = place.is_tls.then(|| trusted(ca)).transpose()?;
        Ok(Server { place, tls })
    }

    pub fn get(&self) -> anyhow::Result<Vec<u8>> {
        self.ask("GET", "", "").with_context(|| format!("asking {}", self.place.host))
    }

    /// A form, with the credential that `Authorization` is to have.
    pub fn post(&self, form: &str, authorization: Option<&Secret>) -> anyhow::Result<Vec<u8>> {
        let length = form.len();
        let mut headers = format!("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n");
        if let Some(credential) = authorization {
            headers.push_str(&format!("Authorization: {}\r\n", credential.expose()));
        }
        self.ask("POST", &headers, form).with_context(|| format!("asking {}", self.place.host))
    }

    fn ask(&self, method: &str, headers: &str, body: &str) -> anyhow::Result<Vec<u8>> {
        let until = Instant::now() + ANSWER_MAX;
        let Place { host, port, path, .. } = &self.place;
        let named = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {named}:{port}\r\nConnection: close\r\nAccept: application/json\r\n\
             Accept-Encoding: identity\r\nUser-Agent: assay\r\n{headers}\r\n{body}"
        );
        let stream = self.connect(until)?;
        let Some(tls) = &self.tls else { return body_of(&talk(stream, |stream| stream, &request, until)?) };
        let name = ServerName::try_from(host.clone()).context("the host's name")?;
        let connection = ClientConnection::new(Arc::clone(tls), name)?;
        body_of(&talk(StreamOwned::new(connection, stream), |stream| &mut stream.sock, &request, until)?)
    }

    fn connect(&self, until: Instant) -> anyhow::Result<TcpStream> {
        let mut last = None;
        for address in (self.place.host.as_str(), self.place.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(until)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| anyhow::anyhow!("the name stands for no address"), Into::into))
    }
}

fn left(until: Instant) -> anyhow::Result<Duration> {
    let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
    left.with_context(|| format!("not done within {} s", ANSWER_MAX.as_secs()))
}

/// Sends all and reads until the other side closes, never for longer than there is time.
fn talk<S: Read + Write>(
    mut stream: S,
    socket: impl Fn(&mut S) -> &mut TcpStream,
    request: &str,
    until: Instant,
) -> anyhow::Result<Vec<u8>> {
    let wait = |stream: &mut S| -> anyhow::Result<()> {
        let left = left(until)?;
        let socket = socket(stream);
        socket.set_read_timeout(Some(left))?;
        Ok(socket.set_write_timeout(Some(left))?)
    };
    wait(&mut stream)?;
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let (mut bytes, mut part) = (Vec::new(), vec![0; READ_BYTES]);
    loop {
        wait(&mut stream)?;
        let read = match stream.read(&mut part) {
            Ok(read) => read,
            // What came is judged by its length.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => 0,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        if read == 0 {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&part[..read]);
        anyhow::ensure!(
            bytes.len() <= HEAD_BYTES_MAX + ANSWER_BYTES_MAX,
            "it answers more than {ANSWER_BYTES_MAX} bytes"
        );
    }
}

/// What a 200 brings, whole.
fn body_of(answer: &[u8]) -> anyhow::Result<Vec<u8>> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").context("it answered no head")?;
    anyhow::ensure!(end <= HEAD_BYTES_MAX, "the head of its answer is longer than {HEAD_BYTES_MAX} bytes");
    let (head, body) = (std::str::from_utf8(&answer[..end]).context("the head of its answer")?, &answer[end + 4..]);
    let status = head.lines().next().unwrap_or_default().split(' ').nth(1).unwrap_or_default();
    anyhow::ensure!(
        !status.starts_with('3'),
        "it answered {status}: redirects are not followed, name the place itself"
    );
    if status != "200" {
        return Err(BadStatus(status.to_owned()).into());
    }
    let header = |wanted: &str| {
        let mut headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
    };
    let cut = || anyhow::anyhow!("its answer broke off");
    match (header("transfer-encoding"), header("content-length")) {
        (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => unchunked(body).ok_or_else(cut),
        (Some(coding), _) => anyhow::bail!("it answers in the coding `{coding}`, which was not asked for"),
        (None, Some(length)) => Ok(body.get(..length.parse().map_err(|_| cut())?).ok_or_else(cut)?.to_vec()),
        (None, None) => Ok(body.to_vec()),
    }
}

/// None where it is not whole.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = std::str::from_utf8(&rest[..line]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        rest = rest.get(line + 2..)?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_or_on_this_machine() {
        let place = |url: &str| place_of(url).map(|place| (place.is_tls, place.host, place.port, place.path));
        assert_eq!(place("https://a.example"), Ok((true, "a.example".into(), 443, "/".into())));
        assert_eq!(
            place("https://a.example:8443/x/y.json?z=1"),
            Ok((true, "a.example".into(), 8443, "/x/y.json?z=1".into()))
        );
        assert_eq!(place("https://[2001:db8::1]/k"), Ok((true, "2001:db8::1".into(), 443, "/k".into())));
        assert_eq!(place("http://[::1]:80/k"), Ok((false, "::1".into(), 80, "/k".into())));
        assert_eq!(place("http://localhost?q"), Ok((false, "localhost".into(), 80, "/?q".into())));
        for (url, says) in [
            ("http://a.example/k", "use https"),
            ("ftp://a.example/k", "neither https nor http"),
            ("https:///k", "no host"),
            ("https://user@a.example/k", "more than a host"),
            ("https://user:pw@a.example/k", "no number"),
            ("https://a.example:x/k", "no number"),
            ("https://a.example/a b", "letters"),
            ("https://a.example/a\r\nX: y", "letters"),
            ("https://a.example/#k", "letters"),
        ] {
            assert!(place_of(url).unwrap_err().contains(says), "{url}");
        }
    }
}
