//! What somebody meets who uses the program for the first time, or uses it wrong: a case for each.

mod nodes;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nodes::{Node, assay, exchange, refused, request, said, signal};

fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

/// One node, asked everything that takes one.
#[test]
fn a_node_shows_a_newcomer_where_to_go() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(
        &dir.path().join("data"),
        &["--set", "limits.rates=[{endpoint = \"/logs4\", per = \"organization\", requests = 5, seconds = 1}]"],
    );
    let log = node.log();
    says(&log, &[&format!("assay {}", env!("CARGO_PKG_VERSION"))]);
    assert!(!log.contains("leads"), "a line for each group:\n{log}");
    says(&log, &["`/logs4`", "did you mean `/logs3`?"]);

    let root = node.get("/");
    assert_eq!(root.status, 302);
    says(&root.text.to_lowercase(), &["location: /docs"]);
    assert_eq!(node.get("/docs").status, 200);
    for (path, meant) in
        [("/v1/projects", "/v1/project?"), ("/api/api/apikey/login", "/api/apikey/login?"), ("/favicon.ico", "/docs")]
    {
        let lost = node.get(path);
        assert_eq!(lost.status, 404, "{path}");
        says(&lost.text, &["\"Code\":\"NotFoundError\"", "this path does not exist", "/docs", meant]);
    }

    assert_eq!(node.post("/v1/project", "{\"name\":\"first\"}").status, 200);
    let spans = "{\"resourceSpans\":[]}";
    for path in ["/v1/traces", "/otel/v1/traces", "/v1/logs", "/v1/metrics"] {
        let body = if path.ends_with("traces") { spans } else { "{}" };
        assert_eq!(node.post(path, body).status, 200, "{path}");
        assert_eq!(node.get(path).status, 405, "{path}");
    }
    for (query, parts) in [
        ("SELEC id", ["this is no query. SQL begins with SELECT", "select: id | from:"]),
        ("DELETE FROM x", ["DELETE is no query: queries only read", "SQL begins with SELECT"]),
    ] {
        let answer = node.post("/btql", &format!("{{\"query\":\"{query}\"}}"));
        assert_eq!(answer.status, 400, "{query}");
        says(&answer.text, &parts);
    }

    let garbage = TcpStream::connect(node.address).unwrap();
    says(&exchange(&garbage, "GARBAGE\r\n\r\n"), &["400"]);
    assert_eq!(node.get("/healthz").status, 200);
    assert!(!node.log().contains("ERROR"), "{}", node.log());
    assert!(node.stop());
}

/// Nothing is created before the settings and the addresses are known to be good.
#[test]
fn a_refused_start_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let at = data.to_str().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let otlp = format!("http.otlp_listen={taken}");
    let no_key = [("ASSAY_API_KEY", "short")];
    for (arguments, environment, parts) in [
        (vec!["--listen", "0.0.0.0"], &[][..], vec!["http.listen is `0.0.0.0`, which has no port", "0.0.0.0:8000"]),
        (vec!["--listen", &taken], &[], vec!["cannot listen on", &taken, "in use"]),
        (vec!["--port", "0", "--set", &otlp], &[], vec!["http.otlp_listen", "in use"]),
        (vec!["--port", "0"], &no_key, vec!["environment ASSAY_API_KEY: an API key must have 16 to 256"]),
        (
            vec!["--port", "0", "--set", "http.workers=-1"],
            &[],
            vec!["--set http.workers=-1: `http.workers`", "a whole number, 0 or more"],
        ),
        (vec!["--port", "0", "--set", "queries.prices=/nowhere"], &[], vec!["queries.prices"]),
        (vec!["--config", "nofile.toml"], &[], vec!["--config nofile.toml: the file does not exist", "assay config"]),
        (
            vec!["--port", "0", "--set", "secrets.master_key_file=/nowhere"],
            &[],
            vec!["the file /nowhere does not exist"],
        ),
    ] {
        let said = refused(&[arguments.clone(), vec!["--data-dir", at]].concat(), environment);
        says(&said, &parts);
        assert!(!said.contains("usize") && !said.contains("panicked"), "{said}");
        assert!(!data.exists(), "{arguments:?} left {data:?}");
    }
    let nested = refused(&["--port", "0", "--data-dir", "/proc/x"], &[]);
    assert_eq!(nested.matches("os error").count(), 1, "{nested}");

    // A directory that is somebody else's stays as it was.
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("thesis.txt"), "mine").unwrap();
    says(&refused(&["--port", "0", "--data-dir", at], &[]), &["is not empty and has no file FORMAT"]);
    assert_eq!(files_of(&data), ["thesis.txt"]);
}

fn files_of(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A disk that is not mounted made a second cluster: its node was ready, and took writes that were in no other one's.
#[test]
fn an_empty_directory_founds_nothing_where_something_says_that_it_had_data() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let at = data.to_str().unwrap();
    let id = "store.cluster_id=00000000-0000-4000-8000-000000000001";
    let peer = [("ASSAY_CLUSTER_PEER_ADDRESS", "127.0.0.1:7400")];
    for (arguments, environment) in [
        (vec!["--peer-address", "127.0.0.1:7400"], &[][..]),
        (vec!["--set", id], &[]),
        (vec!["--set", "store.create_if_missing=false"], &[]),
        (vec![], &peer),
    ] {
        let said = refused(&[vec!["--port", "0", "--data-dir", at], arguments].concat(), environment);
        says(&said, &["holds no data", "mount the disk", "assay cluster init", "assay cluster join"]);
        assert!(!data.exists(), "{said}");
    }
    // An empty mount point is no different from none.
    std::fs::create_dir_all(data.join("lost+found")).unwrap();
    refused(&["--port", "0", "--data-dir", at, "--peer-address", "127.0.0.1:7400"], &[]);
    assert_eq!(files_of(&data), ["lost+found"]);

    let free = format!("{}:7400", own_host());
    let init =
        assay(&["cluster", "init", "--shards", "4", "--peer-address", &free, "--data-dir", at]).output().unwrap();
    let (made, errors) = said(&init);
    assert!(init.status.success(), "{errors}");
    let serve = format!("`assay serve --data-dir {at} --peer-address {free}`");
    says(&made, &[&serve]);
    let node = Node::start(&data, &["--peer-address", &free, "--set", "store.create_if_missing=false"]);
    assert_eq!(node.post("/v1/project", "{\"name\":\"kept\"}").status, 200);
    assert!(node.stop());
}

/// Loopback address that no other test process uses.
fn own_host() -> String {
    // Process ids have 22 bits at most.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    format!("127.{}.{middle}.{low}", 64 + high)
}

#[test]
fn only_a_port_that_was_asked_for_has_to_be_free() {
    let dir = tempfile::tempdir().unwrap();
    let host = own_host();
    let _exporter = TcpListener::bind((host.as_str(), 4317)).unwrap();
    let free = TcpListener::bind((host.as_str(), 0)).unwrap().local_addr().unwrap();
    let port = free.port().to_string();
    let listen = format!("http.listen={host}:1");
    let node = Node::start(&dir.path().join("data"), &["--set", &listen, "--port", &port]);
    assert_eq!((node.address, node.otlp), (free, None), "--port changes the port alone");
    says(&node.log(), &["4317 is in use", "http.otlp_listen"]);
    assert_eq!(node.get("/healthz").status, 200);
}

/// `assay cluster status | head` panicked.
#[test]
fn a_reader_that_goes_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let node = Node::start(&data, &[]);
    let at = data.to_str().unwrap();
    for words in [
        &["cluster", "status", "--data-dir", at][..],
        &["cluster", "status", "--json", "--data-dir", at],
        &["admin", "organizations", "--data-dir", at],
        &["config"],
        &["doctor", "--json", "--data-dir", "/nowhere"],
    ] {
        let mut child = assay(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take()); // before it has printed anything
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        let code = child.wait().unwrap().code();
        assert!(code.is_some_and(|code| code != 101), "{words:?}: {errors}");
        assert!(!errors.contains("panicked") && !errors.contains("Broken pipe"), "{words:?}: {errors}");
    }
    assert!(node.stop());
}

#[test]
fn help_says_what_there_is() {
    let (help, _) = said(&assay(&["serve", "--help"]).output().unwrap());
    says(&help, &["assay config", "--port", "--listen"]);
    let (help, _) = said(&assay(&["admin", "create-key", "--help"]).output().unwrap());
    says(&help, &["<NAME>", "Name of the key"]);
    let (help, _) = said(&assay(&["dev", "--help"]).output().unwrap());
    says(&help, &["--set"]);
    let (help, _) = said(&assay(&["--help"]).output().unwrap());
    says(&help, &["assay admin create-key"]);
}

/// `assay dev` takes settings, does without ports that are taken, and ends within ten seconds of Ctrl-C, whatever it
/// waits for: it waited for a node that was dead for up to ten minutes, and did not hear.
#[test]
fn a_trial_cluster_ends_when_it_is_told() {
    const END_MAX: Duration = Duration::from_secs(10);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("dev");
    let at = data.to_str().unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap();
    let busy = assay(&["dev", "--nodes", "1", "--listen", &taken.to_string(), "--data-dir", at]).output().unwrap();
    says(&said(&busy).1, &["cannot listen on", &taken.to_string(), "--listen"]);
    assert!(!busy.status.success() && !data.exists(), "it made nothing");
    drop(held);

    let mut dev =
        assay(&["dev", "--nodes", "2", "--listen", "127.0.0.1:0", "--set", "store.shards=4", "--data-dir", at]);
    let mut dev = dev.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(dev.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut errors = dev.stderr.take().unwrap();
    std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
    lines.find(|line| line.starts_with("node 2 | Assay is ready")).expect("node 2");
    says(&std::fs::read_to_string(data.join("node-1/FORMAT")).unwrap(), &["shards 4"]);
    // Its second node hangs, so that the cluster does not settle and a stop is not finished.
    let node = child_on(&data.join("node-2"));
    signal("STOP", node);
    let told = Instant::now();
    signal("INT", dev.id());
    while dev.try_wait().unwrap().is_none() {
        assert!(told.elapsed() < END_MAX + Duration::from_secs(5), "still there after {:?}", told.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("ended {:?} after the signal", told.elapsed());
    assert!(!Path::new(&format!("/proc/{node}")).exists(), "its node is left");
}

fn child_on(dir: &Path) -> u32 {
    let dir = dir.to_str().unwrap();
    let runs = |id: &u32| {
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == dir.as_bytes())
    };
    let ids = std::fs::read_dir("/proc").unwrap().flatten();
    let mut ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.find(runs).expect("a process on the directory")
}

/// Heading of the guide's section that needs no SDK.
const WITHOUT_AN_SDK: &str = "## Without an SDK";

/// The `curl` commands of the guide's quickstart, word for word, in a shell.
#[test]
fn the_quickstarts_first_query_is_answered() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("guide/quickstart.md")).unwrap();
    let section = page.lines().skip_while(|line| *line != WITHOUT_AN_SDK).skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    let lines: Vec<&str> =
        section.filter(|line| line.starts_with("curl ") || line.starts_with("export BRAINTRUST_API_KEY=")).collect();
    assert!(lines.len() >= 3, "a key, a project, rows and a question: {lines:?}");
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(&dir.path().join("data"), &[]);
    let answers: Vec<String> = lines
        .iter()
        .filter(|line| line.starts_with("curl "))
        .map(|line| {
            let text = exchange(&TcpStream::connect(node.address).unwrap(), &sent_by(line));
            assert!(text.starts_with("HTTP/1.1 200"), "{line}: {text}");
            text
        })
        .collect();
    says(answers.last().unwrap(), &["\"n\":1"]);
}

/// The request that a `curl` sends, as a shell would pass its words on.
fn sent_by(line: &str) -> String {
    let mut shell = std::process::Command::new("sh");
    let script = format!("curl() {{ printf '%s\\0' \"$@\"; }}\nBRAINTRUST_API_KEY={}\n{line}", nodes::KEY);
    let output = shell.args(["-c", &script]).output().unwrap();
    let words: Vec<String> =
        output.stdout.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let url = words.iter().find(|word| word.contains("localhost:8000")).expect("an address");
    let path = url.split_once(":8000").unwrap().1;
    let behind = |flag: &str| {
        words
            .iter()
            .zip(&words[1..])
            .filter(|(word, _)| *word == flag)
            .map(|(_, next)| next.as_str())
            .collect::<Vec<_>>()
    };
    let (headers, body) = (behind("-H").join("\r\n"), behind("-d").concat());
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// A client that hangs up in the middle of a request is nobody's error either.
#[test]
fn half_a_request_is_no_error_of_the_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(&dir.path().join("data"), &[]);
    for sent in ["GET / HT", "POST /v1/insert HTTP/1.1\r\ncontent-length: 100\r\n\r\n{", "\0\0\0", ""] {
        let mut stream = TcpStream::connect(node.address).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
    }
    let whole = TcpStream::connect(node.address).unwrap();
    says(&exchange(&whole, &request(nodes::KEY, "GET", "/healthz", "", 0)), &["200 OK"]);
    assert!(!node.log().contains("ERROR"), "{}", node.log());
}

/// The doctor names each damaged file that a node keeps beside its store.
#[test]
fn the_doctor_names_each_damaged_file_of_a_node() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let node = Node::start(&data, &["--set", "store.shards=4"]);
    assert!(node.stop());
    let examine = || {
        let output = assay(&["doctor", "--json", "--data-dir", data.to_str().unwrap()]).output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap().iter();
        let damaged: Vec<String> = findings
            .filter(|finding| finding["severity"] == "damaged")
            .map(|finding| finding["place"].as_str().unwrap().to_owned())
            .collect();
        (output.status.code(), damaged)
    };
    assert_eq!(examine(), (Some(0), Vec::new()));
    for file in ["FORMAT", "NODE", "REPLICAS", "STARTS", "log/START", "PEERS", "ACKNOWLEDGED"] {
        let path = data.join(file);
        let original = std::fs::read(&path).ok();
        // The others come with a second node.
        assert!(original.is_some() || !matches!(file, "FORMAT" | "STARTS" | "log/START"), "{file} is not there");
        let mut damaged = original.clone().unwrap_or_else(|| b"no such file is ever written\n".to_vec());
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        let (code, places) = examine();
        assert_eq!(code, Some(1), "{file}");
        assert!(places.iter().any(|place| place == file), "{file} is damaged, and the doctor names {places:?}");
        match original {
            Some(original) => std::fs::write(&path, original).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
    }
    assert_eq!(examine(), (Some(0), Vec::new()), "every file was put back");
}
