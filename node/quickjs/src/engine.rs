//! Engine that evaluates code with bounds of memory, stack and time, each time in a new context.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::Instant;

use assay_node_runtimes::{RESULT_BYTES_MAX, SourceLanguage, WorkerFailure};
use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Exception, Function, Object, Promise, Runtime, Value};

use crate::QuickJsLimits;
use crate::console::{BoundedConsole, ConsoleSink, ConsoleStream};
use crate::failures;

const HARNESS: &str = include_str!("harness.js");

/// Code that defines a handler.
#[derive(Clone, Debug)]
pub(crate) struct HandlerCode {
    pub text: String,
    pub language: SourceLanguage,
}

/// QuickJS runtime with its limits.
pub(crate) struct Engine {
    runtime: Runtime,
    /// End of the time of the current evaluation, which the engine looks at now and then.
    deadline: Rc<Cell<Option<Instant>>>,
    limits: QuickJsLimits,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Functions of the harness in a context.
struct Harness<'js> {
    call: Function<'js>,
    describe: Function<'js>,
}

impl Engine {
    pub fn new(limits: QuickJsLimits) -> Result<Self, WorkerFailure> {
        let runtime = Runtime::new().map_err(|error| failures::of_engine(&error, &limits))?;
        let deadline = Rc::new(Cell::new(None));
        runtime.set_memory_limit(limits.memory_bytes);
        runtime.set_max_stack_size(limits.stack_bytes);
        let looked_at = Rc::clone(&deadline);
        runtime.set_interrupt_handler(Some(Box::new(move || is_past(looked_at.get()))));
        Ok(Self { runtime, deadline, limits })
    }

    /// Evaluates `code` and checks that it has a handler.
    pub fn check(&self, code: &HandlerCode, console: Rc<dyn ConsoleSink>) -> Result<(), WorkerFailure> {
        self.in_context(code, console, |_, _, _| Ok(()))
    }

    /// Calls the handler of `code` with each list of arguments in the JSON array `lists`. Returns the result as JSON.
    ///
    /// The result is that of the first call, or the list of all results if `is_list` is set.
    pub fn call(
        &self,
        code: &HandlerCode,
        lists: &str,
        is_list: bool,
        console: Rc<dyn ConsoleSink>,
    ) -> Result<String, WorkerFailure> {
        self.in_context(code, console, |ctx, harness, handler| {
            let promise: Promise<'_> =
                harness.call.call((handler, lists, is_list)).map_err(|error| self.thrown(ctx, error, harness, code))?;
            let settled = self.settle(ctx, &promise)?;
            let text = settled.map_err(|error| self.thrown(ctx, error, harness, code))?;
            if text.len() > RESULT_BYTES_MAX {
                return Err(failures::result_too_large(text.len()));
            }
            self.finish_jobs(ctx)?;
            Ok(text)
        })
    }

    fn in_context<T>(
        &self,
        code: &HandlerCode,
        console: Rc<dyn ConsoleSink>,
        work: impl for<'js> FnOnce(&Ctx<'js>, &Harness<'js>, Function<'js>) -> Result<T, WorkerFailure>,
    ) -> Result<T, WorkerFailure> {
        let context = Context::full(&self.runtime).map_err(|error| failures::of_engine(&error, &self.limits))?;
        self.deadline.set(Instant::now().checked_add(self.limits.time));
        let outcome = context.with(|ctx| {
            let harness = harness(&ctx, BoundedConsole::new(console))
                .map_err(|error| failures::of_exception(&ctx, error, None, code.language, &self.limits))?;
            let handler = handler_of(&ctx, code).map_err(|error| self.thrown(&ctx, error, &harness, code))?;
            work(&ctx, &harness, handler)
        });
        self.deadline.set(None);
        outcome
    }

    /// Runs jobs until `promise` is settled.
    fn settle<'js>(
        &self,
        ctx: &Ctx<'js>,
        promise: &Promise<'js>,
    ) -> Result<Result<String, rquickjs::Error>, WorkerFailure> {
        loop {
            if is_past(self.deadline.get()) {
                return Err(failures::timed_out(&self.limits));
            }
            if let Some(settled) = promise.result() {
                return Ok(settled);
            }
            if !ctx.execute_pending_job() {
                return Err(failures::never_settled());
            }
        }
    }

    /// Runs the jobs that a handler has left behind.
    fn finish_jobs(&self, ctx: &Ctx<'_>) -> Result<(), WorkerFailure> {
        while ctx.execute_pending_job() {
            if is_past(self.deadline.get()) {
                return Err(failures::timed_out(&self.limits));
            }
        }
        Ok(())
    }

    fn thrown<'js>(
        &self,
        ctx: &Ctx<'js>,
        error: rquickjs::Error,
        harness: &Harness<'js>,
        code: &HandlerCode,
    ) -> WorkerFailure {
        let failure = failures::of_exception(ctx, error, Some(&harness.describe), code.language, &self.limits);
        // The description runs code of the user as well, such as getters.
        if is_past(self.deadline.get()) { failures::timed_out(&self.limits) } else { failure }
    }
}

fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

fn harness<'js>(ctx: &Ctx<'js>, console: BoundedConsole) -> rquickjs::Result<Harness<'js>> {
    let write = Function::new(ctx.clone(), move |is_error: bool, line: String| {
        console.write_line(if is_error { ConsoleStream::Error } else { ConsoleStream::Output }, &line);
    })?;
    let install: Function<'js> = ctx.eval(HARNESS)?;
    let functions: Object<'js> = install.call((write,))?;
    Ok(Harness { call: functions.get("call")?, describe: functions.get("describe")? })
}

/// Evaluates `code` as a script, and returns the function that it calls `handler`.
fn handler_of<'js>(ctx: &Ctx<'js>, code: &HandlerCode) -> rquickjs::Result<Function<'js>> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.backtrace_barrier = true;
    ctx.eval_with_options::<Value<'js>, _>(code.text.as_str(), options)?;
    let handler: Value<'js> = ctx.eval("handler")?;
    let kind = handler.type_name();
    handler
        .into_function()
        .ok_or_else(|| Exception::throw_type(ctx, &format!("handler is not a function but of type {kind}")))
}
