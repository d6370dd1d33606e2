//! Performs attempts: calls of inline code in steps, uploads, and clients that misbehave.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use assay_test_api::http::{Request, parse, request_bytes};
use serde_json::{Value, json};

use crate::attempt::{Act, Attempt, AttemptList, Caller, Step, StepProject};
use crate::verdict::AttemptAnswer;
use crate::world::{CALL_SECONDS, World, python, runtime};

/// Argument of the victim, which no other function may find.
const ARGUMENT: &str = "argument-of-the-victim-7";
/// Clients that call at the same time: more than may run and wait.
const CROWD: usize = 200;
/// Different functions of an attacker: more than the idle workers that a node keeps.
const FUNCTIONS: usize = 40;
const CALLERS: usize = 4;
/// Time that a client reads nothing.
const UNREAD_TIME: Duration = Duration::from_secs(CALL_SECONDS + 2);
/// Time in which the rest of an answer arrives.
const REST_TIME: Duration = Duration::from_secs(20);

/// Performs an attempt, and returns the answer to its last call.
pub fn perform(world: &World, list: &AttemptList, attempt: &Attempt) -> Result<AttemptAnswer> {
    if let Some(upload) = &attempt.upload {
        return uploaded(world, attempt, upload);
    }
    let code = list.code(attempt);
    match attempt.act {
        Some(Act::Unread) => unread(world, &body(world, (attempt, code), None)),
        Some(Act::Crowd) => crowd(world, &body(world, (attempt, code), None)),
        Some(Act::Displace) => displace(world, &body(world, (attempt, code), None)),
        Some(Act::KeyAfterCall) => key_after_call(world, &body(world, (attempt, code), None)),
        None if attempt.steps.is_empty() => invoked(world, &body(world, (attempt, code), None), None),
        None => {
            let bodies = attempt.steps.iter().map(|step| (step, body(world, (attempt, code.clone()), Some(step))));
            let answers = bodies.map(|(step, body)| invoked(world, &body, Some(step)));
            answers.collect::<Result<Vec<AttemptAnswer>>>()?.pop().context("a step")
        }
    }
}

fn body(world: &World, (attempt, code): (&Attempt, String), step: Option<&Step>) -> Value {
    let mut input = json!({"facts": world.facts});
    if let Some(step) = step {
        input["step"] = json!(step.step);
        if step.by == Caller::Victim {
            input["secret"] = json!(ARGUMENT);
        }
    }
    if attempt.knows_code {
        input["code"] = json!(code);
    }
    json!({"inline_context": runtime(attempt.language), "code": code, "input": input})
}

fn invoked(world: &World, body: &Value, step: Option<&Step>) -> Result<AttemptAnswer> {
    let by = step.map_or(Caller::Attacker, |step| step.by);
    let project = step.map_or(StepProject::Own, |step| step.project);
    let answer = world.send(&world.invocation(by, project, body))?;
    Ok(AttemptAnswer { status: answer.status, body: answer.text() })
}

/// Builds a bundle with Python, uploads it, and calls its function.
fn uploaded(world: &World, attempt: &Attempt, script: &str) -> Result<AttemptAnswer> {
    let place = world.directory().join(format!("upload-{}", attempt.name.replace(' ', "-")));
    let script =
        format!("import gzip, json, sys, zipfile\nplace, facts = sys.argv[1], json.loads(sys.argv[2])\n{script}");
    let ran = Command::new(python()?).args(["-c", &script]).arg(&place).arg(world.facts.to_string()).output()?;
    ensure!(ran.status.success(), "building the bundle: {}", String::from_utf8_lossy(&ran.stderr));
    let bytes = std::fs::read(&place)?;
    let answer = world.bundle(Caller::Attacker, world.attacker_project(), attempt.language, &bytes)?.0;
    let outside = [world.directory().join("data/escaped"), Path::new("/tmp/escaped.py").to_owned()];
    if let Some(written) = outside.iter().find(|path| path.exists()) {
        bail!("the bundle wrote {}", written.display());
    }
    Ok(answer)
}

/// Uses the credential of a call after it.
fn key_after_call(world: &World, body: &Value) -> Result<AttemptAnswer> {
    let answer = invoked(world, body, None)?;
    let value: Value = serde_json::from_str(&answer.body)?;
    let key = value["key"].as_str().with_context(|| format!("a key in {value}"))?;
    let headers = vec![("authorization".to_owned(), format!("Bearer {key}"))];
    let asked =
        world.send(&Request { method: "GET".into(), target: "/v1/project".into(), headers, ..Request::default() })?;
    let escaped = asked.status == 200;
    Ok(AttemptAnswer { status: asked.status, body: json!({"escaped": escaped, "answer": asked.text()}).to_string() })
}

/// Calls from many clients at the same time. Returns the answer that names the limit, or the last one.
fn crowd(world: &World, body: &Value) -> Result<AttemptAnswer> {
    let answers = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CROWD).map(|_| scope.spawn(|| invoked(world, body, None))).collect();
        let joined = clients.into_iter().map(|client| client.join().unwrap_or_else(|_| bail!("a client panicked")));
        joined.collect::<Result<Vec<AttemptAnswer>>>()
    })?;
    let unexpected = answers.iter().find(|answer| !matches!(answer.status, 200 | 503));
    let refused = answers.iter().find(|answer| answer.status == 503);
    unexpected.or(refused).or(answers.last()).cloned().context("an answer")
}

/// Calls many functions between two calls of the victim. Returns whether the victim has found its worker again.
fn displace(world: &World, body: &Value) -> Result<AttemptAnswer> {
    let victim = Step { by: Caller::Victim, step: String::new(), project: StepProject::Own };
    let calls = |answer: AttemptAnswer| serde_json::from_str::<u32>(&answer.body).with_context(|| answer.body);
    let before = calls(invoked(world, body, Some(&victim))?)?;
    let (code, next) = (body["code"].as_str().context("code")?, AtomicUsize::new(0));
    let call_all = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= FUNCTIONS {
                return Ok(());
            }
            let mut other = body.clone();
            other["code"] = json!(format!("{code}\n// {number}"));
            invoked(world, &other, None)?;
        }
    };
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call_all)).collect();
        let joined = callers.into_iter().map(|caller| caller.join().unwrap_or_else(|_| bail!("a caller panicked")));
        joined.collect::<Result<Vec<()>>>()
    })?;
    let after = calls(invoked(world, body, Some(&victim))?)?;
    let is_displaced = after != before + 1;
    let words = json!({"escaped": is_displaced, "refused": format!("the victim's worker has served {after} calls")});
    Ok(AttemptAnswer { status: 200, body: words.to_string() })
}

/// Asks for events, reads none until the time of a call is over, and then the rest.
fn unread(world: &World, body: &Value) -> Result<AttemptAnswer> {
    let mut sent = body.clone();
    sent["stream"] = json!(true);
    let address = world.url.strip_prefix("http://").context("an address")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(REST_TIME))?;
    stream.write_all(&request_bytes(address, &world.invocation(Caller::Attacker, StepProject::Own, &sent)))?;
    std::thread::sleep(UNREAD_TIME);
    if let Some(survivor) = crate::canaries::survivors().into_iter().find(|name| name.contains("unread")) {
        return Ok(AttemptAnswer { status: 200, body: json!({"escaped": survivor}).to_string() });
    }
    let mut bytes = Vec::new();
    // What arrives before a break is judged.
    let _ = stream.read_to_end(&mut bytes);
    let answer = parse(&bytes)?.with_context(|| format!("no whole answer, but {} bytes", bytes.len()))?;
    let text = answer.text();
    let end = text.rfind("event: error").map_or("", |at| &text[at..]);
    Ok(AttemptAnswer { status: answer.status, body: end.to_owned() })
}
