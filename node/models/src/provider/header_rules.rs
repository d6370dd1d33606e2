//! Headers that a provider secret adds: templates of values, and refused headers (G-09b).

use super::Provider;

/// Upper bound of a rendered header value, in bytes.
const HEADER_VALUE_BYTES_MAX: usize = 16 << 10;
/// Upper bound of the variables in one template.
const TEMPLATE_VARIABLES_MAX: usize = 64;

/// Headers that are specific to a connection or frame a message. Users cannot set them.
const HOP_BY_HOP: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Values of the variables in header templates.
#[derive(Clone, Copy, Default)]
pub struct HeaderVariables<'a> {
    /// E-mail address of the owner of the caller's key.
    pub email: &'a str,
    pub model: &'a str,
    /// Value of the provider secret.
    pub api_key: &'a str,
}

impl std::fmt::Debug for HeaderVariables<'_> {
    /// Omits the secret.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("HeaderVariables")
            .field("email", &self.email)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Reason why a header is not sent. It never contains the value, which may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderRefusal {
    #[error("{name:?} is no header name: use letters, digits and hyphens")]
    Name { name: String },
    #[error("header {name}: it belongs to a connection and cannot be set")]
    HopByHop { name: String },
    #[error("header {name}: the value has a line break or another control character")]
    ControlCharacter { name: String },
    #[error("header {name}: the value has more than {HEADER_VALUE_BYTES_MAX} bytes")]
    TooLong { name: String },
    #[error("header {name}: the template has more than {TEMPLATE_VARIABLES_MAX} variables")]
    TooManyVariables { name: String },
}

/// Headers to send, with names in lower case, and refused headers. A refused header does not stop the call.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RenderedHeaders {
    pub headers: Vec<(String, String)>,
    pub refused: Vec<HeaderRefusal>,
}

impl std::fmt::Debug for RenderedHeaders {
    /// Prints only names, because values may be secret.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        out.debug_struct("RenderedHeaders").field("headers", &names).field("refused", &self.refused).finish()
    }
}

/// Returns whether a header is specific to a connection. The name must be in lower case.
pub fn is_hop_by_hop(name: &str) -> bool {
    HOP_BY_HOP.binary_search(&name).is_ok()
}

/// Checks a header that a user configured.
pub fn check_header(name: &str, value: &str) -> Result<(), HeaderRefusal> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(HeaderRefusal::Name { name: name.to_owned() });
    }
    if is_hop_by_hop(&name.to_ascii_lowercase()) {
        return Err(HeaderRefusal::HopByHop { name: name.to_owned() });
    }
    if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return Err(HeaderRefusal::ControlCharacter { name: name.to_owned() });
    }
    if value.len() > HEADER_VALUE_BYTES_MAX {
        return Err(HeaderRefusal::TooLong { name: name.to_owned() });
    }
    Ok(())
}

/// Returns the additional headers of a secret for one call.
pub fn render_additional_headers(provider: &Provider, variables: HeaderVariables<'_>) -> RenderedHeaders {
    let mut rendered = RenderedHeaders::default();
    for (name, template) in &provider.metadata.additional_headers {
        let value = render(name, template, variables);
        match value.and_then(|value| check_header(name, &value).map(|()| value)) {
            Ok(value) => {
                let name = name.to_ascii_lowercase();
                rendered.headers.retain(|(other, _)| *other != name);
                rendered.headers.push((name, value));
            }
            Err(refusal) => rendered.refused.push(refusal),
        }
    }
    rendered
}

/// Replaces `{{name}}`, `{{{name}}}` and `{{&name}}` by values. Nothing is escaped, because the result is not HTML.
///
/// An unknown variable becomes an empty text, as in Mustache. An unclosed one stays unchanged.
fn render(name: &str, template: &str, variables: HeaderVariables<'_>) -> Result<String, HeaderRefusal> {
    let (mut rendered, mut rest) = (String::new(), template);
    for _ in 0..=TEMPLATE_VARIABLES_MAX {
        let Some((before, after)) = rest.split_once("{{") else {
            rendered.push_str(rest);
            return Ok(rendered);
        };
        let (inner, closing) = match after.strip_prefix('{') {
            Some(inner) => (inner, "}}}"),
            None => (after, "}}"),
        };
        let Some((variable, after)) = inner.split_once(closing) else {
            rendered.push_str(rest);
            return Ok(rendered);
        };
        rendered.push_str(before);
        rendered.push_str(match variable.trim().trim_start_matches('&').trim() {
            "email" => variables.email,
            "model" => variables.model,
            "api_key" => variables.api_key,
            _ => "",
        });
        rest = after;
    }
    Err(HeaderRefusal::TooManyVariables { name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::{ProviderScope, ProviderType};

    fn rendered(headers: serde_json::Value, variables: HeaderVariables<'_>) -> RenderedHeaders {
        let members = json!({"additionalHeaders": headers});
        let members = members.as_object().expect("an object");
        let (provider, _) = Provider::parse("1", "n", ProviderType::OpenAi, ProviderScope::Organization, members);
        render_additional_headers(&provider, variables)
    }

    fn one(template: &str) -> String {
        let variables = HeaderVariables { email: "a@b.c", model: "m<1>", api_key: "sk" };
        rendered(json!({"X-H": template}), variables).headers.remove(0).1
    }

    #[test]
    fn the_list_is_sorted_for_its_search() {
        assert!(HOP_BY_HOP.is_sorted());
        assert!(is_hop_by_hop("upgrade") && is_hop_by_hop("connection") && !is_hop_by_hop("accept"));
    }

    #[test]
    fn variables_are_filled_in_without_escapes() {
        for (template, expected) in [
            ("plain", "plain"),
            ("{{email}}", "a@b.c"),
            ("u={{ email }};m={{model}}", "u=a@b.c;m=m<1>"),
            ("Key {{api_key}}", "Key sk"),
            ("{{{model}}}|{{&model}}", "m<1>|m<1>"),
            ("{{other}}x", "x"),
            ("{{email", "{{email"),
            ("a}}b{{model}}", "a}}bm<1>"),
            ("", ""),
        ] {
            assert_eq!(one(template), expected, "{template}");
        }
    }

    #[test]
    fn a_value_is_not_a_template_again() {
        let variables = HeaderVariables { email: "{{api_key}}", model: "", api_key: "sk" };
        assert_eq!(rendered(json!({"a": "{{email}}"}), variables).headers[0].1, "{{api_key}}");
    }

    #[test]
    fn line_breaks_and_headers_of_the_connection_are_refused_and_the_rest_is_sent() {
        let variables = HeaderVariables { email: "a\r\nX-Evil: 1", model: "m", api_key: "k" };
        let long = "v".repeat(HEADER_VALUE_BYTES_MAX + 1);
        let many = "{{model}}".repeat(TEMPLATE_VARIABLES_MAX + 1);
        let found = rendered(
            json!({"a": "{{email}}", "b": "x\0", "Connection": "close", "Transfer-Encoding": "x", "host": "h",
                "bad name": "1", "": "1", "Good": "g", "l": long, "v": many}),
            variables,
        );
        assert_eq!(found.headers, [("good".to_owned(), "g".to_owned())]);
        assert_eq!(found.refused.len(), 9, "{found:?}");
        assert!(!format!("{found:?}").contains("Evil"), "values are not shown");
    }

    #[test]
    fn the_last_of_two_spellings_counts() {
        let found = rendered(json!({"X-A": "1", "x-a": "2"}), HeaderVariables::default());
        assert_eq!(found.headers, [("x-a".to_owned(), "2".to_owned())]);
    }
}
