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
    /// Make an organization and its owner; prints the owner's API key, once
    CreateOrganization {
        /// What it is called, as in `acme`
        name: String,
        /// E-mail address of its owner
        #[arg(long, value_name = "EMAIL")]
        owner: String,
    },
    /// List the users of an organization
    Users {
        #[arg(long, value_name = "NAME")]
        organization: String,
    },
    /// Make a user an owner of an organization
    CreateUser {
        /// E-mail address
        email: String,
        #[arg(long, value_name = "NAME")]
        organization: String,
    },
    /// List pending invitations, of an organization or a user or all
    Invitations {
        #[arg(long, value_name = "NAME")]
        organization: Option<String>,
        /// E-mail address of the invited user
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
    /// Make an API key for a user; prints it, once
    CreateKey {
        /// A name by which to tell it from other keys, such as `laptop`
        name: String,
        #[arg(long, value_name = "NAME")]
        organization: String,
        /// E-mail address of the user it speaks for
        #[arg(long, value_name = "EMAIL")]
        user: String,
    },
    /// Delete an API key, so that it is refused from now on
    DeleteKey {
        /// As `keys` lists it
        id: Uuid,
    },
    /// Make a service account, which is a program's, an owner of an organization; prints its first service token, once
    CreateServiceAccount {
        /// What the program is called, such as `nightly-evals`
        name: String,
        #[arg(long, value_name = "NAME")]
        organization: String,
    },
    /// List the service tokens of an organization
    ServiceTokens {
        #[arg(long, value_name = "NAME")]
        organization: String,
    },
    /// Make a service token for a service account; prints it, once
    CreateServiceToken {
        /// A name by which to tell it from other tokens
        name: String,
        #[arg(long, value_name = "NAME")]
        organization: String,
        /// E-mail address or id of the service account it speaks for
        #[arg(long, value_name = "ACCOUNT")]
        account: String,
    },
    /// Delete a service token, so that it is refused from now on
    DeleteServiceToken {
        /// As `service-tokens` lists it
        id: Uuid,
    },
    /// Write all that an organization owns to a file, with the history of its rows; keys and secrets stay
    ExportOrganization {
        /// The organization's name
        name: String,
        /// The file, which must not be there
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
    /// Make an organization of such a file; refused where any of its ids is here. Started again it goes on
    ImportOrganization {
        /// The file
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
        /// Under this name instead of its own
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
    },
    /// Wrap the data keys of all organizations with the node's new master key; says how many
    ///
    /// Give every node the new key (secrets.master_key_file) with the one before it (secrets.old_master_key_files), start
    /// them again one after the other, and ask one of them for this. When asked again it says 0 and names the new key,
    /// the old one opens nothing any more.
    #[command(verbatim_doc_comment)]
    RotateMasterKey,
    /// Make the secrets of the cluster anew: what signs addresses of files and cursors, and the authority of its nodes
    ///
    /// After a data directory or a backup got into other hands. Addresses and cursors that were given out before are refused
    /// at once. Nodes take the new authority up one after the other, within seconds; then certificates of the old one are
    /// refused. Every node has to run and to have the master key. /readyz names the nodes that are waited for.
    #[command(verbatim_doc_comment)]
    RotateSecrets,
}

/// Request to a running node through the socket in its data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketRequest {
    Admin(AdminCommand),
    Cluster(ClusterRequest),
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
}

fn token_valid_minutes() -> u64 {
    TOKEN_VALID_MINUTES
}

/// Message for an operation that waited [`SETTLE_MAX`] in vain.
pub fn not_settled(left: &str) -> String {
    format!("not settled after {} s: {left}", SETTLE_MAX.as_secs())
}
