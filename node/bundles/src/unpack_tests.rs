//! Tests of reading bundles: attacks on each limit and check, and the formats that clients write.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use proptest::prelude::*;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::error::{BundleRefusal, EntryProblem};
use crate::kind::BundleKind;
use crate::limits::BundleLimits;
use crate::samples::{DEFLATED, MemorySink, RawEntry, STORED, gzip, raw_zip, zip_of};
use crate::unpack::{NODE_BUNDLE_FILE, UnpackedSize, check_bundle, read_bundle};

const LIMITS: BundleLimits =
    BundleLimits { stored_bytes: 1 << 20, unpacked_bytes: 100_000, files: 100, directories: 100 };

fn read(kind: BundleKind, stored: &[u8]) -> (MemorySink, Result<UnpackedSize, BundleRefusal>) {
    let mut sink = MemorySink::default();
    let result = read_bundle(kind, stored, &LIMITS, &mut sink);
    assert_eq!(result, check_bundle(kind, stored, &LIMITS), "the check and the unpacking agree");
    assert!(sink.written <= LIMITS.unpacked_bytes, "{} bytes were written", sink.written);
    (sink, result)
}

fn refusal(kind: BundleKind, stored: &[u8]) -> BundleRefusal {
    read(kind, stored).1.unwrap_err()
}

/// Problem of the entry `name` of a zip.
fn problem(name: &str, entries: &[RawEntry]) -> EntryProblem {
    match refusal(BundleKind::Python, &raw_zip(entries)) {
        BundleRefusal::Entry { name: named, problem } if named == name => problem,
        other => panic!("{other}"),
    }
}

fn content_problem(name: &str, entries: &[RawEntry]) -> String {
    match problem(name, entries) {
        EntryProblem::Content(text) => text,
        other => panic!("{other}"),
    }
}

#[test]
fn a_zip_is_read_with_its_directories_and_execute_bits() {
    let program = RawEntry { mode: 0o100_711, ..RawEntry::deflated("bin/tool", b"#!") };
    let marked = RawEntry { mode: 0o104_644, ..RawEntry::stored("a/b/c.py", b"pass") };
    let folder = RawEntry { mode: 0o040_700, ..RawEntry::stored("empty/", b"") };
    // Low bits of another system's attributes are no Unix permissions.
    let foreign = RawEntry { system: 0, mode: 0o111, ..RawEntry::stored("register.py", b"import a") };
    let (sink, size) = read(BundleKind::Python, &raw_zip(&[program, marked, folder, foreign]));
    let size = size.unwrap();
    assert_eq!(size, UnpackedSize { files: 3, directories: 4, bytes: 14, disk_bytes: 7 * 4096 });
    assert_eq!(sink.directories, ["bin", "a", "a/b", "empty"]);
    let expected = [("a/b/c.py", "pass", false), ("bin/tool", "#!", true), ("register.py", "import a", false)];
    let expected = expected.map(|(path, text, is_executable)| (path.to_owned(), (text.into(), is_executable)));
    assert_eq!(sink.files, BTreeMap::from(expected));
}

#[test]
fn paths_out_of_the_bundle_are_refused_by_name() {
    for (name, expected) in [
        ("../a", EntryProblem::Parent),
        ("a/../../b", EntryProblem::Parent),
        ("/etc/cron.d/a", EntryProblem::Absolute),
        ("a\\..\\b", EntryProblem::Backslash),
        ("C:/a", EntryProblem::Drive),
        ("a\0.py", EntryProblem::Nul),
    ] {
        assert_eq!(problem(name, &[RawEntry::stored("ok", b""), RawEntry::stored(name, b"x")]), expected);
    }
    let long = "n".repeat(256);
    let refused = refusal(BundleKind::Python, &raw_zip(&[RawEntry::stored(&long, b"")]));
    let is_name = matches!(refused, BundleRefusal::Entry { problem: EntryProblem::NameBytes { bytes: 256 }, .. });
    assert!(is_name, "{refused}");
    let long = "n/".repeat(2_049);
    let refused = refusal(BundleKind::Python, &raw_zip(&[RawEntry::stored(&long, b"")]));
    let is_path = matches!(refused, BundleRefusal::Entry { problem: EntryProblem::PathBytes { bytes: 4_098 }, .. });
    assert!(is_path, "{refused}");
}

#[test]
fn a_name_that_is_no_utf_8_is_read_as_code_page_437() {
    let entry = RawEntry { name: b"caf\x82.py".to_vec(), ..RawEntry::stored("", b"x") };
    let (sink, size) = read(BundleKind::Python, &raw_zip(&[entry]));
    size.unwrap();
    assert_eq!(sink.files.into_keys().collect::<Vec<_>>(), ["caf\u{e9}.py"]);
}

#[test]
fn links_and_devices_are_refused_whatever_system_wrote_them() {
    for mode in [0o120_777, 0o020_666, 0o060_660, 0o010_644, 0o140_755] {
        let entry = RawEntry { mode, ..RawEntry::stored("link", b"/etc/passwd") };
        assert_eq!(problem("link", std::slice::from_ref(&entry)), EntryProblem::Special { mode });
        let foreign = RawEntry { system: 0, ..entry };
        assert_eq!(problem("link", &[foreign]), EntryProblem::Special { mode: mode & !0o7777 });
    }
}

#[test]
fn encrypted_entries_and_other_methods_are_refused() {
    let encrypted = RawEntry { flags: 1, ..RawEntry::stored("a", b"x") };
    assert_eq!(problem("a", &[encrypted]), EntryProblem::Encrypted);
    for method in [1, 9, 12, 14, 93, 99] {
        let entry = RawEntry { method, ..RawEntry::stored("a", b"x") };
        let refused = problem("a", &[entry]);
        assert!(matches!(refused, EntryProblem::Method(_)), "{method}: {refused}");
    }
}

#[test]
fn duplicates_are_refused_and_named() {
    let once = RawEntry::stored("a/b", b"x");
    assert_eq!(problem("a/b", &[once.clone(), RawEntry::stored("c", b""), once.clone()]), EntryProblem::Duplicate);
    assert_eq!(problem("a/b", &[once.clone(), RawEntry::stored("a/./b", b"x")]), EntryProblem::Duplicate);
    assert_eq!(problem("a", &[once.clone(), RawEntry::stored("a", b"x")]), EntryProblem::FileAndDirectory);
    assert_eq!(problem("a/b/c", &[once, RawEntry::stored("a/b/c", b"x")]), EntryProblem::FileAndDirectory);
}

#[test]
fn damaged_content_is_refused() {
    for entry in [RawEntry::stored("a", b"hello"), RawEntry::deflated("a", &[7; 3_000])] {
        let wrong_crc = RawEntry { crc: entry.crc ^ 1, ..entry.clone() };
        assert_eq!(content_problem("a", &[wrong_crc]), "Invalid checksum");
        // A shorter claim would let a bomb pass the sum of the claims.
        let shorter = RawEntry { claimed: 1, ..entry.clone() };
        assert!(content_problem("a", &[shorter]).contains("larger than its declared"));
        let longer = RawEntry { claimed: entry.claimed + 1, ..entry.clone() };
        let expected = EntryProblem::Size { claimed: u64::from(entry.claimed) + 1, found: u64::from(entry.claimed) };
        assert_eq!(problem("a", &[longer]), expected);
    }
    let mut cut = RawEntry::deflated("a", b"hello hello hello");
    cut.packed.truncate(4);
    content_problem("a", &[cut]);
    let text = RawEntry { method: DEFLATED, ..RawEntry::stored("a", b"not deflated") };
    content_problem("a", &[text]);
}

#[test]
fn entries_that_share_bytes_are_refused() {
    let kernel = RawEntry::deflated("a", &[0; 10_000]);
    let same = RawEntry { name: b"b".to_vec(), shares: Some(0), ..kernel.clone() };
    assert_eq!(problem("b", &[kernel.clone(), same]), EntryProblem::Overlap);
    // The content of the outer entry is another entry with its header.
    let inner = raw_zip(&[RawEntry::stored("b", b"inner")]);
    let local = inner[..inner.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap()].to_vec();
    let outer = RawEntry::stored("a", &local);
    let nested = RawEntry { shares: Some(31), ..RawEntry::stored("b", b"inner") };
    assert_eq!(problem("b", &[outer, nested]), EntryProblem::Overlap);
    // The entry claims bytes of the directory of the zip.
    let mut beyond = raw_zip(&[RawEntry::stored("a", b"x")]);
    let header = beyond.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    beyond[header + 20] += 4;
    let refused = refusal(BundleKind::Python, &beyond);
    assert_eq!(refused, BundleRefusal::entry("a", EntryProblem::Overlap));
}

#[test]
fn a_bomb_writes_no_more_than_the_limit() {
    let zeros = vec![0; 60_000];
    // Honest claims are refused before anything is written.
    let honest = raw_zip(&[RawEntry::deflated("a", &zeros), RawEntry::deflated("b", &zeros)]);
    let (sink, result) = read(BundleKind::Python, &honest);
    assert_eq!((sink.written, result), (0, Err(BundleRefusal::UnpackedBytes { max: LIMITS.unpacked_bytes })));
    // False ones end at the claim.
    let false_claim = RawEntry { claimed: 70_000, ..RawEntry::deflated("a", &vec![0; 20_000_000]) };
    let (sink, result) = read(BundleKind::Python, &raw_zip(&[false_claim]));
    assert!(sink.written <= 70_000 && result.is_err(), "{} bytes, {result:?}", sink.written);
    let (sink, result) = read(BundleKind::Node, &gzip(&vec![b' '; 20_000_000]));
    assert_eq!(result, Err(BundleRefusal::UnpackedBytes { max: LIMITS.unpacked_bytes }));
    assert!(sink.written <= LIMITS.unpacked_bytes);
    // A text of exactly the limit is no bomb.
    let (sink, result) = read(BundleKind::Node, &gzip(&vec![b' '; 100_000]));
    assert_eq!((sink.written, result.unwrap().bytes), (100_000, 100_000));
}

#[test]
fn files_directories_and_headers_are_counted() {
    let files = |count: usize| (0..count).map(|n| RawEntry::stored(&n.to_string(), b"")).collect::<Vec<_>>();
    assert_eq!(read(BundleKind::Python, &raw_zip(&files(100))).1.unwrap().files, 100);
    assert_eq!(refusal(BundleKind::Python, &raw_zip(&files(101))), BundleRefusal::Files { max: 100 });
    // Two entries imply 126 directories.
    let deep = [RawEntry::stored(&"a/".repeat(63), b""), RawEntry::stored(&"b/".repeat(63), b"")];
    assert_eq!(refusal(BundleKind::Python, &raw_zip(&deep)), BundleRefusal::Directories { max: 100 });
    let headers = b"PK\x01\x02".repeat(150_001);
    assert_eq!(refusal(BundleKind::Python, &headers), BundleRefusal::Headers { max: 150_000 });
}

#[test]
fn stored_bytes_are_limited() {
    let limits = BundleLimits { stored_bytes: 4, ..LIMITS };
    assert!(check_bundle(BundleKind::Node, b"1234", &limits).is_ok());
    let refused = check_bundle(BundleKind::Node, b"12345", &limits);
    assert_eq!(refused, Err(BundleRefusal::StoredBytes { bytes: 5, max: 4 }));
}

#[test]
fn bytes_that_are_no_zip_are_refused() {
    let whole = zip_of([("a.py", &b"pass"[..])]);
    assert_eq!(refusal(BundleKind::Python, b""), BundleRefusal::Empty);
    assert_eq!(refusal(BundleKind::Python, &zip_of([])), BundleRefusal::Empty);
    for stored in [&b"import a"[..], &gzip(b"import a"), &whole[..whole.len() - 1], &whole[4..]] {
        refusal(BundleKind::Python, stored);
    }
}

#[test]
fn sizes_after_the_content_and_large_fields_are_read() {
    let mut writer = ZipWriter::new_stream(Vec::new());
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    writer.start_file("a.py", options).unwrap();
    writer.write_all(b"streamed").unwrap();
    let streamed = writer.finish().unwrap().into_inner();
    assert_eq!(read(BundleKind::Python, &streamed).0.files["a.py"].0, b"streamed");
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("a.py", options.large_file(true)).unwrap();
    writer.write_all(b"zip64").unwrap();
    let large = writer.finish().unwrap().into_inner();
    assert_eq!(read(BundleKind::Python, &large).0.files["a.py"].0, b"zip64");
}

#[test]
fn a_node_bundle_is_a_text_plain_or_compressed() {
    let text = "module.exports = '\u{20ac}'".as_bytes();
    for stored in [text.to_vec(), gzip(text)] {
        let (sink, size) = read(BundleKind::Node, &stored);
        let expected = UnpackedSize { files: 1, directories: 0, bytes: text.len() as u64, disk_bytes: 4096 };
        assert_eq!(size, Ok(expected));
        assert_eq!(sink.files, BTreeMap::from([(NODE_BUNDLE_FILE.to_owned(), (text.to_vec(), false))]));
    }
}

#[test]
fn other_node_bundles_are_refused() {
    let whole = gzip(b"text");
    assert_eq!(refusal(BundleKind::Node, &zip_of([("a", &b"x"[..])])), BundleRefusal::ZipForNode);
    assert_eq!(refusal(BundleKind::Node, b""), BundleRefusal::Empty);
    assert_eq!(refusal(BundleKind::Node, &gzip(b"")), BundleRefusal::Empty);
    assert_eq!(refusal(BundleKind::Node, b"ab\xff"), BundleRefusal::NotUtf8 { offset: 2 });
    assert_eq!(refusal(BundleKind::Node, &gzip(b"abc\xe2\x82")), BundleRefusal::NotUtf8 { offset: 3 });
    let members = whole.repeat(1_000);
    assert_eq!(refusal(BundleKind::Node, &members), BundleRefusal::AfterGzip { bytes: whole.len() * 999 });
    let mut damaged = whole.clone();
    let crc = damaged.len() - 8;
    damaged[crc] ^= 1;
    let cuts = (2..whole.len()).map(|length| whole[..length].to_vec());
    for stored in cuts.chain([damaged]) {
        let refused = refusal(BundleKind::Node, &stored);
        assert!(matches!(refused, BundleRefusal::Gzip(_)), "{refused}");
    }
}

/// Trees of files with their execute bits. Names of directories and files differ, so that they have no conflicts.
fn trees() -> impl Strategy<Value = BTreeMap<String, (Vec<u8>, bool)>> {
    let content = (prop::collection::vec(any::<u8>(), 0..300), any::<bool>());
    prop::collection::btree_map("([a-c]/){0,3}[x-z\u{e9} ]{1,3}", content, 1..12)
}

fn packed(tree: &BTreeMap<String, (Vec<u8>, bool)>, is_deflated: bool) -> Vec<u8> {
    let entries = tree.iter().map(|(path, (content, is_executable))| {
        let entry = if is_deflated { RawEntry::deflated(path, content) } else { RawEntry::stored(path, content) };
        RawEntry { mode: if *is_executable { 0o100_755 } else { 0o100_644 }, ..entry }
    });
    raw_zip(&entries.collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn a_tree_is_read_as_it_was_packed(tree in trees(), is_deflated in any::<bool>()) {
        let (sink, size) = read(BundleKind::Python, &packed(&tree, is_deflated));
        let size = size.unwrap();
        prop_assert_eq!(size.files, tree.len() as u64);
        prop_assert_eq!(size.directories, sink.directories.len() as u64);
        prop_assert_eq!(size.bytes, sink.written);
        prop_assert_eq!(sink.files, tree);
    }

    #[test]
    fn changed_bytes_are_refused_or_stay_within_the_limits(
        tree in trees(),
        is_deflated in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut stored = packed(&tree, is_deflated);
        for (at, byte) in changes {
            let at = at.index(stored.len());
            stored[at] = byte;
        }
        let (sink, result) = read(BundleKind::Python, &stored);
        if let Ok(size) = result {
            prop_assert_eq!((size.bytes, size.files), (sink.written, sink.files.len() as u64));
        }
        // The same bytes as a text are refused or written as they are.
        if read(BundleKind::Node, &stored).1.is_ok() {
            prop_assert!(std::str::from_utf8(&stored).is_ok());
        }
    }
}

#[test]
fn the_methods_of_the_samples_are_those_of_zip() {
    assert_eq!(RawEntry::stored("a", b"x").method, STORED);
    let mut archive = zip::ZipArchive::new(Cursor::new(raw_zip(&[RawEntry::deflated("a", b"x")]))).unwrap();
    assert_eq!(archive.by_index(0).unwrap().compression(), CompressionMethod::Deflated);
    archive.validate_header_consistency().unwrap();
}
