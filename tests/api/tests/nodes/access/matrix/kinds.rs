//! Kinds of records, a line each: their paths, containers, and deciding permissions.

use serde_json::{Value, json};

/// Container of an object, among those that every cell shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    Organization,
    /// The project whose things are granted one by one.
    Project,
    /// The project that is granted as a whole: its parts are no things of their own.
    Parts,
    /// Containers named by their fields: that project, a dataset, a function, the organization.
    OfParts,
    OfDataset,
    OfFunction,
    OfOrganization,
}

#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    pub path: &'static str,
    pub home: Home,
    /// Type under which it is granted; none is a part of its container.
    pub own: Option<&'static str>,
    pub fields: fn(&str) -> Value,
    /// Field and value of a patch.
    pub change: fn(&str) -> (&'static str, Value),
    pub by_put: bool,
    /// A second one of the name is refused and not found.
    pub alone: bool,
}

fn plain(_: &str) -> Value {
    json!({})
}

fn slugged(name: &str) -> Value {
    json!({"slug": name})
}

fn described(by: &str) -> (&'static str, Value) {
    ("description", format!("changed by {by}").into())
}

fn marked(by: &str) -> (&'static str, Value) {
    ("metadata", json!({"changed": by}))
}

fn code(name: &str) -> Value {
    let of = json!({"runtime": "node", "version": "20"});
    json!({"slug": name, "function_data": {"type": "code", "data": {"type": "inline", "runtime_context": of, "code": "1"}}})
}

const PLAIN: Kind = Kind {
    name: "",
    path: "",
    home: Home::Organization,
    own: None,
    fields: plain,
    change: described,
    by_put: true,
    alone: false,
};

pub static KINDS: [Kind; 21] = [
    Kind { name: "project", path: "/v1/project", own: Some("project"), by_put: false, ..PLAIN },
    Kind {
        name: "experiment",
        path: "/v1/experiment",
        home: Home::Project,
        own: Some("experiment"),
        by_put: false,
        ..PLAIN
    },
    Kind { name: "dataset", path: "/v1/dataset", home: Home::Project, own: Some("dataset"), by_put: false, ..PLAIN },
    Kind { name: "prompt", path: "/v1/prompt", home: Home::Project, own: Some("prompt"), fields: slugged, ..PLAIN },
    Kind { name: "function", path: "/v1/function", home: Home::Project, own: Some("prompt"), fields: code, ..PLAIN },
    Kind {
        name: "prompt_session",
        path: "/v1/prompt_session",
        home: Home::Project,
        own: Some("prompt_session"),
        ..PLAIN
    },
    Kind { name: "agent", path: "/v1/agent", home: Home::Parts, ..PLAIN },
    Kind {
        name: "project_score",
        path: "/v1/project_score",
        home: Home::Parts,
        fields: |_| json!({"score_type": "slider"}),
        ..PLAIN
    },
    Kind { name: "project_tag", path: "/v1/project_tag", home: Home::Parts, ..PLAIN },
    Kind {
        name: "span_iframe",
        path: "/v1/span_iframe",
        home: Home::Parts,
        fields: |_| json!({"url": "https://example.com/x"}),
        ..PLAIN
    },
    Kind {
        name: "custom_column",
        path: "/v1/custom_column",
        home: Home::Parts,
        fields: |_| json!({"source": "project_logs", "expr": "metadata.tier"}),
        ..PLAIN
    },
    Kind {
        name: "mcp_server",
        path: "/v1/mcp_server",
        home: Home::Parts,
        fields: |_| json!({"url": "https://example.com/x"}),
        ..PLAIN
    },
    Kind {
        name: "view",
        path: "/v1/view",
        home: Home::OfParts,
        fields: |_| json!({"view_type": "logs"}),
        change: |by| ("view_data", json!({"search": {"filter": [by]}})),
        ..PLAIN
    },
    Kind {
        name: "env_var of a project",
        path: "/v1/env_var",
        home: Home::OfParts,
        fields: value,
        change: marked,
        ..PLAIN
    },
    Kind {
        name: "env_var of a function",
        path: "/v1/env_var",
        home: Home::OfFunction,
        fields: value,
        change: marked,
        ..PLAIN
    },
    Kind {
        name: "env_var of the organization",
        path: "/v1/env_var",
        home: Home::OfOrganization,
        fields: value,
        change: marked,
        ..PLAIN
    },
    Kind {
        name: "dataset_snapshot",
        path: "/v1/dataset_snapshot",
        home: Home::OfDataset,
        fields: |_| json!({"xact_id": "1000192656880881099"}),
        ..PLAIN
    },
    Kind { name: "group", path: "/v1/group", own: Some("group"), ..PLAIN },
    Kind { name: "role", path: "/v1/role", own: Some("role"), ..PLAIN },
    Kind {
        name: "ai_secret",
        path: "/v1/ai_secret",
        own: Some("ai_secret"),
        fields: |_| json!({"type": "openai", "secret": "sk-of-a-provider-and-told-to-nobody"}),
        change: marked,
        ..PLAIN
    },
    Kind { name: "environment", path: "/environment", fields: slugged, by_put: false, alone: true, ..PLAIN },
];

fn value(_: &str) -> Value {
    json!({"value": "told-to-nobody"})
}

impl Kind {
    pub fn of(name: &str) -> &'static Kind {
        KINDS.iter().find(|kind| kind.name == name).unwrap_or_else(|| panic!("no kind {name}"))
    }

    /// The permission that an own thing takes for what it takes `update` for as a part.
    pub fn needs(&self, as_own: &'static str) -> &'static str {
        if self.own.is_some() { as_own } else { "update" }
    }
}
