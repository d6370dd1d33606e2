//! Multipart forms of requests, which pass unmodified unless a guardrail masks a text.
//!
//! Servers read damaged forms in different ways. A field that this node misses would evade the checks of models and
//! guardrails, so only forms with a single reading are accepted.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// Upper bound of the parts of a form.
const PARTS_MAX: usize = 1_000;
const LINE_END: &[u8] = b"\r\n";
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// Encodings of a part that leave its bytes unmodified.
const IDENTITIES: [&str; 3] = ["7bit", "8bit", "binary"];
/// Names of UTF-8 as a character set.
const UTF8_CHARSETS: [&str; 2] = ["utf-8", "utf8"];
/// Character sets that encode ASCII texts as UTF-8 does. Some clients name one for every field.
const ASCII_CHARSETS: [&str; 3] = ["iso-8859-1", "latin1", "us-ascii"];

/// Error for a form that servers could read in different ways.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the multipart form of the body cannot be read: {0}")]
pub struct FormError(&'static str);

/// Parts of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormParts(Vec<FormPart>);

/// Part of a form, such as a field or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FormPart {
    name: String,
    is_file: bool,
    /// Whether the head states a transfer encoding or a character set that hides the text.
    is_encoded: bool,
    /// Place of the content in the form.
    content: Range<usize>,
}

impl FormParts {
    /// Reads the parts of a form. `content_type` is the header of the request.
    pub fn read(form: &[u8], content_type: &str) -> Result<FormParts, FormError> {
        let boundary = parameter(content_type, "boundary")?.filter(|boundary| !boundary.is_empty());
        let boundary = boundary.ok_or(FormError("`Content-Type` names no boundary"))?;
        let delimiter = format!("--{boundary}").into_bytes();
        let first = position(form, &delimiter).ok_or(FormError("its boundary is missing"))?;
        if first != 0 && !form[..first].ends_with(LINE_END) {
            return Err(FormError("its first boundary does not begin a line"));
        }
        let (mut parts, mut at) = (Vec::new(), first + delimiter.len());
        while !form[at..].starts_with(b"--") {
            if parts.len() == PARTS_MAX {
                return Err(FormError("it has more than 1000 parts"));
            }
            if !form[at..].starts_with(LINE_END) {
                return Err(FormError("a boundary is not followed by the end of the line"));
            }
            let begin = at + LINE_END.len();
            let next = begin + position(&form[begin..], &delimiter).ok_or(FormError("its last boundary is missing"))?;
            let part = form[begin..next].strip_suffix(LINE_END);
            let part = part.ok_or(FormError("the text of its boundary is within a part"))?;
            let head = position(part, END_OF_HEAD).ok_or(FormError("a part has no end of its head"))?;
            let content = begin + head + END_OF_HEAD.len()..begin + part.len();
            parts.push(FormPart::of_head(&part[..head], (content, form))?);
            at = next + delimiter.len();
        }
        match position(&form[at..], &delimiter) {
            None => Ok(FormParts(parts)),
            Some(_) => Err(FormError("it has a boundary after its end")),
        }
    }

    /// Returns the contents of all fields of a name, as bytes.
    pub fn fields<'f>(&self, form: &'f [u8], name: &str) -> Vec<&'f [u8]> {
        self.0.iter().filter(|part| part.name == name).map(|part| &form[part.content.clone()]).collect()
    }

    /// Returns the texts of all parts except the field `except`. Files that are not UTF-8, such as audio, have no text.
    pub fn texts(&self, form: &[u8], except: &str) -> Result<Vec<String>, FormError> {
        let mut texts = Vec::new();
        for part in self.with_text(form, except) {
            if part.is_encoded {
                return Err(FormError("a part is encoded: send texts in UTF-8 without `Content-Transfer-Encoding`"));
            }
            let text = str::from_utf8(&form[part.content.clone()]);
            texts.push(text.map_err(|_| FormError("a field is not valid UTF-8"))?.to_owned());
        }
        Ok(texts)
    }

    /// Returns the form with other texts, in the order of [`FormParts::texts`].
    ///
    /// Refuses texts that compose the boundary, because they would add parts to the form.
    pub fn with_texts(
        &self,
        form: &[u8],
        (content_type, except): (&str, &str),
        texts: &[String],
    ) -> Result<Bytes, FormError> {
        let (mut changed, mut from) = (BytesMut::with_capacity(form.len()), 0);
        for (part, text) in self.with_text(form, except).zip(texts) {
            changed.extend_from_slice(&form[from..part.content.start]);
            changed.extend_from_slice(text.as_bytes());
            from = part.content.end;
        }
        changed.extend_from_slice(&form[from..]);
        if FormParts::read(&changed, content_type)?.0.len() != self.0.len() {
            return Err(FormError("a masked text contains its boundary"));
        }
        Ok(changed.freeze())
    }

    fn with_text<'p>(&'p self, form: &'p [u8], except: &'p str) -> impl Iterator<Item = &'p FormPart> {
        let is_text = |part: &FormPart| !part.is_file || str::from_utf8(&form[part.content.clone()]).is_ok();
        self.0.iter().filter(move |part| part.name != except && is_text(part))
    }
}

impl FormPart {
    fn of_head(head: &[u8], (content, form): (Range<usize>, &[u8])) -> Result<FormPart, FormError> {
        let head = String::from_utf8_lossy(head);
        let is_utf8 = |charset: &str| {
            let is_ascii = || is_one_of(charset, &ASCII_CHARSETS) && form[content.clone()].is_ascii();
            is_one_of(charset, &UTF8_CHARSETS) || is_ascii()
        };
        let (mut disposition, mut is_encoded) = (None, false);
        for line in head.split("\r\n") {
            if line.contains(['\r', '\n', '\0']) || line.starts_with([' ', '\t']) {
                return Err(FormError("a header of a part has more than one line"));
            }
            let (name, value) = line.split_once(':').ok_or(FormError("a header of a part has no colon"))?;
            match name.trim().to_ascii_lowercase().as_str() {
                "content-disposition" if disposition.is_some() => {
                    return Err(FormError("a part has two headers `Content-Disposition`"));
                }
                "content-disposition" => disposition = Some(value),
                "content-transfer-encoding" => is_encoded |= !is_one_of(value, &IDENTITIES),
                "content-type" => {
                    is_encoded |= parameter(value, "charset")?.is_some_and(|charset| !is_utf8(&charset));
                }
                _ => {}
            }
        }
        let disposition = disposition.ok_or(FormError("a part has no `Content-Disposition`"))?;
        if parameter(disposition, "name*")?.is_some() {
            return Err(FormError("a part has the parameter `name*`: use `name`"));
        }
        let name = parameter(disposition, "name")?.ok_or(FormError("a part has no name"))?;
        let is_file = parameter(disposition, "filename")?.is_some() || parameter(disposition, "filename*")?.is_some();
        Ok(FormPart { name, is_file, is_encoded, content })
    }
}

fn is_one_of(value: &str, known: &[&str]) -> bool {
    known.iter().any(|known| value.trim().eq_ignore_ascii_case(known))
}

/// Returns a parameter of a header value, without quotes. Refuses a parameter that occurs twice.
fn parameter(header: &str, name: &str) -> Result<Option<String>, FormError> {
    let mut found = None;
    for pair in unquoted_split(header).skip(1) {
        let Some((known, value)) = pair.split_once('=') else { continue };
        if !known.trim().eq_ignore_ascii_case(name) {
            continue;
        }
        let value = value.trim();
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        if found.replace(quoted.map_or_else(|| value.to_owned(), |quoted| quoted.replace("\\\"", "\""))).is_some() {
            return Err(FormError("a header has the same parameter twice"));
        }
    }
    Ok(found)
}

/// Splits a header value at the semicolons outside of quoted texts.
fn unquoted_split(header: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    header.split(move |letter| {
        let is_end = letter == ';' && !is_quoted;
        is_quoted ^= letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    })
}

/// Returns the first position of a text that is not empty. Forms have megabytes, of which few bytes match the first one.
fn position(bytes: &[u8], sought: &[u8]) -> Option<usize> {
    let (first, mut from) = (sought.first()?, 0);
    loop {
        from += bytes[from..].iter().position(|byte| byte == first)?;
        if bytes[from..].starts_with(sought) {
            return Some(from);
        }
        from += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=\"b\"";

    fn part(disposition: &str, more: &str, content: &str) -> String {
        format!("--b\r\nContent-Disposition: form-data; {disposition}{more}\r\n\r\n{content}\r\n")
    }

    fn form(parts: &[String]) -> Vec<u8> {
        format!("{}--b--\r\n", parts.concat()).into_bytes()
    }

    #[test]
    fn texts_are_replaced_and_all_other_bytes_stay() {
        let mut bytes =
            form(&[part("name=\"model\"", "", "m"), part("name=prompt", "", "a mail"), part("name=n", "", "")]);
        let audio = part("name=file; filename=\"a;b.mp3\"", "\r\nContent-Type: audio/mpeg", "AUDIO");
        bytes.splice(0..0, audio.replace("AUDIO", "\u{0}").into_bytes());
        let at = position(&bytes, &[0]).expect("the audio");
        bytes.splice(at..=at, [0xff, 0xfe]);
        let parts = FormParts::read(&bytes, TYPE).expect("a form");
        assert_eq!(parts.fields(&bytes, "model"), [b"m"]);
        let texts = parts.texts(&bytes, "model").expect("texts");
        assert_eq!(texts, ["a mail", ""]);
        assert_eq!(parts.with_texts(&bytes, (TYPE, "model"), &texts), Ok(bytes.clone().into()));
        let changed = parts.with_texts(&bytes, (TYPE, "model"), &["[MAIL]".to_owned(), "x".to_owned()]);
        let changed = changed.expect("a form");
        let again = FormParts::read(&changed, TYPE).expect("a form");
        assert_eq!(again.texts(&changed, "model"), Ok(vec!["[MAIL]".to_owned(), "x".to_owned()]));
        assert_eq!(again.fields(&changed, "file"), [[0xff, 0xfe]]);
    }

    #[test]
    fn a_masked_text_adds_no_part() {
        let bytes = form(&[part("name=prompt", "", "x")]);
        let parts = FormParts::read(&bytes, TYPE).expect("a form");
        let smuggled = "\r\n--b\r\nContent-Disposition: form-data; name=model\r\n\r\nm".to_owned();
        for text in [smuggled, "a --b c".to_owned()] {
            assert!(parts.with_texts(&bytes, (TYPE, "model"), std::slice::from_ref(&text)).is_err(), "{text}");
        }
    }

    #[test]
    fn a_text_file_has_a_text() {
        let bytes = form(&[part("name=file; filename=a.txt", "", "a mail")]);
        let parts = FormParts::read(&bytes, TYPE).expect("a form");
        assert_eq!(parts.texts(&bytes, "model"), Ok(vec!["a mail".to_owned()]));
    }

    #[test]
    fn texts_that_a_server_would_decode_are_refused() {
        for more in [
            "\r\nContent-Transfer-Encoding: base64",
            "\r\ncontent-transfer-encoding: quoted-printable",
            "\r\nContent-Type: text/plain; charset=utf-16",
        ] {
            let bytes = form(&[part("name=prompt", more, "YQ==")]);
            let parts = FormParts::read(&bytes, TYPE).expect("a form");
            assert!(parts.texts(&bytes, "model").is_err(), "{more}");
        }
        for more in [
            "\r\nContent-Transfer-Encoding: 8bit",
            "\r\nContent-Type: text/plain; charset=\"UTF-8\"",
            "\r\nContent-Type: text/plain; charset=ISO-8859-1",
            "\r\nContent-Type: text/plain; charset=US-ASCII",
        ] {
            let bytes = form(&[part("name=prompt", more, "a")]);
            let parts = FormParts::read(&bytes, TYPE).expect("a form");
            assert_eq!(parts.texts(&bytes, "model"), Ok(vec!["a".to_owned()]), "{more}");
        }
        for charset in ["iso-8859-1", "us-ascii"] {
            let more = format!("\r\nContent-Type: text/plain; charset={charset}");
            let bytes = form(&[part("name=prompt", &more, "\u{e9}")]);
            let parts = FormParts::read(&bytes, TYPE).expect("a form");
            assert!(parts.texts(&bytes, "model").is_err(), "{charset} has another reading than UTF-8");
        }
        let mut bytes = form(&[part("name=prompt", "", "x")]);
        let at = position(&bytes, b"x").expect("the content");
        bytes[at] = 0xff;
        let parts = FormParts::read(&bytes, TYPE).expect("a form");
        assert_eq!(parts.texts(&bytes, "model"), Err(FormError("a field is not valid UTF-8")));
    }

    #[test]
    fn forms_with_several_readings_are_refused() {
        let named = part("name=model", "", "m");
        for (bytes, content_type, why) in [
            (form(std::slice::from_ref(&named)), "multipart/form-data", "no boundary"),
            (form(std::slice::from_ref(&named)), "multipart/form-data; boundary=b; boundary=c", "twice"),
            (b"name=model".to_vec(), TYPE, "is missing"),
            (format!("x{named}--b--").into_bytes(), TYPE, "does not begin a line"),
            (named.clone().into_bytes(), TYPE, "last boundary is missing"),
            (form(&[part("name=prompt", "", "a --b c"), named.clone()]), TYPE, "within a part"),
            (form(&[named.replace("--b\r\n", "--bc\r\n")]), TYPE, "end of the line"),
            (format!("{named}--b--\r\n{named}--b--").into_bytes(), TYPE, "after its end"),
            (form(&[named.replace("\r\n\r\n", "\n\n")]), TYPE, "no end of its head"),
            (form(&[part("name=model", "\nX: y", "m")]), TYPE, "more than one line"),
            (form(&[part("name=model", "\r\n x", "m")]), TYPE, "more than one line"),
            (form(&[part("name=a", "\r\nContent-Disposition: form-data; name=model", "m")]), TYPE, "two headers"),
            (form(&[part("name=a; NAME=model", "", "m")]), TYPE, "twice"),
            (form(&[part("name*=UTF-8''model", "", "m")]), TYPE, "`name*`"),
            (form(&[part("x=y", "", "m")]), TYPE, "no name"),
            (
                form(&[b"--b\r\nX: y\r\n\r\nm\r\n".to_vec()].map(|part| String::from_utf8(part).expect("a text"))),
                TYPE,
                "no `Content-Disposition`",
            ),
        ] {
            let error = FormParts::read(&bytes, content_type).expect_err(why).to_string();
            assert!(error.contains(why), "{why}: {error}");
        }
        let many = form(&vec![part("name=n", "", ""); PARTS_MAX + 1]);
        assert!(FormParts::read(&many, TYPE).expect_err("many").to_string().contains("more than 1000 parts"));
        let hidden = form(&[part("x=\"; name=decoy; \"; name=model", "", "m")]);
        assert_eq!(FormParts::read(&hidden, TYPE).expect("a form").fields(&hidden, "model"), [b"m"]);
    }
}
