//! HTTPS client for servers outside of the cluster, with limits of time and size. It follows no redirects; plain HTTP is
//! allowed only on this machine.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use assay_node_auth::{JWKS_BYTES_MAX, Secret};
use assay_node_identity::{BadStatus, OutwardClient, OutwardServer, ServerUrl, parse_url};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Upper bound of the time from the question to the last byte.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Upper bound of a response body: the size of the largest document, a set of keys.
const ANSWER_BYTES_MAX: usize = JWKS_BYTES_MAX;
const HEAD_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 16 << 10;
/// Files in which systems keep the certificates of the authorities they trust.
const TRUSTED: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The client of this program.
#[derive(Clone, Copy, Debug)]
pub struct TlsClient;

impl OutwardClient for TlsClient {
    fn server(&self, url: &str, ca: Option<&Path>) -> anyhow::Result<Arc<dyn OutwardServer>> {
        Ok(Arc::new(Server::of(url, ca)?))
    }
}

/// One place at a server.
#[derive(Clone, Debug)]
struct Server {
    url: ServerUrl,
    tls: Option<Arc<ClientConfig>>,
}

fn trusted(ca: Option<&Path>) -> anyhow::Result<Arc<ClientConfig>> {
    if let Some(file) = ca {
        return trust_file(file);
    }
    let file = TRUSTED.iter().map(Path::new).find(|file| file.exists());
    let file = file.context("this system has no file of trusted authorities: set jwt.ca or oidc.ca")?;
    trust_file(file)
}

/// Returns a TLS configuration that trusts the certificates in a file.
pub fn trust_file(file: &Path) -> anyhow::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).with_context(|| format!("reading {}", file.display()))?;
    for certificate in certificates {
        let certificate = certificate.with_context(|| format!("reading {}", file.display()))?;
        roots.add(certificate).with_context(|| format!("a certificate of {}", file.display()))?;
    }
    anyhow::ensure!(!roots.is_empty(), "{} has no certificate", file.display());
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

impl Server {
    fn of(url: &str, ca: Option<&Path>) -> anyhow::Result<Server> {
        let parsed = parse_url(url).map_err(anyhow::Error::msg)?;
        let tls = parsed.is_tls.then(|| trusted(ca)).transpose()?;
        Ok(Server { url: parsed, tls })
    }

    fn ask(&self, method: &str, headers: &str, body: &str) -> anyhow::Result<Vec<u8>> {
        let until = Instant::now() + ANSWER_MAX;
        let ServerUrl { host, port, path, .. } = &self.url;
        let named = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {named}:{port}\r\nConnection: close\r\nAccept: application/json\r\n\
             Accept-Encoding: identity\r\nUser-Agent: assay\r\n{headers}\r\n{body}"
        );
        let stream = self.connect(until)?;
        let Some(tls) = &self.tls else { return body_of(&talk(stream, |stream| stream, &request, until)?) };
        let name = ServerName::try_from(host.clone()).context("invalid host name")?;
        let connection = ClientConnection::new(Arc::clone(tls), name)?;
        body_of(&talk(StreamOwned::new(connection, stream), |stream| &mut stream.sock, &request, until)?)
    }

    fn connect(&self, until: Instant) -> anyhow::Result<TcpStream> {
        let mut last = None;
        for address in (self.url.host.as_str(), self.url.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(until)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| anyhow::anyhow!("the name resolves to no address"), Into::into))
    }
}

impl OutwardServer for Server {
    fn get(&self) -> anyhow::Result<Vec<u8>> {
        self.ask("GET", "", "").with_context(|| format!("the request to {} failed", self.url.host))
    }

    fn post(&self, form: &str, authorization: Option<&Secret>) -> anyhow::Result<Vec<u8>> {
        let length = form.len();
        let mut headers = format!("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n");
        if let Some(credential) = authorization {
            headers.push_str(&format!("Authorization: {}\r\n", credential.expose()));
        }
        self.ask("POST", &headers, form).with_context(|| format!("the request to {} failed", self.url.host))
    }
}

fn left(until: Instant) -> anyhow::Result<Duration> {
    let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
    left.with_context(|| format!("the request did not complete within {} s", ANSWER_MAX.as_secs()))
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
            "its response has more than {ANSWER_BYTES_MAX} bytes"
        );
    }
}

/// Returns the body of a 200, whole.
fn body_of(answer: &[u8]) -> anyhow::Result<Vec<u8>> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").context("its response has no head")?;
    anyhow::ensure!(end <= HEAD_BYTES_MAX, "the head of its response is longer than {HEAD_BYTES_MAX} bytes");
    let (head, body) =
        (std::str::from_utf8(&answer[..end]).context("cannot decode the head of its response")?, &answer[end + 4..]);
    let status = head.lines().next().unwrap_or_default().split(' ').nth(1).unwrap_or_default();
    anyhow::ensure!(
        !status.starts_with('3'),
        "it responded with the redirect {status}, which is not followed: set the final URL"
    );
    if status != "200" {
        return Err(BadStatus(status.to_owned()).into());
    }
    let header = |wanted: &str| {
        let mut headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
    };
    let cut = || anyhow::anyhow!("its response is truncated");
    match (header("transfer-encoding"), header("content-length")) {
        (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => unchunked(body).ok_or_else(cut),
        (Some(coding), _) => anyhow::bail!("its response has the unsupported transfer coding `{coding}`"),
        (None, Some(length)) => Ok(body.get(..length.parse().map_err(|_| cut())?).ok_or_else(cut)?.to_vec()),
        (None, None) => Ok(body.to_vec()),
    }
}

/// Joins the chunks of a body; none where it is not whole.
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
    use std::net::TcpListener;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    use assay_node_identity::KeySource;

    use super::*;

    /// A set of one key on P-256.
    const SET: &str = r#"{"keys": [{"kty": "EC", "kid": "p", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;

    /// A server that says this to whoever comes first, in as many pieces; and where it is.
    fn server(pieces: Vec<String>) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys?v=1", listener.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).unwrap();
            pieces.iter().for_each(|piece| drop(stream.write_all(piece.as_bytes())));
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        (url, serving)
    }

    async fn got(pieces: &[&str]) -> (Result<String, String>, String) {
        let (url, serving) = server(pieces.iter().map(|piece| (*piece).to_owned()).collect());
        let keys = KeySource::of(&url, None, &TlsClient).unwrap().get().await;
        (keys.map(|keys| format!("{keys:?}")), serving.join().unwrap())
    }

    #[tokio::test]
    async fn keys_come_from_a_server_however_it_frames_them() {
        let sized = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{SET}", SET.len());
        let (first, second) = SET.split_at(50);
        let chunked = format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n{:x}\r\n{first}\r\n{:X};x=y\r\n{second}\r\n0\r\n\r\n",
            first.len(),
            second.len()
        );
        let plain = format!("HTTP/1.0 200 OK\r\n\r\n{SET}");
        for answer in [&sized, &chunked, &plain] {
            let (keys, request) = got(&[&answer[..30], &answer[30..]]).await;
            assert_eq!(keys.as_deref(), Ok("JwtKeys(1)"), "{answer}");
            assert!(request.starts_with("GET /keys?v=1 HTTP/1.1\r\nHost: 127.0.0.1:"), "{request}");
        }
        for (answer, says) in [
            (&sized[..sized.len() - 1], "is truncated"),
            (&chunked[..chunked.len() - 9], "is truncated"),
            ("HTTP/1.1 301 Moved\r\nLocation: https://other.example/\r\n\r\n", "which is not followed"),
            ("HTTP/1.1 500 X\r\n\r\n", "status `500`"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", "coding `gzip`"),
            ("HTTP/1.1 200 OK\r\n\r\n<html>", "not a JWK set"),
            ("HTTP/1.1 200 OK\r\n\r\n{\"keys\": []}", "no key for RS256"),
            ("", "no head"),
        ] {
            let why = got(&[answer]).await.0.unwrap_err();
            assert!(why.contains(says), "{answer}: {why}");
        }
        let long = "x".repeat(HEAD_BYTES_MAX + JWKS_BYTES_MAX);
        let why = got(&["HTTP/1.1 200 OK\r\n\r\n", &long]).await.0.unwrap_err();
        assert!(why.contains("more than 262144 bytes"), "{why}");
    }

    /// A self-signed pair for `localhost`, of no use anywhere else.
    const PAIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/http/tests/data/first");

    #[tokio::test]
    async fn over_tls_a_server_is_known_by_its_certificate() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (certificate, key) = (format!("{PAIR}.crt"), format!("{PAIR}.key"));
        let chain = CertificateDer::pem_file_iter(&certificate).unwrap().map(Result::unwrap).collect();
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::from_pem_file(key).unwrap();
        let config = Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = StreamOwned::new(connection, stream.unwrap());
                let mut request = [0; 4096];
                // Who does not trust this goes away.
                if stream.read(&mut request).is_ok() {
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{SET}", SET.len());
                    drop(stream.write_all(answer.as_bytes()));
                }
            }
        });
        let ask = async |host: &str, ca: &str| {
            KeySource::of(&format!("https://{host}:{port}/keys"), Some(Path::new(ca)), &TlsClient).unwrap().get().await
        };
        assert_eq!(format!("{:?}", ask("localhost", &certificate).await.unwrap()), "JwtKeys(1)");
        let other = format!("{}.crt", PAIR.replace("first", "second"));
        assert!(ask("localhost", &other).await.unwrap_err().contains("certificate"), "of another authority");
        assert!(ask("127.0.0.1", &certificate).await.unwrap_err().contains("certificate"), "of another name");
    }

    #[tokio::test]
    async fn a_file_is_read_whole_and_a_long_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("keys.json");
        let source = KeySource::of(file.to_str().unwrap(), None, &TlsClient).unwrap();
        assert!(source.get().await.unwrap_err().contains("keys.json"));
        std::fs::write(&file, SET).unwrap();
        assert_eq!(format!("{:?}", source.get().await.unwrap()), "JwtKeys(1)");
        std::fs::write(&file, vec![b' '; JWKS_BYTES_MAX + 10]).unwrap();
        assert!(source.get().await.unwrap_err().contains("at most 262144 bytes"));
    }
}
