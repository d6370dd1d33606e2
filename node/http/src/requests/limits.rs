//! Rate limits and quotas as HTTP applies them: the usage that writes add, refusals, and warnings about paths.

use assay_node_auth::Principal;
use assay_node_limits::{LimitsConfig, QuotaExceeded, Quotas, RateExceeded, StorageUsage};
use assay_node_objects::{ObjectWrite, WriteError};
use assay_storage_model::NotWritten;
use assay_storage_model::event::Sent;
use serde_json::Value;

use crate::openapi::api_table::patterns;
use crate::openapi::suggestions::nearest;
use crate::responses::refusal::{Kind, Refusal};

/// Returns warnings about rules of rate limiting for paths that are not served.
pub fn limits_warnings(limits: &LimitsConfig) -> Vec<String> {
    limits.warnings(&patterns().collect::<Vec<_>>(), nearest)
}

/// Admits all of the writes, or refuses them, by the quotas of the caller's organization.
pub(crate) fn admit_writes(quotas: &Quotas, who: &Principal, writes: &[ObjectWrite]) -> Result<(), WriteError> {
    quotas.admit(who, || added_by(writes)).map_err(|exceeded| {
        let why = NotWritten::Busy(exceeded.to_string().into());
        WriteError::NotWritten { why, retry_after: QuotaExceeded::RETRY_AFTER }
    })
}

/// Returns an upper bound of the usage that writes add: every row that deletes none counts as a new one.
fn added_by(writes: &[ObjectWrite]) -> StorageUsage {
    let rows = writes.iter().flat_map(|write| &write.rows).filter_map(|row| match row {
        Sent::Row(row) => Some(row),
        Sent::Other(_) => None,
    });
    let kept = rows.filter(|row| row.get("_object_delete") != Some(&Value::Bool(true)));
    kept.fold(StorageUsage::default(), |sum, row| sum.plus(StorageUsage { rows: 1, bytes: row.bytes_about() as u64 }))
}

impl From<RateExceeded> for Refusal {
    fn from(exceeded: RateExceeded) -> Refusal {
        let retry_after_seconds = Some(exceeded.retry_after_seconds);
        Refusal { retry_after_seconds, ..Refusal::new(Kind::Busy, exceeded.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use assay_node_limits::{Per, RateRule};
    use assay_storage_model::{ObjectKey, ObjectKind, OrgId};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn rows(count: usize, row: &Value) -> Vec<ObjectWrite> {
        let object = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::Dataset, Uuid::nil());
        vec![ObjectWrite { object, rows: vec![Sent::from(row.clone()); count], request: None }]
    }

    #[test]
    fn rows_and_their_bytes_count_and_deletes_do_not() {
        assert_eq!(added_by(&rows(50, &json!({"id": "a", "_object_delete": true}))), StorageUsage::default());
        let few = added_by(&rows(10, &json!({"input": "y"})));
        assert!(few.rows == 10 && few.bytes > 0 && few.bytes <= 4000, "{few:?}");
        let many = added_by(&rows(1000, &json!({"input": "y"})));
        assert!(many.rows == 1000 && many.bytes > 4000, "{many:?}");
    }

    #[test]
    fn a_rule_about_no_path_is_pointed_out() {
        let warned = |endpoint: &str| {
            let rule = RateRule {
                endpoint: endpoint.into(),
                methods: Vec::new(),
                per: Per::Organization,
                requests: 10,
                seconds: 1,
                burst: None,
                organizations: Vec::new(),
            };
            limits_warnings(&LimitsConfig { rates: vec![rule], ..LimitsConfig::default() })
        };
        let why = warned("/logs4").concat();
        assert!(why.contains("`/logs4`") && why.contains("did you mean `/logs3`?"), "{why}");
        assert_eq!(warned("/v1/nonsense/*").len(), 1);
        for right in [
            "*",
            "/logs3",
            "/v1/*",
            "/v1/project_logs/*/insert",
            "/v1/dataset/*",
            "/v1/traces",
            "/v1/proxy/chat/completions",
        ] {
            assert!(warned(right).is_empty(), "{right}");
        }
    }
}
