//! Certificates that expire soon: nodes renew them while they serve, and accept each other's new ones.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::Dev;
use assay_test_api::rows::{Rows, knock};
use assay_test_api::server::{Options, Server};

/// Shortest configurable validity.
const VALID: Duration = Duration::from_secs(10);
const OBJECTS: usize = 3;
/// Time after which the first certificates of the nodes have expired.
const SERVED_FOR: Duration = Duration::from_secs(12);
const PAUSE: Duration = Duration::from_millis(200);
/// It is killed, and comes back with what it made meanwhile.
const KILLED: usize = 3;
const METRIC: &str = "assay_certificate_expiry_seconds ";

fn runs_out(url: &str) -> Result<f64> {
    let (status, text) = knock(url, "/metrics")?;
    ensure!(status == 200, "{status}: {text}");
    let line = text.lines().find_map(|line| line.strip_prefix(METRIC)).context("the metric")?;
    Ok(line.trim().parse()?)
}

fn certificate(data: &Path, node: usize) -> Result<String> {
    Ok(std::fs::read_to_string(data.join(format!("node-{node}/tls/node.pem")))?)
}

fn held(dev: &Dev, data: &Path) -> Result<()> {
    let begun = Instant::now();
    let mut rows = Rows::new(&dev.urls, OBJECTS)?;
    let first = dev.urls.iter().map(|url| runs_out(url)).collect::<Result<Vec<f64>>>()?;
    let on_disk = certificate(data, KILLED)?;
    for round in 0.. {
        rows.write(&dev.urls[round % dev.urls.len()], &format!("round-{round}"))?;
        if begun.elapsed() >= SERVED_FOR {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    ensure!(rows.refusals == 0, "{} writes were refused while certificates changed", rows.refusals);
    for (url, first) in dev.urls.iter().zip(first) {
        let now = runs_out(url)?;
        ensure!(now - first > VALID.as_secs_f64() / 2.0, "{url}: {first}, then {now}");
    }
    ensure!(certificate(data, KILLED)? != on_disk, "the file is that of the start");
    // New connections, to it and from it, with certificates of which none is of the start.
    dev.kill(KILLED)?;
    let mut options = Options::new(&data.join(format!("node-{KILLED}")));
    options.settings = vec![
        format!("cluster.certificate_valid_seconds={}", VALID.as_secs()),
        // Without it the node could not make a certificate for itself, where the last one has run out by now.
        format!("secrets.master_key_file={}", data.join("master.key").display()),
    ];
    let again = Server::start(&options)?;
    rows.write(&again.url, "again")?;
    ensure!(rows.refusals == 0, "a node that came back is known again");
    println!("{} rows, and the last was written on the node that came back", rows.all_there(&again.url)?);
    rows.all_there(&dev.urls[0])?;
    Ok(())
}

#[test]
fn certificates_are_made_anew_while_three_nodes_serve() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let valid = VALID.as_secs().to_string();
    let settings = [("ASSAY_CLUSTER_CERTIFICATE_VALID_SECONDS", valid.as_str())];
    let dev = Dev::start_with(&data, &settings).unwrap_or_else(|error| panic!("{error:#}"));
    held(&dev, &data).unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
}

#[test]
fn a_validity_too_short_to_renew_in_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = Options::new(&dir.path().join("data"));
    options.settings = vec!["cluster.certificate_valid_seconds=9".into()];
    let why = Server::refusal(&options).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(
        why.contains("cluster.certificate_valid_seconds: 9 s are too short") && why.contains("at least 10"),
        "{why}"
    );
}
