//! Handlers of OTLP over HTTP, with exports as JSON or Protobuf.

use assay_node_http::requests::body::Body;
use assay_node_http::requests::caller::{Call, PhoenixCall};
use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::web::{BoxBody, HttpResponse, Payload, header};
use assay_node_otel::{Encoding, Signal, encode_response, encode_status, rpc_code};

use crate::otlp::exports::{ExportHeaders, PARENT, PHOENIX_PROJECT_HEADER, again, not_stored, take};

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/x-protobuf";

pub async fn traces(PhoenixCall(call): PhoenixCall, payload: Payload) -> HandlerResult {
    answered(&call, payload, async |body: Body, encoding| {
        let header = |name: &str| call.request.headers().get(name).map(|value| value.as_bytes());
        let headers = ExportHeaders { parent: header(PARENT), phoenix_project: header(PHOENIX_PROJECT_HEADER) };
        Ok(encode_response(&take(&call, headers, body, encoding).await?, encoding))
    })
    .await
}

pub async fn logs(call: Call, payload: Payload) -> HandlerResult {
    answered(&call, payload, async |body, encoding| not_stored(body, encoding, Signal::Logs).await).await
}

pub async fn metrics(call: Call, payload: Payload) -> HandlerResult {
    answered(&call, payload, async |body, encoding| not_stored(body, encoding, Signal::Metrics).await).await
}

/// Responds in the encoding of the request, including refusals.
pub async fn answered(
    call: &Call,
    payload: Payload,
    work: impl AsyncFnOnce(Body, Encoding) -> Result<Vec<u8>, Refusal>,
) -> HandlerResult {
    let body = call.packed_body(payload).await?;
    let encoding = encoding_of(call, &body.bytes);
    let content_type = match encoding {
        Encoding::Json => JSON,
        Encoding::Protobuf => PROTOBUF,
    };
    match work(body, encoding).await {
        Ok(said) => Ok(HttpResponse::Ok().insert_header((header::CONTENT_TYPE, content_type)).body(said)),
        Err(refusal) => {
            let refusal = again(refusal);
            let said = encode_status(rpc_code(refusal.kind.status().as_u16()), &refusal.message, encoding);
            let mut answer = refusal.bare();
            answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
            Ok(answer.set_body(BoxBody::new(said)))
        }
    }
}

/// Returns the encoding that the header names, or else guesses it from the body.
fn encoding_of(call: &Call, body: &[u8]) -> Encoding {
    let said = call.request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let said = said.map(|said| said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    match said.as_deref() {
        Some(JSON) => Encoding::Json,
        Some(PROTOBUF | "application/protobuf") => Encoding::Protobuf,
        _ if body.trim_ascii_start().first() == Some(&b'{') => Encoding::Json,
        _ => Encoding::Protobuf,
    }
}
