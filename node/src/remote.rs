//! Asking a node through its administrators' listener: one request, one connection, one answer.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use assay_node_auth::Secret;
use assay_node_secrets::read_secret_file;
use clap::Args;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use crate::config;
use crate::desk::{self, TOKEN_FILE, TOKEN_VARIABLE};
use crate::operate::ClusterRequest;

const URL_VARIABLE: &str = "ASSAY_ADMIN_URL";
/// As the setting of a node, which has such a file too.
const TOKEN_FILE_VARIABLE: &str = "ASSAY_ADMIN_TOKEN_FILE";
const CA_VARIABLE: &str = "ASSAY_ADMIN_CA";
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Without a byte for this long the node is not waited for any more; a drain takes up to 30 s.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// The status of the largest cluster has a tenth of it.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Which listener, and how it is known and convinced.
#[derive(Clone, Debug, Default, Args)]
pub struct RemoteArgs {
    /// Ask the node whose administrators' listener is there, as http://127.0.0.1:8001, instead of the one that runs on
    /// --data-dir; also ASSAY_ADMIN_URL
    #[arg(long, value_name = "URL", global = true)]
    pub admin: Option<String>,
    /// A file with that node's token, also ASSAY_ADMIN_TOKEN_FILE; else ASSAY_ADMIN_TOKEN, else `admin.token` in --data-dir
    #[arg(long, value_name = "FILE", global = true)]
    pub admin_token_file: Option<PathBuf>,
    /// The certificate to trust for https, or that of its authority, as PEM; also ASSAY_ADMIN_CA
    #[arg(long, value_name = "FILE", global = true)]
    pub admin_ca: Option<PathBuf>,
}

impl RemoteArgs {
    /// What no flag says is taken from the environment, where an empty variable says nothing.
    pub fn or_environment(self) -> anyhow::Result<RemoteArgs> {
        let file = |name: &str| config::variable(name).map(PathBuf::from);
        let url = config::variable(URL_VARIABLE).map(OsString::into_string).transpose();
        let url = url.map_err(|_| anyhow::anyhow!("{URL_VARIABLE} is no text"))?;
        Ok(RemoteArgs {
            admin: self.admin.or(url),
            admin_token_file: self.admin_token_file.or_else(|| file(TOKEN_FILE_VARIABLE)),
            admin_ca: self.admin_ca.or_else(|| file(CA_VARIABLE)),
        })
    }
}

#[derive(Clone, Debug)]
pub struct Remote {
    url: String,
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    token: Secret,
}

impl Remote {
    /// None where no listener is named.
    pub fn of(args: &RemoteArgs, data_dir: &Path) -> anyhow::Result<Option<Remote>> {
        let Some(url) = &args.admin else { return Ok(None) };
        let Place { is_tls, host, port } = place_of(url)?;
        let tls = is_tls.then(|| trusting(args.admin_ca.as_deref())).transpose()?;
        let token = match (&args.admin_token_file, desk::variable(TOKEN_VARIABLE)?) {
            (Some(file), _) => read_secret_file(file, desk::WHAT)?,
            (None, Some(token)) => token,
            (None, None) => read_secret_file(&data_dir.join(TOKEN_FILE), desk::WHAT).with_context(|| {
                format!("no token for {url}: name its file with --admin-token-file, or set {TOKEN_VARIABLE}")
            })?,
        };
        Ok(Some(Remote { url: url.clone(), host, port, tls, token }))
    }

    pub fn ask(&self, request: &ClusterRequest) -> anyhow::Result<Value> {
        let (operation, fields) = match serde_json::to_value(request)? {
            Value::Object(whole) => whole.into_iter().next().context("a request without its operation")?,
            plain => (plain.as_str().unwrap_or_default().to_owned(), json!({})),
        };
        let body = fields.to_string();
        let head = format!(
            "POST /cluster/{operation} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            self.port,
            self.token.expose(),
            body.len()
        );
        let bytes = self.exchange(head.as_bytes()).with_context(|| format!("asking {}", self.url))?;
        answer_of(&bytes).with_context(|| format!("{} answered", self.url))
    }

    fn exchange(&self, request: &[u8]) -> anyhow::Result<Vec<u8>> {
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        let Some(tls) = &self.tls else { return talk(&mut stream, request) };
        let name = ServerName::try_from(self.host.clone()).context("the host's name")?;
        let connection = ClientConnection::new(Arc::clone(tls), name)?;
        talk(&mut StreamOwned::new(connection, stream), request)
    }

    fn connect(&self) -> anyhow::Result<TcpStream> {
        let mut last = None;
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_MAX) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| anyhow::anyhow!("the name stands for no address"), Into::into))
    }
}

/// Sends all and reads until the other side closes.
fn talk(stream: &mut (impl Read + Write), request: &[u8]) -> anyhow::Result<Vec<u8>> {
    stream.write_all(request)?;
    stream.flush()?;
    let mut bytes = Vec::new();
    match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes) {
        // What came is judged by its length.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
        read => drop(read?),
    }
    Ok(bytes)
}

/// The value of a 200; of another answer the sentence that says why.
fn answer_of(bytes: &[u8]) -> anyhow::Result<Value> {
    let cut = || anyhow::anyhow!("something that is no whole answer");
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(cut)?;
    let head = std::str::from_utf8(&bytes[..end])?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    let length = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok()).flatten()
    };
    let length = head.lines().find_map(length).ok_or_else(cut)?;
    let body: Value = serde_json::from_slice(bytes[end + 4..].get(..length).ok_or_else(cut)?)?;
    match status {
        "200" => Ok(body),
        status => anyhow::bail!("{}", body["Message"].as_str().unwrap_or(status)),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Place {
    is_tls: bool,
    host: String,
    port: u16,
}

fn place_of(url: &str) -> anyhow::Result<Place> {
    let wrong = |why: &str| anyhow::anyhow!("--admin {url}: {why}; it should be like http://127.0.0.1:8001");
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
    let is_tls = match scheme {
        "https" => true,
        "http" => false,
        _ => return Err(wrong("it is neither http nor https")),
    };
    let (host, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or_else(|| wrong("it names no port"))?;
    let port = port.parse().map_err(|_| wrong("it names no port"))?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte)) {
        return Err(wrong("it names no host"));
    }
    let is_here =
        || host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.to_canonical().is_loopback());
    if !is_tls && !is_here() {
        return Err(wrong("the token would travel in plain text to another machine: use https"));
    }
    Ok(Place { is_tls, host: host.to_owned(), port })
}

fn trusting(file: Option<&Path>) -> anyhow::Result<Arc<ClientConfig>> {
    trusting_file(file.context("https needs a certificate to trust: name its file with --admin-ca")?)
}

/// Whoever has a certificate of an authority in this file.
pub fn trusting_file(file: &Path) -> anyhow::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).with_context(|| format!("reading {}", file.display()))?;
    for certificate in certificates {
        let certificate = certificate.with_context(|| format!("reading {}", file.display()))?;
        roots.add(certificate).with_context(|| format!("a certificate of {}", file.display()))?;
    }
    anyhow::ensure!(!roots.is_empty(), "there is no certificate in {}", file.display());
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_place_and_a_plain_one_is_on_this_machine() {
        let place = |url: &str| place_of(url).map(|place| (place.is_tls, place.host, place.port));
        assert_eq!(place("http://127.0.0.1:8001").unwrap(), (false, "127.0.0.1".into(), 8001));
        assert_eq!(place("http://[::1]:8001/").unwrap(), (false, "::1".into(), 8001));
        assert_eq!(place("https://node-1.example:8001").unwrap(), (true, "node-1.example".into(), 8001));
        for (wrong, part) in [
            ("127.0.0.1:8001", "no scheme"),
            ("ftp://a:1", "neither"),
            ("http://localhost", "no port"),
            ("https://:1", "no host"),
            ("https://a/b:1", "no host"),
            ("http://10.0.0.1:8001", "use https"),
        ] {
            let why = place(wrong).unwrap_err().to_string();
            assert!(why.contains(part) && why.contains("http://127.0.0.1:8001"), "{why}");
        }
    }

    #[test]
    fn an_answer_is_its_value_or_why_there_is_none() {
        let answer = |text: &str| answer_of(text.as_bytes());
        assert_eq!(answer("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"a\": 1}\n").unwrap(), json!({"a": 1}));
        let refused = answer("HTTP/1.1 401 X\r\nContent-Length: 17\r\n\r\n{\"Message\": \"no\"}");
        assert_eq!(refused.unwrap_err().to_string(), "no");
        for cut in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"a\""] {
            assert!(answer(cut).unwrap_err().to_string().contains("no whole answer"), "{cut}");
        }
    }
}
