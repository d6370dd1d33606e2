//! State around calls: environment and working directory.

use assay_node_runtimes::RuntimeKind;
use serde_json::json;

use crate::harness::{BOTH, Worker, inline};

const READ: [(RuntimeKind, &str); 2] = [
    (
        RuntimeKind::Node,
        "const atLoad = process.env.A ?? null;
         process.env.OWN = 'own';
         function handler({set}) {
           const seen = [atLoad, process.env.A ?? null, process.env.B ?? null, process.env.OWN ?? null];
           if (set) { process.env.A = 'changed'; process.env.C = 'new'; delete process.env.OWN; }
           return seen.concat([process.env.C ?? null]);
         }",
    ),
    (
        RuntimeKind::Python,
        "import os\nat_load = os.environ.get('A')\nos.environ['OWN'] = 'own'\ndef handler(set):\n    \
         seen = [at_load, os.environ.get('A'), os.environ.get('B'), os.environ.get('OWN')]\n    \
         if set:\n        os.environ.update(A='changed', C='new')\n        del os.environ['OWN']\n    \
         return seen + [os.environ.get('C')]\n",
    ),
];

#[test]
fn each_call_has_its_own_environment() {
    for (kind, code) in READ {
        let mut worker = Worker::start(kind);
        worker.environment = [("A".to_owned(), "load".to_owned())].into();
        worker.load(inline(kind, code)).unwrap();
        worker.environment = [("A", "1"), ("B", "2")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(worker.function(json!({"set": true})), json!(["load", "1", "2", "own", "new"]));
        assert_eq!(worker.function(json!({"set": false})), json!(["load", "1", "2", "own", null]));
        worker.environment = [("B".to_owned(), "3".to_owned())].into();
        assert_eq!(worker.function(json!({"set": false})), json!(["load", null, "3", "own", null]));
    }
}

#[test]
fn the_environment_has_no_secrets_of_the_worker() {
    for (kind, code) in [
        (
            RuntimeKind::Node,
            "function handler() { return Object.keys(process.env).filter(n => n.startsWith('ASSAY')); }",
        ),
        (RuntimeKind::Python, "import os\ndef handler(): return [n for n in os.environ if n.startswith('ASSAY')]"),
    ] {
        assert_eq!(Worker::inline(kind, code).function(json!({})), json!([]));
    }
}

#[test]
fn the_working_directory_is_restored() {
    for (kind, code) in [
        (RuntimeKind::Node, "function handler() { const before = process.cwd(); process.chdir('/'); return before; }"),
        (
            RuntimeKind::Python,
            "import os\ndef handler():\n    before = os.getcwd()\n    os.chdir('/')\n    return before",
        ),
    ] {
        let mut worker = Worker::inline(kind, code);
        let first = worker.function(json!({}));
        assert_ne!(first, json!("/"));
        assert_eq!(worker.function(json!({})), first);
    }
}

#[test]
fn a_worker_ends_when_its_channel_is_closed() {
    for kind in BOTH {
        assert_eq!(Worker::start(kind).finish(), "");
    }
}

#[test]
fn a_worker_ends_although_user_code_left_a_timer_or_a_thread() {
    let code = "import threading, time\ndef handler():\n    threading.Thread(target=time.sleep, args=(600,)).start()\n";
    let cases =
        [(RuntimeKind::Node, "function handler() { setInterval(() => {}, 1000); }"), (RuntimeKind::Python, code)];
    for (kind, code) in cases {
        let mut worker = Worker::inline(kind, code);
        worker.try_call(assay_node_runtimes::CallForm::Function, json!({})).unwrap();
        worker.finish();
    }
}

#[test]
fn the_channel_may_have_another_descriptor() {
    for kind in BOTH {
        let script = "exec 9<&0 0</dev/null; exec \"$0\" \"$@\"";
        let worker = Worker::start_in_shell(kind, &[("ASSAY_CHANNEL", "9")], script);
        assert_eq!(worker.ready.runtime, kind.name());
    }
}
