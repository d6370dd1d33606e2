//! An S3 server that others wrote: moto from the Python package index, with a bucket in memory.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use assay_test_api::http::{Request, send};
use assay_test_api::process::Process;

use crate::python::made;

const MOTO: &str = include_str!("../python/moto.lock");
/// Beginning of the line with the address of the server.
const READY: &str = " * Running on http://";
pub const BUCKET: &str = "backups";

/// Server that ends when the value is dropped.
#[derive(Debug)]
pub struct S3Server {
    _process: Process,
    /// Address and port.
    pub address: String,
}

impl S3Server {
    /// Starts a server with an empty bucket. Its log is below a directory.
    pub fn start(dir: &Path) -> Result<S3Server> {
        let python = made("moto", MOTO)?;
        // The address is in its error output, beside its log of requests.
        let mut command = Command::new("sh");
        command.args(["-c", r#"exec "$1" -u -m moto.server -H 127.0.0.1 -p 0 2>&1"#, "sh"]).arg(python);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let mut process = Process::start(&mut command, &dir.join("moto.log"))?;
        let address = process.until(|line| line.strip_prefix(READY).map(str::to_owned))?;
        let server = S3Server { _process: process, address };
        server.create(BUCKET)?;
        Ok(server)
    }

    /// Creates a further bucket.
    pub fn create(&self, bucket: &str) -> Result<()> {
        let create = Request { method: "PUT".into(), target: format!("/{bucket}"), ..Request::default() };
        let answer = send(&format!("http://{}", self.address), &create)?;
        ensure!(answer.status == 200, "the bucket {bucket} was not created: {}", answer.text());
        Ok(())
    }
}

/// Returns the variables that let a program use a server at an address, as its operator sets them.
pub fn variables(address: &str) -> Vec<(String, String)> {
    let endpoint = format!("http://{address}");
    let variables = [
        ("AWS_ACCESS_KEY_ID", "someone"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT", endpoint.as_str()),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// Checks that the server can be installed, so that a test can say why not.
pub fn available() -> Result<(), String> {
    made("moto", MOTO).map(drop).context("moto").map_err(|error| format!("{error:#}"))
}
