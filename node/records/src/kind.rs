//! What is said of a kind of record. The mechanism (create, get, list, patch, delete) reads nothing else, so a new kind
//! is a new file under `kinds/`.
//!
//! A record's body is a JSON object of its fields, those that the service sets included. Its first unique key holds the
//! name and, in its scope, what the name is unique in: `project.name/<organization>`, `experiment.name/<project>`. A
//! record without keys is one that is being deleted: nobody sees it any more, and what hangs on it is taken away.

use std::fmt;

use assay_storage_catalog::State;
use assay_storage_model::ObjectKind;
use assay_storage_model::catalog::{Record, RecordKind, UniqueKey};

use uuid::Uuid;

use crate::draft::Body;
use crate::shape::Shape;

/// A name in bytes; with its scope it has to fit a unique key.
pub const NAME_BYTES_MAX: usize = 1024;

/// One kind of record, as the API shows it.
pub struct Kind {
    /// As the API writes it.
    pub(crate) name: &'static str,
    pub(crate) record: RecordKind,
    pub(crate) home: Home,
    pub(crate) naming: Naming,
    pub(crate) fields: &'static [Field],
    /// Query parameters of its list, and what each asks.
    pub(crate) filters: &'static [(&'static str, Filter)],
    /// Records of a list where the client names no limit; none gives all.
    pub(crate) list_default: Option<u64>,
    /// The objects that keep rows under the record's id: they go with it.
    pub(crate) rows: &'static [ObjectKind],
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

/// What a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Organization,
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Unique in its home; creating it again gives the one that is there.
    Unique,
    /// The same, but the client may ask for a new one whatever it is called, or leave the name to the service.
    UniqueOrFresh,
    /// Any name; the unique key is the fingerprint of a secret.
    Secret,
}

/// What a list can be asked for beside pages and ids. Several values of one parameter are alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    Name,
    ProjectName,
    ProjectId,
    /// JSON: all given fields are equal, nested ones too.
    Metadata,
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
    pub(crate) fn name_key(&self, home: Uuid, name: &str) -> UniqueKey {
        UniqueKey::new(format!("{}.name/{home}", self.name), name)
    }

    /// The project that a record of this kind is in, or that it is.
    pub(crate) fn project_of(&self, record: &Record) -> Option<Uuid> {
        match self.home {
            Home::Organization => (self.record == RecordKind::PROJECT).then_some(record.id),
            Home::Project => {
                let (_, home) = record.keys.first()?.scope.rsplit_once('/')?;
                Uuid::parse_str(home).ok()
            }
        }
    }

    /// Whether the record is there for anyone: not being deleted, and not in a project that is.
    pub(crate) fn lives(&self, state: &State, record: &Record) -> bool {
        let project_lives = || {
            let project = self.project_of(record).and_then(|id| state.get(RecordKind::PROJECT, id));
            project.is_some_and(|project| !project.keys.is_empty())
        };
        !record.keys.is_empty() && (self.home == Home::Organization || project_lives())
    }
}

/// For kinds that have nothing to add.
pub(crate) fn nothing_derived(_: &mut Body) {}
