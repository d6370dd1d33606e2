//! Headers of a request, and their agreement with its message.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::message::{RpcError, RpcRequest};
use crate::versions::McpVersion;

/// Member of `_meta` with the version of a request.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Member of `_meta` with the capabilities of the client.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Marks around a header value that is encoded in base64.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// Headers of a request that the protocol reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpHeaders {
    /// `Accept`
    pub accept: Option<String>,
    /// `MCP-Protocol-Version`
    pub version: Option<String>,
    /// `Mcp-Method`
    pub method: Option<String>,
    /// `Mcp-Name`
    pub name: Option<String>,
}

impl McpHeaders {
    /// Returns whether the client accepts a JSON answer.
    pub fn accepts_json(&self) -> bool {
        let Some(accept) = &self.accept else { return true };
        let is_refused = |parameters: &str| {
            let weight = parameters.split(';').filter_map(|one| one.trim().strip_prefix("q=")).next();
            weight.is_some_and(|weight| weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0))
        };
        accept.split(',').any(|range| {
            let (kind, parameters) = range.split_once(';').unwrap_or((range, ""));
            let kind = kind.trim().to_ascii_lowercase();
            matches!(kind.as_str(), "application/json" | "application/*" | "*/*") && !is_refused(parameters)
        })
    }

    /// Returns the version that the header names.
    pub(crate) fn version(&self) -> Result<Option<McpVersion>, RpcError> {
        self.version.as_deref().map(|name| McpVersion::parse(name).ok_or_else(|| unsupported(name))).transpose()
    }

    /// Returns the version of a request, whose headers have to agree with its message.
    pub(crate) fn version_of(&self, request: &RpcRequest<'_>) -> Result<McpVersion, RpcError> {
        let named = self.version()?;
        let Some(meta) = request.meta(VERSION) else {
            return match named {
                Some(version) if version.is_modern() => Err(missing_meta(VERSION)),
                named => Ok(named.unwrap_or(McpVersion::UNNAMED)),
            };
        };
        let meta = meta.as_str().unwrap_or_default();
        let Some(version) = named else {
            // A version that is unknown matters more than the missing header.
            McpVersion::parse(meta).ok_or_else(|| unsupported(meta))?;
            return Err(mismatch("MCP-Protocol-Version", None, meta));
        };
        if version.name() != meta {
            return Err(mismatch("MCP-Protocol-Version", self.version.as_deref(), meta));
        }
        if version.is_modern() {
            self.check_modern(request)?;
        }
        Ok(version)
    }

    fn check_modern(&self, request: &RpcRequest<'_>) -> Result<(), RpcError> {
        if !request.meta(CAPABILITIES).is_some_and(serde_json::Value::is_object) {
            return Err(missing_meta(CAPABILITIES));
        }
        if self.method.as_deref() != Some(request.method) {
            return Err(mismatch("Mcp-Method", self.method.as_deref(), request.method));
        }
        if request.method != "tools/call" {
            return Ok(());
        }
        let name = request.param("name").and_then(serde_json::Value::as_str).unwrap_or_default();
        match self.name.as_deref().and_then(decoded) {
            Some(sent) if sent == name => Ok(()),
            _ => Err(mismatch("Mcp-Name", self.name.as_deref(), name)),
        }
    }
}

/// Decodes a header value, which may be encoded. Returns `None` for an invalid encoding.
fn decoded(value: &str) -> Option<String> {
    let encoded = value.strip_prefix(ENCODED.0).and_then(|rest| rest.strip_suffix(ENCODED.1));
    match encoded {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
    }
}

fn unsupported(requested: &str) -> RpcError {
    let supported = McpVersion::ALL.map(McpVersion::name);
    let requested: String = requested.chars().take(40).collect();
    let why = format!("the protocol version `{requested}` is not supported; supported are {}", supported.join(", "));
    RpcError::new(RpcError::UNSUPPORTED_VERSION, why).with_data(json!({"supported": supported, "requested": requested}))
}

fn mismatch(header: &str, sent: Option<&str>, body: &str) -> RpcError {
    let shortened = |text: &str| text.chars().take(200).collect::<String>();
    let body = shortened(body);
    let why = match sent {
        None => format!("the header `{header}` is missing; the body says `{body}`"),
        Some(sent) => format!("the header `{header}` is `{}`, but the body says `{body}`", shortened(sent)),
    };
    RpcError::new(RpcError::HEADER_MISMATCH, why)
}

fn missing_meta(name: &str) -> RpcError {
    RpcError::new(RpcError::INVALID_PARAMS, format!("`params._meta[\"{name}\"]` is missing"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::message::Message;

    fn modern(method: &str, name: Option<&str>) -> McpHeaders {
        McpHeaders {
            version: Some("2026-07-28".into()),
            method: Some(method.into()),
            name: name.map(str::to_owned),
            ..McpHeaders::default()
        }
    }

    fn request(method: &str, more: Value) -> Value {
        let mut params = json!({"_meta": {VERSION: "2026-07-28", CAPABILITIES: {}}});
        for (name, value) in more.as_object().expect("members") {
            params[name] = value.clone();
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    }

    fn version(headers: &McpHeaders, message: &Value) -> Result<McpVersion, i64> {
        let Ok(Message::Request(request)) = Message::read(message) else { panic!("a request") };
        headers.version_of(&request).map_err(|error| error.code)
    }

    #[test]
    fn headers_of_a_modern_request_agree_with_its_body() {
        let call = request("tools/call", json!({"name": "sql_query"}));
        assert_eq!(version(&modern("tools/call", Some("sql_query")), &call), Ok(McpVersion::V2026_07_28));
        let encoded = format!("=?base64?{}?=", STANDARD.encode("sql_query"));
        assert_eq!(version(&modern("tools/call", Some(&encoded)), &call), Ok(McpVersion::V2026_07_28));
        assert_eq!(
            version(&modern("tools/list", None), &request("tools/list", json!({}))),
            Ok(McpVersion::V2026_07_28)
        );
        for (headers, code) in [
            (modern("tools/call", Some("other")), RpcError::HEADER_MISMATCH),
            (modern("tools/call", Some("=?base64?!?=")), RpcError::HEADER_MISMATCH),
            (modern("tools/call", None), RpcError::HEADER_MISMATCH),
            (modern("tools/list", Some("sql_query")), RpcError::HEADER_MISMATCH),
            (McpHeaders { method: None, ..modern("", Some("sql_query")) }, RpcError::HEADER_MISMATCH),
            (McpHeaders { version: None, ..modern("tools/call", Some("sql_query")) }, RpcError::HEADER_MISMATCH),
            (
                McpHeaders { version: Some("2025-11-25".into()), ..modern("tools/call", Some("sql_query")) },
                RpcError::HEADER_MISMATCH,
            ),
            (
                McpHeaders { version: Some("1900-01-01".into()), ..modern("tools/call", Some("sql_query")) },
                RpcError::UNSUPPORTED_VERSION,
            ),
        ] {
            assert_eq!(version(&headers, &call), Err(code), "{headers:?}");
        }
    }

    #[test]
    fn a_modern_request_describes_itself() {
        let headers = modern("tools/list", None);
        let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        assert_eq!(version(&headers, &bare), Err(RpcError::INVALID_PARAMS));
        let mut without = request("tools/list", json!({}));
        without["params"]["_meta"][CAPABILITIES] = Value::Null;
        assert_eq!(version(&headers, &without), Err(RpcError::INVALID_PARAMS));
        let mut unknown = request("tools/list", json!({}));
        unknown["params"]["_meta"][VERSION] = "1900-01-01".into();
        assert_eq!(version(&McpHeaders::default(), &unknown), Err(RpcError::UNSUPPORTED_VERSION));
    }

    #[test]
    fn an_older_request_needs_no_header() {
        let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        assert_eq!(version(&McpHeaders::default(), &bare), Ok(McpVersion::V2025_03_26));
        let older = McpHeaders { version: Some("2025-06-18".into()), ..McpHeaders::default() };
        assert_eq!(version(&older, &bare), Ok(McpVersion::V2025_06_18));
    }

    #[test]
    fn the_answer_is_json() {
        let accepts = |accept: Option<&str>| {
            McpHeaders { accept: accept.map(str::to_owned), ..McpHeaders::default() }.accepts_json()
        };
        for accept in
            ["application/json, text/event-stream", "*/*", "text/html, Application/JSON;q=0.5", "application/*"]
        {
            assert!(accepts(Some(accept)), "{accept}");
        }
        assert!(accepts(None));
        for accept in ["", "text/event-stream", "text/html", "application/json;q=0", "application/jsonl"] {
            assert!(!accepts(Some(accept)), "{accept}");
        }
    }
}
