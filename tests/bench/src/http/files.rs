//! `files`: attachments sent and read back through `assay serve`, compared with a bare file that is written and synced
//! in the same run.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use assay_bench::generate::dice::Dice;
use bytes::Bytes;
use serde_json::{Value, json};

use super::client::{Connection, Target};
use super::client_runtime;
use super::server_process::ServerProcess;
use crate::process::cpu_between;
use crate::report::{Report, median, percentile};
use crate::store::disk_limits;

const LARGE: usize = 5;
const SMALL: usize = 200;
const SMALL_BYTES: usize = 20 << 10;

#[derive(Clone, Debug)]
pub struct FileOptions {
    pub program: PathBuf,
    pub large_bytes: usize,
    pub seed: u64,
}

pub fn run(options: &FileOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let runtime = client_runtime()?;
    let server = ServerProcess::assay(&options.program, &dir.join("assay"))?;
    let mut report = Report::new("files");
    let mut dice = Dice::new(options.seed);
    let bare = disk_limits::measure(dir, (LARGE * options.large_bytes) as u64)?;
    let before = server.process().cpu()?;
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for number in 0..LARGE {
        let bytes = random(&mut dice, options.large_bytes);
        let (sent, read) = runtime.block_on(there_and_back(server.target(), &format!("large {number}"), &bytes))?;
        up.push(options.large_bytes as f64 / 1e6 / sent);
        down.push(options.large_bytes as f64 / 1e6 / read);
    }
    let cpu: f64 = cpu_between(&before, &server.process().cpu()?).values().sum();
    let mib = options.large_bytes >> 20;
    report.figure("bare file, synced each MiB", bare.mb_per_second, "MB/s");
    report.figure(format!("a file of {mib} MiB sent"), median(up.iter().copied()), "MB/s");
    report.figure("of the bare file", median(up) / bare.mb_per_second, "");
    report.figure(format!("a file of {mib} MiB read"), median(down), "MB/s");
    let moved = (2 * LARGE * options.large_bytes) as f64 / 1e9;
    report.figure("processor seconds of the server", cpu / moved, "s/GB");
    let mut small = [Vec::new(), Vec::new()];
    for number in 0..SMALL {
        let bytes = random(&mut dice, SMALL_BYTES);
        let (sent, read) = runtime.block_on(there_and_back(server.target(), &format!("small {number}"), &bytes))?;
        small[0].push(sent * 1e3);
        small[1].push(read * 1e3);
    }
    for (what, times) in ["asked for and sent", "asked for and read"].into_iter().zip(small) {
        let name = format!("a file of {} KiB {what}, p50", SMALL_BYTES >> 10);
        report.figure(name, percentile(times.iter().copied(), 0.5), "ms");
        let name = format!("a file of {} KiB {what}, p99", SMALL_BYTES >> 10);
        report.figure(name, percentile(times, 0.99), "ms");
    }
    report.finish(json_file)
}

/// Nothing compresses it.
fn random(dice: &mut Dice, bytes: usize) -> Bytes {
    (0..bytes / 8).flat_map(|_| dice.roll().to_le_bytes()).collect()
}

/// Seconds until it was kept, and until it was read.
async fn there_and_back(target: &Target, key: &str, bytes: &Bytes) -> anyhow::Result<(f64, f64)> {
    let mut connection = Connection::new(target);
    let began = Instant::now();
    let body = json!({"key": key, "filename": "f.bin", "content_type": "application/octet-stream"});
    let said: Value = connection.post("/attachment", &Bytes::from(body.to_string())).await?.json("/attachment")?;
    let address = path(&said["signedUrl"])?;
    connection.put(address, bytes).await?.ok("PUT of the bytes")?;
    let sent = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let asked = format!("/attachment?key={}", key.replace(' ', "%20"));
    let said: Value = connection.get(&asked).await?.json(&asked)?;
    let read = connection.get(path(&said["downloadUrl"])?).await?.ok("GET of the bytes")?;
    let spent = began.elapsed().as_secs_f64();
    ensure!(read == bytes[..], "what was read back is not what was sent");
    Ok((sent, spent))
}

fn path(address: &Value) -> anyhow::Result<&str> {
    let address = address.as_str().context("an address")?;
    let at = address.find("/attachment/").context("a path of ours")?;
    Ok(&address[at..])
}
