//! One node, started on a directory of its own and a port chosen by the system.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Result, bail};

use crate::process::{Process, STOP_MAX, command};

pub use crate::process::program;

/// The configured key of a server. No secret: the server is gone when its test ends.
pub const TEST_KEY: &str = "sk-test0000000000000000000000000000000000000000";

/// Beginning of the line with the address of each administrators' listener.
pub const ADMIN: &str = "Administrators are served at ";
pub const OTLP: &str = "Exporters of OpenTelemetry are served over gRPC at ";
const SIGN_IN: &str = "Sign in with this link (works once, for an hour): ";

/// Options for starting a server.
#[derive(Clone, Debug)]
pub struct Options {
    pub data_dir: PathBuf,
    /// None: the server makes a key and prints it.
    pub key: Option<String>,
    /// Settings, as `--set` takes them: `http.otlp_listen=...`.
    pub settings: Vec<String>,
    /// Address and port to listen at; any free port by default.
    pub listen: String,
    /// Variables of its environment, beside the key.
    pub environment: Vec<(String, String)>,
}

impl Options {
    pub fn new(data_dir: &Path) -> Options {
        Options {
            data_dir: data_dir.to_owned(),
            key: Some(TEST_KEY.into()),
            settings: Vec::new(),
            listen: "127.0.0.1:0".into(),
            environment: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub struct Server {
    process: Process,
    pub url: String,
    /// Key for requests: the configured one, or the printed one.
    pub key: String,
    /// Whether it printed a key.
    pub printed_key: bool,
    /// Link that signs a browser in, printed beside a key.
    pub sign_in_link: Option<String>,
    /// Address of the administrators' listener, if there is one.
    pub admin_url: Option<String>,
    /// Address of the gRPC listener for exporters.
    pub otlp_url: Option<String>,
}

impl Server {
    /// Starts the program and waits until it reports ready.
    pub fn start(options: &Options) -> Result<Server> {
        let mut command = command(&program()?);
        if let Some(key) = &options.key {
            command.env("ASSAY_API_KEY", key);
        }
        command.envs(options.environment.iter().map(|(name, value)| (name, value)));
        command.args(["serve", "--listen", &options.listen, "--data-dir"]).arg(&options.data_dir);
        for setting in &options.settings {
            command.args(["--set", setting]);
        }
        let mut process = Process::start(&mut command, &options.data_dir.with_extension("log"))?;
        let Ready { url, printed_key, sign_in_link, admin_url, otlp_url } = ready(&mut process)?;
        let key = options.key.clone().or_else(|| printed_key.clone()).unwrap_or_default();
        Ok(Server { process, url, key, printed_key: printed_key.is_some(), sign_in_link, admin_url, otlp_url })
    }

    /// Returns the complete output of a server that should refuse to start; an error if it starts.
    pub fn refusal(options: &Options) -> Result<String> {
        match Server::start(options) {
            Ok(server) => bail!("it started, at {}", server.url),
            Err(error) => Ok(error.to_string()),
        }
    }

    /// SIGTERM, and wait for the end.
    pub fn stop(mut self) -> Result<ExitStatus> {
        self.process.stop(STOP_MAX)
    }

    /// SIGKILL.
    pub fn kill(mut self) -> Result<()> {
        self.process.kill()
    }

    /// Returns whether it still runs.
    pub fn lives(&mut self) -> bool {
        self.process.lives()
    }

    /// The end of what it wrote to its error output.
    pub fn log(&self) -> String {
        self.process.log()
    }
}

/// Output of a node when it is ready.
#[derive(Clone, Debug)]
pub struct Ready {
    pub url: String,
    /// Printed on the first start of a directory without a configured key.
    pub printed_key: Option<String>,
    /// Printed with the key.
    pub sign_in_link: Option<String>,
    /// Address of the administrators' listener, if there is one.
    pub admin_url: Option<String>,
    pub otlp_url: Option<String>,
}

/// Waits until a node that was started with `assay serve` is ready.
pub fn ready(process: &mut Process) -> Result<Ready> {
    let (mut printed_key, mut sign_in_link, mut admin_url, mut otlp_url) = (None, None, None, None);
    let url = process.until(|line| {
        if let Some(key) = line.strip_prefix("API key (shown once): ") {
            printed_key = Some(key.trim().to_owned());
        }
        if let Some(link) = line.strip_prefix(SIGN_IN) {
            sign_in_link = Some(link.trim().to_owned());
        }
        if let Some(url) = line.strip_prefix(ADMIN) {
            admin_url = Some(url.trim().to_owned());
        }
        if let Some(url) = line.strip_prefix(OTLP) {
            otlp_url = Some(url.trim().to_owned());
        }
        line.strip_prefix("Assay is ready at ").map(|url| url.trim().trim_end_matches('/').to_owned())
    })?;
    Ok(Ready { url, printed_key, sign_in_link, admin_url, otlp_url })
}
