//! The keys of an issuer of JWTs, from a file or from the issuer's own server, where whoever can change what comes can be
//! anybody here.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use assay_node_auth::{JWKS_BYTES_MAX, JwtKeys};

use crate::outward::Server;

/// For names that are not resolved in that time, which nothing of ours can hurry.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(20);

/// Where the keys are.
#[derive(Clone, Debug)]
pub enum Source {
    File(PathBuf),
    Server(Arc<Server>),
}

impl Source {
    /// `ca` is a file with the authorities to trust instead of the system's.
    pub fn of(text: &str, ca: Option<&Path>) -> anyhow::Result<Source> {
        if !is_url(text) {
            return Ok(Source::File(text.into()));
        }
        Ok(Source::Server(Arc::new(Server::of(text, ca)?)))
    }

    /// What is there now.
    pub async fn get(&self) -> Result<JwtKeys, String> {
        let source = self.clone();
        let got = tokio::task::spawn_blocking(move || source.bytes());
        let got = tokio::time::timeout(GIVEN_UP_AFTER, got).await;
        let late = |_| format!("there was no answer within {} s", GIVEN_UP_AFTER.as_secs());
        let bytes = got.map_err(late)?.map_err(|error| error.to_string())?.map_err(|error| format!("{error:#}"))?;
        JwtKeys::of_jwks(&bytes)
    }

    fn bytes(&self) -> anyhow::Result<Vec<u8>> {
        match self {
            Source::File(file) => {
                let doing = || format!("reading {}", file.display());
                let opened = std::fs::File::open(file).with_context(doing)?;
                let mut bytes = Vec::new();
                // One more than is taken, so that more is seen.
                opened.take(JWKS_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).with_context(doing)?;
                Ok(bytes)
            }
            Source::Server(server) => server.get(),
        }
    }
}

pub fn is_url(text: &str) -> bool {
    text.contains("://")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    use super::*;
    use crate::outward::HEAD_BYTES_MAX;

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
        let keys = Source::of(&url, None).unwrap().get().await;
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
            (&sized[..sized.len() - 1], "broke off"),
            (&chunked[..chunked.len() - 9], "broke off"),
            ("HTTP/1.1 301 Moved\r\nLocation: https://other.example/\r\n\r\n", "redirects are not followed"),
            ("HTTP/1.1 500 X\r\n\r\n", "status `500`"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", "coding `gzip`"),
            ("HTTP/1.1 200 OK\r\n\r\n<html>", "no JWK set"),
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
    const PAIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/http/tests/http/data/first");

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
            Source::of(&format!("https://{host}:{port}/keys"), Some(Path::new(ca))).unwrap().get().await
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
        let source = Source::of(file.to_str().unwrap(), None).unwrap();
        assert!(source.get().await.unwrap_err().contains("keys.json"));
        std::fs::write(&file, SET).unwrap();
        assert_eq!(format!("{:?}", source.get().await.unwrap()), "JwtKeys(1)");
        std::fs::write(&file, vec![b' '; JWKS_BYTES_MAX + 10]).unwrap();
        assert!(source.get().await.unwrap_err().contains("at most 262144 bytes"));
    }
}
