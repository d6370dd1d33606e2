//! The administrators' listener of a running node: its token, and what its requests come to.
//!
//! What is asked for and what is answered is that of the socket in the data directory (`operate`), field by field.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use assay_cluster::{Cluster, ClusterStatus};
use assay_node_auth::{API_KEY_BYTES, AdminToken, Secret, new_admin_token};
use assay_node_http::{Admin, AdminAnswer, AdminRefusal, AdminRequest};
use assay_node_secrets::{keep_secret_file, read_secret_file};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::hardening;
use crate::operate::{self, ClusterRequest, LOOK_AGAIN_AFTER, SAID_AGAIN_AFTER, SETTLE_MAX};
use crate::serve::API_KEY_VARIABLE;

/// Takes the place of the token in the file.
pub const TOKEN_VARIABLE: &str = "ASSAY_ADMIN_TOKEN";
/// In the data directory.
pub const TOKEN_FILE: &str = "admin.token";
/// What the file holds.
pub const WHAT: &str = "the administrators' token";
/// Takes as long as it takes, and says meanwhile how far it is.
const REBALANCE: &str = "rebalance";

/// What the listener stands on; none where it is not asked for.
pub fn open(config: &Config, cluster: Arc<Cluster>) -> anyhow::Result<Option<Admin>> {
    if config.admin.listen.is_none() {
        return Ok(None);
    }
    let token = token(config)?;
    let answers = move |request: AdminRequest| -> futures::future::BoxFuture<'static, _> {
        let cluster = Arc::clone(&cluster);
        Box::pin(async move { answer(cluster, request).await })
    };
    Ok(Some(Admin { config: config.admin.clone(), token, answers: Arc::new(answers) }))
}

/// For who looks at the node's first lines.
pub fn announce(config: &Config, addresses: &[SocketAddr]) -> anyhow::Result<()> {
    let scheme = if config.admin.tls.is_some() { "https" } else { "http" };
    let mut out = std::io::stdout().lock();
    for address in addresses {
        writeln!(out, "Administrators are answered at {scheme}://{address}")?;
    }
    out.flush()?;
    Ok(())
}

/// Whether a token that is given, or made before, can be used; makes none.
pub fn check(config: &Config) -> anyhow::Result<()> {
    let own = config.store.data_dir.join(TOKEN_FILE);
    let is_given = variable(TOKEN_VARIABLE)?.is_some() || config.admin.token_file.is_some() || own.exists();
    if config.admin.listen.is_some() && is_given { token(config).map(drop) } else { Ok(()) }
}

fn token(config: &Config) -> anyhow::Result<AdminToken> {
    let (place, token) = match variable(TOKEN_VARIABLE)? {
        Some(token) => (TOKEN_VARIABLE.to_owned(), token),
        None => {
            let own = config.store.data_dir.join(TOKEN_FILE);
            let file = config.admin.token_file.as_deref().unwrap_or(&own);
            if file == own && !file.try_exists().with_context(|| format!("looking for {}", file.display()))? {
                make(file).with_context(|| format!("writing {}", file.display()))?;
            }
            (file.display().to_string(), read_secret_file(file, WHAT)?)
        }
    };
    let is_api_key = variable(API_KEY_VARIABLE)?.is_some_and(|key| key == token);
    anyhow::ensure!(
        !is_api_key,
        "{place}: it is also the API key of {API_KEY_VARIABLE}; administrators need another one"
    );
    AdminToken::new(&token).map_err(|why| anyhow::anyhow!("{place}: {why}"))
}

/// A secret of the environment; none where it is empty or not there.
pub fn variable(name: &'static str) -> anyhow::Result<Option<Secret>> {
    match hardening::variable(name) {
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) => Ok(Some(Secret::new(text.trim().to_owned()))),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(error).context(name),
    }
}

fn make(file: &Path) -> anyhow::Result<()> {
    let mut random = [0; API_KEY_BYTES];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
    keep_secret_file(file, &new_admin_token(&random))?;
    tracing::info!(file = %file.display(), "made a token for administrators");
    Ok(())
}

async fn answer(cluster: Arc<Cluster>, request: AdminRequest) -> Result<AdminAnswer, AdminRefusal> {
    if request.operation == REBALANCE {
        return match request.fields.keys().next() {
            None => Ok(AdminAnswer::Lines(settling(cluster))),
            Some(field) => Err(AdminRefusal::Bad(format!("`{REBALANCE}` has no field `{field}`; it has none"))),
        };
    }
    let request = understood(request)?;
    operate::carry_out(&cluster, request).await.map(AdminAnswer::Done).map_err(|refused| match refused {
        operate::Refused::State(why) => AdminRefusal::Refused(why),
        operate::Refused::Unavailable(why) => AdminRefusal::Unavailable(why),
    })
}

/// An operation without fields is written as its name alone.
fn understood(request: AdminRequest) -> Result<ClusterRequest, AdminRefusal> {
    let AdminRequest { operation, fields } = request;
    let plain = fields.is_empty().then(|| serde_json::from_value(Value::String(operation.clone())).ok()).flatten();
    if let Some(plain) = plain {
        return Ok(plain);
    }
    let whole = Map::from_iter([(operation.clone(), Value::Object(fields))]);
    serde_json::from_value(Value::Object(whole)).map_err(|error| AdminRefusal::Bad(format!("`{operation}`: {error}")))
}

/// What is still to be done, whenever that changes and from time to time; at last the status, or why there is none.
fn settling(cluster: Arc<Cluster>) -> BoxStream<'static, Value> {
    let until = Instant::now() + SETTLE_MAX;
    let waiting = Waiting { until, said: None };
    stream::unfold(Some((cluster, waiting)), |state| async move {
        let (cluster, mut waiting) = state?;
        loop {
            let status = cluster.status().await;
            match waiting.line(&status, Instant::now()) {
                Line::Last(last) => return Some((last, None)),
                Line::Meanwhile(line) => return Some((line, Some((cluster, waiting)))),
                Line::Nothing => tokio::time::sleep(LOOK_AGAIN_AFTER).await,
            }
        }
    })
    .boxed()
}

#[derive(Debug)]
struct Waiting {
    until: Instant,
    said: Option<(String, Instant)>,
}

#[derive(Debug, PartialEq)]
enum Line {
    Nothing,
    Meanwhile(Value),
    Last(Value),
}

impl Waiting {
    fn line(&mut self, status: &ClusterStatus, now: Instant) -> Line {
        if status.settled {
            return Line::Last(serde_json::to_value(status).unwrap_or_default());
        }
        let left = status.unsettled.join("; ");
        if now >= self.until {
            return Line::Last(json!({"refused": operate::not_settled(&left)}));
        }
        let silent = |at: &Instant| now.duration_since(*at) < SAID_AGAIN_AFTER;
        if self.said.as_ref().is_some_and(|(_, at)| silent(at)) {
            return Line::Nothing;
        }
        let line = Line::Meanwhile(json!({"waiting": left}));
        self.said = Some((left, now));
        line
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn asked(operation: &str, fields: Value) -> Result<ClusterRequest, AdminRefusal> {
        let fields = fields.as_object().cloned().unwrap_or_default();
        understood(AdminRequest { operation: operation.into(), fields })
    }

    #[track_caller]
    fn refused(operation: &str, fields: Value, part: &str) {
        let Err(AdminRefusal::Bad(why)) = asked(operation, fields) else { panic!("{operation} is taken") };
        assert!(why.contains(part), "{why}");
    }

    #[test]
    fn a_request_is_its_operation_and_its_fields() {
        assert_eq!(asked("status", json!({})), Ok(ClusterRequest::Status));
        assert_eq!(asked("drain", json!({"node": 2})), Ok(ClusterRequest::Drain { node: 2 }));
        assert_eq!(asked("replace", json!({"old": 2, "new": 4})), Ok(ClusterRequest::Replace { old: 2, new: 4 }));
        assert_eq!(asked("token", json!({})), Ok(ClusterRequest::Token { minutes: 60 }));
        refused("drian", json!({"node": 2}), "`status`, `drain`");
        refused("drain", json!({}), "missing field `node`");
        refused("drain", json!({"node": "two"}), "expected u64");
        refused("drain", json!({"node": 2, "force": true}), "unknown field `force`");
    }

    #[test]
    fn a_token_is_made_once_and_only_its_owner_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.data_dir = dir.path().to_owned();
        let file = dir.path().join(TOKEN_FILE);
        let made = token(&config).unwrap();
        let text = read_secret_file(&file, WHAT).unwrap();
        assert!(text.expose().starts_with("adm-") && made.is(text.expose()));
        assert!(token(&config).unwrap().is(text.expose()), "the next start takes the same");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let open = token(&config).unwrap_err().to_string();
        assert!(open.contains("mode 0640") && open.contains("chmod 600"), "{open}");

        config.admin.token_file = Some(dir.path().join("of-mine"));
        assert!(token(&config).unwrap_err().to_string().contains("there is no file"), "it makes none there");
        let own = "a-token-of-my-own-0123456789-abcdef";
        fs::write(dir.path().join("of-mine"), own).unwrap();
        fs::set_permissions(dir.path().join("of-mine"), fs::Permissions::from_mode(0o600)).unwrap();
        assert!(token(&config).unwrap().is(own));
        fs::write(dir.path().join("of-mine"), "short").unwrap();
        assert!(token(&config).unwrap_err().to_string().contains("of-mine: a token for administrators has 32"));
    }
}
