//! Configuration: defaults, then one file, then the environment, then flags; the later value wins. An empty variable of the
//! environment counts as not set, because compose files and the like pass on unset variables as empty ones.
//!
//! Every setting has one name, as `http.listen`. In the file that is key `listen` in table `[http]`; in the environment
//! `ASSAY_HTTP_LISTEN`; as a flag `--set http.listen=...`, and the two that everyone needs have flags of their own. A list is
//! written as in the file wherever it stands: `ASSAY_LIMITS_RATES='[{endpoint = "/logs3", ...}]'`.
//! A name or value that is not understood is an error that says which, where it stands, and what would be right.

mod durations;
mod error_texts;
mod limits;
mod records;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_cluster::{
    BadTiming, CERTIFICATE_VALID_MIN, ClusterConfig, MEMORY_BUDGET_BYTES, PeerConfig, SHARDS_DEFAULT, Timing,
};
use assay_node_backups::BackupConfig;
use assay_node_egress::EgressSettings;
use assay_node_files::FilesConfig;
use assay_node_gateway::settings::GatewaySettings;
use assay_node_http::{AdminConfig, ConsoleConfig, HttpConfig, TlsFiles, WiresConfig};
use assay_node_identity::{CLIENT_SECRET_VARIABLE, JwtConfig, OidcConfig};
use assay_node_limits::LimitsConfig;
use assay_node_retention::RetentionConfig;
use assay_node_runner::FunctionSettings;
use assay_node_secrets::SecretsConfig;
use assay_storage_model::sabotage::{self, Sabotage};
use error_texts::{in_plain_words, kind_of, unknown};
use limits::{ObjectsConfig, QueriesConfig};
use records::{PeopleConfig, RecordsConfig};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// Prefix of settings in the environment.
const ENVIRONMENT_PREFIX: &str = "ASSAY_";
/// Environment variables with the prefix that are not settings: secrets, which `assay config` must not print, and variables of
/// commands, tests and tools.
const NOT_SETTINGS: [&str; 10] = [
    "ASSAY_API_KEY",
    CLIENT_SECRET_VARIABLE,
    "ASSAY_MASTER_KEY",
    "ASSAY_ADMIN_TOKEN",
    "ASSAY_ADMIN_URL",
    "ASSAY_ADMIN_CA",
    "ASSAY_CONFIG",
    "ASSAY_REQUIRE",
    "ASSAY_BIN",
    sabotage::VARIABLE,
];
/// Connections that send what is no HTTP are their clients' fault; the server's library calls that an error. What `rmcp`
/// logs has messages of tools in it.
const DEFAULT_FILTER: &str = "info,openraft=off,raft_engine=warn,actix_http::h1=off,rmcp=off";
/// A configuration file is a page or two.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Everything that can be set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub http: HttpConfig,
    pub console: ConsoleConfig,
    pub admin: AdminConfig,
    pub jwt: JwtConfig,
    pub oidc: OidcConfig,
    pub store: StoreConfig,
    pub cluster: ClusterSettings,
    pub objects: ObjectsConfig,
    pub queries: QueriesConfig,
    pub secrets: SecretsConfig,
    pub retention: RetentionConfig,
    pub backup: BackupConfig,
    pub files: FilesConfig,
    pub people: PeopleConfig,
    pub records: RecordsConfig,
    pub limits: LimitsConfig,
    pub egress: EgressSettings,
    pub gateway: GatewaySettings,
    pub functions: FunctionSettings,
    pub wires: WiresConfig,
    pub log: LogConfig,
    pub founding: FoundingConfig,
}

/// Storage of rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// Directory with everything that the node stores.
    pub data_dir: PathBuf,
    /// Number of shards of a new cluster. A cluster keeps the number that it was founded with.
    pub shards: u16,
    /// Id of the cluster that the directory has to belong to; empty for any.
    pub cluster_id: String,
    /// Whether a start on a directory without data may found a new cluster. It never does if `cluster_id` or
    /// `cluster.peer_address` is set. Set it to false once a node has data, so that a missing mount is an error.
    pub create_if_missing: bool,
    /// Rows in memory before they are sealed into segments, over all shards. At twice this size writes wait.
    pub memory_budget_bytes: u64,
    /// Size from which the log deletes old files.
    pub log_budget_bytes: u64,
    /// Age at which rows are sealed, however few they are.
    pub seal_age_seconds: u64,
    /// Time after which deleted data is removed from all files. Rewriting these files takes additional time.
    pub erase_after_seconds: u64,
}

/// Membership of this node in a cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterSettings {
    /// Address at which other nodes reach this one, as host:port. It is stored at the first start. A node without one
    /// stays alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_address: Option<String>,
    /// Address to listen on for other nodes, if it differs from `peer_address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_listen: Option<String>,
    /// Replicas of each shard, for a new cluster.
    pub replicas: u16,
    /// Time after which a silent node counts as lost, and its replicas are rebuilt on others.
    pub dead_after_seconds: u64,
    /// Time between heartbeats of leaders, the same on all nodes. It must be longer than a round trip between any two
    /// nodes with a sync of the disk; add a third. The default fits round trips below 80 ms. For 300 ms one way use
    /// 800, with elections of 2400 to 4000.
    pub heartbeat_ms: u64,
    /// Shortest time without a leader after which a node asks for votes. At least three heartbeats.
    pub election_min_ms: u64,
    /// Longest such time. At least one and a half times the shortest, and at most 10000.
    pub election_max_ms: u64,
    /// Network bandwidth for moving replicas; 0 means no limit.
    pub move_bytes_per_second: u64,
    /// Time between two checks of all segments, in which replicas are compared. `assay doctor` checks the log and other
    /// files of a stopped node.
    pub scrub_every_seconds: u64,
    /// Lifetime of the certificates between nodes. Each node renews its own when a third of the time is left.
    pub certificate_valid_seconds: u64,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        let cluster = ClusterConfig::default();
        ClusterSettings {
            peer_address: None,
            peer_listen: None,
            replicas: cluster.replicas,
            dead_after_seconds: cluster.dead_after.as_secs(),
            heartbeat_ms: millis(cluster.timing.heartbeat),
            election_min_ms: millis(cluster.timing.election_min),
            election_max_ms: millis(cluster.timing.election_max),
            move_bytes_per_second: cluster.move_bytes_a_second,
            scrub_every_seconds: cluster.scrub_every.as_secs(),
            certificate_valid_seconds: cluster.certificate_valid.as_secs(),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl ClusterSettings {
    fn timing(&self) -> Result<Timing, ConfigError> {
        let [heartbeat, election_min, election_max] =
            [self.heartbeat_ms, self.election_min_ms, self.election_max_ms].map(Duration::from_millis);
        Timing { heartbeat, election_min, election_max }.check().map_err(|why| {
            let place = match why {
                BadTiming::Heartbeat(_) => "cluster.heartbeat_ms",
                BadTiming::ElectionMin { .. } => "cluster.election_min_ms",
                BadTiming::ElectionMax { .. } | BadTiming::TooLong(_) => "cluster.election_max_ms",
            };
            ConfigError { place: place.into(), problem: why.to_string() }
        })
    }

    fn certificate_valid(&self) -> Result<Duration, ConfigError> {
        let (seconds, min) = (self.certificate_valid_seconds, CERTIFICATE_VALID_MIN.as_secs());
        if seconds < min {
            let problem =
                format!("{seconds} s are too short to renew the certificate in time; it should be at least {min}");
            return Err(ConfigError { place: "cluster.certificate_valid_seconds".into(), problem });
        }
        Ok(Duration::from_secs(seconds))
    }

    /// Returns the address for other nodes, by default that of the data directory.
    fn peer(&self) -> Result<Option<PeerConfig>, ConfigError> {
        let wrong = |place: &str, problem: String| ConfigError { place: place.into(), problem };
        let Some(address) = &self.peer_address else {
            return match &self.peer_listen {
                None => Ok(None),
                Some(_) => Err(wrong("cluster.peer_listen", "it needs `cluster.peer_address` too".into())),
            };
        };
        let listen = self.peer_listen.as_deref().map(|listen| {
            let problem = || format!("`{listen}` is not an address and a port, such as 0.0.0.0:7400");
            listen.parse().map_err(|_| wrong("cluster.peer_listen", problem()))
        });
        let peer = PeerConfig::new(address, listen.transpose()?);
        peer.map(Some).map_err(|problem| wrong("cluster.peer_address", problem))
    }
}

/// Log of the program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// Levels of log lines, such as `info` or `warn,assay_node_http=debug`.
    pub filter: String,
    /// Form of log lines: `text` or `json`.
    pub format: LogFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    #[default]
    Text,
    /// One JSON object for each line.
    Json,
}

/// Records that a first start creates. Later starts ignore these settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FoundingConfig {
    /// Name of the organization that the first start makes.
    pub organization: String,
    /// E-mail address of its owner.
    pub owner_email: String,
}

impl Default for StoreConfig {
    fn default() -> Self {
        let cluster = ClusterConfig::default();
        StoreConfig {
            data_dir: PathBuf::from("./assay-data"),
            shards: SHARDS_DEFAULT,
            cluster_id: String::new(),
            create_if_missing: true,
            memory_budget_bytes: MEMORY_BUDGET_BYTES,
            log_budget_bytes: cluster.log.budget_bytes,
            seal_age_seconds: cluster.seal_age.as_secs(),
            erase_after_seconds: cluster.erase_after.as_secs(),
        }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig { filter: DEFAULT_FILTER.into(), format: LogFormat::Text }
    }
}

impl Default for FoundingConfig {
    fn default() -> Self {
        FoundingConfig { organization: "default".into(), owner_email: "owner@localhost".into() }
    }
}

impl StoreConfig {
    fn cluster(&self) -> Result<ClusterConfig, ConfigError> {
        let cluster = match self.cluster_id.as_str() {
            "" => None,
            id => Some(id.parse().map_err(|_| ConfigError {
                place: "store.cluster_id".into(),
                problem: format!("`{id}` is not a cluster id; it must be the UUID that `assay doctor` prints"),
            })?),
        };
        let default = ClusterConfig::default();
        Ok(ClusterConfig {
            data_dir: self.data_dir.clone(),
            shards: self.shards,
            cluster,
            memory_budget_bytes: self.memory_budget_bytes,
            seal_age: Duration::from_secs(self.seal_age_seconds),
            erase_after: Duration::from_secs(self.erase_after_seconds),
            log: assay_cluster::LogConfig { budget_bytes: self.log_budget_bytes, ..default.log },
            ..default
        })
    }
}

impl Config {
    /// Returns the setting which implies that this node was founded or has joined before, if any.
    fn expects_data(&self) -> Option<String> {
        if sabotage::is(Sabotage::EmptyDirectoryFounds) {
            return None;
        }
        let said = [
            (self.cluster.peer_address.is_some(), "`cluster.peer_address` (--peer-address) is set"),
            (!self.store.cluster_id.is_empty(), "`store.cluster_id` is set"),
            (!self.store.create_if_missing, "`store.create_if_missing` is false"),
        ];
        said.into_iter().find_map(|(is_said, why)| is_said.then(|| why.to_owned()))
    }

    /// Returns the configuration of the cluster node.
    pub fn node(&self) -> Result<ClusterConfig, ConfigError> {
        Ok(ClusterConfig {
            replicas: self.cluster.replicas,
            peer: self.cluster.peer()?,
            dead_after: Duration::from_secs(self.cluster.dead_after_seconds),
            timing: self.cluster.timing()?,
            move_bytes_a_second: self.cluster.move_bytes_per_second,
            scrub_every: Duration::from_secs(self.cluster.scrub_every_seconds.max(1)),
            certificate_valid: self.cluster.certificate_valid()?,
            expects_data: self.expects_data(),
            ..self.store.cluster()?
        })
    }
}

/// Problem of a setting, and the source of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub place: String,
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for ConfigError {}

/// Sources of settings other than the defaults. The later takes precedence.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Configuration file, and its origin: `--config` or an environment variable.
    pub file: Option<(PathBuf, String)>,
    pub environment: BTreeMap<String, String>,
    /// Flags such as `http.listen=0.0.0.0:8000`, in their order.
    pub flags: Vec<String>,
    /// Takes the place of the port of `http.listen`.
    pub port: Option<u16>,
}

impl Sources {
    /// The environment of this process as it is now.
    pub fn environment() -> BTreeMap<String, String> {
        let all =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        all.filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX)).collect()
    }
}

/// Loads settings; later sources take precedence. An error names the setting and its source.
pub fn load(sources: &Sources) -> Result<Config, ConfigError> {
    let known = KnownSettings::all();
    let mut said = SettingValues::default();
    if let Some(file) = &sources.file {
        known.take_file(&mut said, file)?;
    }
    known.take_environment(&mut said, &sources.environment)?;
    for flag in &sources.flags {
        let place = format!("--set {flag}");
        let Some((name, value)) = flag.split_once('=') else {
            return Err(ConfigError { place, problem: "write it as name=value".into() });
        };
        known.set_text(&mut said, name, value, &place)?;
    }
    let mut config = said.config()?;
    if let Some(port) = sources.port {
        let host = config.http.listen.rsplit_once(':').map_or(config.http.listen.as_str(), |(host, _)| host);
        config.http.listen = format!("{host}:{port}");
    }
    let checked = config.http.check().and_then(|()| config.admin.check()).and_then(|()| config.limits.check());
    let checked =
        checked.and_then(|()| config.jwt.check()).and_then(|()| config.oidc.check(config.http.public_url.as_deref()));
    let checked = checked
        .and_then(|()| config.egress.check().map_err(|why| why.to_string()))
        .and_then(|()| config.gateway.check(config.http.bodies_bytes_max).map_err(|why| why.to_string()));
    checked.map_err(|problem| ConfigError { place: "settings".into(), problem })?;
    Ok(config)
}

/// Values of settings, and the source of each.
#[derive(Debug, Default)]
struct SettingValues(BTreeMap<String, (Value, String)>);

impl SettingValues {
    fn put(&mut self, name: &str, value: Value, place: &str) {
        self.0.insert(name.to_owned(), (value, place.to_owned()));
    }

    fn config(self) -> Result<Config, ConfigError> {
        let defaults = Table::try_from(Config::default()).expect("the defaults can be written down");
        let mut all = defaults.clone();
        for (name, (value, place)) in &self.0 {
            durations::check(name, value).map_err(|problem| ConfigError { place: place.clone(), problem })?;
            put(&mut all, name, value.clone());
        }
        let error = match all.try_into::<Config>() {
            Ok(config) => return Ok(config),
            Err(error) => error,
        };
        // The parser does not say which setting it was: each is tried alone.
        for (name, (value, place)) in &self.0 {
            let mut alone = defaults.clone();
            put(&mut alone, name, value.clone());
            if let Err(error) = alone.try_into::<Config>() {
                let problem = format!("`{name}`: {}", in_plain_words(&error.to_string()));
                return Err(ConfigError { place: place.clone(), problem });
            }
        }
        Err(wrong_together(&error))
    }
}

/// Error of settings that are valid one by one.
fn wrong_together(error: &toml::de::Error) -> ConfigError {
    ConfigError { place: "settings".into(), problem: in_plain_words(&error.to_string()) }
}

/// Formats settings as a configuration file. Settings without a value are comments.
pub fn printed(config: &Config) -> Result<String, toml::ser::Error> {
    let table = Table::try_from(config)?;
    let mut text = toml::to_string(&table)?;
    let given = flat(&table);
    let unset: Vec<String> = KnownSettings::all().0.into_keys().filter(|name| !given.contains_key(name)).collect();
    if !unset.is_empty() {
        text.push_str("\n# not set:\n");
        unset.iter().for_each(|name| text.push_str(&format!("# {name}\n")));
    }
    Ok(text)
}

/// Every setting by its full name, with a value that shows its type.
struct KnownSettings(BTreeMap<String, Value>);

impl KnownSettings {
    fn all() -> KnownSettings {
        let mut config = Config::default();
        // What may be left out altogether has no default to show its type.
        config.http.public_url = Some(String::new());
        config.http.metrics_listen = Some(String::new());
        config.http.otlp_listen = Some(String::new());
        config.cluster.peer_address = Some(String::new());
        config.cluster.peer_listen = Some(String::new());
        config.backup.location = Some(String::new());
        config.backup.key_file = Some(PathBuf::new());
        config.backup.megabytes_a_second_max = Some(0);
        config.secrets.master_key_file = Some(PathBuf::new());
        let files = TlsFiles { certificates: PathBuf::new(), private_key: PathBuf::new() };
        config.http.tls = Some(files.clone());
        config.admin = AdminConfig { listen: Some(String::new()), token_file: Some(PathBuf::new()), tls: Some(files) };
        config.jwt.issuer = Some(String::new());
        config.jwt.audience = Some(String::new());
        config.jwt.jwks = Some(String::new());
        config.jwt.ca = Some(PathBuf::new());
        config.jwt.hs256_secret_file = Some(PathBuf::new());
        config.oidc.issuer = Some(String::new());
        config.oidc.client_id = Some(String::new());
        config.oidc.client_secret_file = Some(PathBuf::new());
        config.oidc.ca = Some(PathBuf::new());
        config.egress.ca_file = Some(PathBuf::new());
        config.egress.proxy = Some(String::new());
        config.egress.proxy_authorization_file = Some(PathBuf::new());
        config.gateway.catalog_file = Some(PathBuf::new());
        config.gateway.facet_model = Some(String::new());
        config.console.dir = Some(PathBuf::new());
        KnownSettings(flat(&Table::try_from(config).expect("settings can be written down")))
    }

    fn take_file(&self, said: &mut SettingValues, (path, named_by): &(PathBuf, String)) -> Result<(), ConfigError> {
        let place = path.display().to_string();
        let wrong = |problem: String| ConfigError { place: place.clone(), problem };
        let length = std::fs::metadata(path).map_err(|error| no_file(path, named_by, &error))?.len();
        if length > FILE_BYTES_MAX {
            return Err(wrong(format!("it has {length} bytes, which is too large for a configuration file")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let given: Table = text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
        for (name, value) in flat(&given) {
            let right = self.0.get(&name).ok_or_else(|| wrong(self.unknown(&name)))?;
            if !right.same_type(&value) {
                let (found, right) = (kind_of(&value), kind_of(right));
                return Err(wrong(format!("`{name}` is {found}; it has to be {right}")));
            }
            said.put(&name, value, &place);
        }
        Ok(())
    }

    fn take_environment(
        &self,
        said: &mut SettingValues,
        environment: &BTreeMap<String, String>,
    ) -> Result<(), ConfigError> {
        let names: BTreeMap<String, &String> = self.0.keys().map(|name| (environment_name(name), name)).collect();
        for (name, value) in environment.iter().filter(|(name, _)| !NOT_SETTINGS.contains(&name.as_str())) {
            let place = format!("environment {name}");
            let Some(setting) = names.get(name) else {
                let problem = unknown(name, names.keys().map(String::as_str));
                return Err(ConfigError { place, problem });
            };
            if value.is_empty() {
                continue;
            }
            self.set_text(said, setting, value, &place)?;
        }
        Ok(())
    }

    /// Sets a value from a text, by the type of the setting. Lists have the syntax of the file.
    fn set_text(&self, said: &mut SettingValues, name: &str, text: &str, place: &str) -> Result<(), ConfigError> {
        let wrong = |problem: String| ConfigError { place: place.to_owned(), problem };
        let kind = self.0.get(name).ok_or_else(|| wrong(self.unknown(name)))?;
        let value = match kind {
            Value::String(_) => Some(Value::String(text.to_owned())),
            Value::Integer(_) => text.parse().ok().map(Value::Integer),
            Value::Float(_) => text.parse().ok().map(Value::Float),
            Value::Boolean(_) => text.parse().ok().map(Value::Boolean),
            Value::Array(_) => Some(list(text).map_err(wrong)?),
            _ => None,
        };
        let value = value.ok_or_else(|| wrong(format!("`{name}` is `{text}`; it has to be {}", kind_of(kind))))?;
        said.put(name, value, place);
        Ok(())
    }

    fn unknown(&self, name: &str) -> String {
        unknown(name, self.0.keys().map(String::as_str))
    }
}

/// Returns the error of an unreadable configuration file, with its origin and the remedy.
fn no_file(path: &Path, named_by: &str, error: &std::io::Error) -> ConfigError {
    let problem = match error.kind() {
        std::io::ErrorKind::NotFound => {
            "the file does not exist. Name an existing file, write one with `assay config > FILE`, or run without \
             one to use the defaults"
                .to_owned()
        }
        _ => error.to_string(),
    };
    ConfigError { place: format!("{named_by} {}", path.display()), problem }
}

/// Parses a list in the syntax of the file; an empty text is an empty list.
fn list(text: &str) -> Result<Value, String> {
    const NAME: &str = "list";
    if text.trim().is_empty() {
        return Ok(Value::Array(Vec::new()));
    }
    let table: Table = format!("{NAME} = {text}").parse().map_err(|error: toml::de::Error| {
        format!("this is not a list in TOML, such as [{{endpoint = \"/logs3\"}}]: {}", error.message())
    })?;
    match table.get(NAME) {
        Some(list @ Value::Array(_)) if table.len() == 1 => Ok(list.clone()),
        _ => Err("this is not a list; write it in brackets, as in the file".into()),
    }
}

/// Returns an environment variable that is not empty.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The environment's name of a setting.
pub fn environment_name(setting: &str) -> String {
    format!("{ENVIRONMENT_PREFIX}{}", setting.replace('.', "_").to_uppercase())
}

/// A table's values by their full names.
fn flat(table: &Table) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for (name, value) in table {
        match value {
            Value::Table(inner) => {
                found.extend(flat(inner).into_iter().map(|(inner, value)| (format!("{name}.{inner}"), value)));
            }
            value => drop(found.insert(name.clone(), value.clone())),
        }
    }
    found
}

fn put(settings: &mut Table, name: &str, value: Value) {
    match name.split_once('.') {
        None => drop(settings.insert(name.to_owned(), value)),
        Some((table, rest)) => {
            let inner = settings.entry(table).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
