//! Rate limits and quotas of HTTP requests: the usage that writes add, and refusals.

use assay_node_auth::Principal;
use assay_node_limits::{QuotaExceeded, Quotas, RateExceeded, StorageUsage};
use assay_node_objects::{ObjectWrite, WriteError};
use assay_storage_model::event::SentItem;
use assay_storage_model::{NotWritten, OrgId};
use serde_json::Value;

use crate::responses::refusal::{ErrorKind, Refusal};

/// Admits or refuses all of the writes by the quotas of the caller's organization.
pub fn admit_writes(quotas: &Quotas, who: &Principal, writes: &[ObjectWrite]) -> Result<(), WriteError> {
    quotas.admit(who, || added_by(writes)).map_err(|exceeded| {
        let why = NotWritten::Busy(exceeded.to_string().into());
        WriteError::NotWritten { why, retry_after: QuotaExceeded::RETRY_AFTER }
    })
}

/// Admits or refuses an upload of so many bytes by the quotas of an organization.
pub fn admit_upload(quotas: &Quotas, org: (OrgId, &str), bytes: u64) -> Result<(), Refusal> {
    // Files are stored as text in base64.
    let bytes = bytes.div_ceil(3).saturating_mul(4);
    quotas.admit_for(org, || StorageUsage { rows: 0, bytes }).map_err(|exceeded| {
        let retry_after_seconds = Some(QuotaExceeded::RETRY_AFTER.as_secs());
        Refusal { retry_after_seconds, ..Refusal::new(ErrorKind::Busy, exceeded.to_string()) }
    })
}

/// Returns an upper bound of the usage that writes add. Every row that is not a deletion counts as a new row.
fn added_by(writes: &[ObjectWrite]) -> StorageUsage {
    let rows = writes.iter().flat_map(|write| &write.rows).filter_map(|row| match row {
        SentItem::Row(row) => Some(row),
        SentItem::Other(_) => None,
    });
    let kept = rows.filter(|row| row.get("_object_delete") != Some(&Value::Bool(true)));
    kept.fold(StorageUsage::default(), |sum, row| sum.plus(StorageUsage { rows: 1, bytes: row.bytes_about() as u64 }))
}

impl From<RateExceeded> for Refusal {
    fn from(exceeded: RateExceeded) -> Refusal {
        let retry_after_seconds = Some(exceeded.retry_after_seconds);
        Refusal { retry_after_seconds, ..Refusal::new(ErrorKind::Busy, exceeded.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use assay_storage_model::{ObjectKey, ObjectKind};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn rows(count: usize, row: &Value) -> Vec<ObjectWrite> {
        let object = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::Dataset, Uuid::nil());
        vec![ObjectWrite { object, rows: vec![SentItem::from(row.clone()); count], request: None }]
    }

    #[test]
    fn rows_and_their_bytes_count_and_deletes_do_not() {
        assert_eq!(added_by(&rows(50, &json!({"id": "a", "_object_delete": true}))), StorageUsage::default());
        let few = added_by(&rows(10, &json!({"input": "y"})));
        assert!(few.rows == 10 && few.bytes > 0 && few.bytes <= 4000, "{few:?}");
        let many = added_by(&rows(1000, &json!({"input": "y"})));
        assert!(many.rows == 1000 && many.bytes > 4000, "{many:?}");
    }
}
