//! What is said of a kind of record. The mechanism (create, get, list, patch, delete) reads nothing else, so a new kind
//! is a new file under `kinds/`.
//!
//! A record's body is a JSON object of its fields, those that the service sets included. Its first unique key holds the
//! name and, in its scope, what the name is unique in: `project.name/<organization>`, `experiment.name/<project>`. A
//! record without keys is one that is being deleted: nobody sees it any more, and what hangs on it is taken away.

use std::fmt;

use assay_node_auth::{ObjectType, Principal};
use assay_storage_catalog::State;
use assay_storage_model::ObjectKind;
use assay_storage_model::catalog::{Record, RecordKind, UniqueKey};
use serde_json::Value;
use uuid::Uuid;

use crate::authz::CatalogView;
use crate::draft::Body;
use crate::error::RecordsError;
use crate::shape::Shape;

/// A name in bytes; with its scope it has to fit a unique key.
pub const NAME_BYTES_MAX: usize = 1024;

/// What is stored, and what was sent, which it changes.
pub(crate) type Fold = fn(&Body, &mut Body) -> Result<(), RecordsError>;
pub(crate) type Check = fn(&Checked<'_>) -> Result<(), RecordsError>;

/// A body that is to be stored.
pub(crate) struct Checked<'c> {
    pub view: &'c CatalogView<'c>,
    /// Who changes it, within its organization.
    pub who: &'c Principal,
    /// The record that changes; none where one is made.
    pub id: Option<Uuid>,
    /// What is stored; none where it is made.
    pub before: Option<&'c Body>,
    pub body: &'c Body,
}

/// One kind of record, as the API shows it.
pub struct Kind {
    /// As the API writes it.
    pub(crate) name: &'static str,
    pub record: RecordKind,
    pub(crate) home: Home,
    pub(crate) naming: Naming,
    pub(crate) guard: Guard,
    /// How the API serves its records.
    pub api: Api,
    /// When its records come in an export of an organization.
    pub export: Export,
    pub(crate) fields: &'static [Field],
    /// Query parameters of its list, and what each asks.
    pub(crate) filters: &'static [(&'static str, Filter)],
    /// Records of a list where the client names no limit; none gives all.
    pub(crate) list_default: Option<u64>,
    /// The objects that keep rows under the record's id: they go with it.
    pub rows: &'static [ObjectKind],
    /// Whether an answer says when it was deleted, which is null but for the answer to the delete.
    pub(crate) has_deleted_at: bool,
    /// Those that belong to the system: in every organization, and never changed.
    pub(crate) builtin: fn() -> Vec<Record>,
    /// Makes of what a patch sent, such as what to add to a list, the fields that it means.
    pub(crate) fold: Option<Fold>,
    /// Refuses a body that names what is not there, before it is stored.
    pub(crate) check: Option<Check>,
    /// Sets what a new record gets beyond what the client sent.
    pub(crate) complete: fn(&Making, &mut Body),
    /// Sets what follows from other fields, after every change.
    pub(crate) derive: fn(&mut Body),
    /// Adds to an answer what stands in other records.
    pub(crate) join: Option<fn(&State, &mut Body)>,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({})", self.name)
    }
}

/// How the API serves the records of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// At this path, with the handlers that kinds share.
    Shared(&'static str, Changes),
    /// With routes of its own.
    Own,
}

/// How records are changed once they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    Never,
    ByPatch,
    ByPatchAndPut,
}

/// When the records of a kind come in an export of an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// Before the rows that have versions: what those depend on.
    BeforeRows,
    /// After them: records of the kind name versions of datasets and prompts, or what does.
    AfterRows,
    /// Never: what is kept of them opens nothing elsewhere, or format 1 of exports has no place for them.
    Never,
}

/// What a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Organization,
    Project,
    /// What its fields `object_type` and `object_id` name, in the organization of that.
    Object,
}

/// Which grants decide of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Those on it and on all it is in, as a thing of this type.
    Own(ObjectType),
    /// It is a part of its project: who may read that may read it, and who may change that may make, change and delete it.
    Project,
    /// The same of its organization.
    Organization,
    /// The same of what its fields `object_type` and `object_id` name.
    Object,
    /// The user whom its field of this name says may do all; others what they may do to the members of the organization.
    Holder(&'static str),
    /// It is a grant: what decides is what may be done to the grants on its object.
    Acl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Unique in its home; creating it again gives the one that is there.
    Unique,
    /// The same, but the client may ask for a new one whatever it is called, or leave the name to the service.
    UniqueOrFresh,
    /// Any name; the unique key is the fingerprint of a secret.
    Secret,
    /// Unique in its home among those that have these fields in common; creating it again gives the one that is there.
    UniqueAmong(&'static [&'static str]),
    /// Unique in its home by this field; a second one with the same is refused.
    UniqueBy(&'static str),
    /// Unique in its home by this field; creating it again gives the one that is there.
    UniqueAs(&'static str),
    /// No name: these fields together are unique in its home.
    Whole(&'static [&'static str]),
}

/// What a list can be asked for beside pages and ids. Several values of one parameter are alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    Name,
    ProjectName,
    ProjectId,
    /// JSON: all given fields are equal, nested ones too.
    Metadata,
    /// The field of this name is equal.
    Field(&'static str),
}

pub(crate) struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub create: OnCreate,
    pub patch: OnPatch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnCreate {
    Required,
    Optional,
    /// The service sets it; what a client sends is ignored.
    Ours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnPatch {
    /// Never changes; what a client sends is ignored.
    Fixed,
    Replaced,
    /// The same, and every patch says it.
    Said,
    /// Objects are folded in, member by member; anything else replaces.
    Merged,
}

impl Field {
    pub const fn required(name: &'static str, shape: Shape, patch: OnPatch) -> Field {
        Field { name, shape, create: OnCreate::Required, patch }
    }

    pub const fn optional(name: &'static str, shape: Shape, patch: OnPatch) -> Field {
        Field { name, shape, create: OnCreate::Optional, patch }
    }

    pub const fn ours(name: &'static str, shape: Shape, patch: OnPatch) -> Field {
        Field { name, shape, create: OnCreate::Ours, patch }
    }
}

/// What is known where a record is made; ids and times come from the edge.
#[derive(Debug)]
pub(crate) struct Making {
    pub id: Uuid,
    pub user: Uuid,
}

impl Kind {
    /// As the API writes it: `project`, `experiment`, `dataset`, `api_key`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The unique key of a name within the organization or project of this id.
    pub fn name_key(&self, home: Uuid, name: &str) -> UniqueKey {
        UniqueKey::new(format!("{}.name/{home}", self.name), name)
    }

    /// What makes a record of these fields unique in its home; none where a name is not given.
    pub(crate) fn key_of(&self, home: Uuid, body: &Body) -> Option<UniqueKey> {
        let value = |field: &&'static str| body.get(*field).unwrap_or(&Value::Null);
        let all = |values: Vec<&Value>| Some(self.name_key(home, &serde_json::to_string(&values).ok()?));
        match self.naming {
            Naming::Whole(fields) => all(fields.iter().map(value).collect()),
            Naming::UniqueAmong(fields) => {
                let name = body.get("name").filter(|name| name.is_string())?;
                all(fields.iter().map(value).chain([name]).collect())
            }
            _ => body.get(self.named_by()).and_then(Value::as_str).map(|name| self.name_key(home, name)),
        }
    }

    /// The id of what it is unique in, as its first key has it.
    pub(crate) fn home_of(&self, record: &Record) -> Option<Uuid> {
        Uuid::parse_str(record.keys.first()?.scope.rsplit_once('/')?.1).ok()
    }

    /// The field whose value is in the unique key.
    pub(crate) fn named_by(&self) -> &'static str {
        match self.naming {
            Naming::UniqueBy(field) | Naming::UniqueAs(field) => field,
            _ => "name",
        }
    }

    /// The one of this id that belongs to the system.
    pub(crate) fn builtin_of(&self, id: Uuid) -> Option<Record> {
        (self.builtin)().into_iter().find(|record| record.id == id)
    }

    /// The project that a record of this kind is in, or that it is.
    pub fn project_of(&self, record: &Record) -> Option<Uuid> {
        match self.home {
            Home::Organization | Home::Object => (self.record == RecordKind::PROJECT).then_some(record.id),
            Home::Project => self.home_of(record),
        }
    }

    /// Whether the record is there for anyone: not being deleted, and not in a project that is.
    pub fn lives(&self, state: &State, record: &Record) -> bool {
        let project_lives = || {
            let project = self.project_of(record).and_then(|id| state.get(RecordKind::PROJECT, id));
            project.is_some_and(|project| !project.keys.is_empty())
        };
        !record.keys.is_empty() && (self.home != Home::Project || project_lives())
    }
}

/// For kinds that have nothing to add.
pub(crate) fn nothing_derived(_: &mut Body) {}

/// For kinds that know who made them.
pub(crate) fn made_by(making: &Making, fields: &mut Body) {
    fields.insert("user_id".into(), making.user.to_string().into());
}
