//! An organization that comes from another place: what of it may not come, and its records as they are made here.
//!
//! A mark in the catalog says which file an organization comes from, and whether all of it has come. Without one nothing of the
//! file may be here. With one, what is here came from the file or was changed since, and stays as it is.
//!
//! Ids stay what they were, but for people who are users here already: whoever has the same address is the same.

use std::collections::HashMap;

use assay_storage_model::catalog::{CatalogCommand, CatalogOutcome, Expect, PutRecord, RecordKind, UniqueKey};
use assay_storage_model::{GroupId, ObjectKey, OrgId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::audit::{By, entry_by};
use crate::authz::CatalogView;
use crate::commit::unexpected;
use crate::draft;
use crate::error::RecordsError;
use crate::kind::{Export, Kind};
use crate::kinds::{self, KINDS, organization, user};
use crate::leaving::{Carried, GROUPS_GIVEN, MEMBER, ORGANIZATION, USER};
use crate::{Records, edge};

/// Records that are made with one entry of the log, and their bytes.
pub const RECORDS_AT_ONCE_MAX: usize = 200;
pub const RECORDS_AT_ONCE_BYTES: usize = 512 << 10;
/// An id as text.
const ID_BYTES: usize = 36;

/// An organization on its way in.
#[derive(Clone, Debug)]
pub struct Arriving {
    pub org: OrgId,
    pub name: String,
    /// The check sum of its file.
    pub file: String,
    /// What came of this file before.
    pub before: Came,
    /// People by their ids there, where they have others here.
    users: HashMap<Uuid, Uuid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    Nothing,
    Some,
    All,
}

/// Where a mark is kept.
fn mark_key(org: OrgId) -> UniqueKey {
    UniqueKey::new("organization.import", org.to_string())
}

fn mark_id(org: OrgId) -> Uuid {
    Uuid::from_u128(org.0.as_u128() ^ 0x696d_706f_7274)
}

impl Arriving {
    /// Once the check sum of the file is known.
    pub fn comes_from(&mut self, file: &str) -> Result<(), RecordsError> {
        if self.before != Came::Nothing && self.file != file {
            let said = format!("the organization {} came here from another file", self.org);
            return Err(RecordsError::Taken(said));
        }
        file.clone_into(&mut self.file);
        Ok(())
    }
}

impl Records {
    /// What of the organization came here before.
    pub async fn admin_arriving(&self, org: OrgId, name: &str) -> Result<Arriving, RecordsError> {
        organization::check_name(name)?;
        self.cluster.fence(GroupId::CATALOG).await?;
        let (before, file) = self.peek(|view| {
            let Some(mark) = view.find(&mark_key(org)) else { return Ok((Came::Nothing, String::new())) };
            let body = draft::read(mark)?;
            let is_all = body.get("all").and_then(Value::as_bool) == Some(true);
            Ok::<_, RecordsError>((if is_all { Came::All } else { Came::Some }, draft::text_in(&body, "file")))
        })?;
        Ok(Arriving { org, name: name.to_owned(), file, before, users: HashMap::new() })
    }

    /// Looks at a record before anything is written; refused where it has no place here.
    pub fn admin_looks_at(&self, arriving: &mut Arriving, carried: &Carried) -> Result<(), RecordsError> {
        let kind = check(arriving.org, carried)?;
        self.peek(|view| {
            if carried.kind == USER && !carried.owned {
                let email = draft::text_in(&carried.body, "email");
                let here = view.find(&user::email_key(&email));
                if let Some(here) = here.filter(|here| here.id != carried.id) {
                    if user::is_service_account(here) {
                        return Err(RecordsError::Taken(format!("`{email}` is a service account here")));
                    }
                    arriving.users.insert(carried.id, here.id);
                    return Ok(());
                }
                if here.is_some() {
                    return Ok(());
                }
            }
            if arriving.before != Came::Nothing {
                return Ok(());
            }
            let taken =
                |what: String| Err(RecordsError::Taken(format!("nothing was imported: {what} is here already")));
            if view.get(kind, carried.id).is_some() {
                return taken(format!("the {} {}", carried.kind, carried.id));
            }
            let keys = named(arriving, carried);
            match keys.iter().find(|key| view.find(key).is_some()) {
                Some(key) => taken(format!("a {} `{}`", carried.kind, key.name)),
                None => Ok(()),
            }
        })
    }

    /// The first thing that is written: from now on what comes may go on.
    pub async fn admin_begin(&self, arriving: &Arriving) -> Result<(), RecordsError> {
        let (org, name) = (arriving.org, arriving.name.as_str());
        let details = json!({ "name": name, "file": arriving.file });
        self.keep_entry(org, entry_by(By::Operator, "import", (ORGANIZATION, org.0), Some(name), details)).await?;
        if arriving.before == Came::Nothing {
            self.put_mark(arriving, false, Expect::Absent).await?;
        }
        Ok(())
    }

    /// All of it is here.
    pub async fn admin_end(&self, arriving: &Arriving) -> Result<(), RecordsError> {
        self.put_mark(arriving, true, Expect::Any).await
    }

    async fn put_mark(&self, arriving: &Arriving, all: bool, expect: Expect) -> Result<(), RecordsError> {
        let put = PutRecord {
            kind: RecordKind::CLUSTER_SETTING,
            id: mark_id(arriving.org),
            org: Some(arriving.org),
            expect,
            keys: vec![mark_key(arriving.org)],
            body: json!({ "file": arriving.file, "all": all }).to_string().into_bytes(),
            at: edge::now_micros(),
        };
        match self.propose_one(By::System, CatalogCommand::Put(put)).await? {
            CatalogOutcome::Put { .. } => Ok(()),
            CatalogOutcome::Stale { .. } => Err(RecordsError::Busy("another import of it began at this moment".into())),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes these records; those that are here stay as they are. At most [`RECORDS_AT_ONCE_MAX`] of them. How many are new.
    pub async fn admin_bring(&self, arriving: &Arriving, records: &[Carried]) -> Result<usize, RecordsError> {
        let wanted = records.iter().filter(|carried| !arriving.users.contains_key(&carried.id));
        let puts: Vec<_> = wanted.map(|carried| put(arriving, carried)).collect::<Result<_, _>>()?;
        if puts.is_empty() {
            return Ok(0);
        }
        let commands = puts.iter().cloned().map(CatalogCommand::Put).collect();
        let mut made = 0;
        for (outcome, put) in self.propose(By::System, commands).await?.into_iter().zip(&puts) {
            match outcome {
                CatalogOutcome::Put { .. } => made += 1,
                CatalogOutcome::Stale { .. } => {}
                CatalogOutcome::Taken { key, .. } => {
                    let said = format!("{} {}: another one has `{}` meanwhile", put.kind, put.id, key.name);
                    return Err(RecordsError::Taken(said));
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(made)
    }

    /// Whether rows may be written to an object: its record came.
    pub async fn admin_has(&self, object: &ObjectKey) -> Result<bool, RecordsError> {
        self.cluster.fence(GroupId::CATALOG).await?;
        let Some(kind) = kinds::of_object(object.kind) else { return Ok(false) };
        Ok(self.peek(|view: &CatalogView<'_>| {
            let record = view.get(kind.record, object.id);
            record.is_some_and(|record| record.org == Some(object.org) && kind.lives(view, record))
        }))
    }
}

/// The kind of record that it is; refused where no export has such a record.
fn check(org: OrgId, carried: &Carried) -> Result<RecordKind, RecordsError> {
    let Carried { kind, id, owned, keys, body, .. } = carried;
    let bad = |why: &str| Err(RecordsError::BadRequest(format!("the {kind} {id} of the file {why}")));
    let expected = |record: RecordKind, is_owned: bool, key: UniqueKey| match *owned == is_owned && *keys == [key] {
        true => Ok(record),
        false => bad("has another name or place than it says"),
    };
    let email = || user::email_key(&draft::text_in(body, "email"));
    match kind.as_str() {
        ORGANIZATION if *id != org.0 => bad("is not the one that the file is about"),
        ORGANIZATION => {
            expected(RecordKind::ORGANIZATION, false, organization::name_key(&draft::text_in(body, "name")))
        }
        USER => expected(RecordKind::USER, *owned, email()),
        MEMBER => {
            let user = draft::id_in(body, "user_id").unwrap_or_default();
            expected(RecordKind::ORG_MEMBER, true, organization::member_key(org, user))
        }
        GROUPS_GIVEN => expected(RecordKind::CLUSTER_SETTING, true, organization::mark_key(org)),
        name => match kind_of(name) {
            None => bad("is of a kind that this version does not know"),
            Some(kind) => {
                let scope = format!("{name}.name/");
                let is_named = !keys.is_empty() && keys.iter().all(|key| key.scope.starts_with(&scope));
                if *owned && is_named { Ok(kind.record) } else { bad("has another name or place than it says") }
            }
        },
    }
}

fn kind_of(name: &str) -> Option<&'static Kind> {
    KINDS.into_iter().find(|kind| kind.name == name && kind.export != Export::Never)
}

/// Its keys as they are here.
fn named(arriving: &Arriving, carried: &Carried) -> Vec<UniqueKey> {
    if carried.kind == ORGANIZATION {
        return vec![organization::name_key(&arriving.name)];
    }
    let text = |text: &str| renamed(text, &arriving.users);
    carried.keys.iter().map(|key| UniqueKey::new(text(&key.scope), text(&key.name))).collect()
}

fn put(arriving: &Arriving, carried: &Carried) -> Result<PutRecord, RecordsError> {
    let kind = check(arriving.org, carried)?;
    let mut body = carried.body.clone();
    if carried.kind == ORGANIZATION {
        body.insert("name".into(), arriving.name.clone().into());
    }
    Ok(PutRecord {
        kind,
        id: carried.id,
        org: carried.owned.then_some(arriving.org),
        expect: Expect::Absent,
        keys: named(arriving, carried),
        body: renamed(&Value::Object(body).to_string(), &arriving.users).into_bytes(),
        at: carried.created,
    })
}

/// The text with other ids where these stand in it.
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

    fn carried(kind: &str, key: UniqueKey) -> Carried {
        let body = json!({"name": "n", "email": "a@b"}).as_object().cloned().unwrap_or_default();
        let (id, owned) = (Uuid::from_u128(1), true);
        Carried { kind: kind.into(), id, owned, created: 1, keys: vec![key], body, without_secret: false }
    }

    #[test]
    fn only_what_an_export_has_is_taken() {
        let good = carried("project", UniqueKey::new(format!("project.name/{ORG}"), "n"));
        assert_eq!(check(ORG, &good), Ok(RecordKind::PROJECT));
        for bad in [
            carried("project", UniqueKey::new("cluster_setting", "api_key_pepper")),
            carried("api_key", UniqueKey::new("api_key.fingerprint", "x")),
            carried("cluster_setting", UniqueKey::new("cluster_setting", "api_key_pepper")),
            carried(GROUPS_GIVEN, UniqueKey::new("cluster_setting", "api_key_pepper")),
            carried(ORGANIZATION, organization::name_key("n")),
            carried(MEMBER, organization::member_key(ORG, Uuid::from_u128(3))),
            Carried { owned: false, ..good.clone() },
            Carried { keys: Vec::new(), ..good },
        ] {
            assert!(matches!(check(ORG, &bad), Err(RecordsError::BadRequest(_))), "{bad:?}");
        }
        assert_eq!(check(ORG, &carried(USER, user::email_key("A@B"))), Ok(RecordKind::USER));
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
