//! `assay admin export-organization` and `import-organization`, through the socket of the running node or on the directory of
//! a stopped one.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;

use assay_node_transfer::{LocalFile, TransferContext, TransferRequest, converse, serve};

use super::admin::on_directory;
use super::output;
use crate::admin_api::requests::{AdminCommand, SocketRequest};
use crate::admin_api::socket::connect;

/// Runs the side of an export or import that has the file.
pub fn run(data_dir: &Path, command: AdminCommand, request: TransferRequest) -> anyhow::Result<()> {
    let file = match &command {
        AdminCommand::ExportOrganization { to, .. } => LocalFile::target(to)?,
        AdminCommand::ImportOrganization { from, .. } => LocalFile::source(from)?,
        _ => anyhow::bail!("this is neither an export nor an import"),
    };
    let done = match connect(data_dir)? {
        Some(stream) => {
            writeln!(&stream, "{}", serde_json::to_string(&SocketRequest::Admin(command))?)?;
            converse(stream, file)?
        }
        None => on_directory(data_dir, async move |records, objects| {
            let (ours, theirs) = UnixStream::pair()?;
            let context = TransferContext { records, objects, runtime: tokio::runtime::Handle::current() };
            let node = tokio::task::spawn_blocking(move || serve(theirs, &context, &request));
            let done = tokio::task::spawn_blocking(move || converse(ours, file)).await?;
            node.await??;
            done
        })?,
    };
    output::json(&done)?;
    Ok(())
}
