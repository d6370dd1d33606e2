//! Invoker, which runs functions of all kinds and logs their spans.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use assay_node_prompts::{InvokeMode, TraceReference, merge_overrides, take_trace};
use assay_node_scorers::DefaultModels;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::error::InvokeError;
use crate::events::EventOutput;
use crate::facets::Facet;
use crate::function::{FunctionKind, InvokedFunction};
use crate::log::{LogScope, end_of_function, function_row};
use crate::request::InvokeArguments;
use crate::services::{CaseNotes, InvocationServices, OpenSpan};
use crate::usage::InvokeUsage;

/// Invoker of functions for one caller.
#[derive(Clone)]
pub struct Invoker {
    pub(crate) services: Arc<dyn InvocationServices>,
    pub(crate) models: DefaultModels,
}

impl fmt::Debug for Invoker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invoker").field("models", &self.models).finish_non_exhaustive()
    }
}

/// Function to run, with its arguments.
#[derive(Clone, Debug)]
pub struct InvokeCall {
    pub function: InvokedFunction,
    pub arguments: InvokeArguments,
    /// Trace of the parent, for scorers without a trace in their input (F-31).
    pub trace: Option<TraceReference>,
    /// Span of the function, or `None` if nothing is logged.
    pub scope: Option<LogScope>,
    /// Whether the caller writes the row of the function's span. The invoker then writes only the spans below it.
    pub has_span_row: bool,
}

/// Result of an invocation.
#[derive(Clone, Debug, PartialEq)]
pub struct InvokeOutcome {
    pub value: Value,
    pub usage: InvokeUsage,
    /// What the task of an evaluation left in its hooks.
    pub notes: Option<CaseNotes>,
}

/// Running function.
#[derive(Clone, Debug)]
pub(crate) struct FunctionRun {
    pub function: InvokedFunction,
    pub arguments: InvokeArguments,
    pub trace: Option<TraceReference>,
    pub scope: Option<LogScope>,
    /// Whether another component writes the row of the function's span.
    pub has_span_row: bool,
    /// Type of the function's span.
    pub span_type: &'static str,
    /// Number of nested tool calls around this function.
    pub depth: usize,
    pub output: EventOutput,
    pub usage: Arc<Mutex<InvokeUsage>>,
    pub notes: Arc<Mutex<Option<CaseNotes>>>,
}

impl FunctionRun {
    pub fn mode(&self) -> InvokeMode {
        self.arguments.mode
    }

    pub fn note_usage(&self, response: &Value) {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).add(response);
    }

    pub fn note_case(&self, notes: Option<CaseNotes>) {
        if notes.is_some() {
            *self.notes.lock().unwrap_or_else(PoisonError::into_inner) = notes;
        }
    }
}

impl Invoker {
    pub fn new(services: Arc<dyn InvocationServices>, models: DefaultModels) -> Invoker {
        Invoker { services, models }
    }

    /// Runs a function, and sends events to `output`. The caller sends the last event, `done` or `error`.
    pub async fn invoke(&self, call: InvokeCall, output: EventOutput) -> Result<InvokeOutcome, InvokeError> {
        let usage = Arc::<Mutex<InvokeUsage>>::default();
        let notes = Arc::<Mutex<Option<CaseNotes>>>::default();
        let span_type = call.function.span_type();
        let run = FunctionRun {
            function: call.function,
            arguments: call.arguments,
            trace: call.trace,
            scope: call.scope,
            has_span_row: call.has_span_row,
            span_type,
            depth: 0,
            output,
            usage: Arc::clone(&usage),
            notes: Arc::clone(&notes),
        };
        let value = self.run(run).await?;
        let usage = usage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let notes = notes.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(InvokeOutcome { value, usage, notes })
    }

    /// Runs a function within its span.
    pub(crate) fn run(&self, mut run: FunctionRun) -> BoxFuture<'_, Result<Value, InvokeError>> {
        async move {
            if let Some(trace) = take_trace(&mut run.arguments.input) {
                run.trace = Some(trace);
            }
            let span: Option<Box<dyn OpenSpan>> = run.scope.as_ref().filter(|_| !run.has_span_row).map(|scope| {
                let row = function_row(&run.function, run.span_type, &run.arguments, self.services.now());
                self.services.open(scope, row)
            });
            let result = self.value(&run).await;
            if let Some(span) = span {
                span.end(end_of_function(&run.function, result.as_ref(), self.services.now()));
            }
            result
        }
        .boxed()
    }

    async fn value(&self, run: &FunctionRun) -> Result<Value, InvokeError> {
        let mut function = run.function.clone();
        if function.kind()? != FunctionKind::Prompt {
            merge_overrides(&mut function.function_data, &run.arguments.overrides)?;
        }
        match function.kind()? {
            FunctionKind::Prompt => self.prompt(run).await,
            FunctionKind::Global { name, function_type, config } => {
                self.global(run, (&name, &function_type), &config).await
            }
            FunctionKind::Code => self.code(run, function).await,
            FunctionKind::Facet => {
                let facet = Facet::read(&function.function_data)?;
                let value = self.facet(run, &facet).await?;
                run.output.send_value(&value, false).await;
                Ok(value)
            }
        }
    }
}
