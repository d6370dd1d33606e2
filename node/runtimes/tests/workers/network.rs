//! Network of user code: a tunnel, single streams, and none.

use assay_node_runtimes::RuntimeKind;
use serde_json::{Value, json};

use crate::harness::{BOTH, Worker, inline, interpreter, module};
use crate::servers::{HttpServer, HttpsServer, Tunnel, certificate, data};

const NODE: RuntimeKind = RuntimeKind::Node;
const PYTHON: RuntimeKind = RuntimeKind::Python;

/// Clients of Node for plain HTTP, as bodies of a function of a URL.
const NODE_CLIENTS: [&str; 4] = [
    "async function handler(url) { return (await fetch(url)).text(); }",
    "const http = require('http');
     function handler(url) {
       return new Promise((resolve, reject) => http.get(url, response => {
         let text = ''; response.on('data', part => text += part); response.on('end', () => resolve(text));
       }).on('error', reject));
     }",
    "function handler(url) {
       const {hostname, port, pathname} = new URL(url);
       return new Promise((resolve, reject) => {
         const socket = require('node:net').connect(Number(port), hostname, () => {
           socket.end(`GET ${pathname} HTTP/1.1\\r\\n\\r\\n`);
         });
         let text = '';
         socket.on('error', reject).on('data', part => text += part).on('end', () => resolve(text.split('\\r\\n\\r\\n')[1]));
       });
     }",
    "async function handler(url) {
       const {createConnection} = await import('node:net');
       const {hostname, port, pathname} = new URL(url);
       const socket = createConnection({host: hostname, port});
       socket.end(`GET ${pathname} HTTP/1.1\\r\\n\\r\\n`);
       let text = '';
       for await (const part of socket) text += part;
       return text.split('\\r\\n\\r\\n')[1];
     }",
];

/// Clients of Python for HTTP and HTTPS.
const PYTHON_CLIENTS: [&str; 4] = [
    "from urllib.request import urlopen\ndef handler(url):\n    with urlopen(url) as response: return response.read().decode()",
    "import http.client\nfrom urllib.parse import urlsplit\ndef handler(url):\n    parts = urlsplit(url)\n    \
     kind = http.client.HTTPSConnection if parts.scheme == 'https' else http.client.HTTPConnection\n    \
     client = kind(parts.hostname, parts.port)\n    client.request('GET', parts.path)\n    return client.getresponse().read().decode()",
    "import asyncio\nfrom urllib.parse import urlsplit\nasync def handler(url):\n    parts = urlsplit(url)\n    \
     reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=parts.scheme == 'https' or None)\n    \
     writer.write(f'GET {parts.path} HTTP/1.1\\r\\nconnection: close\\r\\n\\r\\n'.encode())\n    \
     if parts.scheme == 'http': writer.write_eof()\n    \
     text = (await reader.read()).decode()\n    writer.close()\n    return text.split('\\r\\n\\r\\n')[1]",
    "import asyncio, socket\nfrom urllib.parse import urlsplit\nasync def handler(url):\n    parts = urlsplit(url)\n    loop = asyncio.get_running_loop()\n    \
     (family, kind, proto, _, address), *_ = await loop.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_STREAM)\n    \
     sock = socket.socket(family, kind, proto)\n    sock.setblocking(False)\n    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\n    \
     await loop.sock_connect(sock, address)\n    assert sock.getpeername() == (parts.hostname, parts.port)\n    \
     secure = parts.scheme == 'https'\n    \
     reader, writer = await asyncio.open_connection(sock=sock, ssl=secure or None, server_hostname=parts.hostname if secure else None)\n    \
     writer.write(f'GET {parts.path} HTTP/1.1\\r\\nconnection: close\\r\\n\\r\\n'.encode())\n    \
     if not secure: writer.write_eof()\n    \
     text = (await reader.read()).decode()\n    writer.close()\n    return text.split('\\r\\n\\r\\n')[1]",
];

fn clients() -> Vec<(RuntimeKind, &'static str)> {
    let node = NODE_CLIENTS.into_iter().map(|code| (NODE, code));
    node.chain(PYTHON_CLIENTS.into_iter().map(|code| (PYTHON, code))).collect()
}

/// Returns the answer of the server that echoes requests.
fn echoed(path: &str) -> String {
    json!([format!("GET {path} HTTP/1.1"), null]).to_string()
}

#[test]
fn plain_http_goes_through_the_tunnel_by_name() {
    let server = HttpServer::echo();
    for (kind, code) in clients() {
        let tunnel = Tunnel::start(&[("some.test:8080", server.port)]);
        let mut worker = Worker::start_with(kind, &[("ASSAY_TUNNEL", tunnel.path().to_str().unwrap())]);
        worker.load(inline(kind, code)).unwrap();
        for path in ["/one", "/two"] {
            assert_eq!(worker.function(json!(format!("http://some.test:8080{path}"))), json!(echoed(path)), "{code}");
        }
        assert!(tunnel.opened().iter().all(|name| name == "some.test:8080"), "{:?}", tunnel.opened());
    }
}

#[test]
fn plain_http_goes_through_single_streams() {
    let server = HttpServer::echo();
    for (kind, code) in clients() {
        let tunnel = Tunnel::start(&[("some.test:8080", server.port)]);
        let script = format!(
            "exec 3<&0 0</dev/null; exec {} -I {} {} 10 12 \"$0\" \"$@\"",
            interpreter(PYTHON).display(),
            data("with_streams.py").display(),
            tunnel.path().display()
        );
        let mut worker = Worker::start_in_shell(kind, &[("ASSAY_STREAMS", "10,11,12")], &script);
        worker.load(inline(kind, code)).unwrap();
        for path in ["/one", "/two"] {
            assert_eq!(worker.function(json!(format!("http://some.test:8080{path}"))), json!(echoed(path)), "{code}");
        }
        let opened = tunnel.opened();
        assert!(!opened.is_empty() && opened.iter().all(|name| name == "some.test:8080"), "{opened:?}");
    }
}

#[test]
fn each_stream_serves_one_connection() {
    let server = HttpServer::echo();
    for (kind, code) in [(NODE, NODE_CLIENTS[2]), (PYTHON, PYTHON_CLIENTS[2])] {
        let tunnel = Tunnel::start(&[("some.test:8080", server.port)]);
        let script = format!(
            "exec 3<&0 0</dev/null; exec {} -I {} {} 10 11 \"$0\" \"$@\"",
            interpreter(PYTHON).display(),
            data("with_streams.py").display(),
            tunnel.path().display()
        );
        let mut worker = Worker::start_in_shell(kind, &[("ASSAY_STREAMS", "10,11")], &script);
        worker.load(inline(kind, code)).unwrap();
        let url = json!("http://some.test:8080/x");
        for _ in 0..2 {
            assert_eq!(worker.function(url.clone()), json!(echoed("/x")));
        }
        let failure = worker.failure(url);
        assert!(failure.message.contains("this function has used all of its 2 connections"), "{}", failure.message);
    }
}

#[test]
fn tls_is_end_to_end() {
    let server = HttpsServer::start();
    let node = [
        "async function handler(url) { return (await fetch(url)).text(); }",
        "const https = require('node:https');
         function handler(url) {
           return new Promise((resolve, reject) => https.get(url, response => {
             let text = ''; response.on('data', part => text += part); response.on('end', () => resolve(text));
           }).on('error', reject));
         }",
        "function handler(url) {
           const {hostname, port, pathname} = new URL(url);
           return new Promise((resolve, reject) => {
             const socket = require('tls').connect({host: hostname, port: Number(port)}, () => {
               socket.write(`GET ${pathname} HTTP/1.1\\r\\nhost: ${hostname}\\r\\nconnection: close\\r\\n\\r\\n`);
             });
             let text = '';
             socket.on('error', reject).on('data', part => text += part).on('end', () => resolve(text.split('\\r\\n\\r\\n')[1]));
           });
         }",
    ];
    let certificate = certificate();
    let certificate = certificate.to_str().unwrap();
    let node = node.into_iter().map(|code| (NODE, code));
    for (kind, code) in node.chain(PYTHON_CLIENTS.into_iter().map(|code| (PYTHON, code))) {
        let tunnel = Tunnel::start(&[("secure.test:8443", server.port), ("other.test:8443", server.port)]);
        let path = tunnel.path();
        let variables = [
            ("ASSAY_TUNNEL", path.to_str().unwrap()),
            ("NODE_EXTRA_CA_CERTS", certificate),
            ("SSL_CERT_FILE", certificate),
        ];
        let mut worker = Worker::start_with(kind, &variables);
        worker.load(inline(kind, code)).unwrap();
        assert_eq!(worker.function(json!("https://secure.test:8443/x")), json!("/x"), "{code}");
        let failure = worker.failure(json!("https://other.test:8443/x"));
        let message = failure.message.to_lowercase();
        assert!(message.contains("other.test") || message.contains("mismatch"), "{code}: {}", failure.message);
    }
}

#[test]
fn modules_that_import_names_of_builtins_get_the_tunnel() {
    let server = HttpServer::echo();
    let tunnel = Tunnel::start(&[("some.test:8080", server.port)]);
    let code = "import { get } from 'http';
        import { connect } from 'node:net';
        import { lookup } from 'dns/promises';
        export async function handler(url) {
          const names = await lookup('some.test');
          const socket = connect(8080, 'some.test');
          await new Promise((resolve, reject) => socket.on('connect', resolve).on('error', reject));
          socket.destroy();
          return new Promise((resolve, reject) => get(url, response => {
            let text = ''; response.on('data', part => text += part); response.on('end', () => resolve([names, text]));
          }).on('error', reject));
        }";
    let mut worker = Worker::start_with(NODE, &[("ASSAY_TUNNEL", tunnel.path().to_str().unwrap())]);
    worker.load(module(code)).unwrap();
    let value = worker.function(json!("http://some.test:8080/x"));
    assert_eq!(value, json!([{"address": "some.test", "family": 4}, echoed("/x")]));
}

#[test]
fn a_connection_that_the_server_refuses_is_an_error_of_the_client() {
    for (kind, code) in [(NODE, NODE_CLIENTS[0]), (PYTHON, PYTHON_CLIENTS[0])] {
        let tunnel = Tunnel::start(&[]);
        let mut worker = Worker::start_with(kind, &[("ASSAY_TUNNEL", tunnel.path().to_str().unwrap())]);
        worker.load(inline(kind, code)).unwrap();
        let failure = worker.failure(json!("http://some.test/x"));
        assert!(!failure.message.is_empty());
        assert_eq!(tunnel.opened(), ["some.test:80"]);
    }
}

#[test]
fn without_a_network_the_error_names_the_setting() {
    for (kind, code) in clients() {
        let failure = Worker::inline(kind, code).failure(json!("http://some.test:8080/x"));
        let expected = "this function has no network: the setting functions.network is off";
        assert!(failure.message.contains(expected), "{code}: {}", failure.message);
    }
    let code = "const https = require('https');
        function handler() { return new Promise((_, reject) => https.get('https://some.test/', () => {}).on('error', reject)); }";
    let failure = Worker::inline(NODE, code).failure(json!({}));
    assert!(failure.message.contains("functions.network is off"), "{}", failure.message);
}

#[test]
fn child_processes_of_user_code_have_the_network() {
    let server = HttpServer::echo();
    let node = "const {execFileSync} = require('child_process');
        const program = `fetch(process.argv[1]).then(r => r.text()).then(t => process.stdout.write(t))`;
        async function handler(url) {
          const {execFile} = require('child_process');
          return new Promise((resolve, reject) =>
            execFile(process.execPath, ['-e', program, url], (error, text) => error ? reject(error) : resolve(text)));
        }";
    let python = "import subprocess, sys\ndef handler(url):\n    \
        program = 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end=\"\")'\n    \
        return subprocess.run([sys.executable, '-c', program, url], capture_output=True, text=True, check=True).stdout\n";
    for (kind, code) in [(NODE, node), (PYTHON, python)] {
        let tunnel = Tunnel::start(&[("some.test:8080", server.port)]);
        let mut worker = Worker::start_with(kind, &[("ASSAY_TUNNEL", tunnel.path().to_str().unwrap())]);
        worker.load(inline(kind, code)).unwrap();
        assert_eq!(worker.function(json!("http://some.test:8080/x")), json!(echoed("/x")));
    }
}

#[test]
fn worker_threads_of_node_have_the_network() {
    let server = HttpServer::echo();
    let code = "const {Worker} = require('worker_threads');
        const program = `const {parentPort, workerData} = require('worker_threads');
            fetch(workerData).then(r => r.text()).then(t => parentPort.postMessage(t), e => parentPort.postMessage(String(e.cause)))`;
        function handler(url) {
          return new Promise((resolve, reject) => {
            const thread = new Worker(program, {eval: true, workerData: url});
            let text; thread.on('message', t => { text = t; thread.terminate(); }).on('error', reject).on('exit', () => resolve(text));
          });
        }";
    let tunnel = Tunnel::start(&[("some.test:8080", server.port)]);
    let mut worker = Worker::start_with(NODE, &[("ASSAY_TUNNEL", tunnel.path().to_str().unwrap())]);
    worker.load(inline(NODE, code)).unwrap();
    assert_eq!(worker.function(json!("http://some.test:8080/x")), json!(echoed("/x")));
}

#[test]
fn unix_sockets_of_user_code_are_untouched() {
    let node = "const net = require('net'), path = require('path');
        function handler() {
          const file = path.join(process.env.TMPDIR, 's');
          return new Promise((resolve, reject) => {
            const server = net.createServer(socket => { socket.end('hello'); server.close(); });
            server.listen(file, () => net.connect(file).on('data', part => resolve(String(part))).on('error', reject));
          });
        }";
    let python = "import socket\ndef handler():\n    a, b = socket.socketpair()\n    a.sendall(b'hello')\n    \
        a.close()\n    text = b.recv(9).decode()\n    b.close()\n    return text\n";
    for (kind, code) in [(NODE, node), (PYTHON, python)] {
        let mut worker = Worker::inline(kind, code);
        let output = worker.try_call(assay_node_runtimes::CallForm::Function, json!({})).unwrap();
        assert_eq!(output.value, json!("hello"));
    }
}

#[test]
fn listening_is_refused_in_words_in_python() {
    let code = "import socket\ndef handler():\n    socket.create_server(('127.0.0.1', 0))\n";
    let failure = Worker::inline(PYTHON, code).failure(json!({}));
    assert!(failure.message.contains("a function cannot listen: it has no network interface"), "{}", failure.message);
}

#[test]
fn kept_connections_are_used_by_later_calls() {
    let server = HttpServer::echo();
    let tunnel = Tunnel::start(&[("some.test:8080", server.port)]);
    let mut worker = Worker::start_with(NODE, &[("ASSAY_TUNNEL", tunnel.path().to_str().unwrap())]);
    worker.load(inline(NODE, NODE_CLIENTS[0])).unwrap();
    let values: Vec<Value> = (0..5).map(|_| worker.function(json!("http://some.test:8080/x"))).collect();
    assert_eq!(values, vec![json!(echoed("/x")); 5]);
    assert_eq!(tunnel.opened().len(), 1);
}

#[test]
fn a_malformed_range_of_streams_is_an_error_at_the_start() {
    for kind in BOTH {
        let directory = crate::harness::runtimes();
        let mut command = std::process::Command::new(interpreter(kind));
        command.args(kind.arguments(directory)).envs(kind.variables(directory)).env("ASSAY_STREAMS", "ten");
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        assert!(!output.status.success());
        let console = String::from_utf8_lossy(&output.stderr);
        assert!(console.contains("ASSAY_STREAMS is ten: a list such as 10,12 is valid"), "{console}");
    }
}
