//! Records of files: JSON lines, JSON arrays, CSV, and delimited messages, a slice of the file at a time.

use serde_json::{Map, Value};

/// Bytes of a file that are read at once.
pub const SLICE_BYTES: usize = 4 << 20;
/// Upper bound of one record. A slice grows up to it.
pub const RECORD_BYTES_MAX: usize = 64 << 20;
/// Upper bound of the records of one slice.
pub const SLICE_RECORDS_MAX: usize = 500;

/// Form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordForm {
    /// A JSON value on each line.
    Lines,
    /// One JSON array, or one object.
    Array,
    /// RFC 4180 with names in the first record.
    Csv,
    /// One protobuf message, or messages that each follow their length in four bytes, most significant first.
    Messages,
    /// Parquet, whose rows the shell reads.
    Parquet,
}

/// Returns the form of a file by its name. `None` is a file of no known form.
pub fn form_of(name: &str) -> Option<RecordForm> {
    match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
        "jsonl" | "ndjson" => Some(RecordForm::Lines),
        "json" => Some(RecordForm::Array),
        "csv" => Some(RecordForm::Csv),
        "pb" | "proto" | "bin" | "binpb" | "protobuf" => Some(RecordForm::Messages),
        "parquet" => Some(RecordForm::Parquet),
        _ => None,
    }
}

/// Records at the beginning of a slice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileSlice {
    pub records: Vec<Value>,
    /// One message, instead of records.
    pub message: Vec<u8>,
    /// Bytes of the file that the records take. Zero asks for a larger slice.
    pub consumed: usize,
}

/// Parses the records at the beginning of a slice.
///
/// `is_last` says that the file ends with the slice, and `offset` where the slice begins. `head` is the first record of
/// a CSV file.
pub fn slice(
    form: RecordForm,
    bytes: &[u8],
    (offset, is_last): (u64, bool),
    head: Option<&[String]>,
) -> Result<FileSlice, String> {
    match form {
        RecordForm::Lines => lines(bytes, is_last),
        RecordForm::Array => array(bytes, offset, is_last),
        RecordForm::Csv => csv(bytes, offset, is_last, head),
        RecordForm::Messages => messages(bytes, offset, is_last),
        RecordForm::Parquet => Err("Parquet files are not read in slices".to_owned()),
    }
}

fn lines(bytes: &[u8], is_last: bool) -> Result<FileSlice, String> {
    let mut slice = FileSlice::default();
    while slice.records.len() < SLICE_RECORDS_MAX && slice.consumed < bytes.len() {
        let rest = &bytes[slice.consumed..];
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, taken) = match end {
            Some(end) => (&rest[..end], end + 1),
            None if is_last => (rest, rest.len()),
            None => break,
        };
        if !line.trim_ascii().is_empty() {
            slice.records.push(serde_json::from_slice(line).map_err(|why| why.to_string())?);
        }
        slice.consumed += taken;
    }
    Ok(slice)
}

/// Parses elements of an array at the top. A file that begins with an object may be that object, or lines of objects.
fn array(bytes: &[u8], offset: u64, is_last: bool) -> Result<FileSlice, String> {
    let mut slice = FileSlice::default();
    while slice.records.len() < SLICE_RECORDS_MAX {
        let rest = &bytes[slice.consumed..];
        let skipped = rest.iter().take_while(|byte| byte.is_ascii_whitespace() || b"[,]".contains(byte)).count();
        let value = &rest[skipped..];
        if value.is_empty() {
            slice.consumed = bytes.len();
            break;
        }
        let mut values = serde_json::Deserializer::from_slice(value).into_iter::<Value>();
        match values.next() {
            Some(Ok(record)) => {
                slice.consumed += skipped + values.byte_offset();
                slice.records.push(record);
            }
            Some(Err(why)) if why.is_eof() && !is_last => break,
            Some(Err(why)) => return Err(format!("near byte {}: {why}", offset + slice.consumed as u64)),
            None => break,
        }
    }
    Ok(slice)
}

fn messages(bytes: &[u8], offset: u64, is_last: bool) -> Result<FileSlice, String> {
    const LENGTH_BYTES: usize = 4;
    // The first byte of a message of traces is its tag, 0x0a. The first byte of a length is zero for any usual message.
    if offset == 0 && bytes.first().is_some_and(|first| *first != 0) {
        let whole = FileSlice { message: bytes.to_vec(), consumed: bytes.len(), ..FileSlice::default() };
        return Ok(if is_last { whole } else { FileSlice::default() });
    }
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
        return if is_last && !bytes.is_empty() {
            Err("it ends within a length".to_owned())
        } else {
            Ok(FileSlice::default())
        };
    };
    let length = u32::from_be_bytes(*length) as usize;
    if length > RECORD_BYTES_MAX {
        return Err(format!("a message of {length} bytes is longer than {RECORD_BYTES_MAX}"));
    }
    match rest.get(..length) {
        Some(message) => {
            Ok(FileSlice { message: message.to_vec(), consumed: LENGTH_BYTES + length, ..FileSlice::default() })
        }
        None if is_last => Err("it ends within a message".to_owned()),
        None => Ok(FileSlice::default()),
    }
}

fn csv(bytes: &[u8], offset: u64, is_last: bool, head: Option<&[String]>) -> Result<FileSlice, String> {
    let mut slice = FileSlice::default();
    let mut head = head.map(<[String]>::to_vec);
    if offset == 0 && bytes.starts_with(b"\xef\xbb\xbf") {
        slice.consumed = 3;
    }
    while slice.records.len() < SLICE_RECORDS_MAX && slice.consumed < bytes.len() {
        let Some((fields, taken)) = csv_record(&bytes[slice.consumed..], is_last)? else { break };
        slice.consumed += taken;
        let is_blank = fields.len() == 1 && fields[0].is_empty();
        match &head {
            None => head = Some(fields),
            Some(_) if is_blank => {}
            Some(names) => {
                if fields.len() > names.len() {
                    return Err(format!("a record has {} fields, the first one has {}", fields.len(), names.len()));
                }
                let pairs = names.iter().cloned().zip(fields.into_iter().map(Value::from));
                slice.records.push(Value::Object(pairs.collect::<Map<_, _>>()));
            }
        }
    }
    Ok(slice)
}

/// Returns the names in the first record of a CSV file.
pub fn csv_head(start: &[u8]) -> Option<Vec<String>> {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    csv_record(start, true).ok().flatten().map(|(names, _)| names)
}

/// Parses one record with its line end. `None` is a record that continues behind the slice.
pub(crate) fn csv_record(bytes: &[u8], is_last: bool) -> Result<Option<(Vec<String>, usize)>, String> {
    let (mut fields, mut field, mut at, mut is_quoted) = (Vec::new(), Vec::new(), 0, false);
    let mut push = |field: &mut Vec<u8>| {
        let text = String::from_utf8(std::mem::take(field)).map_err(|_| "a field is not UTF-8".to_owned());
        text.map(|text| fields.push(text))
    };
    while at < bytes.len() {
        let byte = bytes[at];
        match (is_quoted, byte) {
            (true, b'"') if bytes.get(at + 1) == Some(&b'"') => {
                field.push(b'"');
                at += 1;
            }
            // A quote at the end of the slice may be the first of two.
            (true, b'"') if at + 1 == bytes.len() && !is_last => return Ok(None),
            (true, b'"') => is_quoted = false,
            (false, b'"') if field.is_empty() => is_quoted = true,
            (false, b',') => push(&mut field)?,
            (false, b'\n') => {
                if field.last() == Some(&b'\r') {
                    field.pop();
                }
                push(&mut field)?;
                return Ok(Some((fields, at + 1)));
            }
            _ => field.push(byte),
        }
        at += 1;
    }
    match (is_last, is_quoted) {
        (false, _) => Ok(None),
        (true, true) => Err("it ends within quotes".to_owned()),
        (true, false) => {
            push(&mut field)?;
            Ok(Some((fields, bytes.len())))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Reads a whole file in slices of a size, as the shell does.
    fn read(form: RecordForm, file: &[u8], size: usize) -> Result<Vec<Value>, String> {
        let (mut records, mut offset, mut size_now) = (Vec::new(), 0, size);
        let first = csv_record(file, true).ok().flatten().map(|(names, _)| names);
        while offset < file.len() {
            let end = (offset + size_now).min(file.len());
            let head = first.as_deref().filter(|_| form == RecordForm::Csv && offset > 0);
            let slice = slice(form, &file[offset..end], (offset as u64, end == file.len()), head)?;
            if slice.consumed == 0 {
                assert!(end < file.len(), "no progress at the end");
                size_now *= 2;
                continue;
            }
            size_now = size;
            offset += slice.consumed;
            records.extend(slice.records);
        }
        Ok(records)
    }

    #[test]
    fn csv_fields_may_have_commas_quotes_and_lines() {
        let file = "a,b\r\n1,\"x, \"\"y\"\"\nz\"\r\n,\r\n";
        let records = read(RecordForm::Csv, file.as_bytes(), 1024).unwrap();
        assert_eq!(records, [json!({"a": "1", "b": "x, \"y\"\nz"}), json!({"a": "", "b": ""})]);
        assert!(read(RecordForm::Csv, b"a\n\"b", 1024).unwrap_err().contains("quotes"));
        assert!(read(RecordForm::Csv, b"a\n1,2\n", 1024).unwrap_err().contains("2 fields"));
    }

    #[test]
    fn a_file_of_one_object_is_one_record_and_damage_is_named() {
        assert_eq!(read(RecordForm::Array, b"{\"a\": 1}\n", 1024).unwrap(), [json!({"a": 1})]);
        assert_eq!(read(RecordForm::Array, b"[]", 1024).unwrap(), Vec::<Value>::new());
        assert!(read(RecordForm::Array, b"[{\"a\": 1}, {\"a\"", 1024).unwrap_err().contains("near byte"));
        assert!(read(RecordForm::Lines, b"{}\n{", 1024).is_err());
    }

    #[test]
    fn messages_follow_their_lengths() {
        let file = [&[0, 0, 0, 2][..], b"ab", &[0, 0, 0, 1], b"c"].concat();
        let first = slice(RecordForm::Messages, &file, (0, true), None).unwrap();
        assert_eq!((first.message.as_slice(), first.consumed), (&b"ab"[..], 6));
        let second = slice(RecordForm::Messages, &file[6..], (6, true), None).unwrap();
        assert_eq!((second.message.as_slice(), second.consumed), (&b"c"[..], 5));
        assert!(slice(RecordForm::Messages, &file[..5], (0, true), None).is_err());
        let single = slice(RecordForm::Messages, b"\x0a\x00", (0, true), None).unwrap();
        assert_eq!(single.message, b"\x0a\x00");
    }

    proptest! {
        #[test]
        fn the_size_of_slices_changes_nothing(
            texts in prop::collection::vec(prop::collection::vec("[a\",\\n\\r é]{0,6}", 2), 1..12),
            size in 1_usize..40,
        ) {
            let records: Vec<Value> = texts.iter().map(|row| json!({"a": row[0], "b": row[1]})).collect();
            let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
            prop_assert_eq!(&read(RecordForm::Lines, lines.as_bytes(), size).unwrap(), &records);
            let array = Value::from(records.clone()).to_string();
            prop_assert_eq!(&read(RecordForm::Array, array.as_bytes(), size).unwrap(), &records);
            let quoted = |text: &String| format!("\"{}\"", text.replace('"', "\"\""));
            let body: String = texts.iter().map(|row| format!("{},{}\r\n", quoted(&row[0]), quoted(&row[1]))).collect();
            let csv = format!("a,b\n{body}");
            prop_assert_eq!(&read(RecordForm::Csv, csv.as_bytes(), size).unwrap(), &records);
        }
    }
}
