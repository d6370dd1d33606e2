//! Certificates of a provider secret in `metadata.tls`.
//!
//! Metadata are stored in clear text, so they never contain the key of a certificate. The key is a member of the
//! secret.

use serde_json::{Map, Value};

use crate::complaint::{FieldReader, MetadataComplaint, kind_of};

/// Member of the secret with the private key of the certificate.
pub const TLS_KEY_MEMBER: &str = "tls_key";
/// Upper bound of a PEM text, in bytes.
const PEM_BYTES_MAX: usize = 256 << 10;

const PEM_BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// Certificates in PEM format for connections to a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderTls {
    /// Authorities that are trusted in addition to those of the system.
    pub ca: Option<String>,
    /// Certificate of this server, followed by those of intermediate authorities. The secret contains its key.
    pub cert: Option<String>,
}

impl ProviderTls {
    pub(super) fn read(reader: &mut FieldReader<'_>) -> ProviderTls {
        let Some(members) = reader.object("tls") else { return ProviderTls::default() };
        if let Err(complaint) = check_members(members) {
            reader.add(vec![complaint]);
            return ProviderTls::default();
        }
        let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
        ProviderTls { ca: text("ca"), cert: text("cert") }
    }
}

/// Checks the member `tls` of metadata before they are stored.
pub fn check_tls(metadata: &Map<String, Value>) -> Result<(), MetadataComplaint> {
    match metadata.get("tls") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(members)) => check_members(members),
        Some(other) => {
            Err(complaint("", format!("an object with `ca` and `cert` was expected, not {}", kind_of(other))))
        }
    }
}

fn complaint(member: &str, problem: impl Into<String>) -> MetadataComplaint {
    MetadataComplaint { path: format!("metadata.tls{member}"), problem: problem.into() }
}

fn check_members(members: &Map<String, Value>) -> Result<(), MetadataComplaint> {
    for (name, value) in members {
        let text = match (name.as_str(), value) {
            (_, Value::Null) => continue,
            ("ca" | "cert", Value::String(text)) => text,
            ("ca" | "cert", other) => {
                return Err(complaint(&format!(".{name}"), format!("a PEM text was expected, not {}", kind_of(other))));
            }
            ("key", _) => {
                let problem = "metadata are stored in clear text; write the secret as JSON with the key in `tls_key`";
                return Err(complaint(".key", problem));
            }
            _ => return Err(complaint("", "it has other members than `ca` and `cert`")),
        };
        if text.contains(PRIVATE_KEY) {
            let problem = "it has a private key, and metadata are stored in clear text; put the key into the secret";
            return Err(complaint(&format!(".{name}"), problem));
        }
        if !text.contains(PEM_BEGIN) || text.len() > PEM_BYTES_MAX {
            let problem = "certificates in PEM within 256 KiB were expected";
            return Err(complaint(&format!(".{name}"), problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

    #[test]
    fn certificates_are_taken_and_keys_are_refused() {
        for good in [json!({}), json!({"tls": null}), json!({"tls": {"ca": CERTIFICATE, "cert": null}})] {
            assert_eq!(check_tls(good.as_object().expect("an object")), Ok(()), "{good}");
        }
        let key = format!("{CERTIFICATE}-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n");
        for (bad, path) in [
            (json!({"tls": "x"}), "metadata.tls"),
            (json!({"tls": {"ca": 1}}), "metadata.tls.ca"),
            (json!({"tls": {"ca": "x"}}), "metadata.tls.ca"),
            (json!({"tls": {"key": "x"}}), "metadata.tls.key"),
            (json!({"tls": {"cert": key}}), "metadata.tls.cert"),
            (json!({"tls": {"verify": false}}), "metadata.tls"),
        ] {
            let found = check_tls(bad.as_object().expect("an object")).expect_err("a complaint");
            assert_eq!(found.path, path, "{bad}");
        }
    }
}
