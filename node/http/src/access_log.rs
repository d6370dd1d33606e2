//! Access log: one span and one line for each request, over HTTP and gRPC.

use std::time::Duration;

use tracing::{Level, Span, field};

/// Logs a response. The span of its request must be active.
pub fn log_response(status: u16, took: Duration) {
    let micros = took.as_micros();
    match level_of(status) {
        Level::WARN => tracing::warn!(status, micros, "answered"),
        Level::INFO => tracing::info!(status, micros, "answered"),
        _ => tracing::debug!(status, micros, "answered"),
    }
}

/// Returns the log level of a response.
///
/// Responses that ask the client to retry, and internal errors, are visible at the usual log level. Their clients may
/// report a trace id that an operator has to find.
fn level_of(status: u16) -> Level {
    match status {
        500 => Level::WARN,
        503 | 507 => Level::INFO,
        _ => Level::DEBUG,
    }
}

/// Returns the span of a request. The handler fills in the empty fields.
pub fn request_span(trace: &str, method: &str, path: &str) -> Span {
    tracing::info_span!(
        "request",
        request = trace,
        method,
        path,
        principal = field::Empty,
        object = field::Empty,
        shard = field::Empty,
        xact = field::Empty,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_asked_again_is_said_where_an_operator_reads_it() {
        assert_eq!([500, 503, 507].map(level_of), [Level::WARN, Level::INFO, Level::INFO]);
        for status in [200, 400, 401, 404, 413, 429] {
            assert_eq!(level_of(status), Level::DEBUG, "{status}: callers alone decide how many of these there are");
        }
    }
}
