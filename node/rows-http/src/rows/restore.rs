//! Handlers for the restore of a dataset to a version, and for its preview.
//!
//! A restore is one write, so readers never see a part of it. It reads the current rows before: rows that others write
//! between the read and the write are replaced, or stay although the version had no such row.

use assay_node_auth::Permission;
use assay_node_http::openapi::{Operation, names, version};
use assay_node_http::requests::caller::Call;
use assay_node_http::requests::limits::admit_writes;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_limits::Reservation;
use assay_node_objects::restore::{RestoreComparison, Restoring};
use assay_node_objects::{FetchRequest, ObjectWrite, ReadError, RowHome};
use assay_storage_model::{ObjectKind, Xact};
use serde_json::{Value, json};

/// Upper bound of the rows in each of the two versions.
const ROWS_MAX: usize = 100_000;
/// Upper bound of the bytes in each of the two versions.
const BYTES_MAX: usize = 64 << 20;
/// Upper bound of the rows that a restore writes.
const WRITTEN_ROWS_MAX: usize = 10_000;
/// Upper bound of the bytes that a restore writes.
const WRITTEN_BYTES_MAX: usize = 16 << 20;

pub async fn preview(call: Call, payload: Payload) -> HandlerResult {
    let ComparedVersions { found, .. } = compared(&call, payload, Permission::Read).await?;
    json(&json!({"rows_to_restore": found.restored, "rows_to_delete": found.deleted}))
}

pub async fn restore(call: Call, payload: Payload) -> HandlerResult {
    let ComparedVersions { home, found, _held } = compared(&call, payload, Permission::Update).await?;
    let (restored, deleted) = (found.restored, found.deleted);
    let told = |xact: Option<Xact>| {
        let xact = xact.map(|xact| xact.to_string());
        json(&json!({"xact_id": xact, "rows_restored": restored, "rows_deleted": deleted}))
    };
    if found.rows.is_empty() {
        return told(None);
    }
    let bytes = found.bytes();
    if found.rows.len() > WRITTEN_ROWS_MAX || bytes > WRITTEN_BYTES_MAX {
        let said = format!(
            "nothing was restored: {} rows of {bytes} bytes have to be written, and the maximum of one restore is \
             {WRITTEN_ROWS_MAX} rows of {WRITTEN_BYTES_MAX} bytes",
            found.rows.len()
        );
        return Err(Refusal::new(ErrorKind::TooLarge, said));
    }
    let write = ObjectWrite { object: home.object, rows: found.items()?, request: None };
    admit_writes(&call.edge.quotas, &call.principal, std::slice::from_ref(&write))?;
    let written = call.objects().write(vec![write], call.patience()).await?;
    call.edge.records.still(&call.principal, &[home.object], Permission::Update).await?;
    told(written.first().map(|written| written.xact))
}

/// Result of a comparison of two versions, with the reservation of its memory.
struct ComparedVersions {
    home: RowHome,
    found: Restoring,
    _held: Reservation,
}

async fn compared(call: &Call, payload: Payload, permission: Permission) -> Result<ComparedVersions, Refusal> {
    let id = call.id()?;
    let body = call.small_body(payload).await?.object().await?;
    let version = match body.get("version") {
        Some(Value::String(text)) => Xact::parse(text).map_err(|why| Refusal::bad(format!("`version`: {why}")))?,
        None | Some(Value::Null) => return Err(Refusal::bad("`version` is missing")),
        Some(_) => return Err(Refusal::bad("`version` has to be a string")),
    };
    let home = call.edge.records.object(&call.principal, ObjectKind::Dataset, id, permission).await?;
    let home = RowHome { object: home.key, org: home.org, project_id: home.project_id };
    let held = call.applicant().reserve(&call.edge.budgets.parsed, 0).await?;
    let mut comparing = Comparing { call, home: &home, comparison: RestoreComparison::default(), held };
    comparing.rows(Some(version), RestoreComparison::add_earlier).await?;
    comparing.rows(None, RestoreComparison::add_current).await?;
    let Comparing { comparison, held, .. } = comparing;
    call.edge.records.still(&call.principal, &[home.object], permission).await?;
    Ok(ComparedVersions { home, found: comparison.finish(), _held: held })
}

/// Comparison in progress, whose reservation grows with it.
struct Comparing<'c> {
    call: &'c Call,
    home: &'c RowHome,
    comparison: RestoreComparison,
    held: Reservation,
}

impl Comparing<'_> {
    /// Adds all rows at one version.
    async fn rows(
        &mut self,
        version: Option<Xact>,
        add: fn(&mut RestoreComparison, &[u8]) -> Result<(), ReadError>,
    ) -> Result<(), Refusal> {
        let mut request = FetchRequest { version, ..FetchRequest::default() };
        let (mut rows, mut bytes) = (0, 0);
        loop {
            let page = self.call.objects().fetch(self.home, request).await?;
            for event in &page.events {
                bytes += event.len();
                add(&mut self.comparison, event)?;
            }
            rows += page.events.len();
            if rows > ROWS_MAX || bytes > BYTES_MAX {
                let said = format!(
                    "the dataset is too large to restore: the maximum is {ROWS_MAX} rows and {BYTES_MAX} bytes"
                );
                return Err(Refusal::new(ErrorKind::TooLarge, said));
            }
            let more = (self.comparison.bytes() as u64).saturating_sub(self.held.amount());
            self.call.applicant().grow(&self.call.edge.budgets.parsed, &mut self.held, more).await?;
            match page.cursor {
                Some(cursor) => request = FetchRequest { cursor: Some(cursor), ..FetchRequest::default() },
                None => return Ok(()),
            }
        }
    }
}

/// Describes the routes for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let named = json!({"type": "object", "required": ["version"], "properties": {"version": version()}});
    let rows = json!({"type": "integer", "minimum": 0});
    let of = |path: &str, summary: &str, fields: Value| {
        let answer = json!({"type": "object", "required": names(&fields), "properties": fields});
        let operation = Operation::new("post", path, "Datasets", summary).of("dataset");
        operation.takes(named.clone()).answers(answer).also_refuses(&[ErrorKind::Past])
    };
    vec![
        of(
            "/v1/dataset/{id}/restore/preview",
            "Count the rows that a restore to a version would restore and delete",
            json!({"rows_to_restore": rows, "rows_to_delete": rows}),
        ),
        of(
            "/v1/dataset/{id}/restore",
            "Restore a dataset to a version, in one write",
            json!({"xact_id": {"type": "string", "nullable": true}, "rows_restored": rows, "rows_deleted": rows}),
        ),
    ]
}
