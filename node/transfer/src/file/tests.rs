//! Tests of the file format: complete files are read back, and truncated or changed ones are refused.

use assay_storage_model::catalog::UniqueKey;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn header() -> Header {
    Header {
        format: FORMAT,
        program: "0.0.0".into(),
        organization: OrgId(Uuid::from_u128(7)),
        name: "acme".into(),
        exported: "2026-11-23T00:00:00.000Z".into(),
    }
}

fn record(n: u128) -> RecordLine {
    RecordLine {
        kind: "project".into(),
        id: Uuid::from_u128(n),
        owned: true,
        created: 1_700_000_000_000_000,
        keys: vec![UniqueKey::new("project.name/o", format!("p{n}"))],
        body: json!({"name": format!("p{n}"), "settings": {"x": 1.5}}).as_object().cloned().unwrap_or_default(),
        without_secret: false,
    }
}

fn object() -> Object {
    Object { kind: ObjectKind::Dataset, id: Uuid::from_u128(9), version: "1000196001148960771".into() }
}

fn written(lines: &[Line]) -> (Vec<u8>, Footer) {
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, &header()).expect("memory takes it");
    for line in lines {
        match line.clone() {
            Line::Record(record) => writer.record(*record),
            Line::Object(object) => writer.object(object),
            Line::Operation(text) => writer.operation(&text),
        }
        .expect("memory takes it");
    }
    let footer = writer.finish().expect("memory takes it");
    (bytes, footer)
}

fn read(bytes: &[u8]) -> Result<(Vec<Line>, Footer), TransferError> {
    let mut reader = Reader::start(bytes)?;
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line()? {
        lines.push(line);
    }
    Ok((lines, reader.finish()?))
}

fn some_lines() -> Vec<Line> {
    let operation = |n: u32| Line::Operation(format!(r#"{{"id":"{n}","doc":{{"x":"é\n"}}}}"#).into_bytes());
    let mut lines = vec![Line::Record(Box::new(record(1))), Line::Record(Box::new(record(2))), Line::Object(object())];
    lines.extend((0..20).map(operation));
    lines
}

#[test]
fn what_was_written_reads_back_and_is_counted() {
    let (bytes, footer) = written(&some_lines());
    assert_eq!((footer.records, footer.objects, footer.operations), (2, 1, 20));
    assert_eq!(read(&bytes).expect("reads"), (some_lines(), footer));
    assert_eq!(Reader::start(&bytes[..]).expect("reads").header, header());
    let (bytes, footer) = written(&[]);
    assert_eq!(read(&bytes).expect("reads"), (Vec::new(), footer));
}

#[test]
fn any_program_that_reads_gzip_shows_all_lines_and_the_sum_is_that_of_the_bytes() {
    let (bytes, footer) = written(&some_lines());
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzip");
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 1 + some_lines().len() + 1);
    assert_eq!(lines[0]["header"]["name"], "acme");
    assert_eq!(lines[4]["operation"]["doc"]["x"], "é\n");
    assert_eq!(lines[lines.len() - 1]["footer"]["sha256"], footer.sha256);
    let end = bytes.len() - footer_bytes(&footer).expect("memory takes it").len();
    let mut sum = Sha256::default();
    sum.update(&bytes[..end]);
    assert_eq!(sum.hex(), footer.sha256);
}

#[test]
fn a_file_that_was_cut_anywhere_is_refused() {
    let (bytes, _) = written(&some_lines());
    for end in 0..bytes.len() {
        assert!(matches!(read(&bytes[..end]), Err(TransferError::Damaged(_))), "cut at {end}");
    }
    assert!(read(&[&bytes[..], b"\n"].concat()).is_err(), "a byte more");
    assert!(read(&[&bytes[..], &bytes[..]].concat()).is_err(), "twice");
}

#[test]
fn a_file_with_any_bit_changed_is_refused() {
    let (bytes, _) = written(&some_lines());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            assert!(read(&changed).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn another_format_is_named_and_what_is_no_export_is_refused() {
    let mut bytes = Vec::new();
    let newer = Header { format: FORMAT + 1, ..header() };
    Writer::start(&mut bytes, &newer).expect("memory takes it").finish().expect("memory takes it");
    assert!(matches!(read(&bytes), Err(TransferError::Format { found: 2, known: 1 })));
    let gzip = |text: &[u8]| {
        let mut gzip = GzEncoder::new(Vec::new(), LEVEL);
        gzip.write_all(text).expect("memory takes it");
        gzip.finish().expect("memory takes it")
    };
    let long = vec![b' '; LINE_BYTES_MAX + 2];
    for other in [&b""[..], b"{}", &gzip(b""), &gzip(b"{}\n"), &gzip(b"{\"header\":{\"format\":1}}\n"), &gzip(&long)] {
        assert!(matches!(read(other), Err(TransferError::Damaged(_))));
    }
}

proptest! {
    #[test]
    fn any_lines_read_back_and_any_bytes_end(
        texts in proptest::collection::vec("[^\n\r]{0,40}", 0..20),
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        at in any::<proptest::sample::Index>(),
    ) {
        let lines: Vec<Line> = texts.into_iter().map(|text| Line::Operation(text.into_bytes())).collect();
        let (bytes, footer) = written(&lines);
        prop_assert_eq!(read(&bytes).expect("reads"), (lines, footer));
        let mut changed = bytes.clone();
        changed.truncate(at.index(bytes.len()));
        changed.extend(noise);
        prop_assert!(changed == bytes || read(&changed).is_err());
    }
}
