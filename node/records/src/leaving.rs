//! All records of an organization as they leave for another place, and the kinds of them in an order in which each comes behind
//! what it hangs on.
//!
//! Keys, tokens and data keys stay: what is kept of them opens nothing elsewhere. Records that keep a secret leave without
//! it, marked as such.

use std::sync::Arc;

use assay_storage_model::catalog::{Record, RecordKind, UniqueKey};
use assay_storage_model::{GroupId, ObjectKey, ObjectKind, OrgId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::Records;
use crate::audit::{By, entry_by};
use crate::authz::CatalogView;
use crate::draft::{self, Body};
use crate::error::RecordsError;
use crate::kind::{Export, Kind};
use crate::kinds::{KINDS, PROMPT, invitation, organization};
use crate::list::Walk;
use crate::sealing;

pub(crate) const ORGANIZATION: &str = "organization";
pub(crate) const USER: &str = "user";
pub(crate) const MEMBER: &str = "org_member";
/// That an organization was given its first groups.
pub(crate) const GROUPS_GIVEN: &str = "groups_given";

/// One record outside of a catalog.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carried {
    pub kind: String,
    pub id: Uuid,
    /// Whether it belongs to the organization; people stand above it.
    pub owned: bool,
    /// Microseconds since the epoch, UTC.
    pub created: i64,
    pub keys: Vec<UniqueKey>,
    pub body: Map<String, Value>,
    /// It kept a secret, which stayed: nobody makes it again but who knows the secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_secret: bool,
}

/// The records of one moment. They are the catalog's own, so holding them costs next to nothing.
#[derive(Debug)]
pub struct Leaving {
    pub org: OrgId,
    pub name: String,
    before: Vec<Leaver>,
    after: Vec<Leaver>,
}

#[derive(Debug)]
struct Leaver {
    kind: &'static str,
    /// None of a kind that the API does not show.
    shown: Option<&'static Kind>,
    record: Arc<Record>,
}

impl Leaver {
    fn carried(&self) -> Result<Carried, RecordsError> {
        let Leaver { kind, shown, record } = self;
        let mut body = draft::read(record)?;
        let without_secret = shown.is_some_and(|kind| sealing::strip(kind, &mut body));
        Ok(Carried {
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

impl Leaving {
    /// Those that the versions of rows hang on.
    pub fn before(&self) -> impl Iterator<Item = Result<Carried, RecordsError>> + '_ {
        self.before.iter().map(Leaver::carried)
    }

    pub fn after(&self) -> impl Iterator<Item = Result<Carried, RecordsError>> + '_ {
        self.after.iter().map(Leaver::carried)
    }

    /// The objects whose versions records and rows name.
    pub fn versioned(&self) -> impl Iterator<Item = ObjectKey> + '_ {
        self.objects().filter(|object| is_versioned(object.kind))
    }

    /// The others.
    pub fn unversioned(&self) -> impl Iterator<Item = ObjectKey> + '_ {
        self.objects().filter(|object| !is_versioned(object.kind))
    }

    fn objects(&self) -> impl Iterator<Item = ObjectKey> + '_ {
        let of = |leaver: &Leaver| {
            let rows = leaver.shown.map_or(&[][..], |kind| kind.rows);
            let (org, id) = (self.org, leaver.record.id);
            rows.iter().map(move |kind| ObjectKey::new(org, *kind, id))
        };
        self.before.iter().chain(&self.after).flat_map(of)
    }
}

/// Whether something names versions of such an object.
pub fn is_versioned(kind: ObjectKind) -> bool {
    matches!(kind, ObjectKind::Dataset | ObjectKind::ProjectPrompts)
}

impl Records {
    /// What an organization has, as it is now. That it leaves is put on record first, or it does not.
    pub async fn admin_leaving(&self, name: &str) -> Result<Leaving, RecordsError> {
        let org = self.admin_org(name).await?;
        let details = json!({ "name": name });
        self.keep_entry(org, entry_by(By::Operator, "export", (ORGANIZATION, org.0), Some(name), details)).await?;
        self.cluster.fence(GroupId::CATALOG).await?;
        self.peek(|view| leaving(view, org, name))
    }
}

fn leaving(view: &CatalogView<'_>, org: OrgId, name: &str) -> Result<Leaving, RecordsError> {
    let gone = || RecordsError::NotFound(format!("the organization `{name}` is gone"));
    let plain = |kind, record: &Arc<Record>| Leaver { kind, shown: None, record: Arc::clone(record) };
    let mut before = vec![plain(ORGANIZATION, view.get(RecordKind::ORGANIZATION, org.0).ok_or_else(gone)?)];
    for user in organization::members(view, org)? {
        before.extend(view.get(RecordKind::USER, user).map(|user| plain(USER, user)));
    }
    let members = walked(view, RecordKind::ORG_MEMBER, org, |record| !invitation::is_one(record))?;
    before.extend(members.iter().map(|member| plain(MEMBER, member)));
    before.extend(view.find(&organization::mark_key(org)).map(|mark| plain(GROUPS_GIVEN, mark)));
    let of_kinds = |export: Export, into: &mut Vec<Leaver>| {
        for kind in KINDS.into_iter().filter(|kind| kind.export == export) {
            let found = walked(view, kind.record, org, |record| kind.lives(view, record))?;
            into.extend(found.into_iter().map(|record| Leaver { kind: kind.name, shown: Some(kind), record }));
        }
        Ok::<_, RecordsError>(())
    };
    let mut after = Vec::new();
    of_kinds(Export::BeforeRows, &mut before)?;
    of_kinds(Export::AfterRows, &mut after)?;
    Ok(Leaving { org, name: name.to_owned(), before, after })
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

/// The project of a prompt, for who looks for its rows.
pub fn project_of_prompt(carried: &Carried) -> Option<Uuid> {
    let body: &Body = &carried.body;
    (carried.kind == PROMPT.name).then(|| draft::id_in(body, "project_id")).flatten()
}
