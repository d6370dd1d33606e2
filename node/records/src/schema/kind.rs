//! Declaration of a kind of record.
//!
//! The mechanism (create, get, list, patch, delete) uses nothing else, so a new kind is a new file under `kinds/`.
//!
//! The body of a record is a JSON object of its fields, including those that the service sets. Its first unique key has
//! the name, and in its scope the owner: `project.name/<organization>`, `experiment.name/<project>`. A record without
//! keys is being deleted: it is invisible, and its dependent data is removed.

use std::fmt;

use assay_node_auth::{ObjectType, Principal};
use assay_node_shapes::Shape;
use assay_storage_catalog::State;
use assay_storage_model::ObjectKind;
use assay_storage_model::catalog::{Record, RecordKind, UniqueKey};
use serde_json::Value;
use uuid::Uuid;

use crate::authz::CatalogView;
use crate::draft::Body;
use crate::error::RecordsError;

/// Upper bound of the bytes of a name, which has to fit into a unique key with its scope.
pub const NAME_BYTES_MAX: usize = 1024;

/// Function that transforms a patch, given the stored body.
pub(crate) type Fold = fn(&Body, &mut Body) -> Result<(), RecordsError>;
pub(crate) type Check = fn(&Checked<'_>) -> Result<(), RecordsError>;

/// Body to be stored, with its context.
pub(crate) struct Checked<'c> {
    pub view: &'c CatalogView<'c>,
    /// Author of the change, in the organization of the record.
    pub who: &'c Principal,
    /// Id of the changed record; `None` for a new record.
    pub id: Option<Uuid>,
    /// Stored body; `None` for a new record.
    pub before: Option<&'c Body>,
    pub body: &'c Body,
}

/// Declaration of one kind of record in the API.
pub struct Kind {
    /// Name in the API.
    pub(crate) name: &'static str,
    pub record: RecordKind,
    pub(crate) home: Home,
    pub(crate) naming: Naming,
    pub(crate) guard: Guard,
    /// Routes of its records.
    pub api: Api,
    /// Position of its records in an export of an organization.
    pub export: Export,
    pub(crate) fields: &'static [Field],
    /// Query parameters of its list, and their filters.
    pub(crate) filters: &'static [(&'static str, Filter)],
    /// Default limit of a list; `None` for all records.
    pub(crate) list_default: Option<u64>,
    /// Objects of rows under the id of the record, which are deleted with it.
    pub rows: &'static [ObjectKind],
    /// Whether responses have the time of deletion, which is null except in the response to the delete.
    pub(crate) has_deleted_at: bool,
    /// System records, which exist in every organization and never change.
    pub(crate) builtin: fn() -> Vec<Record>,
    /// Transforms a patch, such as additions to a list, to the resulting fields.
    pub(crate) fold: Option<Fold>,
    /// Refuses a body with references to missing records.
    pub(crate) check: Option<Check>,
    /// Sets the fields of a new record that the client does not.
    pub(crate) complete: fn(&Making, &mut Body),
    /// Sets derived fields after every change.
    pub(crate) derive: fn(&mut Body),
    /// Adds fields from other records to a response.
    pub(crate) join: Option<fn(&State, &mut Body)>,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({})", self.name)
    }
}

/// Routes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Shared handlers at this path.
    Shared(&'static str, Changes),
    /// Routes of its own.
    Own,
}

/// Changes that the API allows after creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    Never,
    ByPatch,
    ByPatchAndPut,
}

/// Position of the records of a kind in an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// Before rows, which depend on them.
    BeforeRows,
    /// After rows: the records name versions of datasets and prompts, or records that do.
    AfterRows,
    /// Not exported: the records are useless elsewhere, or format 1 of exports cannot have them.
    Never,
}

/// Owner of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Organization,
    Project,
    /// The object in its fields `object_type` and `object_id`, in the organization of that object.
    Object,
}

/// Source of the access rights to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Grants on the record, as an object of this type, and on its containers.
    Own(ObjectType),
    /// Rights on its project: readers of it can read the record, editors can create, change and delete it.
    Project,
    /// Rights on its organization, likewise.
    Organization,
    /// Rights on the object in its fields `object_type` and `object_id`, likewise.
    Object,
    /// The user in this field has all rights; others have their rights on the members of the organization.
    Holder(&'static str),
    /// Rights on the grants of the object of this grant.
    Acl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Unique in its owner. A repeated create returns the existing record.
    Unique,
    /// Unique in its owner, but the client may request a new one under an existing name, or let the service choose the
    /// name.
    UniqueOrFresh,
    /// Any name; the unique key is the fingerprint of a secret.
    Secret,
    /// Unique in its owner among records with equal values of these fields. A repeated create returns the existing
    /// record.
    UniqueAmong(&'static [&'static str]),
    /// Unique in its owner by this field. A repeated create is an error.
    UniqueBy(&'static str),
    /// Unique in its owner by this field. A repeated create returns the existing record.
    UniqueAs(&'static str),
    /// No name: these fields together are unique in its owner.
    Whole(&'static [&'static str]),
}

/// Filter of a list. Several values of one parameter are alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    Name,
    ProjectName,
    ProjectId,
    /// JSON object whose fields must be equal, nested ones too.
    Metadata,
    /// The value of this field must be equal.
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
    /// Set by the service. Values of clients are ignored.
    Ours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnPatch {
    /// Constant. Values of clients are ignored.
    Fixed,
    Replaced,
    /// Constant, and present in every patch.
    Said,
    /// Objects are merged member by member; other values are replaced.
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

/// Context of the creation of a record. Ids and times come from `edge`.
#[derive(Debug)]
pub(crate) struct Making {
    pub id: Uuid,
    pub user: Uuid,
}

impl Kind {
    /// Returns a base for the declaration of a kind: without rows, checks, derived fields, or a time of deletion.
    pub(crate) const fn plain(home: Home, guard: Guard) -> Kind {
        Kind {
            name: "",
            record: RecordKind(0),
            home,
            naming: Naming::Unique,
            guard,
            api: Api::Own,
            export: Export::AfterRows,
            fields: &[],
            filters: &[],
            list_default: None,
            rows: &[],
            has_deleted_at: false,
            builtin: Vec::new,
            fold: None,
            check: None,
            complete: |_, _| {},
            derive: |_| {},
            join: None,
        }
    }

    /// Returns the name in the API: `project`, `experiment`, `dataset`, `api_key`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the unique key of a name in the organization or project of this id.
    pub fn name_key(&self, home: Uuid, name: &str) -> UniqueKey {
        UniqueKey::new(format!("{}.name/{home}", self.name), name)
    }

    /// Returns the unique key of a record with these fields; `None` without a name.
    pub fn key_of(&self, home: Uuid, body: &Body) -> Option<UniqueKey> {
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

    /// Returns the id of its owner, from its first key.
    pub(crate) fn home_of(&self, record: &Record) -> Option<Uuid> {
        Uuid::parse_str(record.keys.first()?.scope.rsplit_once('/')?.1).ok()
    }

    /// Returns the field whose value is in the unique key.
    pub(crate) fn named_by(&self) -> &'static str {
        match self.naming {
            Naming::UniqueBy(field) | Naming::UniqueAs(field) => field,
            _ => "name",
        }
    }

    /// Returns the system record of this id.
    pub(crate) fn builtin_of(&self, id: Uuid) -> Option<Record> {
        (self.builtin)().into_iter().find(|record| record.id == id)
    }

    /// Returns the project of a record, which is its own if it is a project.
    pub fn project_of(&self, record: &Record) -> Option<Uuid> {
        match self.home {
            Home::Organization | Home::Object => (self.record == RecordKind::PROJECT).then_some(record.id),
            Home::Project => self.home_of(record),
        }
    }

    /// Returns whether the record is visible: neither it nor its project is being deleted.
    pub fn lives(&self, state: &State, record: &Record) -> bool {
        let project_lives = || {
            let project = self.project_of(record).and_then(|id| state.get(RecordKind::PROJECT, id));
            project.is_some_and(|project| !project.keys.is_empty())
        };
        !record.keys.is_empty() && (self.home != Home::Project || project_lives())
    }
}

/// Sets the creator.
pub(crate) fn made_by(making: &Making, fields: &mut Body) {
    fields.insert("user_id".into(), making.user.to_string().into());
}
