//! `assay cluster prepare`: joins the cluster that answers at `--admin`, or founds one, without an operator.
//!
//! A scheduler runs the same command on every node of a cluster before each start of the node. A directory that belongs
//! to a cluster already is left alone, without a request.
//!
//! The directory of the founder may be empty because its disk is lost, while the other nodes have the data. So the founder
//! founds a cluster only if no other node runs: the name of the listener resolves, and all its addresses refuse
//! connections, several times in a row. A node that cannot be reached in another way may still have the data.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use assay_cluster::{JoinError, PeerConfig, read_format, read_node};
use assay_storage_disk::RealDisk;
use serde_json::{Value, json};

use super::init::{InitRequest, init};
use super::{join, text, token_file};
use crate::admin_api::requests::{ClusterRequest, PROGRESS_INTERVAL, TOKEN_VALID_MINUTES};
use crate::cli::listener_client::ListenerClient;
use crate::cli::output;

/// Pause between two attempts to reach a node of the cluster.
const ATTEMPT_INTERVAL: Duration = Duration::from_secs(1);
/// Successive attempts in which no node runs, before the founder founds a cluster.
const ABSENCES_MIN: u32 = 3;
/// Upper bound of the time that a node waits for its cluster unless the command names another one.
pub const WAIT_SECONDS: u64 = 300;
/// Ending of the file beside a data directory with the token of a join. An interrupted join repeats with the same token,
/// so that the cluster does not wait for a node that never starts.
const TOKEN_ENDING: &str = "join-token";

/// Arguments of `prepare`.
#[derive(Clone, Copy, Debug)]
pub struct PrepareRequest<'a> {
    pub peer_address: &'a str,
    /// Peer address of the node that may found the cluster; empty for none.
    pub founder: &'a str,
    /// Number of shards of a cluster that this founds.
    pub shards: Option<u16>,
    /// Upper bound of the time to wait for the cluster.
    pub wait: Duration,
}

/// Prepares a directory, or reports that it was prepared before.
pub fn prepare(data_dir: &Path, cluster: &ListenerClient, wanted: PrepareRequest<'_>) -> anyhow::Result<Value> {
    PeerConfig::new(wanted.peer_address, None).map_err(anyhow::Error::msg)?;
    if let Some(format) = read_format(&RealDisk, data_dir)?.filter(|format| format.founded) {
        let node = read_node(Arc::new(RealDisk), data_dir)?;
        return Ok(json!({"cluster": format.cluster, "node": node.node, "before": true}));
    }
    let join = TokenJoin { data_dir, token_file: beside(data_dir), cluster };
    let mut founding = FoundingRule { is_allowed: wanted.founder == wanted.peer_address, absences: 0 };
    let (begun, mut said_at) = (Instant::now(), None::<Instant>);
    loop {
        let why = match join.attempt(wanted.peer_address)? {
            JoinAttempt::Joined(node) => return Ok(node),
            JoinAttempt::Absent if founding.is_due() => {
                let wanted = InitRequest { peer_address: wanted.peer_address, shards: wanted.shards, replicas: None };
                return init(data_dir, wanted);
            }
            JoinAttempt::Absent => format!("no node runs at {}", cluster.url()),
            JoinAttempt::Failed(why) => {
                founding.absences = 0;
                why
            }
        };
        anyhow::ensure!(begun.elapsed() < wanted.wait, gave_up(&why, wanted));
        if said_at.is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL) {
            output::note(format_args!("waiting: {why}"));
            said_at = Some(Instant::now());
        }
        std::thread::sleep(ATTEMPT_INTERVAL);
    }
}

fn gave_up(why: &str, wanted: PrepareRequest<'_>) -> String {
    let founder = match wanted.founder {
        "" => "No node may found a cluster: name one with --founder if there is none yet.".to_owned(),
        founder => format!("Only the node at {founder} may found a cluster."),
    };
    format!("this node is in no cluster after {} s: {why}. {founder}", wanted.wait.as_secs())
}

/// Decides when the founder may found a cluster.
#[derive(Debug)]
struct FoundingRule {
    is_allowed: bool,
    /// Successive attempts in which no node ran.
    absences: u32,
}

impl FoundingRule {
    /// Counts an attempt in which no node ran.
    fn is_due(&mut self) -> bool {
        self.absences += 1;
        self.is_allowed && self.absences >= ABSENCES_MIN
    }
}

/// Outcome of one attempt to join.
#[derive(Debug)]
enum JoinAttempt {
    Joined(Value),
    /// No node of the cluster runs, and this one has never asked to join.
    Absent,
    /// The cluster cannot admit this node now, or cannot be reached.
    Failed(String),
}

/// A join with the token in a file.
struct TokenJoin<'a> {
    data_dir: &'a Path,
    token_file: PathBuf,
    cluster: &'a ListenerClient,
}

impl TokenJoin<'_> {
    fn attempt(&self, peer_address: &str) -> anyhow::Result<JoinAttempt> {
        let had_token = self.token_file.exists();
        if let Err(error) = self.keep_token(false) {
            let is_absent = !had_token && self.cluster.is_absent();
            return Ok(if is_absent { JoinAttempt::Absent } else { JoinAttempt::Failed(output::chain(&error)) });
        }
        let token = std::fs::read_to_string(&self.token_file)?;
        match join(self.data_dir, &token, peer_address) {
            Ok(node) => {
                // A token works once, so a file that stays harms nobody.
                let _ = std::fs::remove_file(&self.token_file);
                Ok(JoinAttempt::Joined(node))
            }
            Err(error) if is_lasting(&error) => Err(error),
            Err(error) => {
                if had_token && self.is_expired() {
                    // The next attempt uses another one. The cluster has not admitted this node, or it would again.
                    let _ = self.keep_token(true);
                }
                Ok(JoinAttempt::Failed(output::chain(&error)))
            }
        }
    }

    fn keep_token(&self, anew: bool) -> anyhow::Result<()> {
        let make = || {
            let answer = self.cluster.ask(&ClusterRequest::Token { minutes: TOKEN_VALID_MINUTES })?;
            Ok(text(&answer["token"]).to_owned())
        };
        token_file::keep(&self.token_file, anew, make).map(drop)
    }

    /// Whether the validity of the token is over. A file whose age is unknown counts as new.
    fn is_expired(&self) -> bool {
        let modified = std::fs::metadata(&self.token_file).and_then(|found| found.modified());
        let age = modified.ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
        age.is_some_and(|age| age > Duration::from_secs(TOKEN_VALID_MINUTES * 60))
    }
}

/// Whether a repetition of the join fails for the same reason: the directory is in the way, and not the cluster.
fn is_lasting(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(JoinError::Home(_) | JoinError::Other { .. }))
}

fn beside(data_dir: &Path) -> PathBuf {
    let mut name = data_dir.as_os_str().to_owned();
    name.push(".");
    name.push(TOKEN_ENDING);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use assay_node_auth::Secret;

    use super::*;
    use crate::cli::listener_client::ListenerArgs;

    const PEER: &str = "127.0.0.1:7400";

    fn client(port: u16, dir: &Path) -> ListenerClient {
        let token_file = dir.join("admin.token");
        assay_node_secrets::keep_secret_file(&token_file, &Secret::new("adm-0123456789-0123456789-0123456789".into()))
            .expect("writes");
        let args = ListenerArgs {
            admin: Some(format!("http://127.0.0.1:{port}")),
            admin_token_file: Some(token_file),
            admin_ca: None,
        };
        ListenerClient::new(&args, dir).expect("valid").expect("a listener is named")
    }

    /// Returns a port on which nothing listens.
    fn closed_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("binds").port()
    }

    fn request(founder: &str) -> PrepareRequest<'_> {
        PrepareRequest { peer_address: PEER, founder, shards: None, wait: Duration::ZERO }
    }

    #[test]
    fn only_the_founder_founds_after_several_absences_in_a_row() {
        let mut founder = FoundingRule { is_allowed: true, absences: 0 };
        assert_eq!([(); 3].map(|()| founder.is_due()), [false, false, true]);
        let mut other = FoundingRule { is_allowed: false, absences: 0 };
        assert_eq!([(); 4].map(|()| other.is_due()), [false; 4]);
    }

    #[test]
    fn a_node_in_no_cluster_says_who_may_found_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let (data, client) = (dir.path().join("data"), client(closed_port(), dir.path()));
        let refused = |founder: &str| prepare(&data, &client, request(founder)).expect_err("nobody runs").to_string();
        let other = refused("127.0.0.1:7401");
        assert!(other.contains("no node runs at http://127.0.0.1:"), "{other}");
        assert!(other.contains("Only the node at 127.0.0.1:7401 may found"), "{other}");
        assert!(refused("").contains("No node may found a cluster"));
        assert!(!data.exists(), "nothing was founded");
    }

    /// A listener that accepts connections is a node, whatever it answers.
    #[test]
    fn a_node_that_answers_nothing_useful_is_not_absent() {
        let dir = tempfile::tempdir().expect("a directory");
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let port = listener.local_addr().expect("bound").port();
        let closer = std::thread::spawn(move || {
            for _ in 0..2 {
                drop(listener.accept());
            }
        });
        let client = client(port, dir.path());
        let data = dir.path().join("data");
        let join = TokenJoin { data_dir: &data, token_file: beside(&data), cluster: &client };
        let attempt = join.attempt(PEER).expect("it may be tried again");
        assert!(matches!(attempt, JoinAttempt::Failed(_)), "{attempt:?}");
        closer.join().expect("it was asked twice");
    }

    /// The cluster may have admitted this node, so it must not found another one.
    #[test]
    fn a_node_that_has_a_token_is_no_founder() {
        let dir = tempfile::tempdir().expect("a directory");
        let (data, client) = (dir.path().join("data"), client(closed_port(), dir.path()));
        let token = "assay-join-eyJjbHVzdGVyIjoiMDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDA3IiwiYWRkcmVzcyI6ImEiL\
                     CJhdXRob3JpdHkiOiJiIiwic2VjcmV0IjoiYyJ9";
        std::fs::write(beside(&data), token).expect("writes");
        let join = TokenJoin { data_dir: &data, token_file: beside(&data), cluster: &client };
        let attempt = join.attempt(PEER).expect("it may be tried again");
        assert!(matches!(attempt, JoinAttempt::Failed(_)), "{attempt:?}");
    }

    #[test]
    fn a_prepared_directory_needs_no_cluster() {
        let dir = tempfile::tempdir().expect("a directory");
        let (data, client) = (dir.path().join("data"), client(closed_port(), dir.path()));
        let peer_address = format!("127.0.0.1:{}", closed_port());
        let wanted = InitRequest { peer_address: &peer_address, shards: Some(4), replicas: None };
        let made = init(&data, wanted).expect("founds");
        let found = prepare(&data, &client, request("")).expect("it is prepared");
        assert_eq!((&found["cluster"], &found["before"]), (&made["cluster"], &json!(true)));
    }
}
