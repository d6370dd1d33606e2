//! `assay admin`: organizations, users, keys and tokens, also the key of secrets, for whoever owns the data directory.
//!
//! A running node listens on a socket in its data directory, which only its owner may open: one request as a line of
//! JSON, one answer as a line. Where no node runs, the same request is carried out on the directory itself, under its lock.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use assay_cluster::{Cluster, ClusterConfig};
use assay_node_auth::{Asker, Job};
use assay_node_identity::{Identity, InvitationReply};
use assay_node_objects::{AuditLog, ObjectLimits, Objects, node_clock};
use assay_node_records::Records;
use assay_node_transfer::{TransferContext, TransferRequest};
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::operate::{self, ClusterRequest};
use crate::{out, transfer};

const SOCKET: &str = "admin.sock";
/// A request is a name or two.
const REQUEST_BYTES_MAX: u64 = 64 << 10;
/// How long either side waits for the other.
const WAIT: Duration = Duration::from_secs(40);
const AT_ONCE_MAX: usize = 8;

/// What an administrator asks for.
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

/// What a running node is asked through its socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    Admin(AdminCommand),
    Cluster(ClusterRequest),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Done(Value),
    Refused(String),
}

pub fn run(data_dir: &Path, command: AdminCommand) -> anyhow::Result<()> {
    if let Some(request) = transfer::request_of(&command) {
        return transfer::run(data_dir, command, request);
    }
    let answer = match ask(data_dir, &Request::Admin(command.clone()))? {
        Some(answer) => answer,
        None if matches!(command, AdminCommand::RotateMasterKey | AdminCommand::RotateSecrets) => anyhow::bail!(
            "no node runs on {}, and master keys are in the settings of one: start it with its master key first",
            data_dir.display()
        ),
        None => directly(data_dir, command)?,
    };
    match answer {
        Answer::Done(value) => out::json(&value),
        Answer::Refused(why) => anyhow::bail!(why),
    }
}

/// None where no node runs.
pub fn connect(data_dir: &Path) -> anyhow::Result<Option<UnixStream>> {
    let socket = data_dir.join(SOCKET);
    match UnixStream::connect(&socket) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("connecting to {}", socket.display())),
    }
}

/// None where no node runs.
pub fn ask(data_dir: &Path, request: &Request) -> anyhow::Result<Option<Answer>> {
    let Some(mut stream) = connect(data_dir)? else { return Ok(None) };
    stream.set_read_timeout(Some(WAIT))?;
    writeln!(stream, "{}", serde_json::to_string(request)?)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).context("waiting for the node's answer")?;
    serde_json::from_str(&line).map(Some).context("the node answered something else than an administrator's answer")
}

fn directly(data_dir: &Path, command: AdminCommand) -> anyhow::Result<Answer> {
    on_directory(data_dir, async |records, _| Ok(carry_out(&Identity::new(records), command).await))
}

/// Where no node runs.
pub fn on_directory<T>(
    data_dir: &Path,
    work: impl AsyncFnOnce(Records, Objects) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let there = data_dir.join("FORMAT").exists();
    anyhow::ensure!(there, "{} is no data directory: name it with --data-dir", data_dir.display());
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let config = ClusterConfig { data_dir: data_dir.to_owned(), ..ClusterConfig::default() };
        let cluster = Arc::new(Cluster::open(config).await?);
        let objects = Objects::start(Arc::clone(&cluster), ObjectLimits::default(), node_clock(&cluster));
        let records = Records::new(Arc::clone(&cluster), Arc::new(AuditLog::new(objects.clone())));
        let done = work(records, objects.clone()).await;
        objects.shutdown().await;
        cluster.shutdown().await?;
        done
    })
}

async fn carry_out(identity: &Identity, command: AdminCommand) -> Answer {
    let done = match command {
        AdminCommand::Organizations => identity.admin_organizations().await,
        AdminCommand::CreateOrganization { name, owner } => identity.admin_create_organization(&name, &owner).await,
        AdminCommand::Users { organization } => identity.admin_users(&organization).await,
        AdminCommand::CreateUser { email, organization } => identity.admin_create_user(&organization, &email).await,
        AdminCommand::Invitations { organization, user } => {
            identity.admin_invitations(organization.as_deref(), user.as_deref()).await
        }
        AdminCommand::AcceptInvitation { id } => identity.admin_reply_to_invitation(id, InvitationReply::Accept).await,
        AdminCommand::DeclineInvitation { id } => {
            identity.admin_reply_to_invitation(id, InvitationReply::Decline).await
        }
        AdminCommand::Keys { organization } => identity.admin_keys(&organization).await,
        AdminCommand::CreateKey { name, organization, user } => {
            identity.admin_create_key(&organization, &user, &name).await
        }
        AdminCommand::DeleteKey { id } => identity.admin_delete_key(id).await,
        AdminCommand::CreateServiceAccount { name, organization } => {
            identity.admin_create_service_account(&organization, &name).await
        }
        AdminCommand::ServiceTokens { organization } => identity.admin_service_tokens(&organization).await,
        AdminCommand::CreateServiceToken { name, organization, account } => {
            identity.admin_create_service_token(&organization, &account, &name).await
        }
        AdminCommand::DeleteServiceToken { id } => identity.admin_delete_service_token(id).await,
        AdminCommand::RotateMasterKey => identity.records().secrets().rotate_master_key().await,
        AdminCommand::RotateSecrets => identity.records().secrets().rotate_secrets().await,
        AdminCommand::ExportOrganization { .. } | AdminCommand::ImportOrganization { .. } => {
            return Answer::Refused("an export and an import have a conversation of their own".into());
        }
    };
    done.map_or_else(|refused| Answer::Refused(refused.to_string()), Answer::Done)
}

/// Where a running node is asked.
#[derive(Debug)]
pub struct Door {
    task: JoinHandle<()>,
    socket: PathBuf,
}

impl Door {
    /// The caller holds the directory's lock, so a socket that is there is left from a process that is gone.
    pub fn open(data_dir: &Path, cluster: Arc<Cluster>, identity: Identity, objects: Objects) -> anyhow::Result<Door> {
        let socket = data_dir.join(SOCKET);
        let doing = || format!("listening for administrators on {}", socket.display());
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(doing),
            _ => {}
        }
        let listener = UnixListener::bind(&socket).with_context(doing)?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).with_context(doing)?;
        let objects = objects.on_behalf_of(&Asker::Job(Job::Transfer));
        let context = TransferContext { records: identity.records().clone(), objects, runtime: Handle::current() };
        Ok(Door { task: tokio::spawn(listen(listener, cluster, identity, context)), socket })
    }

    pub fn close(&self) {
        self.task.abort();
        if let Err(error) = std::fs::remove_file(&self.socket) {
            tracing::warn!(%error, "the administrators' socket stays until the next start");
        }
    }
}

/// A few at a time: administrators are few, and most of what they ask is short.
async fn listen(listener: UnixListener, cluster: Arc<Cluster>, identity: Identity, context: TransferContext) {
    let places = Arc::new(Semaphore::new(AT_ONCE_MAX));
    loop {
        let Ok(permit) = Arc::clone(&places).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "an administrator could not connect");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let (cluster, identity, context) = (Arc::clone(&cluster), identity.clone(), context.clone());
        tokio::spawn(async move {
            let _permit = permit;
            match tokio::time::timeout(WAIT, answer(stream, &cluster, &identity)).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some((stream, request)))) => converse(stream, context, request).await,
                Ok(Err(error)) => tracing::warn!(%error, "an administrator's request was not answered"),
                Err(_) => tracing::warn!("an administrator's request took too long"),
            }
        });
    }
}

/// What takes as long as it takes, where both sides speak.
async fn converse(stream: tokio::net::UnixStream, context: TransferContext, request: TransferRequest) {
    let stream = match stream.into_std() {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%error, "an administrator's socket is gone"),
    };
    match tokio::task::spawn_blocking(move || assay_node_transfer::serve(stream, &context, &request)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "an export or import was not answered to its end"),
        Err(error) => tracing::error!(%error, "an export or import ended badly"),
    }
}

/// Answers, or gives back a command that one answer does not do.
async fn answer(
    mut stream: tokio::net::UnixStream,
    cluster: &Cluster,
    identity: &Identity,
) -> anyhow::Result<Option<(tokio::net::UnixStream, TransferRequest)>> {
    let mut line = String::new();
    // Whoever asks says one line before it is answered, so that nothing behind it is read with it.
    tokio::io::BufReader::new((&mut stream).take(REQUEST_BYTES_MAX)).read_line(&mut line).await?;
    let answer = match serde_json::from_str(&line) {
        Ok(Request::Admin(command)) => match transfer::request_of(&command) {
            Some(request) => return Ok(Some((stream, request))),
            None => carry_out(identity, command).await,
        },
        Ok(Request::Cluster(request)) => {
            let done = operate::carry_out(cluster, request).await;
            done.map_or_else(|refused| Answer::Refused(refused.why()), Answer::Done)
        }
        Err(error) => Answer::Refused(format!("not understood: {error}")),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    Ok(None)
}
