//! Sandboxes around real processes: what they refuse, on this machine, at each strength that it offers.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;

use assay_node_sandbox::jail::JailHost;
use assay_node_sandbox::{JailBind, JailLimits, JailPlan, SandboxStrength, Spawner, probe};

fn stage() -> PathBuf {
    let test = std::env::current_exe().expect("the test's program");
    test.parent().and_then(|deps| deps.parent()).expect("a target directory").join("examples/stage")
}

fn python() -> PathBuf {
    let usual = ["/usr/bin/python3", "/usr/local/bin/python3"].map(PathBuf::from);
    usual.into_iter().find(|path| path.exists()).expect("python3, which the tests of the sandbox run")
}

struct Ground {
    directory: tempfile::TempDir,
    host: JailHost,
    strengths: Vec<SandboxStrength>,
}

impl Ground {
    fn new() -> Ground {
        let directory = tempfile::Builder::new().permissions(open()).tempdir().expect("a directory");
        let report = probe(&stage(), directory.path());
        let strengths = match report.available {
            Some(SandboxStrength::Full) => vec![SandboxStrength::Full, SandboxStrength::Reduced],
            Some(other) => vec![other],
            None => panic!("no sandbox on this machine: {:?}", report.missing),
        };
        Ground { directory, host: report.host, strengths }
    }

    /// Runs Python code in a sandbox, and returns what it printed on both streams.
    fn run(&self, strength: SandboxStrength, code: &str) -> (String, String) {
        let temp = self.directory.path().join("temp");
        std::fs::create_dir_all(&temp).expect("a directory");
        std::fs::set_permissions(&temp, open()).expect("permissions");
        let bundle = self.directory.path().join("bundle");
        std::fs::create_dir_all(&bundle).expect("a directory");
        std::fs::write(bundle.join("main.py"), code).expect("a file");
        let bind = JailBind { source: bundle, target: "/run/assay/bundle".into() };
        let mut plan = JailPlan {
            strength,
            command: Vec::new(),
            read_only: vec![bind.clone()],
            tunnel: None,
            temp,
            streams: 0,
            limits: JailLimits::default(),
            environment: vec![("PATH".into(), OsString::from("/usr/bin:/bin"))],
        };
        plan.command = vec![python().into(), plan.visible(&bind).join("main.py").into()];
        let spawner = Spawner::start(self.host.clone(), None).expect("a spawner");
        let mut process = spawner.spawn(plan).expect("a process");
        process.channel.write_all(b"secret frame\n").expect("a channel");
        let (mut stdout, mut stderr) = (String::new(), String::new());
        process.stdout.read_to_string(&mut stdout).expect("output");
        process.stderr.read_to_string(&mut stderr).expect("output");
        (stdout, stderr)
    }
}

fn open() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o777)
}

#[test]
fn a_process_sees_its_files_and_nothing_of_the_machine() {
    let ground = Ground::new();
    let secret = ground.directory.path().join("secret");
    std::fs::write(&secret, "of another tenant").expect("a file");
    for strength in ground.strengths.clone() {
        let code = format!(
            "import os\n\
             def attempt(name, act):\n    \
                 try: print(name, act())\n    \
                 except OSError as error: print(name, 'refused')\n\
             attempt('own', lambda: len(open(__file__).read()) > 0)\n\
             attempt('secret', lambda: open({secret:?}).read())\n\
             attempt('passwd', lambda: open('/etc/passwd').read())\n\
             attempt('root', lambda: os.listdir('/root'))\n\
             attempt('server', lambda: open(f'/proc/{{os.getppid()}}/environ').read())\n\
             attempt('write', lambda: open('/usr/x', 'w'))\n\
             attempt('bundle', lambda: open(__file__, 'w'))\n\
             attempt('temp', lambda: open('x', 'w').write('x'))\n\
             print('stdin', os.read(0, 10))\n\
             print('channel', os.read(int(os.environ['ASSAY_CHANNEL']), 100))\n\
             print('open', [n for n in range(64) if os.path.exists(f'/proc/self/fd/{{n}}')])\n"
        );
        let (stdout, stderr) = ground.run(strength, &code);
        let expected = "own True\nsecret refused\npasswd refused\nroot refused\nserver refused\nwrite refused\n\
            bundle refused\ntemp 1\nstdin b''\nchannel b'secret frame\\n'\nopen [0, 1, 2, 3]\n";
        let stdout = if strength == SandboxStrength::Full {
            // The environment of the process with the number one is the jail's own.
            stdout.replace("server \n", "server refused\n")
        } else {
            stdout
        };
        assert_eq!(stdout, expected, "{strength}: {stderr}");
    }
}

#[test]
fn dangerous_calls_are_refused() {
    let ground = Ground::new();
    for strength in ground.strengths.clone() {
        let code = "import ctypes, os, socket, subprocess, signal\n\
            libc = ctypes.CDLL(None, use_errno=True)\n\
            def call(name, *args): print(name, libc.syscall(*args))\n\
            def attempt(name, act):\n    \
                try: print(name, act())\n    \
                except OSError as error: print(name, 'refused')\n\
            attempt('tcp', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))\n\
            attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))\n\
            attempt('tcp6', lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM))\n\
            attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW))\n\
            attempt('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))\n\
            attempt('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))\n\
            attempt('vsock', lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))\n\
            call('unshare', 272, 0x10000000)\n\
            call('clone', 56, 0x10000000 | 17, 0, 0, 0, 0)\n\
            call('ptrace', 101, 0, 0, 0, 0)\n\
            call('mount', 165, b'none', b'/tmp', b'tmpfs', 0, 0)\n\
            call('setns', 308, 3, 0)\n\
            call('bpf', 321, 0, 0, 0)\n\
            call('keyctl', 250, 0, 0)\n\
            call('io_uring', 425, 1, 0)\n\
            call('perf', 298, 0, 0, -1, -1, 0)\n\
            call('userfaultfd', 323, 0)\n\
            call('chroot', 161, b'/')\n\
            call('memfd', 319, b'x', 0)\n\
            call('shmget', 29, 0, 4096, 0o1600)\n\
            call('msgget', 68, 0, 0o1600)\n\
            call('lease', 72, 0, 1024, 1)\n\
            call('owner of signals', 72, 1, 8, 1)\n\
            call('x32 getpid', 0x40000000 + 39)\n\
            attempt('datagrams', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', '/run/x'))\n\
            attempt('signal', lambda: os.kill(os.getppid(), signal.SIGTERM) if os.getppid() > 1 else os.kill(-1, 0))\n\
            print('children', subprocess.run(['/bin/echo', 'x'], capture_output=True).stdout)\n\
            import threading; thread = threading.Thread(target=print, args=('thread',)); thread.start(); thread.join()\n";
        let (stdout, stderr) = ground.run(strength, code);
        for name in ["tcp", "udp", "tcp6", "raw", "netlink", "packet", "vsock", "datagrams", "signal"] {
            assert!(stdout.contains(&format!("{name} refused\n")), "{strength} {name}: {stdout} {stderr}");
        }
        for name in [
            "unshare",
            "clone",
            "ptrace",
            "mount",
            "setns",
            "bpf",
            "keyctl",
            "io_uring",
            "perf",
            "userfaultfd",
            "chroot",
            "memfd",
            "shmget",
            "msgget",
            "lease",
            "owner of signals",
        ] {
            assert!(stdout.contains(&format!("{name} -1\n")), "{strength} {name}: {stdout} {stderr}");
        }
        assert!(stdout.contains("x32 getpid -1\n"), "{strength}: {stdout} {stderr}");
        assert!(stdout.contains("children b'x\\n'\nthread\n"), "{strength}: {stdout} {stderr}");
    }
}

#[test]
fn what_a_process_started_ends_with_it() {
    let ground = Ground::new();
    for strength in ground.strengths.clone() {
        let code = "import os, time\n\
            if os.fork() == 0:\n    \
                if os.fork() == 0:\n        \
                    try: os.setsid()\n        \
                    except OSError: pass\n        \
                    print('orphan', flush=True); time.sleep(600)\n    \
                os._exit(0)\n\
            time.sleep(600)\n";
        let marker = format!("orphan-of-{}-{strength}", std::process::id());
        let code = format!("# {marker}\n{code}");
        let temp = ground.directory.path().join("temp");
        std::fs::create_dir_all(&temp).expect("a directory");
        std::fs::set_permissions(&temp, open()).expect("permissions");
        let plan = JailPlan {
            strength,
            command: vec![python().into(), "-c".into(), code.into()],
            read_only: Vec::new(),
            tunnel: None,
            temp,
            streams: 0,
            limits: JailLimits::default(),
            environment: Vec::new(),
        };
        let spawner = Spawner::start(ground.host.clone(), None).expect("a spawner");
        let mut process = spawner.spawn(plan).expect("a process");
        let mut first = [0; 6];
        process.stdout.read_exact(&mut first).expect("the orphan's word");
        assert_eq!(&first, b"orphan");
        assert!(process.usage().threads >= 2, "{:?}", process.usage());
        let mine = processes_with(&marker);
        assert!(mine >= 2, "{strength}: {mine} processes");
        drop(process);
        let gone = (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            processes_with(&marker) == 0
        });
        assert!(gone, "{strength}: processes are left");
    }
}

/// Number of processes whose command line has a text.
fn processes_with(text: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.windows(text.len()).any(|window| window == text.as_bytes())).count()
}
