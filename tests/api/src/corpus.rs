//! Malformed requests, made from the data in `corpus/`: every field of every operation with every invalid value, every
//! operation with every broken text and with its own body truncated, unknown ids, wrong queries and credentials, bodies
//! shorter than their declared length. The same data makes the same requests in the same order.
//!
//! A text that begins with `@` is replaced:
//!
//! | text | means |
//! |---|---|
//! | `@absent` | the field is taken out |
//! | `@raw:x` | `x` as it stands, quotes and all left to it |
//! | `@text:n` | a text of n letters; in a header too |
//! | `@key:n` | an object with a key of n letters |
//! | `@nested:n` `@objects:n` | n arrays, or objects, in each other |
//! | `@open:n` | n brackets that nobody closes |
//! | `@bytes:ff00` | these bytes as the whole body |

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::http::Request;
use crate::template::{self, Variables};

/// One request that must be refused.
#[derive(Clone, Debug)]
pub struct Malformed {
    pub name: String,
    pub request: Request,
    /// The body ends before its length: the server may close instead of responding.
    pub may_close: bool,
}

#[derive(Clone, Debug)]
pub struct Corpus {
    fields: Fields,
    texts: TextPool,
    requests: Requests,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(rename = "about")]
    _about: String,
    /// Kind of field to the values it must not have.
    wrong: BTreeMap<String, Vec<Value>>,
    /// Kinds of the fields of what operations have in common.
    shapes: BTreeMap<String, BTreeMap<String, String>>,
    operations: Vec<CorpusOperation>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CorpusOperation {
    name: String,
    method: String,
    path: String,
    /// One that is taken.
    body: Value,
    #[serde(default)]
    body_is_optional: bool,
    /// Path in the body of the shape's fields.
    #[serde(default)]
    at: String,
    shape: Option<String>,
    #[serde(default)]
    fields: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TextPool {
    #[serde(rename = "about")]
    _about: String,
    #[serde(rename = "no body")]
    no_body: Vec<String>,
    texts: Vec<String>,
    /// Places at which each body is cut off.
    cuts: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Requests {
    #[serde(rename = "about")]
    _about: String,
    ids: Vec<String>,
    #[serde(rename = "with an id")]
    with_an_id: Vec<Plain>,
    lists: Vec<String>,
    #[serde(rename = "list queries")]
    list_queries: Vec<String>,
    fetches: Vec<String>,
    #[serde(rename = "fetch queries")]
    fetch_queries: Vec<String>,
    more: Vec<Plain>,
    credentials: Vec<String>,
    #[serde(rename = "asked with a credential")]
    asked_with_a_credential: Vec<Plain>,
    #[serde(rename = "bodies cut short")]
    bodies_cut_short: Vec<usize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain {
    method: String,
    path: String,
    body: Option<Value>,
}

impl Corpus {
    /// Reads the folder with the three files.
    pub fn read(folder: &Path) -> Result<Corpus> {
        Ok(Corpus {
            fields: file(folder, "fields")?,
            texts: file(folder, "texts")?,
            requests: file(folder, "requests")?,
        })
    }

    /// Every request, with `variables` in its holes: `run`, `key`, and the ids `project`, `experiment`, `dataset`.
    pub fn malformed(&self, variables: &Variables) -> Result<Vec<Malformed>> {
        let mut maker = Maker { variables: variables.clone(), made: Vec::new() };
        for operation in &self.fields.operations {
            self.wrong_fields(operation, &mut maker).with_context(|| operation.name.clone())?;
            self.broken_texts(operation, &mut maker)?;
        }
        self.wrong_requests(&mut maker)?;
        Ok(maker.made)
    }

    /// The bodies that all this is made from, unbroken: they must be taken, or the corpus proves nothing.
    pub fn unbroken(&self, variables: &Variables) -> Result<Vec<Malformed>> {
        let mut maker = Maker { variables: variables.clone(), made: Vec::new() };
        for operation in &self.fields.operations {
            let body = template::filled(&operation.body, variables)?.to_string().into_bytes();
            maker.put(operation.name.clone(), &operation.method, &operation.path, Some(body))?;
        }
        Ok(maker.made)
    }

    fn wrong_fields(&self, operation: &CorpusOperation, maker: &mut Maker) -> Result<()> {
        let body = template::filled(&operation.body, &maker.variables)?;
        let shape = match &operation.shape {
            Some(name) => self.fields.shapes.get(name).with_context(|| format!("no shape `{name}`"))?.clone(),
            None => BTreeMap::new(),
        };
        let in_shape = shape.into_iter().map(|(field, kind)| match operation.at.as_str() {
            "" => (field, kind),
            at => (format!("{at}.{field}"), kind),
        });
        for (field, kind) in operation.fields.clone().into_iter().chain(in_shape) {
            let values = self.fields.wrong.get(&kind).with_context(|| format!("no wrong values of `{kind}`"))?;
            let field = template::text(&field, &maker.variables)?;
            for value in values {
                let mut body = body.clone();
                set(&mut body, &field, template::filled(value, &maker.variables)?)?;
                let short: String = value.to_string().chars().take(40).collect();
                let name = format!("{}: {field} = {short}", operation.name);
                maker.put(name, &operation.method, &operation.path, Some(written(&body)))?;
            }
        }
        Ok(())
    }

    fn broken_texts(&self, operation: &CorpusOperation, maker: &mut Maker) -> Result<()> {
        let body = template::filled(&operation.body, &maker.variables)?.to_string();
        let none = if operation.body_is_optional { &[][..] } else { &self.texts.no_body[..] };
        for text in none.iter().chain(&self.texts.texts) {
            let short: String = text.escape_default().take(40).collect();
            let broken = match text.strip_prefix("@bytes:") {
                Some(digits) => bytes_of(digits)?,
                None if text.starts_with('@') => written(&Value::from(text.as_str())),
                None => text.replace("${body}", &body).into_bytes(),
            };
            let name = format!("{}: body {short}", operation.name);
            maker.put(name, &operation.method, &operation.path, Some(broken))?;
        }
        let (cuts, bytes) = (self.texts.cuts, body.as_bytes());
        let mut places: Vec<usize> =
            (1..=cuts).map(|cut| cut * (bytes.len() - 1) / cuts).filter(|at| *at > 0).collect();
        places.dedup();
        for at in places {
            let name = format!("{}: cut at {at}", operation.name);
            maker.put(name, &operation.method, &operation.path, Some(bytes[..at].to_vec()))?;
        }
        for missing in &self.requests.bodies_cut_short {
            let name = format!("{}: {missing} bytes short", operation.name);
            maker.put(name, &operation.method, &operation.path, Some(bytes.to_vec()))?;
            if let Some(last) = maker.made.last_mut() {
                last.request.declared_length = Some(bytes.len() + missing);
                last.may_close = true;
            }
        }
        Ok(())
    }

    fn wrong_requests(&self, maker: &mut Maker) -> Result<()> {
        let requests = &self.requests;
        for id in &requests.ids {
            maker.variables.insert("id".into(), Value::from(id.as_str()));
            for plain in &requests.with_an_id {
                maker.put_plain(format!("id {id}"), plain)?;
            }
        }
        for (paths, queries) in
            [(&requests.lists, &requests.list_queries), (&requests.fetches, &requests.fetch_queries)]
        {
            for (path, query) in paths.iter().flat_map(|path| queries.iter().map(move |query| (path, query))) {
                maker.put(format!("query {query}"), "GET", &format!("{path}?{query}"), None)?;
            }
        }
        for plain in &requests.more {
            maker.put_plain("wrong".into(), plain)?;
        }
        for credential in &requests.credentials {
            let value = match credential.split_once("@text:") {
                Some((scheme, length)) => format!("{scheme}{}", "x".repeat(length.parse()?)),
                None => credential.clone(),
            };
            for plain in &requests.asked_with_a_credential {
                maker.put_plain(format!("credential {}", credential.escape_default()), plain)?;
                if let Some(last) = maker.made.last_mut() {
                    last.request.headers.retain(|(name, _)| name != "authorization");
                    last.request.headers.push(("authorization".into(), value.clone()));
                }
            }
        }
        Ok(())
    }
}

fn file<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T> {
    let path = folder.join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

struct Maker {
    variables: Variables,
    made: Vec<Malformed>,
}

impl Maker {
    fn put_plain(&mut self, name: String, plain: &Plain) -> Result<()> {
        let body = plain.body.as_ref().map(|body| template::filled(body, &self.variables)).transpose()?;
        self.put(name, &plain.method, &plain.path, body.map(|body| body.to_string().into_bytes()))
    }

    fn put(&mut self, name: String, method: &str, path: &str, body: Option<Vec<u8>>) -> Result<()> {
        let key = template::text("Bearer ${key}", &self.variables)?;
        let mut headers = vec![("authorization".to_owned(), key)];
        if body.is_some() {
            headers.push(("content-type".into(), "application/json".into()));
        }
        let target = template::text(path, &self.variables)?;
        let request = Request { method: method.into(), target, headers, body, declared_length: None };
        let name = format!("{name} ({method} {path})");
        self.made.push(Malformed { name, request, may_close: false });
        Ok(())
    }
}

/// Puts a value at a path of names and places, joined by dots; objects on the way are made where there are none.
fn set(body: &mut Value, path: &str, value: Value) -> Result<()> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    if let Value::Array(items) = body {
        let item = first.parse::<usize>().ok().and_then(|at| items.get_mut(at));
        let item = item.with_context(|| format!("no item `{first}`"))?;
        return match rest {
            Some(rest) => set(item, rest, value),
            None => {
                *item = value;
                Ok(())
            }
        };
    }
    if body.is_null() {
        *body = Value::Object(Map::new());
    }
    let members = body.as_object_mut().with_context(|| format!("no object for `{path}`"))?;
    match rest {
        Some(rest) => set(members.entry(first).or_insert(Value::Null), rest, value)?,
        None if value == "@absent" => drop(members.remove(first)),
        None => drop(members.insert(first.to_owned(), value)),
    }
    Ok(())
}

/// Returns JSON text with `@` texts replaced.
fn written(body: &Value) -> Vec<u8> {
    let mut text = body.to_string();
    let mut at = 0;
    while let Some(found) = text[at..].find("\"@") {
        let start = at + found;
        let mut end = start + 1;
        let bytes = text.as_bytes();
        while bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let said: String = serde_json::from_str(&text[start..=end]).unwrap_or_default();
        let stands_for = meaning(&said).unwrap_or_else(|| text[start..=end].to_owned());
        at = start + stands_for.len();
        text.replace_range(start..=end, &stands_for);
    }
    text.into_bytes()
}

fn meaning(said: &str) -> Option<String> {
    let (word, argument) = said.strip_prefix('@')?.split_once(':')?;
    if word == "raw" {
        return Some(argument.to_owned());
    }
    let count = argument.parse().ok()?;
    Some(match word {
        "text" => format!("\"{}\"", "x".repeat(count)),
        "key" => format!("{{\"{}\":1}}", "k".repeat(count)),
        "nested" => "[".repeat(count) + &"]".repeat(count),
        "objects" => "{\"a\":".repeat(count) + "1" + &"}".repeat(count),
        "open" => "[".repeat(count),
        _ => return None,
    })
}

fn bytes_of(digits: &str) -> Result<Vec<u8>> {
    let places = (0..digits.len()).step_by(2);
    let byte = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    places.map(|at| byte(at).with_context(|| format!("`{digits}` are no bytes"))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn corpus() -> Corpus {
        let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where this crate is");
        Corpus::read(&Path::new(&folder).join("corpus")).unwrap_or_else(|error| panic!("{error:#}"))
    }

    fn variables() -> Variables {
        let names = ["run", "key", "project", "experiment", "dataset"];
        names.into_iter().map(|name| (name.to_owned(), json!(format!("<{name}>")))).collect()
    }

    #[test]
    fn the_same_data_makes_the_same_thousand_requests_and_more() {
        let first = corpus().malformed(&variables()).unwrap_or_else(|error| panic!("{error:#}"));
        let again = corpus().malformed(&variables()).expect("again");
        assert!(first.len() >= 1000, "{}", first.len());
        assert!(first.iter().zip(&again).all(|(a, b)| a.name == b.name && a.request == b.request));
        let distinct: BTreeSet<_> = first.iter().map(|one| format!("{:?}", one.request)).collect();
        assert!(distinct.len() >= 1000, "{} are distinct", distinct.len());
    }

    #[test]
    fn a_field_is_set_made_or_taken_out() {
        let mut body = json!({"rows": [{"a": 1}, {"b": 2}]});
        set(&mut body, "rows.1.c.d", json!(3)).unwrap();
        set(&mut body, "rows.0.a", json!("@absent")).unwrap();
        assert_eq!(body, json!({"rows": [{}, {"b": 2, "c": {"d": 3}}]}));
        assert!(set(&mut body, "rows.7.a", json!(1)).is_err());
        assert!(set(&mut body, "rows.1.b.c", json!(1)).is_err());
    }

    #[test]
    fn texts_stand_for_what_json_cannot_hold() {
        let text = |body: Value| String::from_utf8(written(&body)).unwrap();
        assert_eq!(text(json!({"a": "@raw:1e400", "b": "@"})), r#"{"a":1e400,"b":"@"}"#);
        assert_eq!(text(json!(["@nested:2", "@objects:2", "@open:3"])), r#"[[[]],{"a":{"a":1}},[[[]"#);
        assert_eq!(text(json!(["@text:3", "@key:2", "@raw:\"\\ud800\""])), r#"["xxx",{"kk":1},"\ud800"]"#);
        assert_eq!(bytes_of("00ff").unwrap(), [0, 255]);
        assert!(bytes_of("0g").is_err());
    }
}
