//! All records of an organization for an export, each after the records on which it depends.
//!
//! Keys, tokens and data keys are omitted, because they are useless elsewhere. Records with a secret are exported
//! without it and marked.

use std::sync::Arc;

use assay_node_records::kinds::{KINDS, PROMPT, invitation, organization};
use assay_node_records::mechanism::{self, By, CatalogView, Walk};
use assay_node_records::{Export, Kind, Records, RecordsError, without_secret};
use assay_storage_model::catalog::{Record, RecordKind, UniqueKey};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub(crate) const ORGANIZATION: &str = "organization";
pub(crate) const USER: &str = "user";
pub(crate) const MEMBER: &str = "org_member";
/// Kind of the mark for an organization that has its default groups.
pub(crate) const GROUPS_GIVEN: &str = "groups_given";

/// Record outside of a catalog, as a line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordLine {
    pub kind: String,
    pub id: Uuid,
    /// Whether the record belongs to the organization. Users do not.
    pub owned: bool,
    /// Creation time in microseconds since 1970, UTC.
    pub created: i64,
    pub keys: Vec<UniqueKey>,
    pub body: Map<String, Value>,
    /// Whether the record had a secret, which is not exported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_secret: bool,
}

/// Records of an organization at one moment. They share the catalog's memory, so they need almost none.
#[derive(Debug)]
pub struct OrganizationRecords {
    pub org: OrgId,
    before: Vec<ExportedRecord>,
    after: Vec<ExportedRecord>,
}

#[derive(Debug)]
struct ExportedRecord {
    kind: &'static str,
    /// Kind of the API, or `None` if the API has no such records.
    shown: Option<&'static Kind>,
    record: Arc<Record>,
}

impl ExportedRecord {
    fn line(&self) -> Result<RecordLine, RecordsError> {
        let ExportedRecord { kind, shown, record } = self;
        let mut body = mechanism::read_body(record)?;
        let without_secret = shown.is_some_and(|kind| without_secret(kind, &mut body));
        Ok(RecordLine {
            kind: (*kind).to_owned(),
            id: record.id,
            owned: record.org.is_some(),
            created: record.created,
            keys: record.keys.clone(),
            body,
            without_secret,
        })
    }
}

impl OrganizationRecords {
    /// Returns the records on which the versions of rows depend.
    pub fn before(&self) -> impl Iterator<Item = Result<RecordLine, RecordsError>> + '_ {
        self.before.iter().map(ExportedRecord::line)
    }

    /// Returns the records that follow those rows.
    pub fn after(&self) -> impl Iterator<Item = Result<RecordLine, RecordsError>> + '_ {
        self.after.iter().map(ExportedRecord::line)
    }

    /// Returns the objects whose versions are referenced by records and rows.
    pub fn versioned(&self) -> impl Iterator<Item = ObjectKey> + '_ {
        self.objects().filter(|object| is_versioned(object.kind))
    }

    /// Returns the other objects.
    pub fn unversioned(&self) -> impl Iterator<Item = ObjectKey> + '_ {
        self.objects().filter(|object| !is_versioned(object.kind))
    }

    fn objects(&self) -> impl Iterator<Item = ObjectKey> + '_ {
        let of = |exported: &ExportedRecord| {
            let rows = exported.shown.map_or(&[][..], |kind| kind.rows);
            let (org, id) = (self.org, exported.record.id);
            rows.iter().map(move |kind| ObjectKey::new(org, *kind, id))
        };
        self.before.iter().chain(&self.after).flat_map(of)
    }
}

/// Returns whether versions of such an object can be referenced.
pub fn is_versioned(kind: ObjectKind) -> bool {
    matches!(kind, ObjectKind::Dataset | ObjectKind::ProjectPrompts)
}

/// Returns the current records of an organization. The export is logged first.
pub async fn records_of(records: &Records, name: &str) -> Result<OrganizationRecords, RecordsError> {
    let org = records.organization_named(name).await?;
    let details = json!({ "name": name });
    let entry = mechanism::entry_by(By::Operator, "export", (ORGANIZATION, org.0), Some(name), details);
    records.catalog().keep_entry(org, entry).await?;
    records.catalog().fence().await?;
    records.catalog().peek(|view| gathered(view, org, name))
}

fn gathered(view: &CatalogView<'_>, org: OrgId, name: &str) -> Result<OrganizationRecords, RecordsError> {
    let gone = || RecordsError::NotFound(format!("the organization `{name}` was deleted"));
    let plain = |kind, record: &Arc<Record>| ExportedRecord { kind, shown: None, record: Arc::clone(record) };
    let mut before = vec![plain(ORGANIZATION, view.get(RecordKind::ORGANIZATION, org.0).ok_or_else(gone)?)];
    for user in organization::members(view, org)? {
        before.extend(view.get(RecordKind::USER, user).map(|user| plain(USER, user)));
    }
    let members = walked(view, RecordKind::ORG_MEMBER, org, |record| !invitation::is_one(record))?;
    before.extend(members.iter().map(|member| plain(MEMBER, member)));
    before.extend(view.find(&organization::mark_key(org)).map(|mark| plain(GROUPS_GIVEN, mark)));
    let of_kinds = |export: Export, into: &mut Vec<ExportedRecord>| {
        for kind in KINDS.into_iter().filter(|kind| kind.export == export) {
            let found = walked(view, kind.record, org, |record| kind.lives(view, record))?;
            into.extend(found.into_iter().map(|record| ExportedRecord {
                kind: kind.name(),
                shown: Some(kind),
                record,
            }));
        }
        Ok::<_, RecordsError>(())
    };
    let mut after = Vec::new();
    of_kinds(Export::BeforeRows, &mut before)?;
    of_kinds(Export::AfterRows, &mut after)?;
    Ok(OrganizationRecords { org, before, after })
}

fn walked(
    view: &CatalogView<'_>,
    kind: RecordKind,
    org: OrgId,
    keep: impl Fn(&Record) -> bool,
) -> Result<Vec<Arc<Record>>, RecordsError> {
    let (mut walk, mut found) = (Walk::of(kind, org), Vec::new());
    while !walk.is_over() {
        found.extend(walk.step(view, &keep)?);
    }
    Ok(found)
}

/// Returns the project of a prompt, whose object contains the rows of the prompt.
pub fn project_of_prompt(line: &RecordLine) -> Option<Uuid> {
    (line.kind == PROMPT.name()).then(|| mechanism::id_in(&line.body, "project_id")).flatten()
}
