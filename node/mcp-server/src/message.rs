//! JSON-RPC messages: their parser, errors and responses.

use serde_json::{Map, Value, json};

/// Error of the protocol, as opposed to an error of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    data: Option<Value>,
}

impl RpcError {
    pub(crate) const PARSE: i64 = -32700;
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    pub(crate) const HEADER_MISMATCH: i64 = -32020;
    pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

    pub(crate) fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    pub(crate) fn with_data(self, data: Value) -> RpcError {
        RpcError { data: Some(data), ..self }
    }

    /// Returns the response with this error. A message without a readable id has none.
    pub(crate) fn response(&self, id: Option<&Value>) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        let mut response = json!({"jsonrpc": "2.0"});
        if let Some(id) = id {
            response["id"] = id.clone();
        }
        response["error"] = error;
        response
    }
}

/// Response to one HTTP request. Without a body, it acknowledges notifications.
#[derive(Clone, Debug, PartialEq)]
pub struct McpReply {
    pub status: u16,
    pub body: Option<Value>,
}

impl McpReply {
    pub(crate) fn refused(status: u16, id: Option<&Value>, error: &RpcError) -> McpReply {
        McpReply { status, body: Some(error.response(id)) }
    }

    pub(crate) fn accepted() -> McpReply {
        McpReply { status: 202, body: None }
    }
}

/// Returns the response to a body that is not JSON.
pub fn parse_error(why: &str) -> McpReply {
    McpReply::refused(400, None, &RpcError::new(RpcError::PARSE, format!("the body is not valid JSON: {why}")))
}

/// Message of a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message<'m> {
    Request(RpcRequest<'m>),
    Notification,
    /// Response to a request of the server, which sends none.
    Response,
}

/// Request of a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcRequest<'m> {
    pub id: &'m Value,
    pub method: &'m str,
    pub params: Option<&'m Map<String, Value>>,
}

impl<'m> RpcRequest<'m> {
    pub fn param(&self, name: &str) -> Option<&'m Value> {
        self.params?.get(name).filter(|value| !value.is_null())
    }

    pub fn meta(&self, name: &str) -> Option<&'m Value> {
        self.param("_meta")?.get(name).filter(|value| !value.is_null())
    }
}

/// Largest integer id, up to which all clients represent integers exactly.
const RPC_ID_MAX: u64 = (1 << 53) - 1;

/// Returns the id of a message, if it has a valid one.
pub(crate) fn id_of(message: &Value) -> Option<&Value> {
    let is_exact = |id: &Value| id.as_i64().is_some_and(|id| id.unsigned_abs() <= RPC_ID_MAX);
    message.get("id").filter(|id| id.is_string() || is_exact(id))
}

impl<'m> Message<'m> {
    pub fn read(message: &'m Value) -> Result<Message<'m>, RpcError> {
        let invalid = |why: &str| Err(RpcError::new(RpcError::INVALID_REQUEST, why));
        let Value::Object(members) = message else {
            return invalid("a message has to be a JSON object");
        };
        if members.get("jsonrpc") != Some(&Value::from("2.0")) {
            return invalid("`jsonrpc` has to be \"2.0\"");
        }
        let method = match members.get("method") {
            Some(Value::String(method)) => method,
            Some(_) => return invalid("`method` has to be a string"),
            None if members.contains_key("result") || members.contains_key("error") => return Ok(Message::Response),
            None => return invalid("`method` is missing"),
        };
        let params = match members.get("params") {
            None | Some(Value::Null) => None,
            Some(Value::Object(params)) => Some(params),
            Some(_) => return invalid("`params` has to be an object"),
        };
        match (members.get("id"), id_of(message)) {
            (None, _) => Ok(Message::Notification),
            (Some(_), Some(id)) => Ok(Message::Request(RpcRequest { id, method, params })),
            (Some(_), None) => invalid("`id` has to be a string, or an integer of at most 53 bits"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let read = |message: &Value| match Message::read(message) {
            Ok(Message::Request(request)) => Ok(request.method.to_owned()),
            Ok(Message::Notification) => Ok("a notification".to_owned()),
            Ok(Message::Response) => Ok("a response".to_owned()),
            Err(error) => Err((error.code, error.message)),
        };
        assert_eq!(read(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})), Ok("ping".into()));
        assert_eq!(read(&json!({"jsonrpc": "2.0", "id": "a", "method": "x", "params": null})), Ok("x".into()));
        assert_eq!(read(&json!({"jsonrpc": "2.0", "method": "x"})), Ok("a notification".into()));
        assert_eq!(read(&json!({"jsonrpc": "2.0", "id": 1, "result": {}})), Ok("a response".into()));
        for (message, words) in [
            (json!([]), "JSON object"),
            (json!({"id": 1, "method": "x"}), "`jsonrpc`"),
            (json!({"jsonrpc": "1.0", "id": 1, "method": "x"}), "`jsonrpc`"),
            (json!({"jsonrpc": "2.0", "id": 1}), "`method` is missing"),
            (json!({"jsonrpc": "2.0", "id": 1, "method": 3}), "`method` has to be a string"),
            (json!({"jsonrpc": "2.0", "id": null, "method": "x"}), "`id` has to be"),
            (json!({"jsonrpc": "2.0", "id": 1.5, "method": "x"}), "`id` has to be"),
            (json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": []}), "`params` has to be"),
        ] {
            let (code, why) = read(&message).expect_err("it is invalid");
            assert!(code == RpcError::INVALID_REQUEST && why.contains(words), "{message}: {why}");
        }
    }

    #[test]
    fn an_error_without_a_readable_id_has_none() {
        let error = RpcError::new(RpcError::PARSE, "x");
        assert_eq!(error.response(None), json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "x"}}));
        let error = error.with_data(json!([1]));
        assert_eq!(error.response(Some(&json!(7)))["id"], 7);
        assert_eq!(error.response(None)["error"]["data"], json!([1]));
    }
}
