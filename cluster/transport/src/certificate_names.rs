//! The names that a cluster's certificates bear. A name holds the cluster's id, so that a certificate of one cluster is
//! worth nothing in another, even under the same authority.

use assay_storage_model::{ClusterId, NodeId};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

/// Name of one node.
pub(crate) fn node_name(cluster: ClusterId, node: NodeId) -> String {
    format!("node-{node}.{cluster}.assay")
}

/// Name of every node, which a joining node expects, as it knows no node yet.
pub(crate) fn any_name(cluster: ClusterId) -> String {
    format!("any.{cluster}.assay")
}

pub(crate) fn server_name(name: &str) -> ServerName<'static> {
    ServerName::try_from(name.to_owned()).expect("letters, digits, dashes and dots")
}

/// Whether the certificate bears the name. Its signature was checked when the connection was made.
pub(crate) fn bears(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let parsed = ParsedCertificate::try_from(certificate);
    parsed.is_ok_and(|parsed| verify_server_name(&parsed, &server_name(name)).is_ok())
}
