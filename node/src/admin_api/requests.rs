//! Requests and replies of the administrators' API: the same for the socket, the HTTP listener and the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// Upper bound of the time that `status --wait` and `rebalance` wait for the cluster to settle.
pub const SETTLE_MAX: Duration = Duration::from_secs(600);
/// Pause between two reads of the cluster's status.
pub const STATUS_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Shortest time between two progress lines about the same operation.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// Validity of a join token unless the request names another one.
pub const TOKEN_VALID_MINUTES: u64 = 60;

/// Commands of `assay admin`.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminCommand {
    /// List organizations
    Organizations,
    /// Create an organization and its owner; prints the owner's API key, once
    CreateOrganization {
        /// Name of the organization, such as `acme`
        name: String,
        /// Email address of the owner
        #[arg(long, value_name = "EMAIL")]
        owner: String,
    },
    /// Delete an organization with all its data, and its users that are in no other organization
    ///
    /// Its keys are refused at once. Its rows, files and records are removed within seconds, also from disk as segments
    /// are rewritten. Backups keep them until they are pruned. There is no way back: export the organization first.
    #[command(verbatim_doc_comment)]
    DeleteOrganization {
        /// Name of the organization
        name: String,
        /// The same name again, so that no typing error deletes another organization
        #[arg(long, value_name = "NAME")]
        confirm: String,
    },
    /// List the users of an organization
    Users {
        #[arg(long, value_name = "NAME")]
        organization: String,
    },
    /// Make a user an owner of an organization
    CreateUser {
        /// Email address of the user
        email: String,
        #[arg(long, value_name = "NAME")]
        organization: String,
    },
    /// List pending invitations: all, or those of an organization or a user
    Invitations {
        #[arg(long, value_name = "NAME")]
        organization: Option<String>,
        /// Email address of the invited user
        #[arg(long, value_name = "EMAIL")]
        user: Option<String>,
    },
    /// Accept an invitation on behalf of its user, who joins the organization
    AcceptInvitation { id: Uuid },
    /// Decline an invitation on behalf of its user
    DeclineInvitation { id: Uuid },
    /// List the API keys of an organization
    Keys {
        #[arg(long, value_name = "NAME")]
        organization: String,
    },
    /// Create an API key for a user; prints it, once
    CreateKey {
        /// Name of the key, such as `laptop`
        name: String,
        #[arg(long, value_name = "NAME")]
        organization: String,
        /// Email address of the user
        #[arg(long, value_name = "EMAIL")]
        user: String,
    },
    /// Delete an API key, so that it is refused from now on
    DeleteKey {
        /// Id of the key, from `keys`
        id: Uuid,
    },
    /// Create a service account that owns an organization; prints its first service token, once
    CreateServiceAccount {
        /// Name of the program that uses it, such as `nightly-evals`
        name: String,
        #[arg(long, value_name = "NAME")]
        organization: String,
    },
    /// Create a pair of keys for Langfuse's SDKs, with rights on one project; prints it, once
    CreateLangfuseKey {
        /// Name of the application that uses it, such as `support-bot`
        name: String,
        #[arg(long, value_name = "NAME")]
        organization: String,
        /// Name or id of the project
        #[arg(long, value_name = "PROJECT")]
        project: String,
    },
    /// List the service tokens of an organization
    ServiceTokens {
        #[arg(long, value_name = "NAME")]
        organization: String,
    },
    /// Create a service token for a service account; prints it, once
    CreateServiceToken {
        /// Name of the token
        name: String,
        #[arg(long, value_name = "NAME")]
        organization: String,
        /// Email address or id of the service account
        #[arg(long, value_name = "ACCOUNT")]
        account: String,
    },
    /// Delete a service token, so that it is refused from now on
    DeleteServiceToken {
        /// Id of the token, from `service-tokens`
        id: Uuid,
    },
    /// Export an organization to a file, with the history of its rows, without keys and secrets
    ExportOrganization {
        /// Name of the organization
        name: String,
        /// New file
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
    /// Import an organization from such a file; refused if any of its ids exists here. Run it again to continue
    ImportOrganization {
        /// File that `export-organization` wrote
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
        /// Name to use instead of the organization's own
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
    },
    /// Encrypt the data keys of all organizations with the node's new master key; prints their number
    ///
    /// Give every node the new key (secrets.master_key_file) and the previous one (secrets.old_master_key_files), and
    /// restart the nodes one after the other. Then run this command on one of them, until it prints 0 and the id of the
    /// new key. From then on nothing needs the old key.
    #[command(verbatim_doc_comment)]
    RotateMasterKey,
    /// Replace the key that signs file URLs and cursors, and the certificate authority of the nodes
    ///
    /// Run this after a data directory or a backup is leaked. Old file URLs and cursors are refused at once. The nodes
    /// adopt the new authority one after the other, within seconds, and then refuse certificates of the old one. Every
    /// node has to run and to have the master key. /readyz names the nodes that have not adopted the new authority.
    #[command(verbatim_doc_comment)]
    RotateSecrets,
}

/// Request to a running node through the socket in its data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketRequest {
    Admin(AdminCommand),
    Cluster(ClusterRequest),
    /// Stores a backup now. The answer is a series of [`BackupReply`].
    Backup,
}

/// Reply to a request for a backup. Only the last one is no progress.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupReply {
    Progress(String),
    Done(Value),
    Refused(String),
}

/// Reply to a [`SocketRequest`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketReply {
    Done(Value),
    Refused(String),
}

/// Operations on the cluster that a running node carries out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ClusterRequest {
    Token {
        #[serde(default = "token_valid_minutes")]
        minutes: u64,
    },
    Status,
    Drain {
        node: u64,
    },
    Undrain {
        node: u64,
    },
    Remove {
        node: u64,
    },
    Replace {
        old: u64,
        new: u64,
    },
    Finalize,
}

fn token_valid_minutes() -> u64 {
    TOKEN_VALID_MINUTES
}

/// Message for an operation that waited [`SETTLE_MAX`] in vain.
pub fn not_settled(left: &str) -> String {
    format!("the cluster has not settled after {} s: {left}", SETTLE_MAX.as_secs())
}
