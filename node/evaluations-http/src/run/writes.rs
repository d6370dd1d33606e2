//! Writes of the rows of an evaluation, with attempts for as long as its lease is held.

use std::sync::Arc;
use std::time::Duration;

use assay_node_evaluations::SpanRow;
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::Refusal;
use assay_node_invocations_http::invocations::function_calls::{CallGuards, mask};
use assay_node_rows_http::files::Attachments;
use assay_node_rows_http::rows::{send, write_to};
use assay_storage_model::ObjectKind;
use assay_storage_model::event::SentItem;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;
use uuid::Uuid;

use super::lease::{EvalLease, LeaseGuard};
use super::{may_pass, patient};
use crate::launch::PreparedEval;
use crate::service::{EvalService, add};
use crate::target::{home_of, kind_of};

/// Upper bound of the attempts of one write.
const WRITE_ATTEMPTS_MAX: u32 = 60;
/// First and longest pause between two attempts.
const WRITE_WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Writer of the rows of one evaluation.
pub struct EvalWriter {
    callers: watch::Receiver<Option<Caller>>,
    service: Arc<EvalService>,
    lease: LeaseGuard,
    kind: ObjectKind,
    object: Uuid,
    /// Guardrails that mask logged contents.
    guards: CallGuards,
}

impl EvalWriter {
    pub async fn new(lease: &EvalLease, prepared: &PreparedEval) -> Result<EvalWriter, Refusal> {
        let caller = lease.caller().await?;
        let target = prepared.plan.target();
        let home = home_of(&caller, target).await?;
        let guards = CallGuards::of_projects(&caller, Some(prepared.request.project_id), Some(home.project_id)).await?;
        Ok(EvalWriter {
            callers: lease.callers(),
            service: Arc::clone(&lease.service),
            lease: lease.guard(),
            kind: kind_of(target.object_type),
            object: target.object_id,
            guards,
        })
    }

    /// Writes rows in one atomic write. A repeated write has the effect of one, because ids follow from the case.
    pub async fn write(&self, mut rows: Vec<SpanRow>) -> Result<(), String> {
        rows.iter_mut().for_each(|row| mask(&self.guards, row));
        let rows: Vec<Value> = rows.into_iter().map(Value::Object).collect();
        let (mut attempts, mut wait) = (0, WRITE_WAITS.0);
        loop {
            if !self.lease.is_held() {
                // The signal of the lost lease ends the run before this result is used.
                std::future::pending::<()>().await;
            }
            attempts += 1;
            match self.attempt(rows.clone()).await {
                Ok(()) => return Ok(()),
                Err(refusal) if may_pass(&refusal) && attempts < WRITE_ATTEMPTS_MAX => {
                    add(&self.service.counts.repeated_writes, 1);
                    sleep(wait).await;
                    wait = (wait * 2).min(WRITE_WAITS.1);
                }
                Err(refusal) => {
                    self.lease.confirm_rights().await;
                    return Err(refusal.message);
                }
            }
        }
    }

    async fn attempt(&self, rows: Vec<Value>) -> Result<(), Refusal> {
        let caller = self.callers.borrow().clone().ok_or_else(|| Refusal::internal("an evaluation has no caller"))?;
        let caller = patient(&caller);
        let rows = rows.into_iter().map(SentItem::from).collect();
        let write = write_to(&caller, self.kind, self.object, (rows, Attachments::Unknown), None).await?;
        send(&caller, vec![write]).await.map_err(Refusal::from)?;
        Ok(())
    }
}
