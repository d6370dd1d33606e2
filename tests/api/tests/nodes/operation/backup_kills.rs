//! Kills at random moments of backups and restores: both go on afterwards or say what to do, and nothing acknowledged
//! is missing in the end.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use assay_test_api::backup::{Backup, create, text};
use assay_test_api::process::{Process, command, program};
use assay_test_api::rows::{Rows, knock};
use assay_test_api::server::{Options, Server};

const KILLS: usize = 10;
const OBJECTS: usize = 4;
/// Longest time from the request for a backup to the kill.
const KILL_WITHIN: Duration = Duration::from_millis(900);
/// Time for a command to notice that its node is gone.
const NOTICED_MAX: Duration = Duration::from_secs(20);
const SHARDS: usize = 4;
const SAID_AGAIN: &str = "run the command again";
const SAID_START: &str = "start it with `assay serve`";
/// Divisor of the time of a restore, up to which an earlier kill is tried.
const EARLIER_MAX: u32 = 20;
const BEGINS_ANEW: &str = "run `assay backup restore` into it again";

/// Random times. A seed is printed, so that a failure can be looked into.
struct RandomTimes(u64);

impl RandomTimes {
    fn new() -> RandomTimes {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed = u64::from(now.subsec_nanos()) | 1;
        println!("seed {seed}");
        RandomTimes(seed)
    }

    fn below(&mut self, max: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        max.mul_f64((self.0 % 1_000) as f64 / 1_000.0)
    }
}

fn serve(backup: &Backup, data: &Path) -> Result<Server> {
    let settings = vec![format!("store.shards={SHARDS}")];
    Server::start(&Options { environment: backup.environment()?, settings, ..Options::new(data) })
}

/// Writes rows until it is told to stop.
fn write_until(stopped: &AtomicBool, rows: &mut Rows, url: &str, round: usize) -> Result<()> {
    let mut number = 0;
    while !stopped.load(Ordering::Relaxed) {
        rows.write(url, &format!("row-{round}-{number}"))?;
        number += 1;
    }
    Ok(())
}

/// Asks for a backup, and kills the node meanwhile. Returns whether the backup was complete before.
fn killed_in_backup(backup: &Backup, data: &Path, (round, after): (usize, Duration), rows: &mut Rows) -> Result<bool> {
    let server = serve(backup, data)?;
    if rows.objects.is_empty() {
        *rows = Rows::new(std::slice::from_ref(&server.url), OBJECTS)?;
    }
    let mut asking = command(&program()?);
    asking.args(["backup", "create", "--data-dir", text(data)?]);
    let mut asking = Process::start(&mut asking, &data.with_extension("asking"))?;
    let (url, stopped) = (server.url.clone(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| write_until(&stopped, rows, &url, round));
        std::thread::sleep(after);
        let killed = server.kill();
        stopped.store(true, Ordering::Relaxed);
        writing.join().ok().context("the writer died")??;
        killed
    })?;
    match asking.finish(NOTICED_MAX) {
        Ok(_) => Ok(true),
        Err(why) => {
            let said = format!("{why:#}");
            let tells = said.contains(SAID_AGAIN) || said.contains(SAID_START);
            ensure!(tells, "the command says nothing of what to do: {said}");
            Ok(false)
        }
    }
}

/// Restores into a directory, and kills that after a time. Returns whether the directory was complete before.
fn killed_in_restore(backup: &Backup, dir: &Path, after: Duration) -> Result<bool> {
    let mut restoring = command(&program()?);
    restoring.args(backup.words(&["restore", "--data-dir", text(dir)?])?);
    let mut restoring = Process::start(&mut restoring, &dir.with_extension("restoring"))?;
    std::thread::sleep(after);
    restoring.kill()?;
    if dir.join("FORMAT").exists() {
        return Ok(true);
    }
    if dir.join("UNFINISHED-RESTORE").exists() {
        let refused = Server::refusal(&Options::new(dir))?;
        ensure!(refused.contains(BEGINS_ANEW), "a start on half a restore says: {refused}");
    }
    Ok(false)
}

/// Counts the rows of a node, which has every acknowledged one.
fn rows_at(server: &Server, rows: &Rows) -> Result<usize> {
    ensure!(knock(&server.url, "/readyz")?.0 == 200, "{}", server.log());
    let found = rows.all_there(&server.url)?;
    ensure!(found >= rows.acknowledged(), "{found} rows are there, of {}", rows.acknowledged());
    Ok(found)
}

fn backups(backup: &Backup, data: &Path, random: &mut RandomTimes) -> Result<(Rows, usize)> {
    let (mut rows, mut complete) = (Rows::default(), 0);
    for round in 0..KILLS {
        let after = random.below(KILL_WITHIN);
        let was_complete = killed_in_backup(backup, data, (round, after), &mut rows);
        complete += usize::from(was_complete.with_context(|| format!("killed after {after:?}"))?);
    }
    println!("{complete} of {KILLS} backups were complete before the kill; {} rows", rows.acknowledged());
    let server = serve(backup, data)?;
    create(data).with_context(|| server.log())?;
    let found = rows_at(&server, &rows)?;
    server.kill()?;
    let verified = backup.run(&["verify"])?;
    ensure!(verified.success, "{}{}", verified.out, verified.errors);
    Ok((rows, found))
}

fn restores(backup: &Backup, dir: &Path, random: &mut RandomTimes, (rows, found): (&Rows, usize)) -> Result<()> {
    let begun = Instant::now();
    backup.restore(&dir.join("whole"), None)?;
    let takes = begun.elapsed();
    let killed = dir.join("killed");
    let mut complete = 0;
    for _ in 0..KILLS {
        let after = random.below(takes);
        if killed_in_restore(backup, &killed, after).with_context(|| format!("killed after {after:?}"))? {
            complete += 1;
            let refused = backup.run(&["restore", "--data-dir", text(&killed)?])?;
            ensure!(!refused.success && refused.errors.contains("empty directory"), "{}", refused.errors);
            std::fs::remove_dir_all(&killed)?;
        }
    }
    println!("a restore takes {takes:?}; {complete} of {KILLS} were complete before the kill");
    for earlier in 2..=EARLIER_MAX {
        if !killed_in_restore(backup, &killed, takes / earlier)? {
            break;
        }
        std::fs::remove_dir_all(&killed)?;
    }
    backup.restore(&killed, None).context("behind a kill, into the same directory")?;
    let server = Server::start(&Options { key: None, ..Options::new(&killed) })?;
    let restored = rows_at(&server, rows)?;
    ensure!(restored == found, "{restored} rows were restored, of {found}");
    ensure!(server.stop()?.success(), "it stops well");
    Ok(())
}

fn killed(dir: &Path) -> Result<()> {
    let (begun, mut random) = (Instant::now(), RandomTimes::new());
    let backup = Backup::in_directory(dir)?;
    let (rows, found) = backups(&backup, &dir.join("data"), &mut random)?;
    println!("backups took {:?}", begun.elapsed());
    restores(&backup, dir, &mut random, (&rows, found))?;
    println!("all took {:?}", begun.elapsed());
    Ok(())
}

#[test]
fn killed_backups_and_restores_go_on() {
    let dir = tempfile::tempdir().expect("a directory");
    killed(dir.path()).unwrap_or_else(|error| panic!("{error:#}"));
}
