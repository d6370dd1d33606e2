//! Objects of the living server and their rows, by its API with a key.

use std::fmt;

use assay_node_auth::Secret;
use assay_node_egress::{
    AllowEntry, EgressClient, EgressConfig, EgressOptions, EgressPolicy, EgressPurpose, EgressRequest, EgressSettings,
    EgressUrl, HeaderName, HeaderValue, Method, OwnEndpoints, PortRange, StatusCode, TrustedRoots, UrlError, UrlHost,
};
use assay_storage_model::Xact;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::comparison::{DrillKind, LivingObject};

/// Objects of one page of a list.
const PAGE_OBJECTS: usize = 100;
/// Upper bound of the objects of one family that are compared.
const OBJECTS_MAX: usize = 100_000;
/// Objects whose rows are counted at the same time.
const COUNTS_AT_ONCE: usize = 4;
/// Bytes of a response to a refused request that are shown.
const SHOWN_BYTES_MAX: usize = 300;
/// Families of objects in the API, with the kinds of rows that each object has.
const FAMILIES: [(&str, &[DrillKind]); 3] = [
    ("project", &[DrillKind::ProjectLogs, DrillKind::Functions]),
    ("experiment", &[DrillKind::Experiment]),
    ("dataset", &[DrillKind::Dataset]),
];

/// Error of a question to the living server.
#[derive(Debug, thiserror::Error)]
pub enum LivingError {
    #[error("the address of the server, {url}: {why}")]
    Address { url: String, why: String },
    #[error("{url} does not answer {method} {target}: {why}")]
    NoAnswer { url: String, method: Method, target: String, why: String },
    #[error("{url} answered {method} {target} with {status}: {text}")]
    Refused { url: String, method: Method, target: String, status: StatusCode, text: String },
    #[error("{url} answered {target} with something else than {wanted}")]
    Form { url: String, target: String, wanted: &'static str },
    #[error("{url} has more than {OBJECTS_MAX} objects of the kind {family}; a drill compares no more")]
    TooMany { url: String, family: &'static str },
}

/// Living server with a key.
#[derive(Clone)]
pub struct LivingServer {
    client: EgressClient,
    /// Address without a `/` at its end.
    url: String,
    authorization: HeaderValue,
}

impl fmt::Debug for LivingServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LivingServer({})", self.url)
    }
}

impl LivingServer {
    /// Names a server, such as `http://127.0.0.1:8000`. Sends no request.
    pub fn new(url: &str, key: &Secret) -> Result<LivingServer, LivingError> {
        let url = url.trim_end_matches('/').to_owned();
        let wrong = |why: String| LivingError::Address { url: url.clone(), why };
        let parsed: EgressUrl = url.parse().map_err(|why: UrlError| wrong(why.to_string()))?;
        let (ports, purposes) = (vec![PortRange::single(parsed.port())], vec![EgressPurpose::Backups]);
        let mut entry = AllowEntry { ports, purposes, ..AllowEntry::default() };
        match parsed.host() {
            UrlHost::Address(address) => entry.cidr = Some(address.to_string()),
            UrlHost::Name(name) => entry.host = Some(name.as_str().to_owned()),
        }
        let mut settings = EgressSettings::default();
        settings.allow.push(entry);
        let policy = EgressPolicy::new(&settings, OwnEndpoints::default()).map_err(|why| wrong(why.to_string()))?;
        let roots = TrustedRoots::system().map_err(|why| wrong(why.to_string()))?;
        let authorization = HeaderValue::try_from(format!("Bearer {}", key.expose()));
        let mut authorization = authorization.map_err(|_| wrong("the key has characters that no key has".into()))?;
        authorization.set_sensitive(true);
        Ok(LivingServer { client: EgressClient::new(EgressConfig::new(roots), policy), url, authorization })
    }

    /// Returns all objects that the key sees, with their rows before a version and of this moment.
    pub async fn objects(&self, before: Xact) -> Result<Vec<LivingObject>, LivingError> {
        let mut named = Vec::new();
        for (family, kinds) in FAMILIES {
            for (id, name) in self.listed(family).await? {
                named.extend(kinds.iter().map(|kind| (*kind, id, name.clone())));
            }
        }
        let counted = stream::iter(named).map(|(kind, id, name)| async move {
            let source = format!("{}('{id}')", kind.source());
            let filter = format!(" WHERE _xact_id < '{before}'");
            let (rows_before, newest_before) = self.rows(&source, &filter).await?;
            let (rows, _) = self.rows(&source, "").await?;
            Ok::<_, LivingError>(LivingObject { kind, id, name, rows_before, newest_before, rows })
        });
        counted.buffer_unordered(COUNTS_AT_ONCE).try_collect().await
    }

    /// Lists the ids and names of a family.
    async fn listed(&self, family: &'static str) -> Result<Vec<(Uuid, String)>, LivingError> {
        let mut found: Vec<(Uuid, String)> = Vec::new();
        loop {
            let behind = found.last().map_or_else(String::new, |(id, _)| format!("&starting_after={id}"));
            let target = format!("/v1/{family}?limit={PAGE_OBJECTS}{behind}");
            let answer = self.ask(Method::GET, &target, Bytes::new()).await?;
            let wanted = || LivingError::Form { url: self.url.clone(), target: target.clone(), wanted: "objects" };
            let objects = answer["objects"].as_array().ok_or_else(wanted)?;
            for object in objects {
                let id = object["id"].as_str().and_then(|id| id.parse().ok()).ok_or_else(wanted)?;
                found.push((id, object["name"].as_str().unwrap_or_default().to_owned()));
            }
            if objects.len() < PAGE_OBJECTS {
                return Ok(found);
            }
            if found.len() > OBJECTS_MAX {
                return Err(LivingError::TooMany { url: self.url.clone(), family });
            }
        }
    }

    /// Counts rows, and returns their newest version.
    async fn rows(&self, source: &str, filter: &str) -> Result<(u64, Option<Xact>), LivingError> {
        let query = format!("SELECT count(1) AS n, max(_xact_id) AS newest FROM {source}{filter}");
        let target = "/btql".to_owned();
        let answer = self.ask(Method::POST, &target, json!({"query": query, "fmt": "json"}).to_string().into()).await?;
        let form = || LivingError::Form { url: self.url.clone(), target: target.clone(), wanted: "a count" };
        let row = answer["data"].as_array().ok_or_else(form)?.first().cloned().unwrap_or_default();
        let newest = match &row["newest"] {
            Value::Null => None,
            Value::String(text) => Some(Xact::parse(text).map_err(|_| form())?),
            number => Some(Xact::parse(&number.to_string()).map_err(|_| form())?),
        };
        Ok((row["n"].as_u64().unwrap_or(0), newest))
    }

    async fn ask(&self, method: Method, target: &str, body: Bytes) -> Result<Value, LivingError> {
        let (url, named) = (self.url.clone(), target.to_owned());
        let no_answer = |why: String| LivingError::NoAnswer {
            url: self.url.clone(),
            method: method.clone(),
            target: target.to_owned(),
            why,
        };
        let whole: EgressUrl = format!("{url}{target}").parse().map_err(|why: UrlError| no_answer(why.to_string()))?;
        let mut request = EgressRequest::post(whole, body);
        request.method = method.clone();
        request.headers.insert(HeaderName::from_static("authorization"), self.authorization.clone());
        request.headers.insert(HeaderName::from_static("content-type"), HeaderValue::from_static("application/json"));
        let options = EgressOptions::new(EgressPurpose::Backups, Uuid::nil());
        let answer = self.client.send(&request, &options).await;
        let answer = answer.map_err(|why| no_answer(why.operator_reason().to_owned()))?;
        let status = answer.status;
        let body = answer.body.collect().await.map_err(|why| no_answer(why.operator_reason().to_owned()))?;
        if status != StatusCode::OK {
            let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)]).into_owned();
            return Err(LivingError::Refused { url, method, target: named, status, text });
        }
        serde_json::from_slice(&body).map_err(|_| LivingError::Form { url, target: named, wanted: "JSON" })
    }
}
