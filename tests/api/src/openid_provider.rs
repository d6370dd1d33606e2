//! A small OpenID provider, as visible to a relying server: its metadata, a key, single-use codes bound to the verifier
//! of their challenge, and tokens of the person that the test selects.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

/// The nodes' client id at the provider.
pub const CLIENT: &str = "assay";
pub const SECRET: &str = "a secret: of the provider's & the nodes'";
const KEY: &str = "key-1";

/// Person who logs in, and errors in the provider's claims.
#[derive(Clone, Debug)]
pub struct Person {
    pub email: String,
    pub is_verified: Value,
    /// Claims in the place of those that are right.
    pub claims: Value,
    pub is_forged: bool,
}

impl Person {
    pub fn of(email: &str) -> Person {
        Person { email: email.into(), is_verified: json!(true), claims: json!({}), is_forged: false }
    }
}

pub struct Provider {
    pub issuer: String,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

struct Shared {
    issuer: String,
    key: EcdsaKeyPair,
    random: SystemRandom,
    state: Mutex<State>,
}

struct State {
    person: Person,
    /// Requests of each unused code.
    codes: HashMap<String, (HashMap<String, String>, Person)>,
    made: usize,
}

impl Provider {
    /// Serves until the test is over.
    pub fn start() -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let issuer = format!("http://{}", listener.local_addr().expect("an address"));
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pair.as_ref(), &random).expect("a key");
        let state = State { person: Person::of("nobody@example.com"), codes: HashMap::new(), made: 0 };
        let shared = Arc::new(Shared { issuer: issuer.clone(), key, random, state: Mutex::new(state) });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                thread::spawn(move || shared.serve(stream));
            }
        });
        Provider { issuer, shared }
    }

    /// Selects the person for the following logins.
    pub fn is_visited_by(&self, person: Person) {
        self.shared.state().person = person;
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some((head, body)) = request_of(&mut stream) else { return };
        let target = head.split(' ').nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (status, header, said) = match path {
            "/.well-known/openid-configuration" => self.of_itself(),
            "/keys" => self.keys(),
            "/authorize" => self.authorize(query),
            "/token" => self.token(&head, &body),
            _ => ("404 Not Found", String::new(), String::new()),
        };
        let answer =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{header}\r\n{said}", said.len());
        let _ = stream.write_all(answer.as_bytes()); // who went away does not want it
    }

    fn of_itself(&self) -> (&'static str, String, String) {
        let at = |path: &str| format!("{}{path}", self.issuer);
        let said = json!({
            "issuer": self.issuer, "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
            "jwks_uri": at("/keys"), "response_types_supported": ["code"],
        });
        ("200 OK", String::new(), said.to_string())
    }

    fn keys(&self) -> (&'static str, String, String) {
        let point = self.key.public_key().as_ref();
        let (x, y) = (text(&point[1..33]), text(&point[33..]));
        let set = json!({"keys": [{"kty": "EC", "kid": KEY, "crv": "P-256", "alg": "ES256", "x": x, "y": y}]});
        ("200 OK", String::new(), set.to_string())
    }

    /// The person logs in at once.
    fn authorize(&self, query: &str) -> (&'static str, String, String) {
        let asked = pairs(query);
        let has = |name: &str, value: &str| asked.get(name).is_some_and(|found| found == value);
        if !has("response_type", "code") || !has("client_id", CLIENT) || !has("code_challenge_method", "S256") {
            return ("400 Bad Request", String::new(), format!("asked for {asked:?}"));
        }
        let mut state = self.state();
        state.made += 1;
        let code = format!("provider-code-{}", state.made);
        let back = format!("{}?code={code}&state={}", asked["redirect_uri"], asked["state"]);
        let person = state.person.clone();
        state.codes.insert(code, (asked, person));
        ("302 Found", format!("Location: {back}\r\n"), String::new())
    }

    fn token(&self, head: &str, body: &str) -> (&'static str, String, String) {
        let refused = |why: &str| ("400 Bad Request", String::new(), json!({ "error": why }).to_string());
        // As RFC 6749 2.3.1 has it: both encoded as in forms, then together.
        let secret: String = SECRET
            .bytes()
            .map(|byte| match byte {
                byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
                byte => format!("%{byte:02X}"),
            })
            .collect();
        let basic = format!("Authorization: Basic {}", STANDARD.encode(format!("{CLIENT}:{secret}")));
        if !head.lines().any(|line| line == basic) {
            return refused("invalid_client");
        }
        let form = pairs(body);
        let Some((asked, person)) = form.get("code").and_then(|code| self.state().codes.remove(code)) else {
            return refused("invalid_grant");
        };
        let challenge = form.get("code_verifier").map(|verifier| text(digest(&SHA256, verifier.as_bytes())));
        if challenge.as_ref() != asked.get("code_challenge") || form.get("redirect_uri") != asked.get("redirect_uri") {
            return refused("invalid_grant");
        }
        let token = self.signed(&asked["nonce"], &person);
        let said = json!({"access_token": "of no use here", "token_type": "Bearer", "id_token": token});
        ("200 OK", String::new(), said.to_string())
    }

    fn signed(&self, nonce: &str, person: &Person) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
        let mut claims = json!({
            "iss": self.issuer, "aud": CLIENT, "sub": "1", "iat": now, "exp": now + 300, "nonce": nonce,
            "email": person.email, "email_verified": person.is_verified,
        });
        for (name, value) in person.claims.as_object().expect("claims") {
            claims[name] = value.clone();
        }
        let header = json!({"alg": "ES256", "kid": KEY, "typ": "JWT"});
        let message = format!("{}.{}", text(header.to_string()), text(claims.to_string()));
        let signed = if person.is_forged { "another message" } else { &message };
        let signature = self.key.sign(&self.random, signed.as_bytes()).expect("signs");
        format!("{message}.{}", text(signature))
    }
}

fn text(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A request's head and body; none where it does not come whole.
fn request_of(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = whole.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&part[..read]);
    }
}

/// Returns the pairs of a query or a form.
pub fn pairs(text: &str) -> HashMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let digits = std::str::from_utf8(&digits).expect("digits");
                u8::from_str_radix(digits, 16).expect("hexadecimal digits")
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).expect("text")
}
