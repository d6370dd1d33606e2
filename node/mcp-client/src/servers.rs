//! MCP servers of a prompt: `prompt_data.mcp` with the records it names and the tokens of a call. Pure.

use std::collections::HashMap;

use assay_node_egress::EgressUrl;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::spec::{McpServerSpec, McpToken, SERVERS_MAX};

/// Path of the servers in a prompt, for errors.
const ROOT: &str = "prompt_data.mcp";
/// Bytes of the name of a server.
const NAME_BYTES_MAX: usize = 255;
/// Tokens that a call may bring.
const TOKENS_MAX: usize = 1000;
/// Names in `enabled_tools`.
const ENABLED_TOOLS_MAX: usize = 1000;

/// What a call needs of a record of the kind `mcp_server`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerRecord {
    pub url: String,
}

/// Why the servers of a prompt cannot be used: where, and what is valid. URLs and tokens are not shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct McpServersError {
    pub path: String,
    pub problem: String,
}

impl McpServersError {
    fn new(path: impl Into<String>, problem: impl Into<String>) -> McpServersError {
        McpServersError { path: path.into(), problem: problem.into() }
    }
}

/// A server as the prompt names it.
struct NamedServer<'v> {
    name: &'v str,
    path: String,
    fields: &'v Map<String, Value>,
}

/// Returns the ids of the records that a prompt names, for the caller to read. Disabled servers are left out.
pub fn record_ids(mcp: &Value) -> Result<Vec<Uuid>, McpServersError> {
    let mut ids = Vec::new();
    for server in enabled_servers(mcp)? {
        if server.kind()? == ServerKind::Record {
            let id = server.record_id()?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    Ok(ids)
}

/// Returns the servers of a prompt, in its order. `mcp` is `prompt_data.mcp`, and `mcp_auth` the member of the call; null
/// stands for an absent one. A token belongs to the server whose URL it is given for, in normal form.
pub fn server_specs(
    mcp: &Value,
    records: &HashMap<Uuid, McpServerRecord>,
    mcp_auth: &Value,
    organization: Uuid,
) -> Result<Vec<McpServerSpec>, McpServersError> {
    let tokens = read_tokens(mcp_auth)?;
    let mut specs = Vec::new();
    for server in enabled_servers(mcp)? {
        let (url, url_path) = match server.kind()? {
            ServerKind::Url => (server.text("url")?, format!("{}.url", server.path)),
            ServerKind::Record => {
                let record = records.get(&server.record_id()?);
                let path = format!("{}.id", server.path);
                let missing = "there is no such MCP server in the project, or you may not read it";
                (&*record.ok_or_else(|| McpServersError::new(&path, missing))?.url, path)
            }
        };
        let url: EgressUrl = url.parse().map_err(|why| McpServersError::new(url_path, format!("{why}")))?;
        let bearer = tokens.iter().find(|(known, _)| *known == url).map(|(_, token)| token.clone());
        let enabled_tools = server.enabled_tools()?;
        specs.push(McpServerSpec { bearer, enabled_tools, ..McpServerSpec::new(server.name, url, organization) });
    }
    Ok(specs)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerKind {
    Record,
    Url,
}

impl<'v> NamedServer<'v> {
    fn kind(&self) -> Result<ServerKind, McpServersError> {
        match self.fields.get("type").and_then(Value::as_str) {
            Some("id") => Ok(ServerKind::Record),
            Some("url") => Ok(ServerKind::Url),
            _ => Err(McpServersError::new(format!("{}.type", self.path), "must be `id` or `url`")),
        }
    }

    fn text(&self, member: &str) -> Result<&'v str, McpServersError> {
        let text = self.fields.get(member).and_then(Value::as_str);
        text.ok_or_else(|| McpServersError::new(format!("{}.{member}", self.path), "must be a text"))
    }

    fn record_id(&self) -> Result<Uuid, McpServersError> {
        let id = Uuid::parse_str(self.text("id")?);
        id.map_err(|_| McpServersError::new(format!("{}.id", self.path), "must be the UUID of an MCP server"))
    }

    fn is_disabled(&self) -> Result<bool, McpServersError> {
        match self.fields.get("is_disabled") {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(is_disabled)) => Ok(*is_disabled),
            Some(_) => Err(McpServersError::new(format!("{}.is_disabled", self.path), "must be true or false")),
        }
    }

    fn enabled_tools(&self) -> Result<Option<Vec<String>>, McpServersError> {
        let wrong = || {
            let path = format!("{}.enabled_tools", self.path);
            McpServersError::new(path, format!("must be a list of at most {ENABLED_TOOLS_MAX} names, or null for all"))
        };
        match self.fields.get("enabled_tools") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(names)) if names.len() <= ENABLED_TOOLS_MAX => {
                let names = names.iter().map(|name| name.as_str().map(str::to_owned));
                names.collect::<Option<Vec<_>>>().map(Some).ok_or_else(wrong)
            }
            Some(_) => Err(wrong()),
        }
    }
}

fn enabled_servers(mcp: &Value) -> Result<Vec<NamedServer<'_>>, McpServersError> {
    let servers = match mcp {
        Value::Null => return Ok(Vec::new()),
        Value::Object(servers) => servers,
        _ => return Err(McpServersError::new(ROOT, "must be an object of servers by name")),
    };
    let mut enabled = Vec::new();
    for (name, fields) in servers {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let problem = format!("names of servers have 1 to {NAME_BYTES_MAX} bytes");
            return Err(McpServersError::new(ROOT, problem));
        }
        let path = format!("{ROOT}.{name}");
        let Value::Object(fields) = fields else {
            return Err(McpServersError::new(path, "must be an object with `type`"));
        };
        let server = NamedServer { name, path, fields };
        if !server.is_disabled()? {
            enabled.push(server);
        }
    }
    if enabled.len() > SERVERS_MAX {
        return Err(McpServersError::new(ROOT, format!("has more than {SERVERS_MAX} servers that are not disabled")));
    }
    Ok(enabled)
}

/// Reads the tokens of a call by URL. Entries without a token are left out.
fn read_tokens(mcp_auth: &Value) -> Result<Vec<(EgressUrl, McpToken)>, McpServersError> {
    let entries = match mcp_auth {
        Value::Null => return Ok(Vec::new()),
        Value::Object(entries) if entries.len() <= TOKENS_MAX => entries,
        _ => {
            let problem = format!("must be an object of at most {TOKENS_MAX} URLs with `oauth_token`");
            return Err(McpServersError::new("mcp_auth", problem));
        }
    };
    let mut tokens = Vec::new();
    for (index, (url, entry)) in entries.iter().enumerate() {
        // Keys are URLs, which may have secrets in their query: entries are told by their number.
        let path = format!("mcp_auth[{index}]");
        let Value::Object(entry) = entry else {
            return Err(McpServersError::new(path, "must be an object such as {\"oauth_token\": \"...\"}"));
        };
        let token = match entry.get("oauth_token") {
            None | Some(Value::Null) => continue,
            Some(Value::String(token)) if token.is_empty() => continue,
            Some(Value::String(token)) => McpToken::new(token.clone()),
            Some(_) => return Err(McpServersError::new(format!("{path}.oauth_token"), "must be a text")),
        };
        let token = token.map_err(|why| McpServersError::new(format!("{path}.oauth_token"), why.to_string()))?;
        let url = url.parse().map_err(|why| McpServersError::new(path, format!("its key is no valid URL: {why}")))?;
        tokens.push((url, token));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests;
