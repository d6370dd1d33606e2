//! Prompts and functions: requests of clients, and the rows and records behind them.
//!
//! | step of a create | after a crash |
//! |---|---|
//! | the slug is taken in the catalog, by one id | nobody is shown it; whoever creates it again goes on |
//! | the row is written, as one request that any number of creators may send and that counts once | created |
//!
//! So a prompt is there when its row is, and has every version that its row had. A delete takes the row away and then frees
//! the slug. Knows no HTTP, and runs nothing.

mod definitions;
mod error;
mod many;
mod row;
mod sent;

use assay_node_auth::{Asker, Job};
use assay_node_objects::{ObjectWrite, Objects, Patience, RowHome};
use assay_node_records::{ObjectHome, PromptPlace, Records};
use assay_storage_model::Xact;
use assay_storage_model::command::RequestId;
use assay_storage_model::event::SentItem;
use bytes::Bytes;
use serde_json::{Map, Value};

pub use assay_node_records::Definition;
pub use error::FunctionsError;
pub use many::{DEFINITIONS_AT_ONCE_MAX, Inserted};
pub use sent::Admitted;

/// A handle; clones share everything.
#[derive(Clone, Debug)]
pub struct Functions {
    records: Records,
    objects: Objects,
}

/// Requested version of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Version {
    #[default]
    Newest,
    /// Version at an `xact`.
    At(Xact),
    /// The one that is pinned to the environment of this slug.
    Of(String),
}

impl Version {
    /// Parses URL parameters. Empty ones mean "not given".
    pub fn of(version: Option<&str>, environment: Option<&str>) -> Result<Version, FunctionsError> {
        let given = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        match (given(version), given(environment)) {
            (Some(_), Some(_)) => {
                Err(FunctionsError::bad("`version` and `environment` exclude each other: send only one of them"))
            }
            (Some(version), None) => match Xact::parse(&version) {
                Ok(xact) => Ok(Version::At(xact)),
                Err(why) => Err(FunctionsError::bad(format!("`version`: {why}"))),
            },
            (None, Some(environment)) => Ok(Version::Of(environment)),
            (None, None) => Ok(Version::Newest),
        }
    }
}

impl Functions {
    pub fn new(records: Records, objects: Objects) -> Functions {
        Functions { records, objects: objects.on_behalf_of(&Asker::Job(Job::Functions)) }
    }

    /// The row as it is, or as it was at a version.
    async fn row(&self, place: &PromptPlace, version: Option<Xact>) -> Result<Option<Value>, FunctionsError> {
        let rows = self.objects.rows(&row_home(&place.home), vec![place.id.to_string()], version).await?;
        rows.first().map(read).transpose()
    }

    /// Writes one row with an idempotency key, so that it counts once.
    async fn write(
        &self,
        home: &ObjectHome,
        row: Map<String, Value>,
        request: Option<RequestId>,
    ) -> Result<(Xact, bool), FunctionsError> {
        let write = ObjectWrite { object: home.key, rows: vec![SentItem::from(Value::Object(row))], request };
        let written = self.objects.write(vec![write], Patience::usual()).await?.pop();
        let written = written.ok_or_else(|| FunctionsError::Internal("a write has no outcome".into()))?;
        Ok((written.xact, written.duplicate))
    }
}

fn row_home(home: &ObjectHome) -> RowHome {
    RowHome { object: home.key, org: home.org, project_id: home.project_id }
}

fn read(row: &Bytes) -> Result<Value, FunctionsError> {
    serde_json::from_slice(row)
        .map_err(|why| FunctionsError::Internal(format!("a prompt's row cannot be decoded: {why}")))
}
