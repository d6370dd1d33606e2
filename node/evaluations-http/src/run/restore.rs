//! Cases that an earlier process of the same evaluation has written.

use assay_node_evaluations::{CaseIndex, EvalPlan, WrittenCase, WrittenCases};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_objects::RowHome;
use assay_node_records::ObjectHome;
use serde_json::{Map, Value};
use tokio::time::sleep;

use super::{PREPARE_ATTEMPTS_MAX, PREPARE_WAIT, may_pass};
use crate::target::home_of;

/// Root rows that one request reads.
const ROWS_AT_ONCE: usize = 100;

/// Returns the written cases of a plan. Every acknowledged write is visible.
pub async fn written_cases(caller: &Caller, plan: &EvalPlan) -> Result<Vec<WrittenCase>, Refusal> {
    let ObjectHome { key, org, project_id, .. } = home_of(caller, plan.target()).await?;
    let home = RowHome { object: key, org, project_id };
    let mut finder = WrittenCases::new(plan);
    let mut found = Vec::new();
    let mut first = 0;
    while first < plan.case_count() {
        let end = plan.case_count().min(first + ROWS_AT_ONCE as u32);
        let ids = (first..end).filter_map(|case| Some(plan.ids(CaseIndex(case))?.root.row_id.to_string()));
        let ids: Vec<String> = ids.collect();
        for row in rows(caller, &home, ids).await? {
            found.extend(finder.find(&row));
        }
        first = end;
    }
    Ok(found)
}

/// Reads rows by their ids. Ids whose rows are too large for one request are read in smaller parts.
async fn rows(caller: &Caller, home: &RowHome, ids: Vec<String>) -> Result<Vec<Map<String, Value>>, Refusal> {
    let (mut parts, mut found, mut attempts) = (vec![ids], Vec::new(), 0);
    while let Some(mut ids) = parts.pop() {
        match caller.objects().rows(home, ids.clone(), None).await.map_err(Refusal::from) {
            Ok(rows) => {
                for row in rows {
                    found.push(serde_json::from_slice(&row).map_err(Refusal::internal)?);
                }
            }
            Err(refusal) if refusal.kind == ErrorKind::BadRequest && ids.len() > 1 => {
                let half = ids.split_off(ids.len() / 2);
                parts.extend([ids, half]);
            }
            Err(refusal) if may_pass(&refusal) && attempts < PREPARE_ATTEMPTS_MAX => {
                attempts += 1;
                parts.push(ids);
                sleep(PREPARE_WAIT).await;
            }
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(found)
}
