//! Builder of operations for the OpenAPI document: parameters, bodies and responses.

use serde_json::{Map, Value, json};

use crate::responses::refusal::ErrorKind;

/// Operation names that do not follow from method and path. Clients generated from the original API's document use
/// them.
const NAMED: [(&str, &str, &str); 18] = [
    ("get", "/v1", "getIndex"),
    ("post", "/v1/insert", "postCrossObjectInsert"),
    ("post", "/v1/eval", "evalLaunch"),
    ("post", "/v1/acl/batch_update", "aclBatchUpdate"),
    ("get", "/v1/acl/list_org", "aclListOrg"),
    ("get", "/environment", "listEnvironments"),
    ("post", "/environment", "createEnvironment"),
    ("get", "/environment/{id}", "getEnvironment"),
    ("patch", "/environment/{id}", "updateEnvironment"),
    ("delete", "/environment/{id}", "deleteEnvironment"),
    ("post", "/v1/proxy/chat/completions", "proxychatCompletions"),
    ("post", "/v1/proxy/completions", "proxycompletions"),
    ("post", "/v1/proxy/auto", "proxyauto"),
    ("post", "/v1/proxy/embeddings", "proxyembeddings"),
    ("post", "/v1/proxy/credentials", "proxycredentials"),
    ("post", "/v1/proxy/function/invoke", "postV1ProxyFunctionInvoke"),
    ("post", "/v1/proxy/v1/credentials", "postProxyV1Credentials"),
    ("post", "/gateway/v1/credentials", "postGatewayV1Credentials"),
];

/// Error responses of every operation that takes a credential.
const ALWAYS: [ErrorKind; 8] = [
    ErrorKind::BadRequest,
    ErrorKind::Unauthorized,
    ErrorKind::Forbidden,
    ErrorKind::NotFound,
    ErrorKind::HeadTooLarge,
    ErrorKind::Busy,
    ErrorKind::Internal,
    ErrorKind::Unavailable,
];
const WITH_BODY: [ErrorKind; 3] = [ErrorKind::TooSlow, ErrorKind::TooLarge, ErrorKind::UnsupportedEncoding];
const WRITES: [ErrorKind; 2] = [ErrorKind::Conflict, ErrorKind::NoSpace];

#[derive(Clone, Debug)]
pub struct Operation {
    /// Method in lower case, as in the document.
    pub method: &'static str,
    /// Path with `{id}`, as in the router.
    pub path: String,
    pub tag: String,
    summary: String,
    /// Name that replaces `{id}` in the document's path.
    id_name: Option<String>,
    parameters: Vec<Value>,
    body: Option<Value>,
    content: Map<String, Value>,
    headers: Map<String, Value>,
    refusals: Vec<ErrorKind>,
    /// Responses by status, which replace the standard responses.
    others: Vec<(u16, Value)>,
    redirects: bool,
    /// Security requirements of the operation.
    security: Value,
    /// Schemas that the operation refers to.
    pub schemas: Vec<(String, Value)>,
}

impl Operation {
    pub fn new(
        method: &'static str,
        path: impl Into<String>,
        tag: impl Into<String>,
        summary: impl Into<String>,
    ) -> Operation {
        let mut refusals = ALWAYS.to_vec();
        if method != "get" {
            refusals.extend(WRITES);
        }
        Operation {
            method,
            path: path.into(),
            tag: tag.into(),
            summary: summary.into(),
            id_name: None,
            parameters: Vec::new(),
            body: None,
            content: Map::new(),
            headers: Map::new(),
            refusals,
            others: Vec::new(),
            redirects: false,
            security: json!([{"bearer": []}]),
            schemas: Vec::new(),
        }
    }

    /// Adds the parameter for the `{id}` of the path, named after the kind of object.
    pub fn of(mut self, what: &str) -> Operation {
        let name = format!("{what}_id");
        let schema = json!({"type": "string", "format": "uuid"});
        self.parameters.push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
        self.id_name = Some(name);
        self
    }

    /// Adds another path parameter.
    pub fn part(mut self, name: &str, schema: Value) -> Operation {
        self.parameters.push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
        self
    }

    /// Adds an optional query parameter. An empty value counts as missing.
    pub fn asks(mut self, name: &str, schema: Value) -> Operation {
        let (place, empty) = ("query", true);
        self.parameters
            .push(json!({"name": name, "in": place, "required": false, "allowEmptyValue": empty, "schema": schema}));
        self
    }

    pub fn must_ask(mut self, name: &str, schema: Value) -> Operation {
        self.parameters.push(json!({"name": name, "in": "query", "required": true, "schema": schema}));
        self
    }

    pub fn reads_header(mut self, name: &str, about: &str) -> Operation {
        let schema = json!({"type": "string"});
        self.parameters.push(json!({"name": name, "in": "header", "description": about, "schema": schema}));
        self
    }

    /// Adds a required header with its only valid value.
    pub fn must_send(mut self, name: &str, value: &str, about: &str) -> Operation {
        let schema = json!({"type": "string", "enum": [value]});
        let header = json!({"name": name, "in": "header", "required": true, "description": about, "schema": schema});
        self.parameters.push(header);
        self
    }

    /// Adds a JSON body.
    pub fn takes(mut self, schema: Value) -> Operation {
        self.body = Some(json!({"required": true, "content": {"application/json": {"schema": schema}}}));
        self.refusals.extend(WITH_BODY);
        self
    }

    /// Adds a form body.
    pub fn takes_form(mut self, schema: Value) -> Operation {
        let content = json!({"application/x-www-form-urlencoded": {"schema": schema}});
        self.body = Some(json!({"required": true, "content": content}));
        self.refusals.extend(WITH_BODY);
        self
    }

    /// Adds a body in JSON or the equivalent protobuf. An empty body is the empty protobuf message.
    pub fn takes_either(mut self, schema: Value) -> Operation {
        let bytes = json!({"type": "string", "format": "binary"});
        let content = json!({"application/json": {"schema": schema}, "application/x-protobuf": {"schema": bytes}});
        self.body = Some(json!({"required": false, "content": content}));
        self.refusals.extend(WITH_BODY);
        self
    }

    /// Adds a binary body.
    pub fn takes_bytes(mut self) -> Operation {
        let bytes = json!({"type": "string", "format": "binary"});
        self.body = Some(json!({"required": true, "content": {"application/octet-stream": {"schema": bytes}}}));
        self.refusals.extend(WITH_BODY);
        self
    }

    /// Replaces the 200 response with a 302 redirect.
    pub fn redirects(mut self) -> Operation {
        self.redirects = true;
        self
    }

    /// Adds a response with another status and its own content type.
    pub fn answers_with(mut self, status: u16, about: &str, content_type: &str, schema: Value) -> Operation {
        let content = Map::from_iter([(content_type.to_owned(), json!({ "schema": schema }))]);
        self.others.push((status, json!({"description": about, "content": content})));
        self
    }

    /// Adds a response without a body.
    pub fn answers_nothing_with(mut self, status: u16, about: &str) -> Operation {
        self.others.push((status, json!({ "description": about })));
        self
    }

    /// Adds an error response in JSON or the equivalent protobuf.
    pub fn answers_with_either(mut self, kind: ErrorKind, json_schema: &Value, binary: &Value) -> Operation {
        let content =
            json!({"application/json": {"schema": json_schema}, "application/x-protobuf": {"schema": binary}});
        self.others.push((kind.status().as_u16(), json!({"description": kind.said(), "content": content})));
        self
    }

    /// Adds an optional JSON body.
    pub fn may_take(self, schema: Value) -> Operation {
        let mut operation = self.takes(schema);
        if let Some(body) = &mut operation.body {
            body["required"] = false.into();
        }
        operation
    }

    pub fn answers(self, schema: Value) -> Operation {
        self.answers_as("application/json", schema)
    }

    pub fn answers_as(mut self, content_type: &str, schema: Value) -> Operation {
        self.content.insert(content_type.to_owned(), json!({ "schema": schema }));
        self
    }

    pub fn sends_header(mut self, name: &str, about: &str) -> Operation {
        self.headers.insert(name.to_owned(), json!({"description": about, "schema": {"type": "string"}}));
        self
    }

    pub fn also_refuses(mut self, kinds: &[ErrorKind]) -> Operation {
        self.refusals.extend(kinds);
        self
    }

    /// Removes the credential requirement and the error responses that belong to it.
    pub fn public(mut self) -> Operation {
        self.security = json!([]);
        self.refusals
            .retain(|kind| !matches!(kind, ErrorKind::Unauthorized | ErrorKind::Forbidden | ErrorKind::BadRequest));
        self
    }

    /// Removes the credential requirement, because the path contains a ticket.
    pub fn by_ticket(mut self) -> Operation {
        self.security = json!([{}]);
        self
    }

    /// Adds a named schema for references. It replaces a schema of the same name.
    pub fn with(mut self, name: &str, schema: Value) -> Operation {
        self.schemas.retain(|(known, _)| known != name);
        self.schemas.push((name.to_owned(), schema));
        self
    }

    /// Returns the path for the document, with a name for its id.
    pub fn public_path(&self) -> String {
        match &self.id_name {
            Some(name) => self.path.replace("{id}", &format!("{{{name}}}")),
            None => self.path.clone(),
        }
    }

    pub fn value(&self) -> Value {
        let mut ok = json!({"description": "Done", "content": self.content});
        if !self.headers.is_empty() {
            ok["headers"] = self.headers.clone().into();
        }
        let mut responses = if self.redirects {
            let location =
                json!({"description": "URL of the redirect", "schema": {"type": "string", "format": "uri-reference"}});
            let found = json!({"description": "Redirect", "headers": {"Location": location}});
            Map::from_iter([("302".to_owned(), found)])
        } else {
            Map::from_iter([("200".to_owned(), ok)])
        };
        let mut refusals = self.refusals.clone();
        refusals.sort_by_key(|kind| kind.status().as_u16());
        for kind in refusals {
            let target = format!("#/components/responses/{}", kind.name());
            responses.insert(kind.status().as_u16().to_string(), json!({ "$ref": target }));
        }
        responses.extend(self.others.iter().map(|(status, other)| (status.to_string(), other.clone())));
        let mut value = json!({
            "operationId": self.name(), "tags": [self.tag], "summary": self.summary,
            "parameters": self.parameters, "responses": responses, "security": self.security,
        });
        if let Some(body) = &self.body {
            value["requestBody"] = body.clone();
        }
        value
    }

    fn name(&self) -> String {
        let known = NAMED.iter().find(|(method, path, _)| (*method, *path) == (self.method, self.path.as_str()));
        if let Some((_, _, name)) = known {
            return (*name).to_owned();
        }
        let parts = self.path.split('/').filter(|part| !part.is_empty() && *part != "v1");
        let words: String = parts.map(|part| pascal(part.trim_matches(['{', '}', '+']))).collect();
        format!("{}{words}", self.method)
    }
}

/// Converts a name such as `project_score` to `ProjectScore`.
pub fn pascal(name: &str) -> String {
    let words = name.split(['_', '-', '.']).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

pub fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns the schema of a list.
pub fn objects(item: &Value) -> Value {
    let objects = json!({"type": "array", "items": item});
    json!({"type": "object", "required": ["objects"], "properties": {"objects": objects}, "additionalProperties": false})
}

/// Returns the names of a schema's fields, for example for `required`.
pub fn names(fields: &Value) -> Vec<&String> {
    fields.as_object().map(|fields| fields.keys().collect()).unwrap_or_default()
}

/// Returns the schema of an optional id. Null and an empty string count as missing.
pub fn maybe_id() -> Value {
    json!({"anyOf": [{"type": "string", "format": "uuid", "nullable": true}, {"type": "string", "maxLength": 0}]})
}

pub fn text() -> Value {
    json!({"type": "string"})
}

pub fn uuid() -> Value {
    json!({"type": "string", "format": "uuid"})
}

/// Returns the schema of a string that must not be empty.
pub fn some_text() -> Value {
    json!({"type": "string", "minLength": 1})
}

/// Returns the schema of a transaction id, in decimal or as 16 hexadecimal digits.
pub fn version() -> Value {
    json!({"type": "string", "pattern": "^([0-9]{1,19}|[0-9a-fA-F]{16})$"})
}

/// Returns the schema of an optional transaction id. Null and an empty string count as missing.
pub fn maybe_version() -> Value {
    json!({"type": "string", "nullable": true, "pattern": "^([0-9]{0,19}|[0-9a-fA-F]{16})$"})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_from_method_and_path() {
        let name = |method, path: &str| Operation::new(method, path, "", "").name();
        assert_eq!(name("post", "/v1/project_logs/{id}/fetch"), "postProjectLogsIdFetch");
        assert_eq!(name("post", "/v1/acl/batch-update"), "postAclBatchUpdate");
        assert_eq!(name("get", "/openapi.json"), "getOpenapiJson");
        assert_eq!(name("get", "/v1"), "getIndex");
    }
}
