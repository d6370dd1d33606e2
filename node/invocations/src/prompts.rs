//! Execution of prompts: rendering, model calls, and rounds of tool calls (functions.md 4).

use assay_node_prompts::{
    ChatDraft, ChatRequest, Prompt, PromptArguments, PromptCacheMode, PromptInvocation, ToolLoop, ToolStep,
    TraceReference, add_thread_variables, assemble, merge_overrides, thread_variables,
};
use serde_json::{Map, Value, json};

use crate::answers::{ChatCall, ChatMessage, LivePieces, has_calls, is_text_answer};
use crate::error::InvokeError;
use crate::events::InvokeEvent;
use crate::invoker::{FunctionRun, Invoker};
use crate::log::end_row;
use crate::services::CacheUse;
use crate::tools::{PendingCall, PromptTools};

impl Invoker {
    /// Runs a prompt with the overrides of its call.
    pub(crate) async fn prompt(&self, run: &FunctionRun) -> Result<Value, InvokeError> {
        let mut data = run.function.prompt_data.clone();
        merge_overrides(&mut data, &run.arguments.overrides)?;
        self.prompt_of(run, &data).await
    }

    /// Runs a prompt from its stored form.
    pub(crate) async fn prompt_of(&self, run: &FunctionRun, prompt_data: &Value) -> Result<Value, InvokeError> {
        let prompt = Prompt::read(prompt_data)?;
        let variables = self.variables(run, &prompt).await?;
        let logged = prompt_metadata(run, &variables);
        let draft = assemble(
            &prompt,
            &PromptInvocation {
                variables,
                messages: run.arguments.messages.clone(),
                is_strict: run.arguments.is_strict,
                ..PromptInvocation::default()
            },
        )?;
        let request = self.with_attachments(draft).await?;
        let cache = match request.cache {
            PromptCacheMode::Auto => CacheUse::AsRequested,
            PromptCacheMode::Never => CacheUse::Never,
        };
        let endpoint_name = run.arguments.endpoint_name.clone().or_else(|| request.endpoint_name.clone());
        let call = ChatCall { body: Map::new(), cache, endpoint_name, prompt: Some(logged), live: None };
        match &prompt.judge {
            Some(judge) => self.judged(run, judge, request, call).await,
            None => self.conversed(run, &prompt, request, call).await,
        }
    }

    /// Returns the variables for the templates.
    async fn variables(&self, run: &FunctionRun, prompt: &Prompt) -> Result<Value, InvokeError> {
        let given = |value: &Value| Some(value.clone()).filter(|value| !value.is_null());
        let arguments = PromptArguments {
            input: run.arguments.input.clone(),
            expected: given(&run.arguments.expected),
            metadata: given(&run.arguments.metadata),
            tags: given(&run.arguments.tags),
            parameters: run.arguments.task.as_ref().map(|task| Value::Object(task.parameters.clone())),
        };
        let mut variables = arguments.variables();
        if let Some(trace) = run.trace.as_ref().filter(|_| prompt.mentions_thread()) {
            let thread = self.logged_thread(run, trace, prompt.preprocessor.as_ref()).await?;
            add_thread_variables(&mut variables, thread_variables(&thread));
        }
        Ok(variables)
    }

    /// Runs the preprocessor of a prompt in its own span.
    async fn logged_thread(
        &self,
        run: &FunctionRun,
        trace: &TraceReference,
        own: Option<&Value>,
    ) -> Result<Value, InvokeError> {
        let name = own.and_then(|own| own["name"].as_str()).unwrap_or("project_default");
        let span = run.scope.as_ref().map(|scope| {
            let reference = json!({"object_type": trace.object_type, "object_id": trace.object_id,
                "root_span_id": trace.root_span_id});
            let row = Map::from_iter([
                ("span_attributes".to_owned(), json!({"name": name, "type": "preprocessor"})),
                ("input".to_owned(), json!({ "trace_ref": reference })),
                ("metrics".to_owned(), json!({"start": self.services.now()})),
            ]);
            self.services.open(&scope.child(), row)
        });
        let thread = self.preprocessed(run, trace, own).await;
        if let Some(span) = span {
            span.end(end_row(thread.as_ref().map_err(InvokeError::span_text), self.services.now()));
        }
        thread
    }

    async fn with_attachments(&self, draft: ChatDraft) -> Result<ChatRequest, InvokeError> {
        let mut urls = Vec::with_capacity(draft.attachments().len());
        for reference in draft.attachments() {
            urls.push(self.services.data_url(reference).await?);
        }
        let mut urls = urls.into_iter();
        draft.fill(|_| urls.next().ok_or_else(|| InvokeError::invalid("an attachment has no content")))
    }

    /// Calls the model until it requests no more tool calls.
    async fn conversed(
        &self,
        run: &FunctionRun,
        prompt: &Prompt,
        request: ChatRequest,
        call: ChatCall,
    ) -> Result<Value, InvokeError> {
        let tools = self.tools_of(run, prompt, &request.body).await?;
        let PromptTools { catalog, session } = tools;
        let mut rounds = ToolLoop::new(request.body, catalog, run.mode());
        loop {
            let body = rounds.request().clone();
            let live = LivePieces::of(&body, run.mode());
            let answer = self.ask(run, ChatCall { body: body.clone(), live: Some(live), ..call.clone() }).await?;
            let calls: Vec<PendingCall> = match rounds.answered(&answer.message)? {
                ToolStep::Finished(value) => {
                    finish(run, &body, &answer, &value).await;
                    return Ok(value);
                }
                ToolStep::Run(calls) => calls.into_iter().map(PendingCall::of).collect(),
                ToolStep::Ask => Vec::new(),
            };
            tell_text(run, &answer.message).await;
            let results = self.run_tools(run, calls, session.as_deref()).await;
            rounds.ran(results);
        }
    }
}

/// Sends the value of a prompt, unless its pieces were already sent.
async fn finish(run: &FunctionRun, body: &Map<String, Value>, answer: &ChatMessage, value: &Value) {
    if !answer.is_sent || has_calls(&answer.message) {
        run.output.send_value(value, is_text_answer(body, &answer.message, run.mode())).await;
    }
}

/// Sends the text before a tool call as progress, because it is not part of the value (F-23).
async fn tell_text(run: &FunctionRun, message: &Value) {
    if let Some(text) = message.get("content").and_then(Value::as_str).filter(|text| !text.is_empty()) {
        let frame = run.function.progress_frame(run.progress_id());
        run.output.inside(frame).send(InvokeEvent::TextDelta(text.to_owned())).await;
    }
}

/// Returns the metadata member of model calls that identifies the prompt.
fn prompt_metadata(run: &FunctionRun, variables: &Value) -> Value {
    let mut metadata = json!({ "variables": variables });
    let function = &run.function;
    for (name, value) in [("id", &function.id), ("project_id", &function.project_id), ("version", &function.version)] {
        if let Some(value) = value {
            metadata[name] = value.as_str().into();
        }
    }
    metadata
}
