//! Listening addresses of this node, which are reserved first and opened once the node can serve.
//!
//! A reserved address is not available to other programs, and refuses connections. A failed start has therefore created
//! nothing, and no client queues for a node that still opens its store.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use crate::config::HttpConfig;
use crate::server::admin::AdminConfig;

/// Address at which functions of this node call the API, on a free port.
const FUNCTIONS_ADDRESS: &str = "127.0.0.1:0";

/// Reserved addresses of all configured listeners.
#[derive(Debug)]
pub struct Sockets {
    pub(crate) main: Reserved,
    pub(crate) metrics: Option<Reserved>,
    pub(crate) admin: Option<Reserved>,
    pub(crate) otlp: Option<Reserved>,
    /// Listener for the functions of this node, on the machine itself and without TLS.
    pub(crate) functions: Reserved,
}

impl Sockets {
    /// Reserves the configured addresses.
    ///
    /// If the default address for gRPC is in use, the node logs a warning and does without that listener.
    pub fn reserve(http: &HttpConfig, admin: &AdminConfig) -> io::Result<Sockets> {
        let named =
            |listen: &Option<String>, setting| listen.as_deref().map(|at| Reserved::take(at, setting)).transpose();
        Ok(Sockets {
            main: Reserved::take(&http.listen, "http.listen")?,
            metrics: named(&http.metrics_listen, "http.metrics_listen")?,
            admin: named(&admin.listen, "admin.listen")?,
            otlp: reserve_otlp(http)?,
            functions: Reserved::take(FUNCTIONS_ADDRESS, "the listener for functions")?,
        })
    }
}

fn reserve_otlp(http: &HttpConfig) -> io::Result<Option<Reserved>> {
    let Some(listen) = http.otlp_address() else { return Ok(None) };
    match Reserved::take(&listen, "http.otlp_listen") {
        Err(error) if http.otlp_listen.is_none() && error.kind() == io::ErrorKind::AddrInUse => {
            tracing::warn!(
                "{listen} is in use, so this node accepts no OpenTelemetry over gRPC; exporters can send to \
                 /otel/v1/traces over HTTP. Set http.otlp_listen to another address, or to off"
            );
            Ok(None)
        }
        taken => taken.map(Some),
    }
}

/// Bound sockets of one address, or of all addresses to which a name resolves.
#[derive(Debug)]
pub(crate) struct Reserved {
    setting: &'static str,
    listen: String,
    sockets: Vec<OwnedFd>,
}

impl Reserved {
    fn take(listen: &str, setting: &'static str) -> io::Result<Reserved> {
        let named = |error: io::Error| about(listen, setting, &error);
        let (mut sockets, mut failed) = (Vec::new(), None);
        for address in listen.to_socket_addrs().map_err(named)? {
            match reserve(address) {
                Ok(socket) => sockets.push(socket),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if sockets.is_empty() => Err(named(error)),
            _ if sockets.is_empty() => {
                Err(named(io::Error::new(io::ErrorKind::NotFound, "the name resolves to no address")))
            }
            _ => Ok(Reserved { setting, listen: listen.to_owned(), sockets }),
        }
    }

    /// Returns the setting that names the address.
    pub fn setting(&self) -> &'static str {
        self.setting
    }

    /// Starts listening. Connections queue from then on.
    pub fn open(self, backlog: u32) -> io::Result<Vec<TcpListener>> {
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        let opened = self.sockets.into_iter().map(|socket| {
            listen(&socket, backlog)?;
            Ok(TcpListener::from(socket))
        });
        opened.collect::<io::Result<_>>().map_err(|error| about(&self.listen, self.setting, &error))
    }
}

fn about(listen: &str, setting: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {listen} ({setting}): {error}"))
}

fn reserve(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A restarted node can reuse its address although old connections linger.
    set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    fn config(listen: &str, otlp: Option<&str>) -> HttpConfig {
        HttpConfig { listen: listen.into(), otlp_listen: otlp.map(str::to_owned), ..HttpConfig::default() }
    }

    #[test]
    fn a_reserved_address_is_taken_and_refuses_until_it_is_opened() {
        let reserved = Reserved::take("127.0.0.1:0", "http.listen").expect("an address");
        let at = rustix::net::getsockname(&reserved.sockets[0]).expect("a name");
        let at = SocketAddr::try_from(at).expect("an address");
        assert!(TcpStream::connect(at).is_err(), "nobody listens yet");
        let opened = reserved.open(16).expect("opens");
        assert_eq!(opened[0].local_addr().expect("an address"), at);
        TcpStream::connect(at).expect("somebody listens");
        let again = Reserved::take(&at.to_string(), "http.listen").expect_err("in use").to_string();
        assert!(again.contains("(http.listen)") && again.contains(&at.to_string()), "{again}");
    }

    #[test]
    fn only_an_address_that_was_asked_for_has_to_be_free() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = taken.local_addr().expect("an address").to_string();
        let refused = Sockets::reserve(&config("127.0.0.1:0", Some(&at)), &AdminConfig::default());
        assert!(refused.expect_err("in use").to_string().contains("http.otlp_listen"));
        // Another program may use the default port of OpenTelemetry on the host of `listen`.
        let [high, low] = u16::try_from(std::process::id() % 65_536).unwrap_or_default().to_be_bytes();
        let host = format!("127.{high}.{low}.77"); // one of this machine's own that no other test uses
        let default = format!("{host}:4317");
        let _taken = TcpListener::bind(&default).expect("a port of our own");
        let free = TcpListener::bind((host, 0)).and_then(|socket| socket.local_addr()).expect("a port").to_string();
        let reserved = Sockets::reserve(&config(&free, None), &AdminConfig::default()).expect("goes on without");
        assert!(reserved.otlp.is_none());
        let asked = Sockets::reserve(&config(&free, Some(&default)), &AdminConfig::default());
        assert!(asked.is_err(), "an address that was asked for is an error");
    }
}
