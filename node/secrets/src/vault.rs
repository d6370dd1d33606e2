//! Encryption of secrets that are returned later, such as keys of AI providers, before they are written.
//!
//! ```text
//! master key     an operator's, outside the catalog          wraps
//! data key       one an organization, kept wrapped           encrypts
//! secret         kept encrypted, in the record it belongs to
//! ```
//! XChaCha20-Poly1305: its nonce of 192 bits may be drawn at random for every encryption. What is encrypted is bound to its
//! organization, its record and its place in the row of secrets that the record had, so that nobody who can write to the
//! catalog's bytes can show one in the place of another. Pure: the caller brings the randomness.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use assay_node_auth::{LoginKeySource, Secret, TicketCipher, hex_digit};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::RecordKind;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use uuid::Uuid;

pub const VAULT_KEY_BYTES: usize = 32;
pub const NONCE_BYTES: usize = 24;
/// Upper bound of the plain text of one encryption, which is that of a record's body.
pub const PLAIN_BYTES_MAX: usize = 1 << 20;

const TAG_BYTES: usize = 16;
pub const KEY_ID_BYTES: usize = 8;
/// Frozen: every encrypted record has the id of its key.
const KEY_ID_CONTEXT: &str = "assay 2026-11-23 id of a vault key 1";
/// Prefix of the associated data. Frozen, as the layout behind it is.
const BOUND_TO: &[u8] = b"assay vault 1\0";
/// The form of the text that is kept.
const SEALED_VERSION: &str = "1";

/// Id of a key, which reveals nothing of the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; KEY_ID_BYTES]);

impl KeyId {
    pub fn parse(text: &str) -> Option<KeyId> {
        bytes_of_hex(text).map(KeyId)
    }

    pub fn from_bytes(bytes: [u8; KEY_ID_BYTES]) -> KeyId {
        KeyId(bytes)
    }

    pub fn bytes(self) -> [u8; KEY_ID_BYTES] {
        self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The record that an encryption belongs to; elsewhere it does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belonging {
    pub org: OrgId,
    pub kind: RecordKind,
    pub record: Uuid,
    /// Counter of the secrets of the record, so that an older secret is not accepted as the newest.
    pub version: u64,
}

/// Context for the record id of a key of the cluster itself, which no record of an organization has.
const CLUSTER_KEY_CONTEXT: &str = "assay 2026-11-25 a key of the cluster";

impl Belonging {
    /// The place of a key of the cluster itself, such as that of its certificate authority.
    pub fn of_cluster(label: &str) -> Belonging {
        let hash = blake3::derive_key(CLUSTER_KEY_CONTEXT, label.as_bytes());
        let mut record = [0; 16];
        record.copy_from_slice(&hash[..16]);
        let record = Uuid::from_bytes(record);
        Belonging { org: OrgId(Uuid::nil()), kind: RecordKind::CLUSTER_SETTING, record, version: 1 }
    }

    /// Returns the same place for the next secret that is kept there.
    #[must_use]
    pub fn next(self) -> Belonging {
        Belonging { version: self.version + 1, ..self }
    }

    /// Every part has a fixed length, so no two of these read the same.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = BOUND_TO.to_vec();
        bytes.extend(self.org.0.as_bytes());
        bytes.extend(self.kind.0.to_be_bytes());
        bytes.extend(self.record.as_bytes());
        bytes.extend(self.version.to_be_bytes());
        bytes
    }
}

/// Something encrypted, and the id of the key that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    pub key: KeyId,
    /// Nonce, cipher text, tag.
    bytes: Vec<u8>,
}

impl Sealed {
    pub fn parse(text: &str) -> Option<Sealed> {
        let (key, bytes) = text.strip_prefix(SEALED_VERSION)?.strip_prefix('.')?.split_once('.')?;
        let bytes = STANDARD_NO_PAD.decode(bytes).ok().filter(|bytes| bytes.len() >= NONCE_BYTES + TAG_BYTES)?;
        Some(Sealed { key: KeyId::parse(key)?, bytes })
    }
}

/// Formats the text that a record keeps.
impl fmt::Display for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SEALED_VERSION}.{}.{}", self.key, STANDARD_NO_PAD.encode(&self.bytes))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultError {
    TooLong(usize),
    /// The value was encrypted with another key.
    OtherKey {
        needed: KeyId,
    },
    /// Its bytes were changed, or it belongs to something else.
    DoesNotOpen,
}

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VaultError::TooLong(bytes) => {
                write!(f, "the secret has {bytes} bytes; the maximum is {PLAIN_BYTES_MAX}")
            }
            VaultError::OtherKey { needed } => write!(f, "it was encrypted with the key {needed}"),
            VaultError::DoesNotOpen => {
                f.write_str("it was changed after it was encrypted, or belongs to another place")
            }
        }
    }
}

impl std::error::Error for VaultError {}

/// A master key or a data key. No formatter prints it, and its memory is wiped on drop.
#[derive(Clone)]
pub struct VaultKey([u8; VAULT_KEY_BYTES]);

impl VaultKey {
    pub fn new(bytes: [u8; VAULT_KEY_BYTES]) -> VaultKey {
        VaultKey(bytes)
    }

    /// Parses 64 hexadecimal digits or base64 of 32 bytes. The error describes the problem.
    pub fn parse(text: &Secret) -> Result<VaultKey, String> {
        let text = text.expose();
        let wrong = || {
            format!("a master key has 32 bytes, as 64 hexadecimal digits or in base64, but this is {}", kind_of(text))
        };
        if let Some(bytes) = bytes_of_hex(text) {
            return Ok(VaultKey(bytes));
        }
        let engines = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
        let mut decoded = engines.iter().find_map(|engine| engine.decode(text).ok()).ok_or_else(wrong)?;
        let bytes = <[u8; VAULT_KEY_BYTES]>::try_from(decoded.as_slice());
        wipe(&mut decoded);
        bytes.map(VaultKey).map_err(|_| wrong())
    }

    /// Returns the text that a file keeps.
    pub fn to_hex(&self) -> Secret {
        Secret::new(self.0.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn id(&self) -> KeyId {
        let hash = blake3::derive_key(KEY_ID_CONTEXT, &self.0);
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&hash[..KEY_ID_BYTES]);
        KeyId(id)
    }

    /// Derives a key for one purpose, which reveals nothing of this one or of others.
    pub fn derive(&self, context: &str) -> [u8; VAULT_KEY_BYTES] {
        blake3::derive_key(context, &self.0)
    }

    /// The nonce is drawn anew for every call.
    pub fn seal(&self, to: &Belonging, plain: &Secret, nonce: [u8; NONCE_BYTES]) -> Result<Sealed, VaultError> {
        self.seal_bytes(to, plain.expose().as_bytes(), nonce)
    }

    pub fn open(&self, to: &Belonging, sealed: &Sealed) -> Result<Secret, VaultError> {
        let plain = self.open_bytes(to, sealed)?;
        String::from_utf8(plain).map(Secret::new).map_err(|error| {
            wipe(&mut error.into_bytes());
            VaultError::DoesNotOpen
        })
    }

    /// A key under this one.
    pub fn wrap(&self, to: &Belonging, key: &VaultKey, nonce: [u8; NONCE_BYTES]) -> Result<Sealed, VaultError> {
        self.seal_bytes(to, &key.0, nonce)
    }

    pub fn unwrap(&self, to: &Belonging, sealed: &Sealed) -> Result<VaultKey, VaultError> {
        let mut plain = self.open_bytes(to, sealed)?;
        let bytes = <[u8; VAULT_KEY_BYTES]>::try_from(plain.as_slice());
        wipe(&mut plain);
        bytes.map(VaultKey).map_err(|_| VaultError::DoesNotOpen)
    }

    fn seal_bytes(&self, to: &Belonging, plain: &[u8], nonce: [u8; NONCE_BYTES]) -> Result<Sealed, VaultError> {
        let too_long = VaultError::TooLong(plain.len());
        if plain.len() > PLAIN_BYTES_MAX {
            return Err(too_long);
        }
        let bytes = self.cipher().seal(&to.bytes(), plain, nonce).ok_or(too_long)?;
        Ok(Sealed { key: self.id(), bytes })
    }

    fn open_bytes(&self, to: &Belonging, sealed: &Sealed) -> Result<Vec<u8>, VaultError> {
        if sealed.key != self.id() {
            return Err(VaultError::OtherKey { needed: sealed.key });
        }
        self.cipher().open(&to.bytes(), &sealed.bytes).ok_or(VaultError::DoesNotOpen)
    }

    fn cipher(&self) -> BoundCipher {
        BoundCipher::new(&self.0)
    }
}

impl fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VaultKey({})", self.id())
    }
}

impl Drop for VaultKey {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// XChaCha20-Poly1305 with one key and associated data.
#[derive(Clone)]
pub struct BoundCipher(XChaCha20Poly1305);

impl BoundCipher {
    pub fn new(key: &[u8; VAULT_KEY_BYTES]) -> BoundCipher {
        BoundCipher(XChaCha20Poly1305::new(key.into()))
    }
}

impl TicketCipher for BoundCipher {
    fn seal(&self, bound_to: &[u8], plain: &[u8], nonce: [u8; NONCE_BYTES]) -> Option<Vec<u8>> {
        let encrypted = self.0.encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: bound_to }).ok()?;
        Some([&nonce[..], &encrypted].concat())
    }

    fn open(&self, bound_to: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, encrypted) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        self.0.decrypt(&XNonce::from(*nonce), Payload { msg: encrypted, aad: bound_to }).ok()
    }
}

impl LoginKeySource for VaultKey {
    fn key_id(&self) -> String {
        self.id().to_string()
    }

    fn derived_key(&self, context: &str) -> [u8; VAULT_KEY_BYTES] {
        self.derive(context)
    }

    fn ticket_cipher(&self, context: &str) -> Arc<dyn TicketCipher> {
        Arc::new(BoundCipher::new(&self.derive(context)))
    }
}

impl fmt::Debug for BoundCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoundCipher")
    }
}

/// Master keys of a node: the one that wraps new data keys, and earlier ones.
#[derive(Clone, Debug)]
pub struct Keyring {
    current: VaultKey,
    old: Vec<VaultKey>,
}

impl Keyring {
    pub fn new(current: VaultKey, old: Vec<VaultKey>) -> Keyring {
        Keyring { current, old }
    }

    pub fn current(&self) -> &VaultKey {
        &self.current
    }

    /// Returns the texts of all keys, the current one first, for a copy that is encrypted itself.
    pub fn to_texts(&self) -> Vec<Secret> {
        std::iter::once(&self.current).chain(&self.old).map(VaultKey::to_hex).collect()
    }

    /// The ids of all of them, the current one first.
    pub fn ids(&self) -> Vec<KeyId> {
        std::iter::once(&self.current).chain(&self.old).map(VaultKey::id).collect()
    }

    pub fn find(&self, id: KeyId) -> Option<&VaultKey> {
        std::iter::once(&self.current).chain(&self.old).find(|key| key.id() == id)
    }
}

fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    // Without a reader the compiler may leave the wiping out.
    black_box(&*bytes);
}

fn bytes_of_hex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != BYTES || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = hex_digit(high.to_ascii_lowercase())? << 4 | hex_digit(low.to_ascii_lowercase())?;
    }
    Some(bytes)
}

/// Describes a text that is no key, as little as helps.
fn kind_of(text: &str) -> String {
    match text.len() {
        0 => "nothing".to_owned(),
        letters => format!("something else, with {letters} characters"),
    }
}

#[cfg(test)]
mod tests {
    use assay_node_auth::{LoginKey, RefreshTicket};
    use proptest::prelude::*;

    use super::*;

    const TO: Belonging = Belonging {
        org: OrgId(Uuid::from_u128(1)),
        kind: RecordKind::AI_SECRET,
        record: Uuid::from_u128(2),
        version: 3,
    };
    const NONCE: [u8; NONCE_BYTES] = [9; NONCE_BYTES];

    fn key(byte: u8) -> VaultKey {
        VaultKey::new([byte; VAULT_KEY_BYTES])
    }

    fn secret(text: &str) -> Secret {
        Secret::new(text.to_owned())
    }

    #[test]
    fn what_is_kept_is_frozen() {
        let sealed = key(7).seal(&TO, &secret("sk-of-a-provider"), NONCE).expect("is short");
        let text = sealed.to_string();
        assert_eq!(text, GOLDEN);
        assert_eq!(Sealed::parse(&text).as_ref(), Some(&sealed));
        assert_eq!(key(7).open(&TO, &sealed), Ok(secret("sk-of-a-provider")));
    }

    const GOLDEN: &str =
        "1.f9fc05aca09c5ac1.CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJzRnP5RqHGE+EYGdKARdimYdkzg1/VypA7pC4h8JQuZU";

    #[test]
    fn what_belongs_elsewhere_does_not_open() {
        let sealed = key(7).seal(&TO, &secret("x"), NONCE).expect("is short");
        let others = [
            Belonging { org: OrgId(Uuid::from_u128(9)), ..TO },
            Belonging { kind: RecordKind::ENV_VAR, ..TO },
            Belonging { record: Uuid::from_u128(9), ..TO },
            Belonging { version: 4, ..TO },
            // The same bytes, a part of one field in the next one.
            Belonging { org: OrgId(Uuid::from_u128(2)), record: Uuid::from_u128(1), ..TO },
        ];
        for other in others {
            assert_eq!(key(7).open(&other, &sealed), Err(VaultError::DoesNotOpen), "{other:?}");
        }
        assert_eq!(key(8).open(&TO, &sealed), Err(VaultError::OtherKey { needed: key(7).id() }));
        let relabelled = Sealed { key: key(8).id(), ..sealed };
        assert_eq!(key(8).open(&TO, &relabelled), Err(VaultError::DoesNotOpen));
    }

    #[test]
    fn keys_of_the_cluster_are_told_apart_by_their_labels() {
        let (one, other) = (Belonging::of_cluster("authority a"), Belonging::of_cluster("authority b"));
        let sealed = key(7).seal(&one, &secret("pem"), NONCE).expect("is short");
        assert_eq!(key(7).open(&one, &sealed), Ok(secret("pem")));
        assert_eq!(key(7).open(&other, &sealed), Err(VaultError::DoesNotOpen));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let sealed = key(7).seal(&TO, &secret("a secret of some length"), NONCE).expect("is short");
        for bit in 0..sealed.bytes.len() * 8 {
            let mut flipped = sealed.clone();
            flipped.bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key(7).open(&TO, &flipped), Err(VaultError::DoesNotOpen), "bit {bit}");
        }
        for length in 0..sealed.bytes.len() {
            let cut = Sealed { key: sealed.key, bytes: sealed.bytes[..length].to_vec() };
            assert_eq!(key(7).open(&TO, &cut), Err(VaultError::DoesNotOpen), "{length} bytes of it");
        }
    }

    #[test]
    fn a_key_is_wrapped_by_another_and_is_no_text() {
        let to = Belonging { kind: RecordKind::DATA_KEY, ..TO };
        let wrapped = key(1).wrap(&to, &key(0xff), NONCE).expect("is short");
        assert_eq!(key(1).unwrap(&to, &wrapped).expect("opens").0, [0xff; VAULT_KEY_BYTES]);
        assert_eq!(key(1).open(&to, &wrapped), Err(VaultError::DoesNotOpen), "a key never comes out as a secret");
        let short = key(1).seal(&to, &secret("short"), NONCE).expect("is short");
        assert!(key(1).unwrap(&to, &short).is_err());
        assert!(key(2).unwrap(&to, &wrapped).is_err());
    }

    #[test]
    fn a_master_key_is_read_from_hex_and_from_base64() {
        let read = |text: &str| VaultKey::parse(&secret(text));
        let bytes: [u8; VAULT_KEY_BYTES] = std::array::from_fn(|at| 0xf8 | at as u8);
        let hex = VaultKey::new(bytes).to_hex();
        let engines = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
        let texts = engines.map(|engine| engine.encode(bytes));
        for text in [hex.expose().to_owned(), hex.expose().to_uppercase()].iter().chain(&texts) {
            assert_eq!(read(text).expect("a key").0, bytes, "{text}");
        }
        for wrong in
            ["", "x", &hex.expose()[2..], &format!("{}0", hex.expose()), &STANDARD.encode([1; 31]), &"g".repeat(64)]
        {
            let why = read(wrong).expect_err(wrong);
            assert!(why.contains("64 hexadecimal digits") && (wrong.len() < 2 || !why.contains(wrong)), "{why}");
        }
    }

    #[test]
    fn nothing_prints_a_key() {
        let (key, hex) = (key(7), "0707");
        for shown in [format!("{key:?}"), format!("{:?}", Keyring::new(key.clone(), vec![key.clone()]))] {
            assert!(!shown.contains(hex) && shown.contains(&key.id().to_string()), "{shown}");
        }
        assert_eq!(KeyId::parse(&key.id().to_string()), Some(key.id()));
        assert_eq!(KeyId::parse("0707"), None);
    }

    #[test]
    fn tickets_of_logins_open_under_the_master_key_that_they_name() {
        let (master, other) = (VaultKey::new([1; VAULT_KEY_BYTES]), VaultKey::new([2; VAULT_KEY_BYTES]));
        let ticket = RefreshTicket { login: Uuid::from_u128(7), generation: 3 };
        let text = LoginKey::of(&master).seal(&ticket, [3; NONCE_BYTES]).expect("is short");
        assert_eq!(LoginKey::of_ticket(&text).and_then(KeyId::parse), Some(master.id()));
        assert_eq!(LoginKey::of(&master).open(&text, 0), Some(ticket));
        assert_eq!(LoginKey::of(&other).open::<RefreshTicket>(&text, 0), None);
        let renamed = text.replace(&master.id().to_string(), &other.id().to_string());
        assert_eq!(LoginKey::of(&other).open::<RefreshTicket>(&renamed, 0), None, "encrypted under another key");
    }

    #[test]
    fn a_keyring_finds_old_keys_too() {
        let ring = Keyring::new(key(2), vec![key(1)]);
        assert_eq!(ring.current().id(), key(2).id());
        for byte in [1, 2] {
            assert_eq!(ring.find(key(byte).id()).map(VaultKey::id), Some(key(byte).id()));
        }
        assert!(ring.find(key(3).id()).is_none());
    }

    #[test]
    fn what_is_too_long_is_not_encrypted() {
        let long = secret(&"x".repeat(PLAIN_BYTES_MAX + 1));
        assert_eq!(key(7).seal(&TO, &long, NONCE), Err(VaultError::TooLong(PLAIN_BYTES_MAX + 1)));
    }

    proptest! {
        #[test]
        fn what_was_sealed_opens_to_the_same_and_shows_nothing(
            bytes: [u8; 32], nonce: [u8; 24], org: u128, kind: u16, record: u128, version: u64, plain in ".{0,200}",
        ) {
            let to = Belonging {
                org: OrgId(Uuid::from_u128(org)),
                kind: RecordKind(kind),
                record: Uuid::from_u128(record),
                version,
            };
            let key = VaultKey::new(bytes);
            let text = key.seal(&to, &secret(&plain), nonce).expect("is short").to_string();
            let sealed = Sealed::parse(&text).expect("reads back");
            prop_assert_eq!(key.open(&to, &sealed), Ok(secret(&plain)));
            let holds = |part: &[u8]| part.len() > 4 && sealed.bytes.windows(part.len()).any(|window| window == part);
            prop_assert!(!holds(plain.as_bytes()) && !holds(&bytes));
            prop_assert!(VaultKey::new(bytes.map(|byte| !byte)).open(&to, &sealed).is_err());
        }

        #[test]
        fn no_text_makes_reading_fail_otherwise_than_by_saying_so(text in ".{0,100}") {
            prop_assert!(Sealed::parse(&text).is_none_or(|sealed| sealed.to_string() == text));
        }
    }
}
