//! Caller with arbitrary claims, over plain HTTP/2, to test the checks.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use assay_cluster_transport::{Identity, RefusalCode};
use assay_storage_model::ClusterId;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Claims of a caller about itself and its receiver; `None` omits the header.
#[derive(Clone, Debug)]
pub struct RequestClaims {
    pub cluster: Option<ClusterId>,
    pub from: Option<u64>,
    pub to: Option<u64>,
    pub bytes: usize,
}

/// Result of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Body(Bytes),
    Refused(RefusalCode, String),
    /// No response.
    Broken,
}

/// Connects to this server, whatever its name.
///
/// `identity` has the trusted authorities, and `shows` decides whether its certificate is presented.
pub async fn secure(
    address: std::net::SocketAddr,
    name: &str,
    identity: &Identity,
    shows: bool,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let pem = |text: &str| CertificateDer::from_pem_slice(text.as_bytes()).expect("PEM");
    roots.add(pem(&identity.authority_pem)).expect("an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
    let mut config = if shows {
        let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).expect("PEM");
        config.with_client_auth_cert(vec![pem(&identity.certificate_pem)], key).expect("a pair")
    } else {
        config.with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let socket = TcpStream::connect(address).await?;
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}

/// Makes one call to `echo` over such a connection.
pub async fn echo(secured: TlsStream<TcpStream>, service: &str, said: &RequestClaims, body: &str) -> Heard {
    let Ok((mut requests, connection)) = handshake(TokioExecutor::new(), TokioIo::new(secured)).await else {
        return Heard::Broken;
    };
    tokio::spawn(connection);
    match ask(&mut requests, service, said, body).await {
        Ok(heard) => heard,
        Err(_) => Heard::Broken,
    }
}

async fn ask(
    requests: &mut SendRequest<Once>,
    service: &str,
    said: &RequestClaims,
    body: &str,
) -> hyper::Result<Heard> {
    let mut request = Request::post(format!("https://node/assay.peer.v1/call/{service}"))
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .header("assay-within-us", "5000000")
        .header("assay-bytes", said.bytes);
    if let Some(cluster) = said.cluster {
        request = request.header("assay-cluster", cluster.to_string());
    }
    if let Some(from) = said.from {
        request = request.header("assay-from", from);
    }
    if let Some(to) = said.to {
        request = request.header("assay-to", to);
    }
    let mut framed = vec![0];
    framed.extend((body.len() as u32 + 1).to_be_bytes());
    framed.push(1);
    framed.extend(body.as_bytes());
    let request = request.body(Once(Some(framed.into()))).expect("a request");
    let answer = requests.send_request(request).await?;
    Ok(heard(&whole(answer).await?))
}

async fn whole(answer: Response<Incoming>) -> hyper::Result<Vec<u8>> {
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Some(data) = frame?.data_ref() {
            bytes.extend_from_slice(data);
        }
    }
    Ok(bytes)
}

fn heard(message: &[u8]) -> Heard {
    match message.get(5..) {
        Some([1, body @ ..]) => Heard::Body(Bytes::copy_from_slice(body)),
        Some([2, code, _, _, _, _, why @ ..]) => {
            let code = RefusalCode::ALL.into_iter().find(|known| *known as u8 == *code).expect("a code");
            Heard::Refused(code, String::from_utf8_lossy(why).into_owned())
        }
        _ => Heard::Broken,
    }
}

struct Once(Option<Bytes>);

impl Body for Once {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::convert::Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}
