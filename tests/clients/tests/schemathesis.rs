//! Requests of every kind at every operation that the server describes, for minutes: no answer is a server's error, none is
//! otherwise than described, and none is given to whoever shows no credential.

use std::io::Write;
use std::process::Command;

use assay_test_api::http::{Request, send};
use assay_test_api::server::{Options, Server};
use assay_test_clients::python::{folder, schemathesis};

const SECONDS: &str = "ASSAY_SCHEMATHESIS_SECONDS";
const SECONDS_DEFAULT: &str = "120";
const SEED: &str = "1";
/// What is left out: that what the document allows is taken, and that what it does not allow is refused. A document cannot say
/// that two cursors exclude each other or that an id has to name something; and by the API's contract an empty value in a query
/// means that it is not given, and fields that are not known are ignored. `tests/contract` of tests/api holds what it can say.
const LEFT_OUT: &str = "positive_data_acceptance,negative_data_rejection";
/// Of what it says of a run that failed, so much of the end is shown.
const SHOWN_BYTES: usize = 64 << 10;

#[test]
#[ignore = "minutes: .ci/run asks for two of them; ASSAY_SCHEMATHESIS_SECONDS=1200 for more"]
fn every_operation_answers_as_described_whatever_it_is_asked() {
    let program = match schemathesis() {
        Ok(program) => program,
        Err(problem) => {
            assert_ne!(std::env::var("ASSAY_REQUIRE").as_deref(), Ok("all"), "{problem}");
            let _ = writeln!(std::io::stderr(), "NOT COVERED: schemathesis: {problem}");
            return;
        }
    };
    let dir = tempfile::tempdir().expect("a directory");
    let mut server = Server::start(&Options::new(&dir.path().join("data"))).unwrap_or_else(|error| panic!("{error:#}"));
    let seconds = std::env::var(SECONDS).unwrap_or_else(|_| SECONDS_DEFAULT.into());
    let mut run = Command::new(program);
    run.current_dir(dir.path())
        .env("HOME", dir.path())
        .env("PYTHONPATH", folder())
        .env("SCHEMATHESIS_HOOKS", "described");
    run.env("BRAINTRUST_APP_URL", &server.url)
        .env("BRAINTRUST_API_KEY", &server.key)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    run.args(["run", &format!("{}/openapi.json", server.url), "--checks", "all", "--exclude-checks", LEFT_OUT]);
    run.args([
        "--max-time",
        &seconds,
        "--workers",
        "1",
        "--seed",
        SEED,
        "--continue-on-failure",
        "--warnings",
        "off",
        "--no-color",
    ]);
    run.args(["--header", &format!("Authorization: Bearer {}", server.key)]);
    let output = run.output().expect("schemathesis runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let end = said.ceil_char_boundary(said.len().saturating_sub(SHOWN_BYTES));
    assert!(server.lives(), "the server died:\n{}\n{}", &said[end..], server.log());
    assert!(output.status.success(), "{}\n{}", &said[end..], String::from_utf8_lossy(&output.stderr));
    // It changes and deletes what it finds: had it taken the caller's own rights, most answers had been refusals.
    let headers = vec![("authorization".into(), format!("Bearer {}", server.key))];
    let body = Some(br#"{"name": "made behind it"}"#.to_vec());
    let make = Request { method: "POST".into(), target: "/v1/project".into(), headers, body, ..Request::default() };
    let answer = send(&server.url, &make).expect("an answer");
    assert_eq!(answer.status, 200, "the caller has lost its rights: {}", answer.text());
    let summary = said.lines().filter(|line| line.contains("generated") || line.contains("Tested:"));
    println!("{}", summary.collect::<Vec<_>>().join("\n"));
}
