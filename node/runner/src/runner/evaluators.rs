//! List of the evaluators of a bundle, in a worker of its own.

use assay_node_runtimes::{BundleList, CallOutput, CodeSource, FromWorker, ToWorker};
use assay_node_sandbox::SandboxStrength;
use serde_json::Value;
use tokio::time::Instant;

use super::{CodeCall, CodeRunner, Interpreter};
use crate::error::CodeError;
use crate::worker::CallLimits;

impl CodeRunner {
    /// Lists the evaluators of the bundle of a call. The worker serves no other call.
    pub(super) async fn list(
        &self,
        call: CodeCall,
        strength: SandboxStrength,
        interpreter: &Interpreter,
        until: Instant,
    ) -> Result<CallOutput, CodeError> {
        let CodeSource::Bundle { path, .. } = self.source(&call.unit, strength) else {
            return Err(CodeError::NotRun("only bundles have evaluators".to_owned()));
        };
        let limits = CallLimits { until, time_max: call.time_max, events: call.events };
        let secret = call.rights.issue()?;
        let mut worker = self.start_worker(&call.owner, (&call.unit, secret), (strength, interpreter), &limits).await?;
        let _loan = call.rights.lend(worker.secret())?;
        let mut environment = call.variables;
        environment.extend(call.call.environment);
        let secret = worker.secret().expose();
        environment.extend(call.secret_names.iter().map(|name| ((*name).to_owned(), secret.to_owned())));
        match worker.ask(&ToWorker::List(BundleList { path, environment }), &limits).await? {
            FromWorker::Listed(listed) => {
                Ok(CallOutput { id: String::new(), value: Value::Object(listed.evaluators), left: 0, notes: None })
            }
            _ => Err(CodeError::Node("the worker of a bundle did not list its evaluators".to_owned())),
        }
    }
}
