//! Client of the administrators' HTTP listener of a node: one connection for each request.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use assay_node_auth::Secret;
use assay_node_secrets::read_secret_file;
use clap::Args;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::{Value, json};

use crate::admin_api::requests::ClusterRequest;
use crate::admin_api::token::{TOKEN_DESCRIPTION, TOKEN_FILE, TOKEN_VARIABLE};
use crate::config;
use crate::https_client::trust_file;
use crate::process::secret_variable;

const URL_VARIABLE: &str = "ASSAY_ADMIN_URL";
/// Also the name of a setting of a node, which has such a file too.
const TOKEN_FILE_VARIABLE: &str = "ASSAY_ADMIN_TOKEN_FILE";
const CA_VARIABLE: &str = "ASSAY_ADMIN_CA";
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Longest wait for the next byte of a response. A drain takes up to 30 s.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// Upper bound of a response. The status of the largest cluster has a tenth of it.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Address of a listener, the certificate to trust and the token to present.
#[derive(Clone, Debug, Default, Args)]
pub struct ListenerArgs {
    /// Administrators' listener of a node, such as http://127.0.0.1:8001, to use instead of --data-dir; also
    /// ASSAY_ADMIN_URL
    #[arg(long, value_name = "URL", global = true)]
    pub admin: Option<String>,
    /// File with the token of that node, also ASSAY_ADMIN_TOKEN_FILE [default: ASSAY_ADMIN_TOKEN, else `admin.token` in
    /// --data-dir]
    #[arg(long, value_name = "FILE", global = true)]
    pub admin_token_file: Option<PathBuf>,
    /// PEM file with the certificate to trust for https, or with that of its authority; also ASSAY_ADMIN_CA
    #[arg(long, value_name = "FILE", global = true)]
    pub admin_ca: Option<PathBuf>,
}

impl ListenerArgs {
    /// Fills missing flags from the environment. An empty variable counts as not set.
    pub fn or_environment(self) -> anyhow::Result<ListenerArgs> {
        let file = |name: &str| config::variable(name).map(PathBuf::from);
        let url = config::variable(URL_VARIABLE).map(OsString::into_string).transpose();
        let url = url.map_err(|_| anyhow::anyhow!("{URL_VARIABLE} is not valid text"))?;
        Ok(ListenerArgs {
            admin: self.admin.or(url),
            admin_token_file: self.admin_token_file.or_else(|| file(TOKEN_FILE_VARIABLE)),
            admin_ca: self.admin_ca.or_else(|| file(CA_VARIABLE)),
        })
    }
}

/// Client of one listener.
#[derive(Clone, Debug)]
pub struct ListenerClient {
    url: String,
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    token: Secret,
}

impl ListenerClient {
    /// Returns `None` where no listener is named.
    pub fn new(args: &ListenerArgs, data_dir: &Path) -> anyhow::Result<Option<ListenerClient>> {
        let Some(url) = &args.admin else { return Ok(None) };
        let ListenerUrl { is_tls, host, port } = parse_listener_url(url)?;
        let tls = is_tls.then(|| trusting(args.admin_ca.as_deref())).transpose()?;
        let token = match (&args.admin_token_file, secret_variable(TOKEN_VARIABLE)?) {
            (Some(file), _) => read_secret_file(file, TOKEN_DESCRIPTION)?,
            (None, Some(token)) => token,
            (None, None) => read_secret_file(&data_dir.join(TOKEN_FILE), TOKEN_DESCRIPTION).with_context(|| {
                format!("no token for {url}: name its file with --admin-token-file, or set {TOKEN_VARIABLE}")
            })?,
        };
        Ok(Some(ListenerClient { url: url.clone(), host, port, tls, token }))
    }

    /// Sends a request and returns the body of a successful response.
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
        let bytes = self.exchange(head.as_bytes()).with_context(|| format!("the request to {} failed", self.url))?;
        answer_of(&bytes).with_context(|| format!("{} responded", self.url))
    }

    /// Returns the address of the listener, as it was given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns whether no listener runs: the host has addresses, and all of them refuse connections.
    pub fn is_absent(&self) -> bool {
        let Ok(addresses) = (self.host.as_str(), self.port).to_socket_addrs() else { return false };
        let refused = |address: SocketAddr| {
            let connected = TcpStream::connect_timeout(&address, CONNECT_MAX);
            connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        };
        let answers: Vec<bool> = addresses.map(refused).collect();
        !answers.is_empty() && answers.iter().all(|refused| *refused)
    }

    fn exchange(&self, request: &[u8]) -> anyhow::Result<Vec<u8>> {
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        let Some(tls) = &self.tls else { return exchange_bytes(&mut stream, request) };
        let name = ServerName::try_from(self.host.clone()).context("invalid host name")?;
        let connection = ClientConnection::new(Arc::clone(tls), name)?;
        exchange_bytes(&mut StreamOwned::new(connection, stream), request)
    }

    fn connect(&self) -> anyhow::Result<TcpStream> {
        let mut last = None;
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_MAX) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| anyhow::anyhow!("the name resolves to no address"), Into::into))
    }
}

/// Sends a request and reads until the other side closes the connection.
fn exchange_bytes(stream: &mut (impl Read + Write), request: &[u8]) -> anyhow::Result<Vec<u8>> {
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

/// Returns the body of a response of status 200. Another status is an error with the message of the response.
fn answer_of(bytes: &[u8]) -> anyhow::Result<Value> {
    let cut = || anyhow::anyhow!("the response is incomplete");
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
struct ListenerUrl {
    is_tls: bool,
    host: String,
    port: u16,
}

fn parse_listener_url(url: &str) -> anyhow::Result<ListenerUrl> {
    let wrong = |why: &str| anyhow::anyhow!("--admin {url}: {why}; it should be like http://127.0.0.1:8001");
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
    let is_tls = match scheme {
        "https" => true,
        "http" => false,
        _ => return Err(wrong("it is neither http nor https")),
    };
    let (host, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or_else(|| wrong("it has no port"))?;
    let port = port.parse().map_err(|_| wrong("it has no port"))?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte)) {
        return Err(wrong("it has no host"));
    }
    let is_here =
        || host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.to_canonical().is_loopback());
    if !is_tls && !is_here() {
        return Err(wrong("the token would be sent to another machine in plain text: use https"));
    }
    Ok(ListenerUrl { is_tls, host: host.to_owned(), port })
}

fn trusting(file: Option<&Path>) -> anyhow::Result<Arc<ClientConfig>> {
    trust_file(file.context("https needs a trusted certificate: name its file with --admin-ca")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_place_and_a_plain_one_is_on_this_machine() {
        let place = |url: &str| parse_listener_url(url).map(|place| (place.is_tls, place.host, place.port));
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
            assert!(answer(cut).unwrap_err().to_string().contains("is incomplete"), "{cut}");
        }
    }
}
