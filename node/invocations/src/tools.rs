//! Tools of prompts: stored functions, global functions, and tools of MCP servers (functions.md 4.7).

use std::sync::Arc;

use assay_node_prompts::{
    PARALLEL_CALLS_MAX, PROMPT_DEPTH_MAX, Prompt, ToolCall, ToolCatalog, ToolParameters, ToolSource,
};
use assay_node_scorers::{GlobalFunctionType, global_function};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::error::InvokeError;
use crate::events::{InvokeEvent, ProgressFrame};
use crate::function::{FunctionKind, InvokedFunction};
use crate::invoker::{FunctionRun, Invoker};
use crate::log::end_row;
use crate::request::{FunctionReference, FunctionVersion, InvokeArguments};
use crate::services::{RemoteTool, ToolSession};

/// Tools of one prompt, with the connections to tool servers.
pub(crate) struct PromptTools {
    pub catalog: ToolCatalog<Arc<ToolTarget>>,
    pub session: Option<Box<dyn ToolSession>>,
}

/// Target of a tool call.
#[derive(Debug)]
pub(crate) enum ToolTarget {
    Function(Box<InvokedFunction>),
    Remote(RemoteTool),
}

/// Tool call that has not run yet.
#[derive(Debug)]
pub(crate) struct PendingCall {
    name: String,
    target: Arc<ToolTarget>,
    arguments: Result<Value, String>,
}

impl PendingCall {
    pub fn of(call: ToolCall<'_, Arc<ToolTarget>>) -> PendingCall {
        PendingCall { name: call.name, target: Arc::clone(call.function), arguments: call.arguments }
    }
}

impl FunctionRun {
    /// Returns the id for progress events: the row id, or a random id.
    pub(crate) fn progress_id(&self) -> String {
        self.scope.as_ref().map_or_else(|| Uuid::new_v4().to_string(), |scope| scope.row_id.clone())
    }
}

impl Invoker {
    /// Finds the tools of a prompt, and connects to its tool servers.
    pub(crate) async fn tools_of(
        &self,
        run: &FunctionRun,
        prompt: &Prompt,
        request: &Map<String, Value>,
    ) -> Result<PromptTools, InvokeError> {
        let mut tools = Vec::new();
        for (index, reference) in prompt.tool_functions.iter().enumerate() {
            let function = self.tool_function(reference, index).await?;
            // A function that cannot be invoked is refused before the model is asked.
            function.kind()?;
            tools.push((source_of(&function), Arc::new(ToolTarget::Function(Box::new(function)))));
        }
        let session = match prompt.mcp.is_empty() {
            true => None,
            false => Some(self.services.connect(&prompt.mcp, &run.arguments.mcp_auth).await?),
        };
        for tool in session.iter().flat_map(|session| session.tools()) {
            let source = ToolSource {
                slug: tool.name.clone(),
                description: tool.description.clone(),
                parameters: ToolParameters::Schema(tool.parameters.clone()),
            };
            tools.push((source, Arc::new(ToolTarget::Remote(tool.clone()))));
        }
        let raw = request.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Ok(PromptTools { catalog: ToolCatalog::new(raw, tools)?, session })
    }

    async fn tool_function(&self, saved: &Value, index: usize) -> Result<InvokedFunction, InvokeError> {
        let (reference, version) = saved_reference(saved)
            .ok_or_else(|| InvokeError::invalid(format!("prompt_data.tool_functions[{index}] names no function")))?;
        self.services.resolve(&reference, &version).await
    }

    /// Runs the calls of one round with limited concurrency. Errors are results, from which the model may recover.
    pub(crate) async fn run_tools(
        &self,
        run: &FunctionRun,
        calls: Vec<PendingCall>,
        session: Option<&dyn ToolSession>,
    ) -> Vec<Result<Value, String>> {
        let runs: Vec<BoxFuture<'_, _>> =
            calls.into_iter().map(|call| self.run_tool(run, call, session).boxed()).collect();
        stream::iter(runs).buffered(PARALLEL_CALLS_MAX).collect().await
    }

    async fn run_tool(
        &self,
        run: &FunctionRun,
        call: PendingCall,
        session: Option<&dyn ToolSession>,
    ) -> Result<Value, String> {
        let arguments = call.arguments?;
        match &*call.target {
            ToolTarget::Function(function) => self.run_tool_function(run, function, arguments).await,
            ToolTarget::Remote(tool) => self.run_remote_tool(run, (&call.name, tool), arguments, session).await,
        }
    }

    async fn run_tool_function(
        &self,
        run: &FunctionRun,
        function: &InvokedFunction,
        input: Value,
    ) -> Result<Value, String> {
        if run.depth + 1 > PROMPT_DEPTH_MAX {
            return Err(format!("prompts are tools of prompts more than {PROMPT_DEPTH_MAX} levels deep"));
        }
        let arguments = InvokeArguments {
            input,
            mcp_auth: run.arguments.mcp_auth.clone(),
            endpoint_name: run.arguments.endpoint_name.clone(),
            ..InvokeArguments::default()
        };
        let mut inner = FunctionRun {
            function: function.clone(),
            arguments,
            trace: run.trace.clone(),
            scope: run.scope.as_ref().map(|scope| scope.child().marked(function)),
            has_span_row: false,
            span_type: "tool",
            depth: run.depth + 1,
            output: run.output.clone(),
            usage: Arc::clone(&run.usage),
            notes: Arc::default(),
        };
        inner.output = run.output.inside(function.progress_frame(inner.progress_id()));
        let output = inner.output.clone();
        output.send(InvokeEvent::Start).await;
        let result = self.run(inner).await.map_err(|error| error.message);
        if let Err(error) = &result {
            output.send(InvokeEvent::Error(error.clone())).await;
        }
        output.send(InvokeEvent::Done).await;
        result
    }

    async fn run_remote_tool(
        &self,
        run: &FunctionRun,
        (name, tool): (&str, &RemoteTool),
        arguments: Value,
        session: Option<&dyn ToolSession>,
    ) -> Result<Value, String> {
        let session = session.ok_or_else(|| "the connection to the tool's server is closed".to_owned())?;
        let scope = run.scope.as_ref().map(|scope| scope.child());
        let span = scope.as_ref().map(|scope| {
            let row = Map::from_iter([
                ("span_attributes".to_owned(), json!({"name": name, "type": "tool"})),
                ("input".to_owned(), arguments.clone()),
                ("metrics".to_owned(), json!({"start": self.services.now()})),
            ]);
            self.services.open(scope, row)
        });
        let id = scope.map_or_else(|| Uuid::new_v4().to_string(), |scope| scope.row_id);
        let frame =
            ProgressFrame { id, object_type: "tool", format: "global", output_type: "any", name: name.to_owned() };
        let output = run.output.inside(frame);
        output.send(InvokeEvent::Start).await;
        let result = session.call(tool, &arguments).await;
        match &result {
            Ok(value) => output.send_value(value, false).await,
            Err(error) => output.send(InvokeEvent::Error(error.clone())).await,
        }
        output.send(InvokeEvent::Done).await;
        if let Some(span) = span {
            span.end(end_row(result.as_ref().map_err(Clone::clone), self.services.now()));
        }
        result
    }
}

/// Parses a stored reference to a function.
pub(crate) fn saved_reference(saved: &Value) -> Option<(FunctionReference, FunctionVersion)> {
    let text = |name: &str| saved.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let owned = |name: &str| text(name).map(str::to_owned);
    let reference = match text("type")? {
        "function" => FunctionReference::Id(owned("id")?),
        "global" => FunctionReference::Global {
            name: owned("name")?,
            function_type: text("function_type").unwrap_or("scorer").to_owned(),
        },
        "slug" => match owned("project_id") {
            Some(project_id) => FunctionReference::ProjectId { project_id, slug: owned("slug")? },
            None => FunctionReference::ProjectName { project_name: owned("project_name")?, slug: owned("slug")? },
        },
        _ => return None,
    };
    Some((reference, FunctionVersion { version: owned("version"), environment: None }))
}

/// Returns the description of a function for a model.
fn source_of(function: &InvokedFunction) -> ToolSource {
    let parameters = function.function_schema.get("parameters").filter(|schema| schema.is_object());
    let global = match function.kind() {
        Ok(FunctionKind::Global { name, function_type, .. }) => {
            let function_type = match function_type.as_str() {
                "facet" => GlobalFunctionType::Facet,
                "preprocessor" => GlobalFunctionType::Preprocessor,
                _ => GlobalFunctionType::Scorer,
            };
            global_function(function_type, &name).ok()
        }
        _ => None,
    };
    let parameters = match (parameters, global, function.kind()) {
        (Some(schema), _, _) => ToolParameters::Schema(schema.clone()),
        (None, Some(global), _) => ToolParameters::Schema(global.parameters_schema()),
        (None, None, Ok(FunctionKind::Prompt)) => ToolParameters::PromptInput,
        (None, None, _) => ToolParameters::Unknown,
    };
    let description = function.description.clone().or_else(|| global.map(|global| global.help.to_owned()));
    let slug = if function.slug.is_empty() { function.name.clone() } else { function.slug.clone() };
    ToolSource { slug, description, parameters }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_references_name_functions() {
        let found = |saved: Value| saved_reference(&saved).map(|(reference, _)| reference);
        assert_eq!(found(json!({"type": "function", "id": "f"})), Some(FunctionReference::Id("f".into())));
        let global = FunctionReference::Global { name: "Humor".into(), function_type: "scorer".into() };
        assert_eq!(found(json!({"type": "global", "name": "Humor"})), Some(global));
        for other in [json!({"type": "function"}), json!({"type": "x", "id": "f"}), json!(1)] {
            assert_eq!(found(other.clone()), None, "{other}");
        }
    }

    #[test]
    fn functions_are_offered_with_their_schemas() {
        let prompt = InvokedFunction { slug: "s".into(), ..InvokedFunction::default() };
        assert_eq!(source_of(&prompt).parameters, ToolParameters::PromptInput);
        let source = source_of(&InvokedFunction::global("Levenshtein", "scorer"));
        assert_eq!(source.slug, "Levenshtein");
        assert!(source.description.is_some() && matches!(source.parameters, ToolParameters::Schema(_)));
    }
}
