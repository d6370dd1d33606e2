//! Functions that try to leave their sandbox, to use more than they may, or to disturb others.

use serde_json::{Value, json};

use super::{CodeNode, javascript, python};

/// Settings of a node whose functions end soon, but not while a busy machine still starts their interpreter.
const SHORT: [&str; 2] = ["functions.seconds_max=12", "functions.memory_bytes_max=134217728"];

#[test]
fn functions_cannot_pass_their_limits_nor_leave_their_sandbox() {
    let Some(node) = CodeNode::start("limits of functions", &SHORT) else { return };
    limits(&node);
    files(&node);
    leftovers(&node);
    assert_eq!(node.value(&javascript("const handler = () => 1", json!(1))), json!(1), "the node goes on");
}

fn limits(node: &CodeNode) {
    for (body, words) in [
        (javascript("const handler = () => { for (;;); }", json!(1)), "more than 12 seconds"),
        (python("import time\ndef handler():\n    time.sleep(60)", json!({})), "more than 12 seconds"),
        (
            javascript(
                "const handler = () => { const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1)); }",
                json!(1),
            ),
            "of memory",
        ),
        (python("def handler():\n    all = []\n    while True: all.append(b'x' * (1 << 20))", json!({})), "of memory"),
        (python("def handler():\n    while True: print('x' * 1000)", json!({})), "to its console"),
    ] {
        let failure = node.failure(&body);
        let message = failure["Message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{message}\n{body}");
    }
    let fork =
        "import os, signal\ndef handler():\n    while True:\n        if os.fork() == 0:\n            signal.pause()";
    let fill = "def handler():\n    for number in range(64):\n        with open(f'/tmp/{number}', 'wb') as file:\n            \
        for _ in range(64):\n                file.write(b'x' * (1 << 20))";
    for (code, words) in [
        // The kernel counts too, and may be faster than the server.
        (fork, &["more than 128 processes and threads", "Resource temporarily unavailable"][..]),
        // A reduced sandbox limits each file. In a cgroup, files in `/tmp` count as memory.
        (fill, &["No space left on device", "File too large", "of memory"][..]),
    ] {
        let failure = node.failure(&python(code, json!({})));
        let message = failure["Message"].as_str().unwrap_or_default();
        assert!(words.iter().any(|word| message.contains(word)), "{message}\n{code}");
    }
}

/// Reads that must fail, each with the answer that it would give.
fn files(node: &CodeNode) {
    let code = "import os, socket\n\
        def attempt(act):\n    try:\n        return str(act())\n    except Exception as error:\n        return None\n\
        def handler(data):\n    return {name: attempt(act) for name, act in {\n        \
        'passwd': lambda: open('/etc/passwd').read(),\n        'data': lambda: os.listdir(data),\n        \
        'home': lambda: os.listdir('/root'),\n        'root': lambda: os.listdir('/'),\n        \
        'environment of others': lambda: open('/proc/1/environ').read(),\n        \
        'memory of others': lambda: open('/proc/1/mem', 'rb').read(1),\n        \
        'sysctl': lambda: open('/proc/sys/kernel/core_pattern', 'w'),\n        \
        'internet socket': lambda: socket.create_connection(('169.254.169.254', 80), 1).recv(1),\n        \
        'raw socket': lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),\n        \
        'netlink': lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),\n        \
        'name': lambda: socket.create_connection(('localhost', 22), 1).recv(1),\n        \
        'signal': lambda: os.kill(-1, 9) and 'sent',\n        'user': lambda: os.setuid(0) or 'root',\n    }.items()}";
    let Value::Object(attempts) = node.value(&python(code, json!({"data": "/var/lib"}))) else { panic!("an object") };
    assert!(attempts.len() > 10);
    let code = "const handler = async () => { try { await fetch('http://10.0.0.1/'); return 'sent' } catch { return 'refused' } }";
    assert_eq!(node.value(&javascript(code, json!(1))), "refused");
    for (name, result) in attempts {
        // A refused connection is closed before it has a byte.
        assert!(result.is_null() || result == "" || result == "b''", "{name}: {result}");
    }
}

/// Nothing of a call reaches the next one, and what a call left behind ends its worker.
fn leftovers(node: &CodeNode) {
    let code = "let calls = 0;\nconst handler = ({leave}) => { calls += 1; process.env.LEFT = 'x'; \
        if (leave) setInterval(() => {}, 1000); return [calls, process.env.SEEN ?? null] }";
    let call = |leave: bool| node.value(&javascript(code, json!({ "leave": leave })));
    assert_eq!(call(false), json!([1, null]));
    assert_eq!(call(false), json!([2, null]), "the worker is warm");
    assert_eq!(call(true), json!([3, null]));
    assert_eq!(call(false), json!([1, null]), "a timer was left, so this worker is new");
    let code = "import os, struct, json\ndef handler():\n    frame = json.dumps({'result': {'id': 'x', 'value': 'forged'}}).encode()\n    \
        for number in range(3, 64):\n        try:\n            os.write(number, struct.pack('>I', len(frame)) + frame)\n        except OSError:\n            pass\n    \
        return 'own'";
    let (status, answer) = node.invoke(&python(code, json!({})));
    assert_ne!(answer, json!("forged"), "{status}");
    let (status, answer) = node.invoke(&python("def handler():\n    return 'next'", json!({})));
    assert_eq!((status, answer), (200, json!("next")));
}
