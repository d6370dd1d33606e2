//! Names in a cluster's certificates.
//!
//! A name contains the cluster's id, so a certificate of one cluster is invalid in another, even under the same
//! authority.

use assay_storage_model::{ClusterId, NodeId};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

/// Name of one node.
pub(crate) fn node_name(cluster: ClusterId, node: NodeId) -> String {
    format!("node-{node}.{cluster}.assay")
}

/// Name of every node. A joining node expects it, because it does not know a node's name yet.
pub(crate) fn any_name(cluster: ClusterId) -> String {
    format!("any.{cluster}.assay")
}

pub(crate) fn server_name(name: &str) -> ServerName<'static> {
    ServerName::try_from(name.to_owned()).expect("letters, digits, dashes and dots")
}

/// Returns whether the certificate has the name. Its signature was verified when the connection was made.
pub(crate) fn bears(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let parsed = ParsedCertificate::try_from(certificate);
    parsed.is_ok_and(|parsed| verify_server_name(&parsed, &server_name(name)).is_ok())
}
