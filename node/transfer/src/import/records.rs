//! Records of an organization during its import: checks, and conversion to local records.
//!
//! A mark in the catalog names the imported file, and says whether the import is complete. Without a mark, no record of
//! the file may exist locally. With a mark, existing records come from the file or were changed since, and are kept.
//!
//! Ids are kept, except for people who already exist as local users. Two users with the same e-mail address are the
//! same person.

use std::collections::{HashMap, HashSet};

use assay_node_records::kinds::{KINDS, organization, user};
use assay_node_records::mechanism::{self, By, text_in, unexpected};
use assay_node_records::{Export, Kind, Records, RecordsError};
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, RecordKind, UniqueKey};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::export::records::{GROUPS_GIVEN, MEMBER, ORGANIZATION, RecordLine, USER};

/// Upper bound of the records that one entry of the log creates.
pub const RECORDS_AT_ONCE_MAX: usize = 200;
/// Upper bound of the size of these records.
pub const RECORDS_AT_ONCE_BYTES: usize = 512 << 10;
/// Length of an id as text.
const ID_BYTES: usize = 36;

/// Import of an organization's records.
#[derive(Clone, Debug)]
pub struct OrganizationImport {
    records: Records,
    pub org: OrgId,
    pub name: String,
    /// Checksum of the imported file.
    pub file: String,
    /// Progress of earlier imports of this file.
    pub before: ImportProgress,
    /// Local ids of people by their exported ids, if they differ.
    users: HashMap<Uuid, Uuid>,
    /// Projects of the file.
    projects: HashSet<Uuid>,
    /// Projects in which records of the file have their names.
    homes: HashSet<Uuid>,
}

/// Progress of the import of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportProgress {
    Nothing,
    Some,
    All,
}

/// Returns the key of the mark of an import.
fn mark_key(org: OrgId) -> UniqueKey {
    UniqueKey::new("organization.import", org.to_string())
}

fn mark_id(org: OrgId) -> Uuid {
    Uuid::from_u128(org.0.as_u128() ^ 0x696d_706f_7274)
}

impl OrganizationImport {
    /// Sets the checksum of the file. Returns an error if another file was imported before.
    pub fn comes_from(&mut self, file: &str) -> Result<(), RecordsError> {
        if self.before != ImportProgress::Nothing && self.file != file {
            let said = format!("the organization {} was imported from another file", self.org);
            return Err(RecordsError::Taken(said));
        }
        file.clone_into(&mut self.file);
        Ok(())
    }

    /// Reads the progress of earlier imports of the organization.
    pub async fn open(records: &Records, org: OrgId, name: &str) -> Result<OrganizationImport, RecordsError> {
        organization::check_name(name)?;
        records.catalog().fence().await?;
        let (before, file) = records.catalog().peek(|view| {
            let Some(mark) = view.find(&mark_key(org)) else { return Ok((ImportProgress::Nothing, String::new())) };
            let body = mechanism::read_body(mark)?;
            let is_all = body.get("all").and_then(Value::as_bool) == Some(true);
            Ok::<_, RecordsError>((
                if is_all { ImportProgress::All } else { ImportProgress::Some },
                text_in(&body, "file"),
            ))
        })?;
        Ok(OrganizationImport {
            records: records.clone(),
            org,
            name: name.to_owned(),
            file,
            before,
            users: HashMap::new(),
            projects: HashSet::new(),
            homes: HashSet::new(),
        })
    }

    /// Checks a record before anything is written. Returns an error if it cannot be imported.
    pub fn check_record(&mut self, line: &RecordLine) -> Result<(), RecordsError> {
        let kind = check(self.org, line)?;
        self.projects.extend((kind == RecordKind::PROJECT).then_some(line.id));
        self.homes.extend(line.keys.iter().filter_map(|key| project_in(&key.scope, self.org)));
        let records = self.records.clone();
        records.catalog().peek(|view| {
            if line.kind == USER && !line.owned {
                let email = text_in(&line.body, "email");
                let here = view.find(&user::email_key(&email));
                if let Some(here) = here.filter(|here| here.id != line.id) {
                    if user::is_service_account(here) {
                        return Err(RecordsError::Taken(format!("`{email}` is a service account here")));
                    }
                    self.users.insert(line.id, here.id);
                    return Ok(());
                }
                if here.is_some() {
                    return Ok(());
                }
            }
            if self.before != ImportProgress::Nothing {
                return Ok(());
            }
            let taken =
                |what: String| Err(RecordsError::Taken(format!("nothing was imported: {what} already exists here")));
            if view.get(kind, line.id).is_some() {
                return taken(format!("the {} {}", line.kind, line.id));
            }
            let keys = named(self, line);
            match keys.iter().find(|key| view.find(key).is_some()) {
                Some(key) => taken(format!("a {} `{}`", line.kind, key.name)),
                None => Ok(()),
            }
        })
    }

    /// Checks after the last record that the file has the projects of all its records.
    ///
    /// Otherwise a record could take a name in a project of another organization.
    pub fn check_projects(&self) -> Result<(), RecordsError> {
        match self.homes.difference(&self.projects).min() {
            None => Ok(()),
            Some(project) => Err(RecordsError::BadRequest(format!(
                "a record of the file belongs to the project {project}, which the file does not have"
            ))),
        }
    }

    /// Writes the mark, so that the import can be continued from now on.
    pub async fn begin(&self) -> Result<(), RecordsError> {
        let (org, name) = (self.org, self.name.as_str());
        let details = json!({ "name": name, "file": self.file });
        self.records
            .catalog()
            .keep_entry(org, mechanism::entry_by(By::Operator, "import", (ORGANIZATION, org.0), Some(name), details))
            .await?;
        if self.before == ImportProgress::Nothing {
            self.put_mark(false, Expect::Absent).await?;
        }
        Ok(())
    }

    /// Marks the import as complete.
    pub async fn finish(&self) -> Result<(), RecordsError> {
        self.put_mark(true, Expect::Any).await
    }

    async fn put_mark(&self, all: bool, expect: Expect) -> Result<(), RecordsError> {
        let put = PutRecord {
            kind: RecordKind::CLUSTER_SETTING,
            id: mark_id(self.org),
            org: Some(self.org),
            expect,
            keys: vec![mark_key(self.org)],
            body: json!({ "file": self.file, "all": all }).to_string().into_bytes(),
            at: mechanism::now_micros(),
        };
        match self.records.catalog().propose_one(By::System, CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { .. } => Ok(()),
            CatalogOutcome::Stale { .. } => {
                Err(RecordsError::Busy("another import of the organization has just started".into()))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Creates at most [`RECORDS_AT_ONCE_MAX`] records and keeps existing ones. Returns the number of new records.
    pub async fn put_records(&self, records: &[RecordLine]) -> Result<usize, RecordsError> {
        let wanted = records.iter().filter(|line| !self.users.contains_key(&line.id));
        let puts: Vec<_> = wanted.map(|line| put(self, line)).collect::<Result<_, _>>()?;
        if puts.is_empty() {
            return Ok(0);
        }
        let commands = puts.iter().cloned().map(CatalogCommand::Put).collect();
        let mut made = 0;
        for (outcome, put) in self.records.catalog().propose(By::System, commands).await?.into_iter().zip(&puts) {
            match outcome {
                CatalogOutcome::Put { .. } => made += 1,
                CatalogOutcome::Stale { .. } => {}
                CatalogOutcome::Taken { key, .. } => {
                    let said =
                        format!("{} {}: another record has taken `{}` during the import", put.kind, put.id, key.name);
                    return Err(RecordsError::Taken(said));
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(made)
    }
}

/// Returns the kind of a record. Returns an error if no export contains such a record.
fn check(org: OrgId, line: &RecordLine) -> Result<RecordKind, RecordsError> {
    let RecordLine { kind, id, owned, keys, body, .. } = line;
    let bad = |why: &str| Err(RecordsError::BadRequest(format!("the {kind} {id} of the file {why}")));
    let expected = |record: RecordKind, is_owned: bool, key: UniqueKey| match *owned == is_owned && *keys == [key] {
        true => Ok(record),
        false => bad("does not match its recorded name or place"),
    };
    let email = || user::email_key(&text_in(body, "email"));
    match kind.as_str() {
        ORGANIZATION if *id != org.0 => bad("is not the organization of the file"),
        ORGANIZATION => expected(RecordKind::ORGANIZATION, false, organization::name_key(&text_in(body, "name"))),
        USER => expected(RecordKind::USER, *owned, email()),
        MEMBER => {
            let user = mechanism::id_in(body, "user_id").unwrap_or_default();
            expected(RecordKind::ORG_MEMBER, true, organization::member_key(org, user))
        }
        GROUPS_GIVEN => expected(RecordKind::CLUSTER_SETTING, true, organization::mark_key(org)),
        name => match kind_of(name) {
            None => bad("has a kind that this version does not know"),
            Some(kind) => {
                // Names are unique in the organization, or in the project of the record.
                let homes = [Some(org.0), mechanism::id_in(body, "project_id")];
                let is_in =
                    |key: &UniqueKey| homes.iter().flatten().any(|home| kind.name_key(*home, &key.name) == *key);
                if *owned && !keys.is_empty() && keys.iter().all(is_in) {
                    Ok(kind.record)
                } else {
                    bad("does not match its recorded name or place")
                }
            }
        },
    }
}

/// Returns the project in the scope of a name; `None` for a name in the organization, and for other scopes.
fn project_in(scope: &str, org: OrgId) -> Option<Uuid> {
    let (kind, home) = scope.rsplit_once('/')?;
    let home = Uuid::parse_str(home).ok().filter(|home| *home != org.0)?;
    kind.ends_with(".name").then_some(home)
}

fn kind_of(name: &str) -> Option<&'static Kind> {
    KINDS.into_iter().find(|kind| kind.name() == name && kind.export != Export::Never)
}

/// Returns the local keys of a record.
fn named(import: &OrganizationImport, line: &RecordLine) -> Vec<UniqueKey> {
    if line.kind == ORGANIZATION {
        return vec![organization::name_key(&import.name)];
    }
    let text = |text: &str| renamed(text, &import.users);
    line.keys.iter().map(|key| UniqueKey::new(text(&key.scope), text(&key.name))).collect()
}

fn put(import: &OrganizationImport, line: &RecordLine) -> Result<PutRecord, RecordsError> {
    let kind = check(import.org, line)?;
    let mut body = line.body.clone();
    if line.kind == ORGANIZATION {
        body.insert("name".into(), import.name.clone().into());
    }
    Ok(PutRecord {
        kind,
        id: line.id,
        org: line.owned.then_some(import.org),
        expect: Expect::Absent,
        keys: named(import, line),
        body: renamed(&Value::Object(body).to_string(), &import.users).into_bytes(),
        at: line.created,
    })
}

/// Replaces ids in a text.
fn renamed(text: &str, ids: &HashMap<Uuid, Uuid>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut at = 0;
    while !ids.is_empty() && at + ID_BYTES <= text.len() {
        let found = text.get(at..at + ID_BYTES).filter(|id| id.as_bytes()[8] == b'-');
        match found.and_then(|id| Uuid::parse_str(id).ok()).and_then(|id| ids.get(&id)) {
            Some(other) => {
                out.push_str(&text[copied..at]);
                out.push_str(&other.to_string());
                at += ID_BYTES;
                copied = at;
            }
            None => at += 1,
        }
    }
    out.push_str(&text[copied..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORG: OrgId = OrgId(Uuid::from_u128(7));

    fn line(kind: &str, key: UniqueKey) -> RecordLine {
        let body = json!({"name": "n", "email": "a@b"}).as_object().cloned().unwrap_or_default();
        let (id, owned) = (Uuid::from_u128(1), true);
        RecordLine { kind: kind.into(), id, owned, created: 1, keys: vec![key], body, without_secret: false }
    }

    #[test]
    fn only_what_an_export_has_is_taken() {
        let good = line("project", UniqueKey::new(format!("project.name/{ORG}"), "n"));
        assert_eq!(check(ORG, &good), Ok(RecordKind::PROJECT));
        for bad in [
            line("project", UniqueKey::new("cluster_setting", "api_key_pepper")),
            line("project", UniqueKey::new(format!("project.name/{}", Uuid::from_u128(8)), "n")),
            line("project", UniqueKey::new(format!("project.name/{ORG}/x"), "n")),
            line("dataset", UniqueKey::new(format!("dataset.name/{}", Uuid::from_u128(8)), "n")),
            line("api_key", UniqueKey::new("api_key.fingerprint", "x")),
            line("cluster_setting", UniqueKey::new("cluster_setting", "api_key_pepper")),
            line(GROUPS_GIVEN, UniqueKey::new("cluster_setting", "api_key_pepper")),
            line(ORGANIZATION, organization::name_key("n")),
            line(MEMBER, organization::member_key(ORG, Uuid::from_u128(3))),
            RecordLine { owned: false, ..good.clone() },
            RecordLine { keys: Vec::new(), ..good },
        ] {
            assert!(matches!(check(ORG, &bad), Err(RecordsError::BadRequest(_))), "{bad:?}");
        }
        assert_eq!(check(ORG, &line(USER, user::email_key("A@B"))), Ok(RecordKind::USER));
        let project = Uuid::from_u128(8);
        let mut dataset = line("dataset", UniqueKey::new(format!("dataset.name/{project}"), "n"));
        dataset.body.insert("project_id".into(), project.to_string().into());
        assert_eq!(check(ORG, &dataset), Ok(RecordKind::DATASET));
        assert_eq!(project_in(&dataset.keys[0].scope, ORG), Some(project));
    }

    #[test]
    fn names_are_in_the_organization_or_in_a_project() {
        let project = Uuid::from_u128(8);
        assert_eq!(project_in(&format!("experiment.name/{project}"), ORG), Some(project));
        for other in [format!("role.name/{ORG}"), format!("org_member/{project}"), "user.email".to_owned()] {
            assert_eq!(project_in(&other, ORG), None, "{other}");
        }
    }

    #[test]
    fn people_have_the_ids_that_they_have_here() {
        let (there, here, other) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let ids = HashMap::from([(there, here)]);
        let text = format!("é{there}[\"{there}\",\"{other}\"]{there}");
        assert_eq!(renamed(&text, &ids), format!("é{here}[\"{here}\",\"{other}\"]{here}"));
        assert_eq!(renamed(&text, &HashMap::new()), text);
        assert_eq!(renamed("", &ids), "");
    }
}
