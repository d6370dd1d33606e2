//! Handlers of OTLP over gRPC, with the same callers, limits and rows as over HTTP.
//!
//! Calls do not pass the HTTP middleware, so this module counts, logs and limits them itself.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use assay_node_http::PHOENIX_KEY;
use assay_node_http::access_log::{log_response, request_span};
use assay_node_http::requests::body::read_message;
use assay_node_http::requests::caller::{AUTHORIZATION, Caller, CallerHeaders, IMPERSONATE, ORG_NAME};
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::requests::wait::{GRPC_TIMEOUT, Wait};
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::server::edge::{Edge, full, panicked, too_late};
use assay_node_http::web::Data;
use assay_node_otel::{Encoding, Signal, encode_response, encode_retry, rpc_code};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;
use tracing::Instrument;
use uuid::Uuid;

use crate::otlp::exports::{ExportHeaders, PARENT, PHOENIX_PROJECT_HEADER, again, not_stored, take};
use assay_node_http::grpc::{
    GrpcCall, GrpcCode, GrpcReply, GrpcService, GrpcStatus, HeaderMap, HeaderName, HeaderValue,
};

const ENCODING: &str = "grpc-encoding";
const TRACE_ID: HeaderName = HeaderName::from_static("x-bt-internal-trace-id");

/// Served methods, with their signal and the path that rate limit rules apply to.
const METHODS: [(&str, Signal, &str); 3] = [
    ("/opentelemetry.proto.collector.trace.v1.TraceService/Export", Signal::Traces, "/otel/v1/traces"),
    ("/opentelemetry.proto.collector.logs.v1.LogsService/Export", Signal::Logs, "/otel/v1/logs"),
    ("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", Signal::Metrics, "/otel/v1/metrics"),
];

/// gRPC service for exports.
#[derive(Debug)]
pub struct ExportService {
    edge: Data<Edge>,
}

impl ExportService {
    pub fn new(edge: Data<Edge>) -> ExportService {
        ExportService { edge }
    }

    async fn around(&self, call: GrpcCall) -> GrpcReply {
        let trace = Uuid::new_v4().simple().to_string();
        let _under_way = self.edge.counts.begin();
        let began = Instant::now();
        let span = request_span(&trace, "gRPC", &call.path);
        let wait = Wait::of_call(began, call.metadata.get(GRPC_TIMEOUT).map(HeaderValue::as_bytes));
        let served = Box::pin(AssertUnwindSafe(self.serve(call, wait.clone())).catch_unwind());
        let served = wait.limit(self.edge.config.request_time_max(), served).instrument(span.clone()).await;
        let said = match served {
            Some(Ok(said)) => said,
            Some(Err(panic)) => Err(span.in_scope(|| panicked(&self.edge, &*panic))),
            None => Err(too_late()),
        };
        let status = said.as_ref().err().map_or(200, |refusal| refusal.kind.status().as_u16());
        self.edge.counts.answered(status, began.elapsed());
        span.in_scope(|| log_response(status, began.elapsed()));
        let trace = HeaderValue::from_str(&trace).ok().map(|trace| (TRACE_ID, trace));
        GrpcReply { metadata: HeaderMap::from_iter(trace), said: said.map_err(status_of) }
    }

    async fn serve(&self, call: GrpcCall, wait: Wait) -> Result<Bytes, Refusal> {
        let header = |name: &str| call.metadata.get(name).map(HeaderValue::as_bytes);
        let key = self.edge.phoenix_credential(header(AUTHORIZATION), header(PHOENIX_KEY));
        let said = CallerHeaders {
            authorization: key.as_deref(),
            session: None,
            org_name: header(ORG_NAME),
            impersonate: header(IMPERSONATE),
        };
        if call.connection.is_reserve() {
            return Err(full());
        }
        let caller = Caller::known(self.edge.clone(), said, wait).await?;
        caller.on(&call.connection)?;
        let served = METHODS.iter().find(|(path, ..)| *path == call.path);
        let Some((_, signal, path)) = served else {
            let why =
                format!("{} is not supported: this port serves only exports of OpenTelemetry", shortened(&call.path));
            return Err(Refusal::new(ErrorKind::NotImplemented, why));
        };
        caller.admit("POST", path).await?;
        let encoding = header(ENCODING).unwrap_or_default();
        let bytes_max = self.edge.config.body_bytes_max;
        let body = read_message(&self.edge, &caller.applicant(), call.message, encoding, bytes_max).await?;
        let answer = match signal {
            Signal::Traces => {
                let headers = ExportHeaders { parent: header(PARENT), phoenix_project: header(PHOENIX_PROJECT_HEADER) };
                let rejected = take(&caller, headers, body, Encoding::Protobuf).await?;
                encode_response(&rejected, Encoding::Protobuf)
            }
            signal => not_stored(body, Encoding::Protobuf, *signal).await?,
        };
        Ok(answer.into())
    }
}

impl GrpcService for ExportService {
    fn call(self: Arc<Self>, call: GrpcCall) -> BoxFuture<'static, GrpcReply> {
        Box::pin(async move { self.around(call).await })
    }
}

/// Returns the status of a refusal.
///
/// The details contain a retry delay, because exporters retry some codes only with one.
fn status_of(refusal: Refusal) -> GrpcStatus {
    let refusal = again(refusal);
    let code = rpc_code(refusal.kind.status().as_u16());
    let after = refusal.retry_after_seconds.or(refusal.kind.retry_after_seconds());
    let details = after.map(|seconds| encode_retry(code, &refusal.message, seconds).into());
    GrpcStatus { details, ..GrpcStatus::new(GrpcCode(code), refusal.message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_waited_in_vain_is_told_when_to_come_again() {
        let refusal = Refusal { retry_after_seconds: Some(7), ..Refusal::new(ErrorKind::Busy, "full") };
        let status = status_of(refusal);
        assert_eq!((status.code, status.message.as_str()), (GrpcCode(8), "full"), "RESOURCE_EXHAUSTED");
        let details = status.details.expect("details");
        assert_eq!(details, encode_retry(8, "full", 7));
        assert!(String::from_utf8_lossy(&details).contains("type.googleapis.com/google.rpc.RetryInfo"));
    }
}
