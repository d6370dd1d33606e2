//! `exports`: OpenTelemetry spans in an exporter's protobuf, sent to `assay serve`. Measures spans a second, and spans
//! per CPU second of the server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use assay_bench::generate::dice::Dice;
use bytes::Bytes;

use super::client::{Connection, Target};
use super::client_runtime;
use super::server_process::ServerProcess;
use crate::http::grpc::Channel;
use crate::process::cpu_between;
use crate::report::{Report, Threshold};

/// Spans of one export, the default of exporters.
const SPANS_AT_ONCE: usize = 512;
const SPANS_OF_A_TRACE: usize = 8;
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const START: u64 = 1_790_000_000_000_000_000;

#[derive(Clone, Debug)]
pub struct ExportOptions {
    pub program: PathBuf,
    pub spans: usize,
    pub connections: usize,
    pub seed: u64,
}

/// Transport of exports.
#[derive(Clone, Copy, Debug)]
enum Over {
    Http,
    Grpc(SocketAddr),
}

pub fn run(options: &ExportOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let runtime = client_runtime()?;
    let server = ServerProcess::assay(&options.program, &dir.join("assay"))?;
    let exports = options.spans.div_ceil(SPANS_AT_ONCE);
    let mut report = Report::new("exports");
    let grpc = server.otlp().context("where gRPC is served")?;
    for (name, over) in [("HTTP", Over::Http), ("gRPC", Over::Grpc(grpc))] {
        // Others each time: what was there already would cost less.
        let mut dice = Dice::new(options.seed + u64::from(name == "gRPC"));
        let bodies: Vec<Bytes> = (0..exports).map(|_| export(&mut dice)).collect();
        let bytes: usize = bodies.iter().map(Bytes::len).sum();
        if matches!(over, Over::Http) {
            report.figure("bytes of a span", bytes as f64 / (exports * SPANS_AT_ONCE) as f64, "B");
        }
        runtime.block_on(send(server.target(), over, &bodies[..1]))?;
        let (before, began) = (server.process().cpu()?, Instant::now());
        let lanes = options.connections.max(1);
        runtime.block_on(async {
            let mut sending = tokio::task::JoinSet::new();
            for lane in 0..lanes {
                let (target, own) = (server.target().clone(), bodies.iter().skip(lane).step_by(lanes).cloned());
                let own: Vec<Bytes> = own.collect();
                sending.spawn(async move { send(&target, over, &own).await });
            }
            while let Some(sent) = sending.join_next().await {
                sent??;
            }
            anyhow::Ok(())
        })?;
        let seconds = began.elapsed().as_secs_f64();
        let cpu: f64 = cpu_between(&before, &server.process().cpu()?).values().sum();
        let spans = (exports * SPANS_AT_ONCE) as f64;
        report.figure(format!("by {lanes} exporters over {name}"), spans / seconds, "spans/s");
        report.figure("the same", bytes as f64 / 1e6 / seconds, "MB/s");
        let name = format!("for a second of a core of the server, over {name}");
        report.promised(name, spans / cpu, "spans", Threshold::AtLeast(20_000.0));
        server.quiet()?;
    }
    report.finish(json_file)
}

async fn send(target: &Target, over: Over, bodies: &[Bytes]) -> anyhow::Result<()> {
    const PARENT: (&str, &str) = ("x-bt-parent", "project_name:exports");
    match over {
        Over::Http => {
            let mut connection = Connection::saying(target, &[PARENT, ("content-type", "application/x-protobuf")]);
            for body in bodies {
                connection.post("/otel/v1/traces", body).await?.ok("POST /otel/v1/traces")?;
            }
        }
        Over::Grpc(address) => {
            let key = format!("Bearer {}", target.key.as_deref().unwrap_or_default());
            let mut channel = Channel::connect(address).await?;
            for body in bodies {
                channel.call(EXPORT, &[PARENT, ("authorization", &key)], body).await?;
            }
        }
    }
    Ok(())
}

/// Protobuf: a field of bytes.
fn field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    varint(out, u64::from(number) << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn fixed(out: &mut Vec<u8>, number: u8, value: u64) {
    varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

enum AttributeValue<'t> {
    Text(&'t str),
    Whole(u64),
}

fn attribute(out: &mut Vec<u8>, number: u8, key: &str, said: &AttributeValue<'_>) {
    let mut value = Vec::new();
    match said {
        AttributeValue::Text(text) => field(&mut value, 1, text.as_bytes()),
        AttributeValue::Whole(whole) => {
            varint(&mut value, 3 << 3);
            varint(&mut value, *whole);
        }
    }
    let mut pair = Vec::new();
    field(&mut pair, 1, key.as_bytes());
    field(&mut pair, 2, &value);
    field(out, number, &pair);
}

fn export(dice: &mut Dice) -> Bytes {
    let mut scope = Vec::new();
    let mut named = Vec::new();
    field(&mut named, 1, b"instrumentation");
    field(&mut scope, 1, &named);
    for _ in 0..SPANS_AT_ONCE / SPANS_OF_A_TRACE {
        let trace = [dice.roll().to_le_bytes(), dice.roll().to_le_bytes()].concat();
        let root = dice.roll().to_le_bytes();
        for place in 0..SPANS_OF_A_TRACE {
            field(&mut scope, 2, &span(dice, &trace, root, place));
        }
    }
    let mut resource = Vec::new();
    attribute(&mut resource, 1, "service.name", &AttributeValue::Text("shop"));
    attribute(&mut resource, 1, "telemetry.sdk.version", &AttributeValue::Text("1.45.2"));
    let mut group = Vec::new();
    field(&mut group, 1, &resource);
    field(&mut group, 2, &scope);
    let mut whole = Vec::new();
    field(&mut whole, 1, &group);
    whole.into()
}

/// Returns a span of typical content for an instrumented model call.
fn span(dice: &mut Dice, trace: &[u8], root: [u8; 8], place: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let id = if place == 0 { root } else { dice.roll().to_le_bytes() };
    let begin = START + dice.below(1 << 40);
    field(&mut out, 1, trace);
    field(&mut out, 2, &id);
    if place > 0 {
        field(&mut out, 4, &root);
    }
    field(&mut out, 5, if place == 0 { b"request" } else { b"chat m-1" });
    fixed(&mut out, 7, begin);
    fixed(&mut out, 8, begin + dice.below(1 << 32));
    let words = ["why", "does", "the", "order", "not", "come", "when", "it", "was", "paid", "for", "days", "ago"];
    let text: Vec<&str> = (0..60).map(|_| words[dice.below(words.len() as u64) as usize]).collect();
    let said = format!(r#"[{{"role": "user", "parts": [{{"type": "text", "content": "{}"}}]}}]"#, text.join(" "));
    for (key, value) in [
        ("gen_ai.operation.name", AttributeValue::Text("chat")),
        ("gen_ai.provider.name", AttributeValue::Text("acme")),
        ("gen_ai.request.model", AttributeValue::Text("m-1")),
        ("gen_ai.input.messages", AttributeValue::Text(&said)),
        ("gen_ai.output.messages", AttributeValue::Text(&said)),
        ("gen_ai.usage.input_tokens", AttributeValue::Whole(dice.below(1000))),
        ("gen_ai.usage.output_tokens", AttributeValue::Whole(dice.below(1000))),
        ("http.route", AttributeValue::Text("/ask")),
        ("server.address", AttributeValue::Text("api.example.com")),
        ("server.port", AttributeValue::Whole(443)),
    ] {
        attribute(&mut out, 9, key, &value);
    }
    out
}
