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
use assay_node_identity::Identity;
use assay_node_objects::Objects;
use assay_node_transfer::{TransferContext, TransferRequest};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::handlers::{execute_admin_command, execute_cluster_request};
use super::requests::{AdminCommand, SocketReply, SocketRequest};

const SOCKET_FILE: &str = "admin.sock";
const REQUEST_BYTES_MAX: u64 = 64 << 10;
/// Upper bound of the time that either side waits for the other.
const REPLY_WAIT_MAX: Duration = Duration::from_secs(40);
const CONCURRENT_REQUESTS_MAX: usize = 8;

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
        cluster: Arc<Cluster>,
        identity: Identity,
        objects: Objects,
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
        Ok(AdminSocket { task: tokio::spawn(listen(listener, cluster, identity, context)), socket })
    }

    pub fn close(&self) {
        self.task.abort();
        if let Err(error) = std::fs::remove_file(&self.socket) {
            tracing::warn!(%error, "the administrators' socket stays until the next start");
        }
    }
}

/// Accepts connections and answers at most [`CONCURRENT_REQUESTS_MAX`] of them at a time.
async fn listen(listener: UnixListener, cluster: Arc<Cluster>, identity: Identity, context: TransferContext) {
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
        let (cluster, identity, context) = (Arc::clone(&cluster), identity.clone(), context.clone());
        tokio::spawn(async move {
            let _permit = permit;
            match tokio::time::timeout(REPLY_WAIT_MAX, answer(stream, &cluster, &identity)).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some((stream, request)))) => converse(stream, context, request).await,
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

/// Answers a request. Returns the stream and the request where it is an export or import.
async fn answer(
    mut stream: tokio::net::UnixStream,
    cluster: &Cluster,
    identity: &Identity,
) -> anyhow::Result<Option<(tokio::net::UnixStream, TransferRequest)>> {
    let mut line = String::new();
    // A client sends one line before it reads the reply, so nothing behind that line is buffered here.
    tokio::io::BufReader::new((&mut stream).take(REQUEST_BYTES_MAX)).read_line(&mut line).await?;
    let answer = match serde_json::from_str(&line) {
        Ok(SocketRequest::Admin(command)) => match transfer_request(&command) {
            Some(request) => return Ok(Some((stream, request))),
            None => execute_admin_command(identity, command).await,
        },
        Ok(SocketRequest::Cluster(request)) => {
            let done = execute_cluster_request(cluster, request).await;
            done.map_or_else(|refused| SocketReply::Refused(refused.why()), SocketReply::Done)
        }
        Err(error) => SocketReply::Refused(format!("the request cannot be decoded: {error}")),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    Ok(None)
}
