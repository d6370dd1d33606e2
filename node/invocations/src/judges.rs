//! Judges, which are prompts that choose one of several answers (functions.md 4.6).

use assay_node_prompts::{ChatRequest, JUDGE_ATTEMPTS_MAX, Judge, JudgeForm};
use serde_json::Value;

use crate::answers::ChatCall;
use crate::error::InvokeError;
use crate::invoker::{FunctionRun, Invoker};
use crate::services::CacheUse;

impl Invoker {
    /// Asks a judge, and repeats the request if the answer is unusable (F-34).
    pub(crate) async fn judged(
        &self,
        run: &FunctionRun,
        judge: &Judge,
        request: ChatRequest,
        mut call: ChatCall,
    ) -> Result<Value, InvokeError> {
        (call.body, call.live) = (request.body, None);
        let mut attempts = 1;
        loop {
            let answer = self.ask(run, call.clone()).await?;
            match judge.verdict(&answer.message, JudgeForm::Tool) {
                Ok(verdict) => {
                    let name = &run.function.name;
                    let value = match run.function.is_classifier() {
                        true => verdict.classification_value(name),
                        false => verdict.score_value(name),
                    };
                    run.output.send_value(&value, false).await;
                    return Ok(value);
                }
                Err(_) if attempts < JUDGE_ATTEMPTS_MAX => attempts += 1,
                Err(error) => return Err(error.into()),
            }
            // The cache would return the same answer again.
            call.cache = CacheUse::Never;
        }
    }
}
