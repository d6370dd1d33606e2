//! Records of the cluster's certificate authority in the catalog, and the steps of its rotation.
//!
//! ```text
//! rotation asked for    the next authority is written down     every node comes to trust it
//! all trust it          it is the current one                  every node gets a certificate from it
//! all have one          the previous one is retired            nobody trusts it any more
//! ```
//! Each step waits for every node that was not removed, so that no two nodes ever refuse each other. The record of a
//! node states its trusted authorities and the issuer of its certificate. The decisions here are pure.

use std::time::{Duration, SystemTime};

use assay_cluster_network::node_records::{NodeProgram, NodeRecord};
use assay_cluster_transport::{Identity, TransportError, split_certificates};
use assay_storage_blobs::BlobName;
use assay_storage_model::NodeId;
use serde::{Deserialize, Serialize};

/// Fraction of the validity that must be left. A certificate with less is renewed.
const RENEWED_AT_PART: u32 = 3;
/// Maximum number of remembered retired authorities, which a node that was down for long removes from its files.
const RETIRED_MAX: usize = 16;

/// Authorities of the cluster. The format is frozen: programs before 0.5.0 read the first two fields, and find no key
/// once it is wrapped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Authorities {
    pub certificate_pem: String,
    /// Private key in the form of programs before 0.5.0. Empty once it is wrapped.
    pub key_pem: String,
    /// Private key, wrapped by the master key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapped_key: Option<String>,
    /// Next authority, which is trusted but issues no certificates yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextAuthority>,
    /// Certificates of the previous authority, which is trusted until no node shows a certificate from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<String>,
    /// Fingerprints of authorities that are no longer trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retired: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NextAuthority {
    pub certificate_pem: String,
    pub wrapped_key: String,
}

/// Change that a node must make to the certificates in its directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CertificateChange {
    Nothing,
    /// The node must trust these authorities, and keeps its certificate.
    Trust(String),
    /// The node must trust these authorities, and needs a certificate from the current one.
    Certificate(String),
}

/// Statement of a node about its certificates.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StatedCertificates {
    pub trusts: Vec<String>,
    pub certified_by: Option<String>,
}

impl Authorities {
    /// Label under which the private key of an authority is wrapped. It binds the key to this certificate.
    pub fn label(certificate_pem: &str) -> String {
        format!("cluster authority {}", fingerprint_of(certificate_pem))
    }

    pub fn is_wrapped(&self) -> bool {
        self.key_pem.is_empty()
    }

    pub fn is_rotating(&self) -> bool {
        self.next.is_some() || !self.previous.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        let next = self.next.iter().map(|next| &next.certificate_pem);
        std::iter::once(&self.certificate_pem).chain(next).chain(&self.previous)
    }

    /// Returns every authority that a node must trust, as one PEM text.
    pub fn trusted(&self) -> String {
        self.all().map(|pem| format!("{}\n", pem.trim_end())).collect()
    }

    /// Returns the nodes that the current rotation waits for.
    pub fn waits_for(&self, nodes: &[NodeRecord]) -> Vec<NodeId> {
        // A node that joined but never started has a certificate, but has not stated its issuer.
        let started = |node: &NodeRecord| node.program.clone().filter(|program| program.keys.is_some());
        let waits: Box<dyn Fn(&NodeRecord) -> bool> = match &self.next {
            Some(next) => {
                let (current, next) = (fingerprint_of(&self.certificate_pem), fingerprint_of(&next.certificate_pem));
                // A node that does not trust the current authority uses an operator's own authority.
                Box::new(move |node| {
                    let lags = |shown: &NodeProgram| shown.trusts.contains(&current) && !shown.trusts.contains(&next);
                    started(node).as_ref().is_none_or(lags)
                })
            }
            None => {
                let previous: Vec<String> = self.previous.iter().map(|pem| fingerprint_of(pem)).collect();
                Box::new(move |node| {
                    let lags =
                        |shown: &NodeProgram| shown.certified_by.as_ref().is_some_and(|by| previous.contains(by));
                    started(node).as_ref().is_none_or(lags)
                })
            }
        };
        match self.is_rotating() {
            true => nodes.iter().filter(|node| waits(node)).map(|node| node.node).collect(),
            false => Vec::new(),
        }
    }

    /// Returns the result of the next step of a rotation, if there is one and every node is ready for it.
    pub fn step(&self, nodes: &[NodeRecord]) -> Option<Authorities> {
        if !self.is_rotating() || !self.waits_for(nodes).is_empty() {
            return None;
        }
        let mut stepped = self.clone();
        match stepped.next.take() {
            Some(next) => {
                stepped.previous.push(std::mem::replace(&mut stepped.certificate_pem, next.certificate_pem));
                stepped.wrapped_key = Some(next.wrapped_key);
                stepped.key_pem.clear();
            }
            None => {
                stepped.retired.extend(stepped.previous.drain(..).map(|pem| fingerprint_of(&pem)));
                let forgotten = stepped.retired.len().saturating_sub(RETIRED_MAX);
                stepped.retired.drain(..forgotten);
            }
        }
        Some(stepped)
    }

    /// Returns the change that a node with this identity must make. A certificate of an operator's own authority stays
    /// unchanged.
    pub fn due(&self, kept: &Identity, valid: Duration) -> Result<CertificateChange, TransportError> {
        if self.issuer_of(kept)?.is_none() {
            return Ok(CertificateChange::Nothing);
        }
        let own = split_certificates(&kept.authority_pem)?;
        let before: Vec<String> = own.iter().map(|(_, der)| fingerprint(der)).collect();
        let (mut after, mut trusted) = (Vec::new(), String::new());
        for (pem, der) in own.into_iter().chain(split_certificates(&self.trusted())?) {
            let fingerprint = fingerprint(&der);
            if !self.retired.contains(&fingerprint) && !after.contains(&fingerprint) {
                after.push(fingerprint);
                trusted.push_str(&pem);
            }
        }
        let same_trust = before == after;
        let left = kept.runs_out()?.duration_since(SystemTime::now()).unwrap_or_default();
        let trusted = if same_trust { kept.authority_pem.clone() } else { trusted };
        Ok(match is_due(left, valid) || !kept.is_by(&self.certificate_pem)? {
            true => CertificateChange::Certificate(trusted),
            false if same_trust => CertificateChange::Nothing,
            false => CertificateChange::Trust(trusted),
        })
    }

    /// Returns the fingerprint of the cluster's authority that issued the certificate, or `None` for an operator's own
    /// authority.
    fn issuer_of(&self, identity: &Identity) -> Result<Option<String>, TransportError> {
        for pem in self.all() {
            if identity.is_by(pem)? {
                return Ok(Some(fingerprint_of(pem)));
            }
        }
        Ok(None)
    }

    pub fn shown(&self, identity: &Identity) -> Result<StatedCertificates, TransportError> {
        Ok(StatedCertificates { trusts: StatedCertificates::of(identity)?, certified_by: self.issuer_of(identity)? })
    }
}

impl StatedCertificates {
    fn of(identity: &Identity) -> Result<Vec<String>, TransportError> {
        Ok(split_certificates(&identity.authority_pem)?.iter().map(|(_, der)| fingerprint(der)).collect())
    }
}

fn fingerprint(der: &[u8]) -> String {
    BlobName::of(der).to_string()
}

/// Returns the fingerprint of the first certificate, or of the bytes of a text without one.
fn fingerprint_of(pem: &str) -> String {
    let first = split_certificates(pem).ok().and_then(|parts| parts.into_iter().next());
    first.map_or_else(|| fingerprint(pem.as_bytes()), |(_, der)| fingerprint(&der))
}

/// Returns whether a certificate must be renewed. One with more than the possible validity is from an earlier program,
/// whose certificates never expired.
fn is_due(left: Duration, valid: Duration) -> bool {
    let part = valid / RENEWED_AT_PART;
    left < part || left > valid + part
}

#[cfg(test)]
mod tests {
    use assay_cluster_transport::{Authority, new_request};
    use assay_storage_model::ClusterId;
    use uuid::Uuid;

    use super::*;
    use assay_cluster_network::node_records::NodeState;

    const CLUSTER: ClusterId = ClusterId(Uuid::from_u128(7));
    const VALID: Duration = Duration::from_secs(3600);

    /// Nodes on one catalog, each with the content of its directory.
    struct World {
        authorities: Vec<Authority>,
        kept: Vec<Identity>,
        body: Authorities,
    }

    impl World {
        fn new(nodes: u64) -> World {
            let authority = Authority::new(CLUSTER).expect("an authority");
            let body = Authorities {
                certificate_pem: authority.certificate_pem().to_owned(),
                key_pem: authority.key_pem(),
                wrapped_key: None,
                next: None,
                previous: Vec::new(),
                retired: Vec::new(),
            };
            let mut world = World { authorities: vec![authority], kept: Vec::new(), body };
            for node in 1..=nodes {
                let (key_pem, request) = new_request().expect("a request");
                let certificate_pem = world.authorities[0].issue(NodeId(node), &request, VALID).expect("issued");
                let authority_pem = world.body.certificate_pem.clone();
                world.kept.push(Identity { authority_pem, certificate_pem, key_pem });
            }
            world
        }

        fn begin(&mut self) {
            let next = Authority::new(CLUSTER).expect("an authority");
            let certificate_pem = next.certificate_pem().to_owned();
            self.body.next = Some(NextAuthority { certificate_pem, wrapped_key: "wrapped".into() });
            self.authorities.push(next);
        }

        /// Applies the change like a node's reconciler.
        fn take_up(&mut self, node: usize) {
            let kept = &mut self.kept[node - 1];
            match self.body.due(kept, VALID).expect("reads") {
                CertificateChange::Nothing => {}
                CertificateChange::Trust(trusted) => kept.authority_pem = trusted,
                CertificateChange::Certificate(trusted) => {
                    let request =
                        assay_cluster_transport::CertificateRequest::of_key(&kept.key_pem).expect("a request");
                    let current =
                        self.authorities.iter().find(|one| one.certificate_pem() == self.body.certificate_pem);
                    let issued = current.expect("known").issue(NodeId(node as u64), &request, VALID);
                    kept.certificate_pem = issued.expect("issued");
                    kept.authority_pem = trusted;
                }
            }
        }

        fn records(&self) -> Vec<NodeRecord> {
            let record = |(node, kept): (u64, &Identity)| {
                let StatedCertificates { trusts, certified_by } = self.body.shown(kept).expect("reads");
                let program = NodeProgram { keys: Some(Vec::new()), trusts, certified_by, ..NodeProgram::own() };
                NodeRecord { node: NodeId(node), address: None, state: NodeState::Active, program: Some(program) }
            };
            (1..).zip(&self.kept).map(record).collect()
        }

        /// Returns whether all nodes would accept each other with their current trust.
        fn all_accept_each_other(&self) -> bool {
            self.kept.iter().all(|one| self.kept.iter().all(|other| other.is_by(&one.authority_pem).expect("reads")))
        }
    }

    #[test]
    fn a_rotation_never_has_two_nodes_refuse_each_other_and_ends_without_the_old_one() {
        let mut world = World::new(3);
        let forged = {
            let (key_pem, request) = new_request().expect("a request");
            let certificate_pem = world.authorities[0].issue(NodeId(2), &request, VALID).expect("issued");
            Identity { authority_pem: world.body.trusted(), certificate_pem, key_pem }
        };
        world.begin();
        let mut waited = 0;
        for node in (1..=3).cycle().take(30) {
            world.take_up(node);
            assert!(world.all_accept_each_other());
            match world.body.step(&world.records()) {
                Some(stepped) => world.body = stepped,
                None => waited += 1,
            }
            assert!(world.all_accept_each_other());
        }
        assert!(waited > 0 && !world.body.is_rotating() && world.body.is_wrapped());
        assert_eq!(world.body.certificate_pem, world.authorities[1].certificate_pem());
        for kept in &world.kept {
            assert!(!forged.is_by(&kept.authority_pem).expect("reads"), "what the old key signed is refused");
            assert_eq!(split_certificates(&kept.authority_pem).expect("reads").len(), 1);
        }
    }

    #[test]
    fn each_step_waits_for_every_node_and_says_for_which() {
        let mut world = World::new(2);
        assert!(world.body.waits_for(&world.records()).is_empty() && world.body.step(&world.records()).is_none());
        world.begin();
        assert_eq!(world.body.waits_for(&world.records()), [NodeId(1), NodeId(2)]);
        world.take_up(1);
        assert_eq!(world.body.waits_for(&world.records()), [NodeId(2)]);
        assert!(world.body.step(&world.records()).is_none());
        let mut silent = world.records();
        silent[0].program = None;
        assert_eq!(world.body.waits_for(&silent), [NodeId(1), NodeId(2)], "a program before 0.5.0 is waited for");
        silent[0].program = Some(NodeProgram::own());
        assert_eq!(
            world.body.waits_for(&silent),
            [NodeId(1), NodeId(2)],
            "a node that has joined and not started is, too"
        );
        world.take_up(2);
        world.body = world.body.step(&world.records()).expect("both trust the next one");
        assert_eq!(world.body.waits_for(&world.records()), [NodeId(1), NodeId(2)]);
        world.take_up(2);
        assert_eq!(world.body.waits_for(&world.records()), [NodeId(1)]);
    }

    #[test]
    fn an_operators_own_certificate_is_left_alone_and_holds_nothing_up() {
        let mut world = World::new(1);
        let own = Authority::new(CLUSTER).expect("an authority");
        let request = assay_cluster_transport::CertificateRequest::of_key(&world.kept[0].key_pem).expect("a request");
        world.kept[0].certificate_pem = own.issue(NodeId(1), &request, VALID).expect("issued");
        world.kept[0].authority_pem = own.certificate_pem().to_owned();
        let before = world.kept[0].clone();
        world.begin();
        for _ in 0..3 {
            world.take_up(1);
            world.body = world.body.step(&world.records()).unwrap_or(world.body);
        }
        assert!(world.kept[0] == before && !world.body.is_rotating());
    }

    #[test]
    fn what_programs_before_0_5_wrote_reads() {
        let old = r#"{"certificate_pem":"c","key_pem":"k"}"#;
        let read: Authorities = serde_json::from_str(old).expect("it reads");
        assert!(!read.is_wrapped() && !read.is_rotating());
        assert_eq!(serde_json::to_string(&read).expect("it is written"), old);
    }

    #[test]
    fn a_certificate_is_due_in_its_last_third_and_where_it_lasts_for_ever() {
        let days = |days: u64| Duration::from_secs(days * 24 * 3600);
        for (left, due) in [(0, true), (29, true), (31, false), (90, false), (91, false), (36_500, true)] {
            assert_eq!(is_due(days(left), days(90)), due, "{left} of 90 days");
        }
    }
}
