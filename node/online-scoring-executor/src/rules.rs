//! Active rules by project, from this node's copy of the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_node_auth::{Asker, Credential};
use assay_node_online_scoring::{ExecutorRecord, OnlineRule};
use assay_node_records::Records;
use assay_node_records::kinds::PROJECT_SCORE;
use assay_node_records::mechanism::{CatalogView, mentions, read_body};
use assay_storage_model::catalog::{Record, RecordKind};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use parking_lot::Mutex;
use uuid::Uuid;

/// Text in the records of all rules.
const MARK: &str = "\"online\"";

/// Active rules of one project.
#[derive(Debug)]
pub(crate) struct ProjectRules {
    pub org: OrgId,
    pub rules: Vec<Arc<OnlineRule>>,
}

/// Active rules of all projects.
pub(crate) type RuleTable = BTreeMap<Uuid, Arc<ProjectRules>>;

/// Newest rule table, with its version of the catalog.
#[derive(Debug, Default)]
pub(crate) struct RuleCache(Mutex<Option<(u64, Arc<RuleTable>)>>);

impl RuleCache {
    pub fn table(&self, records: &Records) -> Arc<RuleTable> {
        records.catalog().peek(|view| {
            let version = view.changed(&[RecordKind::PROJECT_SCORE, RecordKind::PROJECT]);
            let mut known = self.0.lock();
            if let Some((_, table)) = known.as_ref().filter(|(of, _)| *of == version) {
                return Arc::clone(table);
            }
            let table = Arc::new(read_table(view));
            *known = Some((version, Arc::clone(&table)));
            table
        })
    }
}

fn read_table(view: &CatalogView<'_>) -> RuleTable {
    let mut found: BTreeMap<Uuid, ProjectRules> = BTreeMap::new();
    for record in view.all(RecordKind::PROJECT_SCORE) {
        if !mentions(record, MARK) || !PROJECT_SCORE.lives(view, record) {
            continue;
        }
        match (rule_of(record), record.org) {
            (Ok(Some(rule)), Some(org)) => {
                let project = found.entry(rule.project_id).or_insert_with(|| ProjectRules { org, rules: Vec::new() });
                project.rules.push(Arc::new(rule));
            }
            (Ok(_), _) => {}
            (Err(why), _) => tracing::error!(rule = %record.id, why, "a rule of online scoring cannot be read"),
        }
    }
    found.into_iter().map(|(project, rules)| (project, Arc::new(rules))).collect()
}

/// Reads an active rule; `None` for other scores.
fn rule_of(record: &Record) -> Result<Option<OnlineRule>, String> {
    let mut body = read_body(record).map_err(|why| why.to_string())?;
    if !assay_node_online_scoring::is_active_rule(&body) {
        return Ok(None);
    }
    body.insert("id".to_owned(), record.id.to_string().into());
    OnlineRule::read(&body).map(Some).map_err(|why| why.to_string())
}

/// Returns the logs that are followed even without active rules: triggers may be open there.
pub(crate) fn logs_with_work(records: &Records, now_ms: u64) -> Vec<ObjectKey> {
    records.catalog().peek(|view| {
        let followed = view.all(RecordKind::ONLINE_SCORING).filter(|record| {
            let read = ExecutorRecord::decode(&record.body);
            read.is_ok_and(|record| record.is_followed(now_ms))
                && view.get(RecordKind::PROJECT, record.id).is_some_and(|project| !project.keys.is_empty())
        });
        followed.filter_map(|record| Some(ObjectKey::new(record.org?, ObjectKind::ProjectLogs, record.id))).collect()
    })
}

/// Returns the asker with the present rights of a user, whatever credential the user has.
pub(crate) fn asker_of(org: OrgId, user: Uuid) -> Asker {
    Asker::User { org, user, credential: Credential::Jwt(user), impersonator: None }
}
