//! Limits of whole sandboxes by cgroup v2: memory and fork bombs end by the kernel, which names the limit.
//!
//! Without a delegated cgroup they report "not covered" and pass, also with ASSAY_REQUIRE=all: few machines delegate one.
//! With ASSAY_REQUIRE=cgroups they fail. The script vm/run starts them under a kernel and cgroups of their own.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, thread};

use assay_node_sandbox::{
    CgroupOffer, ExceededLimit, JailLimits, JailPlan, SandboxCgroups, SandboxReport, SandboxStrength, SandboxedProcess,
    Spawner, probe,
};

const MEMORY_BYTES: u64 = 64 << 20;
const PROCESSES: u64 = 24;

/// Machine with cgroups for the tests of this process, which can divide its cgroup once only.
struct CgroupGround {
    directory: tempfile::TempDir,
    report: SandboxReport,
    cgroups: SandboxCgroups,
}

fn stage() -> PathBuf {
    let test = std::env::current_exe().expect("the test's program");
    test.parent().and_then(|deps| deps.parent()).expect("a target directory").join("examples/stage")
}

fn open() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o777)
}

fn ground() -> Option<&'static CgroupGround> {
    static GROUND: OnceLock<Option<CgroupGround>> = OnceLock::new();
    GROUND.get_or_init(prepared).as_ref()
}

fn prepared() -> Option<CgroupGround> {
    let directory = tempfile::Builder::new().permissions(open()).tempdir().expect("a directory");
    let report = probe(&stage(), directory.path());
    let CgroupOffer::Available(plan) = &report.cgroups else {
        assert_ne!(std::env::var("ASSAY_REQUIRE").as_deref(), Ok("cgroups"), "{}", report.cgroups);
        // To the stream itself: what a passing test prints is not shown.
        let _ = writeln!(std::io::stderr(), "NOT COVERED: limits by cgroups: {}", report.cgroups);
        return None;
    };
    // A cgroup with a process, which stands for what an earlier start left.
    let left = plan.root.join("assay-sandboxes/sandbox-1");
    fs::create_dir_all(&left).expect("a cgroup");
    let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().expect("sleep");
    fs::write(left.join("cgroup.procs"), sleeper.id().to_string()).expect("a member");
    let cgroups = SandboxCgroups::arrange(plan).expect("a delegated cgroup");
    assert!(!sleeper.wait().expect("sleep").success(), "the process of an earlier start is killed");
    assert!(!left.exists(), "the cgroup of an earlier start is removed");
    Some(CgroupGround { directory, report, cgroups })
}

impl CgroupGround {
    fn strengths(&self) -> Vec<SandboxStrength> {
        match self.report.available {
            Some(SandboxStrength::Full) => vec![SandboxStrength::Full, SandboxStrength::Reduced],
            Some(other) => vec![other],
            None => panic!("no sandbox on this machine: {:?}", self.report.missing),
        }
    }

    fn start(&self, strength: SandboxStrength, code: &str) -> SandboxedProcess {
        // Each user of a sandbox owns its directory.
        let temp = tempfile::Builder::new().permissions(open()).tempdir_in(self.directory.path()).expect("a directory");
        let plan = JailPlan {
            strength,
            command: vec!["/usr/bin/python3".into(), "-c".into(), code.into()],
            read_only: Vec::new(),
            tunnel: None,
            temp: temp.keep(),
            streams: 0,
            limits: JailLimits { memory_bytes: MEMORY_BYTES, processes: PROCESSES, ..JailLimits::default() },
            environment: vec![("PATH".into(), OsString::from("/usr/bin:/bin"))],
        };
        let spawner = Spawner::start(self.report.host.clone(), Some(self.cgroups.clone())).expect("a spawner");
        spawner.spawn(plan).expect("a process")
    }
}

/// Returns what a process prints until its end.
fn output_of(process: &mut SandboxedProcess) -> (String, String) {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    process.stdout.read_to_string(&mut stdout).expect("output");
    process.stderr.read_to_string(&mut stderr).expect("output");
    (stdout, stderr)
}

fn exceeded(process: &SandboxedProcess) -> Option<ExceededLimit> {
    process.cgroup().expect("a cgroup").exceeded()
}

fn eventually(is_so: impl Fn() -> bool) -> bool {
    (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        is_so()
    })
}

/// Returns the lines of a file as one line, for the output of the test.
fn one_line(file: &Path) -> String {
    fs::read_to_string(file).expect("a file").lines().collect::<Vec<_>>().join(", ")
}

/// Returns the ids in `cgroup.procs`.
fn members(cgroup: &Path) -> BTreeSet<u32> {
    let text = fs::read_to_string(cgroup.join("cgroup.procs")).expect("a cgroup");
    text.lines().map(|line| line.parse().expect("an id")).collect()
}

#[test]
fn a_memory_bomb_ends_by_the_kernel_which_names_the_limit() {
    let Some(ground) = ground() else { return };
    for strength in ground.strengths() {
        // Several processes, each of which stays below the limit of one process.
        let code = "import os, time\n\
            print('started', flush=True)\n\
            for _ in range(4):\n    \
                if os.fork() == 0:\n        \
                    held = b'x' * (60 << 20)\n        \
                    time.sleep(600)\n\
            time.sleep(600)\n";
        let mut process = ground.start(strength, code);
        let (stdout, stderr) = output_of(&mut process);
        assert_eq!(stdout, "started\n", "{strength}: {stderr}");
        assert_eq!(exceeded(&process), Some(ExceededLimit::Memory), "{strength}");
        let directory = process.cgroup().expect("a cgroup").directory().to_owned();
        println!("{strength}: memory.events: {}", one_line(&directory.join("memory.events")));
        assert!(eventually(|| members(&directory).is_empty()), "{strength}: all processes end");
        drop(process);
        assert!(eventually(|| !directory.exists()), "{strength}: the cgroup is removed");
    }
}

#[test]
fn a_fork_bomb_is_refused_by_the_kernel_which_names_the_limit() {
    let Some(ground) = ground() else { return };
    for strength in ground.strengths() {
        let code = "import os, time\n\
            count = 1\n\
            try:\n    \
                while True:\n        \
                    if os.fork() == 0: time.sleep(600)\n        \
                    count += 1\n\
            except BlockingIOError: print(count, flush=True)\n\
            time.sleep(600)\n";
        let mut process = ground.start(strength, code);
        let mut first = [0; 2];
        process.stdout.read_exact(&mut first).expect("a number");
        let count: u64 = std::str::from_utf8(&first).expect("a number").trim().parse().expect("a number");
        // Programs around the sandbox count too.
        assert!((PROCESSES - 4..=PROCESSES).contains(&count), "{strength}: {count} processes");
        assert_eq!(exceeded(&process), Some(ExceededLimit::Processes), "{strength}");
        let events = one_line(&process.cgroup().expect("a cgroup").directory().join("pids.events"));
        println!("{strength}: {count} processes of the function, then pids.events: {events}");
        process.cgroup().expect("a cgroup").begin();
        assert_eq!(exceeded(&process), None, "{strength}: it counts in its exchange only");
        let directory = process.cgroup().expect("a cgroup").directory().to_owned();
        assert_eq!(members(&directory).len() as u64, PROCESSES, "{strength}");
        drop(process);
        assert!(eventually(|| !directory.exists()), "{strength}: the cgroup is removed with its processes");
    }
}

#[test]
fn all_processes_are_members_before_code_of_users_runs() {
    let Some(ground) = ground() else { return };
    for strength in ground.strengths() {
        let code = "import os, time\n\
            if os.fork() == 0: time.sleep(600)\n\
            print('started', flush=True)\n\
            time.sleep(600)\n";
        let mut process = ground.start(strength, code);
        let directory = process.cgroup().expect("a cgroup").directory().to_owned();
        let mut first = [0; 7];
        process.stdout.read_exact(&mut first).expect("a word");
        assert_eq!(members(&directory).len() as u64, process.usage().processes, "{strength}");
        assert!(process.usage().processes >= 2, "{strength}: {:?}", process.usage());
        assert!(members(ground.cgroups.directory()).is_empty());
        let server = ground.cgroups.directory().with_file_name("assay-server");
        // Sandboxes of the other tests are there for a moment.
        let only = BTreeSet::from([std::process::id()]);
        assert!(eventually(|| members(&server) == only), "{strength}: only the server is there");
    }
}

#[test]
fn a_sandbox_cannot_change_its_limits() {
    let Some(ground) = ground() else { return };
    for strength in ground.strengths() {
        // Where it sees its own name, it tries that too.
        let code = format!(
            "import os\n\
             parent = {:?}\n\
             own = parent + '/' + open('/proc/self/cgroup').read().strip().split('/')[-1]\n\
             for path in [parent, own] + [parent + '/sandbox-' + str(number) for number in range(20)]:\n    \
                 for name in ['memory.max', 'pids.max', 'cgroup.procs', 'cgroup.kill']:\n        \
                     try: open(path + '/' + name, 'w').write('0'); print('written', path, name)\n        \
                     except OSError: pass\n    \
                 try: os.mkdir(path + '/x'); print('made', path)\n    \
                 except OSError: pass\n\
             print('end', flush=True)\n",
            ground.cgroups.directory()
        );
        let mut process = ground.start(strength, &code);
        let directory = process.cgroup().expect("a cgroup").directory().to_owned();
        let (stdout, stderr) = output_of(&mut process);
        assert_eq!(stdout, "end\n", "{strength}: {stderr}");
        let read = |name: &str| fs::read_to_string(directory.join(name)).expect("a file");
        assert_eq!(read("memory.max").trim(), (MEMORY_BYTES + (32 << 20)).to_string());
        assert_eq!((read("memory.swap.max").trim(), read("pids.max").trim()), ("0", "24"));
        assert_eq!(exceeded(&process), None, "{strength}: a usual end passes no limit");
    }
}

#[test]
fn a_sandbox_that_yields_has_the_lowest_share() {
    let Some(ground) = ground() else { return };
    let strength = ground.strengths()[0];
    let process = ground.start(strength, "import time; time.sleep(600)");
    let cgroup = process.cgroup().expect("a cgroup");
    let weight = |directory: &Path| fs::read_to_string(directory.join("cpu.weight")).expect("a file");
    assert_eq!(weight(cgroup.directory()).trim(), "100");
    cgroup.yield_processors();
    assert_eq!(weight(cgroup.directory()).trim(), "1");
    assert_eq!(weight(ground.cgroups.directory()).trim(), "33");
}
