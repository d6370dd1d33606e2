//! Errors of code, and of the engine on its behalf, as failures of a frame.

use assay_node_runtimes::{RESULT_BYTES_MAX, SourceLanguage, WorkerFailure};
use rquickjs::{CaughtError, Ctx, Function};

use crate::QuickJsLimits;

/// File name that the engine gives to evaluated text.
const ENGINE_FILE: &str = "eval_script";
/// Function of the harness that calls the handler.
const HARNESS_CALL: &str = "assayCall";
/// Message of the engine for an allocation above its limit.
const OUT_OF_MEMORY: &str = "out of memory";

/// Failure with a name and a message, without a stack.
pub(crate) fn failure(name: &str, message: impl Into<String>) -> WorkerFailure {
    WorkerFailure { name: name.to_owned(), message: message.into(), ..WorkerFailure::default() }
}

pub(crate) fn timed_out(limits: &QuickJsLimits) -> WorkerFailure {
    failure("TimeoutError", format!("the code ran longer than {} ms", limits.time.as_millis()))
}

pub(crate) fn never_settled() -> WorkerFailure {
    failure(
        "Error",
        "the promise of the handler is never settled: in this runtime there are no timers, and no input or output, \
         that it could wait for",
    )
}

pub(crate) fn result_too_large(bytes: usize) -> WorkerFailure {
    failure("RangeError", format!("the result has {bytes} bytes as JSON: at most {RESULT_BYTES_MAX} are valid"))
}

fn out_of_memory(limits: &QuickJsLimits) -> WorkerFailure {
    failure("RangeError", format!("out of memory: at most {} MiB are valid", limits.memory_bytes >> 20))
}

/// Failure for a thrown null, by which the engine also reports that it has no memory for an error.
fn null_thrown(limits: &QuickJsLimits) -> WorkerFailure {
    let max = limits.memory_bytes >> 20;
    failure("Error", format!("the code threw null, or ran out of memory: at most {max} MiB are valid"))
}

/// Failure of the engine without an exception of the code.
pub(crate) fn of_engine(error: &rquickjs::Error, limits: &QuickJsLimits) -> WorkerFailure {
    match error {
        rquickjs::Error::Allocation => out_of_memory(limits),
        error => failure("Error", format!("the engine failed: {error}")),
    }
}

/// Failure for an exception of the code. `describe` is the function of the harness, if there is one yet.
pub(crate) fn of_exception<'js>(
    ctx: &Ctx<'js>,
    error: rquickjs::Error,
    describe: Option<&Function<'js>>,
    language: SourceLanguage,
    limits: &QuickJsLimits,
) -> WorkerFailure {
    let value = match CaughtError::from_error(ctx, error) {
        CaughtError::Error(error) => return of_engine(&error, limits),
        CaughtError::Exception(exception) if exception.message().as_deref() == Some(OUT_OF_MEMORY) => {
            return out_of_memory(limits);
        }
        CaughtError::Exception(exception) => exception.into_value(),
        CaughtError::Value(value) if value.is_null() => return null_thrown(limits),
        CaughtError::Value(value) => value,
    };
    let described = describe.and_then(|describe| describe.call::<_, Vec<String>>((value,)).ok());
    let Some(Ok([name, message, stack])) = described.map(<[String; 3]>::try_from) else {
        return failure("Error", "the code failed with an error that cannot be described");
    };
    WorkerFailure { name, message, stack: user_stack(&stack, language), ..WorkerFailure::default() }
}

/// Lines of a stack that belong to the code of the user, with the name of its file.
fn user_stack(stack: &str, language: SourceLanguage) -> String {
    let file = if language == SourceLanguage::TypeScript { "handler.ts" } else { "handler.js" };
    let lines = stack.lines().take_while(|line| !line.contains(HARNESS_CALL));
    lines.collect::<Vec<_>>().join("\n").replace(ENGINE_FILE, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_end_at_the_harness_and_name_the_file_of_the_language() {
        let stack =
            "    at f (eval_script:2:3)\n    at handler (eval_script:9:1)\n    at assayCall (eval_script:80:1)\n";
        let expected = "    at f (handler.ts:2:3)\n    at handler (handler.ts:9:1)";
        assert_eq!(user_stack(stack, SourceLanguage::TypeScript), expected);
        assert_eq!(user_stack("", SourceLanguage::JavaScript), "");
    }
}
