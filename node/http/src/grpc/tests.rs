//! Tests of calls over real connections: replies, refusals, TLS, and shutdown.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use assay_node_connections::{Gate, Limits};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::message::BrokenMessage;
use super::{GrpcCall, GrpcCode, GrpcHandle, GrpcLimits, GrpcReply, GrpcServer, GrpcService, GrpcStatus, HeaderMap};

const LIMITS: GrpcLimits = GrpcLimits {
    calls_at_once_max: 4,
    head_bytes_max: 4 << 10,
    handshake_within: Duration::from_secs(2),
    preface_within: Duration::from_secs(2),
};
const CONNECTIONS: Limits = Limits { connections: 8, reserve: 2, per_address: 8 };
/// Self-signed certificate for `localhost`.
const CERTIFICATE: &str = include_str!("../../tests/data/first.crt");
const KEY: &str = include_str!("../../tests/data/first.key");
const WITHIN: Duration = Duration::from_secs(20);

/// Service that echoes messages.
///
/// It refuses `/no`, and answers `/wait` only after a permit. `/unread` waits for a permit without reading its message.
struct Echo {
    waiting: AtomicUsize,
    let_go: Semaphore,
}

impl GrpcService for Echo {
    fn call(self: Arc<Self>, mut call: GrpcCall) -> BoxFuture<'static, GrpcReply> {
        Box::pin(async move {
            let said = async {
                if call.path == "/no" {
                    return Err(GrpcStatus {
                        details: Some(Bytes::from_static(b"d")),
                        ..GrpcStatus::new(GrpcCode(9), "not so")
                    });
                }
                if call.path == "/unread" {
                    self.waiting.fetch_add(1, Ordering::SeqCst);
                    self.let_go.acquire().await.expect("nobody closes it").forget();
                    return Ok(Bytes::new());
                }
                let broken = |why: BrokenMessage| GrpcStatus::new(GrpcCode(3), why.to_string());
                let head = call.message.head().await.map_err(broken)?;
                let pieces: Vec<Bytes> = call.message.pieces(head).boxed().try_collect().await.map_err(broken)?;
                if call.path == "/wait" {
                    self.waiting.fetch_add(1, Ordering::SeqCst);
                    self.let_go.acquire().await.expect("nobody closes it").forget();
                }
                Ok(Bytes::from(pieces.concat()))
            };
            GrpcReply { metadata: HeaderMap::new(), said: said.await }
        })
    }
}

/// Body with one framed message.
struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

struct Fixture {
    echo: Arc<Echo>,
    address: SocketAddr,
    handle: GrpcHandle,
    serving: JoinHandle<std::io::Result<()>>,
}

fn fixture() -> Fixture {
    fixture_with(None)
}

fn fixture_with(tls: Option<ServerConfig>) -> Fixture {
    let echo = Arc::new(Echo { waiting: AtomicUsize::new(0), let_go: Semaphore::new(0) });
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = GrpcServer::new(
        vec![socket],
        LIMITS,
        Gate::new("test", CONNECTIONS, Vec::new()),
        tls,
        Arc::clone(&echo) as Arc<dyn GrpcService>,
    )
    .expect("a server");
    let (address, handle) = (server.addresses()[0], server.handle());
    Fixture { echo, address, handle, serving: tokio::spawn(server.run()) }
}

async fn connect(address: SocketAddr) -> SendRequest<Whole> {
    spoken_to(TcpStream::connect(address).await.expect("a connection")).await
}

async fn spoken_to(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> SendRequest<Whole> {
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).expect("a small message").to_be_bytes();
    [&[0], &length[..], message].concat().into()
}

fn request(address: SocketAddr, path: &str, content_type: &str, body: Bytes) -> Request<Whole> {
    let request =
        Request::post(format!("http://{address}{path}")).header("content-type", content_type).header("te", "trailers");
    request.body(Whole(Some(body))).expect("a request")
}

/// Returns the bytes of a response, and its trailers.
async fn read(mut answer: Response<Incoming>) -> (Vec<u8>, HeaderMap) {
    let (mut bytes, mut trailers) = (Vec::new(), HeaderMap::new());
    while let Some(frame) = poll_fn(|task| Pin::new(answer.body_mut()).poll_frame(task)).await {
        match frame.expect("an answer").into_data() {
            Ok(data) => bytes.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().expect("trailers"),
        }
    }
    (bytes, trailers)
}

#[tokio::test]
async fn a_call_is_answered_with_its_message_and_a_status_behind_it() {
    let fixture = fixture();
    let mut client = connect(fixture.address).await;
    for message in [Vec::new(), b"a message".to_vec(), vec![7; 3 << 20]] {
        let answer = client.send_request(request(fixture.address, "/echo", "application/grpc+proto", framed(&message)));
        let answer = answer.await.expect("an answer");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "application/grpc");
        let (bytes, trailers) = read(answer).await;
        assert_eq!(bytes, framed(&message), "{} bytes", message.len());
        assert_eq!(trailers["grpc-status"], "0");
    }
}

#[tokio::test]
async fn over_tls_it_is_the_same_and_in_the_open_nothing() {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).expect("PEM");
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let server = server.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let fixture = fixture_with(Some(server.with_single_cert(vec![certificate.clone()], key).expect("a pair")));

    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let client = client.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
    let mut client = client.with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(fixture.address).await.expect("a connection");
    let name = ServerName::try_from("localhost").expect("a name");
    let secured = TlsConnector::from(Arc::new(client)).connect(name, stream).await.expect("TLS");
    assert_eq!(secured.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut client = spoken_to(secured).await;
    let answer = client.send_request(request(fixture.address, "/echo", "application/grpc", framed(b"hidden")));
    assert_eq!(read(answer.await.expect("an answer")).await.0, framed(b"hidden"));

    let mut open = connect(fixture.address).await;
    assert!(open.send_request(request(fixture.address, "/echo", "application/grpc", framed(b""))).await.is_err());
}

#[tokio::test]
async fn a_refusal_stands_in_the_headers() {
    let fixture = fixture();
    let mut client = connect(fixture.address).await;
    for (path, body, status, message) in [
        ("/no", framed(b""), "9", "not so"),
        ("/echo", Bytes::from_static(&[0, 0]), "3", "the call ended after 2 of the 5 bytes"),
    ] {
        let answer =
            client.send_request(request(fixture.address, path, "application/grpc", body)).await.expect("an answer");
        assert_eq!((answer.status().as_u16(), answer.headers()["grpc-status"].as_bytes()), (200, status.as_bytes()));
        let said = answer.headers()["grpc-message"].to_str().expect("ASCII").to_owned();
        assert!(said.starts_with(message), "{said}");
        assert_eq!(answer.headers().contains_key("grpc-status-details-bin"), path == "/no");
        assert_eq!(read(answer).await.0, b"");
    }
}

#[tokio::test]
async fn what_is_no_grpc_is_told_so() {
    let fixture = fixture();
    let mut client = connect(fixture.address).await;
    let sent = request(fixture.address, "/echo", "application/json", Bytes::from_static(b"{}"));
    assert_eq!(client.send_request(sent).await.expect("an answer").status(), 415);
    let mut sent = request(fixture.address, "/echo", "application/grpc", framed(b""));
    *sent.method_mut() = hyper::Method::GET;
    assert_eq!(client.send_request(sent).await.expect("an answer").status(), 415);
}

#[tokio::test]
async fn a_stop_answers_what_is_under_way_and_lets_nobody_in() {
    let fixture = fixture();
    let mut client = connect(fixture.address).await;
    let waits = client.send_request(request(fixture.address, "/wait", "application/grpc", framed(b"late")));
    let waits = tokio::spawn(waits);
    while fixture.echo.waiting.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (handle, begun) = (fixture.handle.clone(), std::time::Instant::now());
    let stopping = tokio::spawn(async move { handle.stop(WITHIN).await });
    let served = tokio::time::timeout(WITHIN, fixture.serving).await.expect("ends").expect("no panic");
    served.expect("no error");
    assert!(TcpStream::connect(fixture.address).await.is_err(), "the port refuses");
    assert!(!stopping.is_finished());
    fixture.echo.let_go.add_permits(1);
    let (bytes, trailers) = read(waits.await.expect("no panic").expect("an answer")).await;
    assert_eq!((bytes, trailers["grpc-status"].as_bytes()), (framed(b"late").to_vec(), &b"0"[..]));
    stopping.await.expect("no panic");
    assert!(begun.elapsed() < WITHIN, "it waited for what was under way alone");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_ever() {
    let fixture = fixture();
    let mut client = connect(fixture.address).await;
    let waits =
        tokio::spawn(client.send_request(request(fixture.address, "/wait", "application/grpc", framed(b"never"))));
    while fixture.echo.waiting.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let stopped = tokio::time::timeout(WITHIN, fixture.handle.stop(Duration::from_millis(50))).await;
    assert!(stopped.is_ok());
    waits.abort();
}

/// Guards against unread messages that fill the window of their connection.
#[tokio::test]
async fn calls_whose_messages_are_not_read_do_not_stop_another() {
    let fixture = fixture();
    let client = connect(fixture.address).await;
    let waiting: Vec<_> = (0..LIMITS.calls_at_once_max - 1)
        .map(|_| {
            let mut client = client.clone();
            let request = request(fixture.address, "/unread", "application/grpc", framed(&vec![7; 1 << 20]));
            tokio::spawn(async move { client.send_request(request).await })
        })
        .collect();
    while fixture.echo.waiting.load(Ordering::SeqCst) < waiting.len() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The clients fill the windows of their calls meanwhile.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let message = vec![8; 3 << 20];
    let call = client.clone().send_request(request(fixture.address, "/echo", "application/grpc", framed(&message)));
    let answer = tokio::time::timeout(WITHIN, async { read(call.await.expect("an answer")).await }).await;
    let (bytes, _) = answer.expect("in time");
    assert_eq!(bytes.len(), message.len() + 5);
    fixture.echo.let_go.add_permits(waiting.len());
}
