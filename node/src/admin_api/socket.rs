//! The socket in the data directory of a running node, which only the owner of the directory can open.
//!
//! A request is one line of JSON, the reply is one line. Exports and imports go on with messages of their own.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use assay_cluster::Cluster;
use assay_node_auth::{Asker, Job};
use assay_node_backups::{BackupProgress, Backups, time_text};
use assay_node_identity::Identity;
use assay_node_objects::Objects;
use assay_node_transfer::{TransferContext, TransferRequest};
use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::handlers::{execute_admin_command, execute_cluster_request};
use super::requests::{AdminCommand, BackupReply, SocketReply, SocketRequest};

const SOCKET_FILE: &str = "admin.sock";
const REQUEST_BYTES_MAX: u64 = 64 << 10;
/// Upper bound of the time that either side waits for the other.
const REPLY_WAIT_MAX: Duration = Duration::from_secs(40);
const CONCURRENT_REQUESTS_MAX: usize = 8;
/// Upper bound of the lines of progress that wait for their reader. Later ones are left out.
const PROGRESS_LINES_MAX: usize = 16;

/// Connects to the node that runs on a data directory. Returns `None` where no node runs.
pub fn connect(data_dir: &Path) -> anyhow::Result<Option<UnixStream>> {
    let socket = data_dir.join(SOCKET_FILE);
    match UnixStream::connect(&socket) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("connecting to {}", socket.display())),
    }
}

/// Sends a request to the node that runs on a data directory. Returns `None` where no node runs.
pub fn ask(data_dir: &Path, request: &SocketRequest) -> anyhow::Result<Option<SocketReply>> {
    let Some(mut stream) = connect(data_dir)? else { return Ok(None) };
    stream.set_read_timeout(Some(REPLY_WAIT_MAX))?;
    writeln!(stream, "{}", serde_json::to_string(request)?)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).context("no response from the node")?;
    serde_json::from_str(&line).map(Some).context("the response of the node cannot be decoded")
}

/// Returns the export or import that a command asks for.
pub fn transfer_request(command: &AdminCommand) -> Option<TransferRequest> {
    match command {
        AdminCommand::ExportOrganization { name, .. } => Some(TransferRequest::Export { organization: name.clone() }),
        AdminCommand::ImportOrganization { name, .. } => Some(TransferRequest::Import { organization: name.clone() }),
        _ => None,
    }
}

/// Listener on the socket in the data directory.
#[derive(Debug)]
pub struct AdminSocket {
    task: JoinHandle<()>,
    socket: PathBuf,
}

impl AdminSocket {
    /// Starts to listen. The caller holds the lock of the directory, so an existing socket is a leftover and is removed.
    pub fn open(
        data_dir: &Path,
        (cluster, identity, objects): (&Arc<Cluster>, &Identity, &Objects),
        backups: Option<Backups>,
    ) -> anyhow::Result<AdminSocket> {
        let socket = data_dir.join(SOCKET_FILE);
        let doing = || format!("listening for administrators on {}", socket.display());
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(doing),
            _ => {}
        }
        let listener = UnixListener::bind(&socket).with_context(doing)?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).with_context(doing)?;
        let objects = objects.on_behalf_of(&Asker::Job(Job::Transfer));
        let context = TransferContext { records: identity.records().clone(), objects, runtime: Handle::current() };
        let (cluster, identity) = (Arc::clone(cluster), identity.clone());
        let parts = SocketParts { cluster, identity, context, backups };
        Ok(AdminSocket { task: tokio::spawn(listen(listener, parts)), socket })
    }

    pub fn close(&self) {
        self.task.abort();
        if let Err(error) = std::fs::remove_file(&self.socket) {
            tracing::warn!(%error, "the administrators' socket stays until the next start");
        }
    }
}

/// What requests work on.
#[derive(Clone)]
struct SocketParts {
    cluster: Arc<Cluster>,
    identity: Identity,
    context: TransferContext,
    /// Backup of the cluster, if the settings have one.
    backups: Option<Backups>,
}

/// Request that is an exchange of many messages, without a time limit.
enum LongRequest {
    Transfer(TransferRequest),
    Backup,
}

/// Accepts connections and answers at most [`CONCURRENT_REQUESTS_MAX`] of them at a time.
async fn listen(listener: UnixListener, parts: SocketParts) {
    let places = Arc::new(Semaphore::new(CONCURRENT_REQUESTS_MAX));
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
        let parts = parts.clone();
        tokio::spawn(async move {
            let _permit = permit;
            match tokio::time::timeout(REPLY_WAIT_MAX, answer(stream, &parts)).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some((stream, LongRequest::Transfer(request))))) => {
                    converse(stream, parts.context, request).await
                }
                Ok(Ok(Some((stream, LongRequest::Backup)))) => {
                    if let Err(error) = back_up(stream, parts.backups.as_ref()).await {
                        tracing::warn!(%error, "nobody waits for a backup any more");
                    }
                }
                Ok(Err(error)) => tracing::warn!(%error, "an administrator's request failed"),
                Err(_) => tracing::warn!("an administrator's request took too long"),
            }
        });
    }
}

/// Runs an export or import, which is an exchange of many messages without a time limit.
async fn converse(stream: tokio::net::UnixStream, context: TransferContext, request: TransferRequest) {
    let stream = match stream.into_std() {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%error, "an administrator's socket is missing"),
    };
    match tokio::task::spawn_blocking(move || assay_node_transfer::serve(stream, &context, &request)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "an export or import was interrupted"),
        Err(error) => tracing::error!(%error, "an export or import failed"),
    }
}

/// Stores a backup, and writes lines of progress meanwhile. Ends early if the other side has gone.
async fn back_up(mut stream: tokio::net::UnixStream, backups: Option<&Backups>) -> anyhow::Result<()> {
    let Some(backups) = backups else {
        let why = "this node has no backup: set backup.location and backup.key_file, on every node";
        return write_reply(&mut stream, &BackupReply::Refused(why.into())).await;
    };
    let (progress, mut lines) = mpsc::channel(PROGRESS_LINES_MAX);
    let mut last = None;
    let making = backups.make_backup(move |now: BackupProgress| {
        if last != Some(now) {
            last = Some(now);
            // Without a reader, a line about progress is of no use.
            let _ = progress.try_send(format!("{} of {} groups are stored", now.groups_done, now.groups));
        }
    });
    let mut making = std::pin::pin!(making);
    let made = loop {
        tokio::select! {
            made = &mut making => break made,
            Some(line) = lines.recv() => write_reply(&mut stream, &BackupReply::Progress(line)).await?,
        }
    };
    let reply = match made {
        Ok(point) => BackupReply::Done(json!({"backup": time_text(point.at), "location": backups.status().location})),
        Err(why) => BackupReply::Refused(why.to_string()),
    };
    write_reply(&mut stream, &reply).await
}

async fn write_reply(stream: &mut tokio::net::UnixStream, reply: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    Ok(stream.write_all(&line).await?)
}

/// Answers a request. Returns the stream and the request where it is a long one.
async fn answer(
    mut stream: tokio::net::UnixStream,
    parts: &SocketParts,
) -> anyhow::Result<Option<(tokio::net::UnixStream, LongRequest)>> {
    let mut line = String::new();
    // A client sends one line before it reads the reply, so nothing behind that line is buffered here.
    tokio::io::BufReader::new((&mut stream).take(REQUEST_BYTES_MAX)).read_line(&mut line).await?;
    let answer = match serde_json::from_str(&line) {
        Ok(SocketRequest::Admin(command)) => match transfer_request(&command) {
            Some(request) => return Ok(Some((stream, LongRequest::Transfer(request)))),
            None => execute_admin_command(&parts.identity, command).await,
        },
        Ok(SocketRequest::Cluster(request)) => {
            let done = execute_cluster_request(&parts.cluster, request).await;
            done.map_or_else(|refused| SocketReply::Refused(refused.why()), SocketReply::Done)
        }
        Ok(SocketRequest::Backup) => return Ok(Some((stream, LongRequest::Backup))),
        Err(error) => SocketReply::Refused(format!("the request cannot be decoded: {error}")),
    };
    write_reply(&mut stream, &answer).await?;
    Ok(None)
}
