//! Golden bytes of every command. A failure means that existing logs can no longer be read.

use assay_storage_model::command::{
    Action, COMMAND_BYTES_MAX, Command, ConditionalWrite, DecodeError, ExpectedRow, ROWS_PER_WRITE_MAX, RequestId,
    RowOp, TooLarge, Write,
};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId, Xact};
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use uuid::Uuid;

fn object() -> ObjectKey {
    ObjectKey::new(OrgId(Uuid::from_u128(0xA1)), ObjectKind::Dataset, Uuid::from_u128(0xB2))
}

const OBJECT: &str = "000000000000000000000000000000a1 03 000000000000000000000000000000b2 00";

fn row<'a>(id: &'a str, action: Action) -> RowOp<'a> {
    RowOp { id, action, span_id: "", root_span_id: "", is_root: false, created: 0, doc: b"{}", rules: b"", audit: b"" }
}

fn write_of_everything() -> Command<'static> {
    let merge = RowOp {
        id: "r1",
        action: Action::Merge,
        span_id: "s",
        root_span_id: "t",
        is_root: true,
        created: 1_790_000_000_000_001,
        doc: br#"{"a":1}"#,
        rules: br#"{"merge_paths":[["a"]]}"#,
        audit: br#"{"source":"app"}"#,
    };
    let created_before_1970 = RowOp { created: -2, ..row("r2", Action::Upsert) };
    Command::Write(Write {
        object: object(),
        assigned: Xact::new(1_709_970_518, 52_683),
        request: Some(RequestId { key: [1; 16], content: [2; 16] }),
        rows: vec![merge, created_before_1970, row("r3", Action::Delete), row("r4", Action::Comment)],
    })
}

fn golden() -> Vec<(&'static str, Command<'static>, String)> {
    let merge = "02 7231  02  01 73  01 74  01  fd 02c04bb4fdb70c00  07 7b2261223a317d \
                 17 7b226d657267655f7061746873223a5b5b2261225d5d7d  10 7b22736f75726365223a22617070227d";
    let rest = "02 7232 01 00 00 00 03 027b7d 00 00   02 7233 03 00 00 00 00 027b7d 00 00 \
                02 7234 04 00 00 00 00 027b7d 00 00";
    let head = format!("01 01 {OBJECT} fd cbcd5614ec65e10d");
    let request = "01 01010101010101010101010101010101 02020202020202020202020202020202";
    let bare = Write { object: object(), assigned: Xact(7), request: None, rows: vec![] };
    vec![
        ("write", write_of_everything(), format!("{head} {request} 04 {merge} {rest}")),
        ("write without request or rows", Command::Write(bare), format!("01 01 {OBJECT} 07 00 00")),
        ("advance", Command::Advance { to: Xact::ZERO }, "01 02 00".to_owned()),
        ("advance", Command::Advance { to: Xact::MAX }, "01 02 fd ffffffffffffe10d".to_owned()),
        ("raise floor", Command::RaiseFloor { object: object(), floor: Xact(300) }, format!("01 03 {OBJECT} fb 2c01")),
        ("drop object", Command::DropObject { object: object() }, format!("01 04 {OBJECT}")),
        ("conditional write", conditional(), format!("02 05 {OBJECT} 07 00 02 {} 02 00 00 01 fb 2c01", two_deletes())),
    ]
}

fn conditional() -> Command<'static> {
    let rows = vec![row("r3", Action::Delete), row("r4", Action::Delete)];
    let write = Write { object: object(), assigned: Xact(7), request: None, rows };
    let expected = vec![ExpectedRow { row: 0, version: Xact::ZERO }, ExpectedRow { row: 1, version: Xact(300) }];
    Command::ConditionalWrite(ConditionalWrite { write, expected })
}

fn two_deletes() -> &'static str {
    "02 7233 03 00 00 00 00 027b7d 00 00 02 7234 03 00 00 00 00 027b7d 00 00"
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_command_has_its_golden_bytes_in_both_directions() {
    for (name, command, hex) in golden() {
        let bytes = from_hex(&hex);
        assert_eq!(to_hex(&command.encode()), to_hex(&bytes), "{name}: encode");
        assert_eq!(Command::decode(&bytes).as_ref(), Ok(&command), "{name}: decode");
        assert!(command.encode().len() <= command.bytes_about(), "{name}: the estimate is from above");
    }
}

#[test]
fn decoding_borrows_from_the_bytes() {
    let bytes = write_of_everything().encode();
    let Ok(Command::Write(write)) = Command::decode(&bytes) else { panic!("decodes") };
    let doc = write.rows[0].doc;
    assert!(bytes.as_ptr_range().contains(&doc.as_ptr()));
}

#[test]
fn every_cut_and_every_extra_byte_is_refused() {
    for (name, command, _) in golden() {
        let whole = command.encode();
        for end in 0..whole.len() {
            assert!(Command::decode(&whole[..end]).is_err(), "{name} cut at {end}");
        }
        let longer = [whole.as_slice(), &[0]].concat();
        assert!(matches!(Command::decode(&longer), Err(DecodeError::Body(_))), "{name} with a byte more");
    }
}

#[test]
fn garbage_and_flipped_bits_never_panic() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let whole = write_of_everything().encode();
    for _ in 0..20_000 {
        let mut flipped = whole.clone();
        let at = random.random_range(0..flipped.len());
        flipped[at] ^= 1 << random.random_range(0..8);
        let _ = Command::decode(&flipped);

        let mut garbage = vec![0; random.random_range(0..200)];
        random.fill_bytes(&mut garbage);
        garbage.splice(..garbage.len().min(2), [1, random.random_range(0..6)]);
        let _ = Command::decode(&garbage);
    }
}

#[test]
fn another_version_tag_action_or_kind_is_named() {
    assert_eq!(Command::decode(&[3, 1]), Err(DecodeError::Newer(3)));
    assert_eq!(Command::decode(&[2, 1]), Err(DecodeError::Tag(1)));
    assert_eq!(Command::decode(&[1, 5]), Err(DecodeError::Tag(5)));
    assert_eq!(Command::decode(&[1, 9]), Err(DecodeError::Tag(9)));
    assert!(matches!(Command::decode(&[0, 1]), Err(DecodeError::Body(_))));
    let mut no_such_kind = Command::DropObject { object: object() }.encode();
    no_such_kind[2 + 16] = 0;
    let Err(error) = Command::decode(&no_such_kind) else { panic!("kind 0 decodes") };
    assert_eq!(error.to_string(), "a command cannot be decoded: an object of an unknown kind");
}

#[test]
fn a_write_has_at_most_ten_thousand_rows() {
    let rows = vec![row("r", Action::Delete); ROWS_PER_WRITE_MAX + 1];
    let mut write = Write { object: object(), assigned: Xact(7), request: None, rows };
    let command = Command::Write(write.clone());
    assert_eq!(command.check_limits(), Err(TooLarge::Rows(ROWS_PER_WRITE_MAX + 1)));
    let refused = Command::decode(&command.encode()).expect_err("one row too many").to_string();
    assert!(refused.contains("more rows"), "{refused}");

    write.rows.pop();
    let command = Command::Write(write);
    assert_eq!(command.check_limits(), Ok(()));
    assert!(Command::decode(&command.encode()).is_ok());
}

#[test]
fn a_claimed_count_makes_no_room_before_it_is_checked() {
    let Command::Write(write) = write_of_everything() else { panic!("is a write") };
    let mut bytes = Command::Write(Write { rows: vec![], request: None, ..write }).encode();
    bytes.pop();
    bytes.extend(from_hex("fc ffffffff"));
    let refused = Command::decode(&bytes).expect_err("four thousand million rows").to_string();
    assert!(refused.contains("more rows"), "{refused}");
}

#[test]
fn a_conditional_write_has_conditions_on_its_own_rows_only() {
    let Command::ConditionalWrite(good) = conditional() else { panic!("is conditional") };
    let refused = |expected: Vec<ExpectedRow>| {
        let bytes = Command::ConditionalWrite(ConditionalWrite { expected, ..good.clone() }).encode();
        Command::decode(&bytes).expect_err("refused").to_string()
    };
    let of = |row| ExpectedRow { row, version: Xact(1) };
    assert!(refused(vec![of(2)]).contains("a row that the write does not have"));
    assert!(refused(vec![of(0), of(1), of(1)]).contains("more conditions than rows"));
    let bytes = bytes::Bytes::from(conditional().encode());
    let moved = Command::with_assigned(bytes, Xact::new(9, 1)).expect("a write");
    let (write, expected) = Command::decode(&moved).expect("decodes").into_write().expect("a write");
    assert_eq!((write.assigned, expected), (Xact::new(9, 1), good.expected));
}

#[test]
fn a_command_has_at_most_64_mebibytes() {
    let doc = vec![b' '; COMMAND_BYTES_MAX];
    let rows = vec![RowOp { doc: &doc, ..row("r", Action::Upsert) }];
    let command = Command::Write(Write { object: object(), assigned: Xact(7), request: None, rows });
    assert!(matches!(command.check_limits(), Err(TooLarge::Bytes(_))));
    assert!(matches!(Command::decode(&command.encode()), Err(DecodeError::Body(_))));
}
