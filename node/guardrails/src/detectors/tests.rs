//! What detectors find, and what they leave.

use proptest::prelude::*;

use super::*;

/// Masks all that a detector finds.
fn masked(detector: Detector, text: &str) -> String {
    let (mut out, mut end) = (String::new(), 0);
    while let Some(found) = detector.find(text, end) {
        assert!(found.start >= end && found.end > found.start);
        out.push_str(&text[end..found.start]);
        out.push_str(detector.placeholder());
        end = found.end;
    }
    out.push_str(&text[end..]);
    out
}

/// Checks texts with `[]` for each match expected, and texts without any.
fn check(detector: Detector, found: &[(&str, &str)], left: &[&str]) {
    for (text, expected) in found {
        assert_eq!(masked(detector, text), expected.replace("[]", detector.placeholder()), "{text}");
    }
    for text in left {
        assert_eq!(masked(detector, text), *text);
    }
}

#[test]
fn email_addresses() {
    check(
        Detector::Email,
        &[
            ("ada@example.com", "[]"),
            ("Mail ada.l+x_y@sub.example.co.uk, please.", "Mail [], please."),
            ("<ada@example.com>; bob@x-y.org.", "<[]>; []."),
            ("mailto:ada@example.com?subject=x", "mailto:[]?subject=x"),
            ("https://ada@example.com/", "https://[]/"),
            ("'ada@example.com'", "'[]'"),
            ("a@xn--bcher-kva.xn--p1ai", "[]"),
            ("ada@example.com.", "[]."),
            ("ada@example.com-", "[]-"),
            ("ada@example.com..x", "[]..x"),
            ("a@b.co@c.de", "[]@c.de"),
            ("é ada@example.com é", "é [] é"),
        ],
        &["@", "a@", "@b.com", "a@b", "a@b.c", "a@.com", "a@-b.com", "a @b.com", "x@1.2", "@@@", "git@host:path"],
    );
    let long = format!("{}@example.com", "a".repeat(300));
    assert!(masked(Detector::Email, &long).ends_with("[EMAIL]"));
}

#[test]
fn phone_numbers() {
    check(
        Detector::Phone,
        &[
            ("+14155550123", "[]"),
            ("+1 (415) 555-0123.", "[]."),
            ("Tel:+49 30 1234567, x", "Tel:[], x"),
            ("+33 1 23 45 67 89", "[]"),
            ("+44 (0)20 7946 0958", "[]"),
            ("call 415-555-0123 or (415) 555-0123", "call [] or []"),
            ("415.555.0123!", "[]!"),
            ("1-415-555-0123", "[]"),
            ("01 23 45 67 89", "[]"),
            ("01.23.45.67.89", "[]"),
            ("020 7946 0958", "[]"),
            ("01632 960001", "[]"),
            ("030/1234567", "[]"),
            ("+14155550123)415-555-0123", "[])[]"),
            ("+1 415 555 0123 4567890", "[] 4567890"),
        ],
        &[
            "4155550123",
            "2024-01-15",
            "2024-01-15 10:30:00",
            "1.2.3.4",
            "192.168.100.200",
            "+123",
            "+1234567890123456789",
            "a+14155550123",
            "x415-555-0123",
            "415-555-01234",
            "415-555-0123-9",
            "$415.555.0123",
            "078-05-1120",
            "4111 1111 1111 1111",
            "1 + 12345678",
            "115-555-0123",
            "e+12345678",
            "550e8400-e29b-41d4-a716-446655440000",
        ],
    );
}

#[test]
fn ip_addresses() {
    check(
        Detector::IpAddress,
        &[
            ("10.0.0.1", "[]"),
            ("from 203.0.113.7:8080, to 203.0.113.8.", "from []:8080, to []."),
            ("10.0.0.0/8", "[]/8"),
            ("10.0.0.1-10.0.0.5", "[]-[]"),
            ("2001:db8::1", "[]"),
            ("[2001:db8:0:0:0:0:0:1]:443", "[[]]:443"),
            ("fe80::1%eth0", "[]%eth0"),
            ("::ffff:10.0.0.1", "[]"),
            ("ip 2001:db8::7: up", "ip []: up"),
        ],
        &[
            "1.2.3",
            "1.2.3.256",
            "1.2.3.4.5",
            "01.2.3.4",
            "v1.2.3.4",
            "1.2.3.4-rc",
            "0.0.0.0",
            "a::b",
            "std::fmt",
            "dead::beef",
            "12:30:45",
            "aa:bb:cc:dd:ee:ff",
            "::",
            "::1",
        ],
    );
}

#[test]
fn credit_cards() {
    check(
        Detector::CreditCard,
        &[
            ("4111111111111111", "[]"),
            ("4111 1111 1111 1111 12/25", "[] 12/25"),
            ("4111-1111-1111-1111", "[]"),
            ("5555555555554444", "[]"),
            ("2223003122003222", "[]"),
            ("378282246310005", "[]"),
            ("3782 822463 10005", "[]"),
            ("6011111111111117", "[]"),
            ("3530111333300000", "[]"),
            ("30569309025904", "[]"),
            ("1 4111111111111111", "1 []"),
        ],
        &[
            "4111111111111112",
            "1234567812345678",
            "0000000000000000",
            "a4111111111111111",
            "4111111111111111a",
            "41111111111111111",
            "0.4111111111111111",
            "4111 1111-1111 1111",
            "4111  1111  1111  1111",
        ],
    );
}

#[test]
fn ibans() {
    check(
        Detector::Iban,
        &[
            ("DE89370400440532013000", "[]"),
            ("DE89 3704 0044 0532 0130 00.", "[]."),
            ("gb29nwbk60161331926819", "[]"),
            ("IBAN: NO9386011117947", "IBAN: []"),
            ("FR14 2004 1010 0505 0001 3M02 606", "[]"),
            ("MT84MALT011000012345MTLCAST001S", "[]"),
        ],
        &[
            "DE88370400440532013000",
            "DE8937040044053201300",
            "DE893704004405320130001",
            "XX89370400440532013000",
            "DE89 37040044 0532 0130 00",
            "xDE89370400440532013000",
        ],
    );
}

#[test]
fn social_security_numbers() {
    check(
        Detector::UsSsn,
        &[("078-05-1120", "[]"), ("SSN: 219-09-9999.", "SSN: [].")],
        &[
            "000-12-3456",
            "666-12-3456",
            "912-12-3456",
            "123-00-4567",
            "123-45-0000",
            "123-45-67890",
            "1123-45-6789",
            "123-45-6789-1",
            "2024-123-45-6789",
            "123456789",
        ],
    );
}

#[test]
fn api_keys() {
    let forty = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9n";
    let sixty_four = "0123456789abcdef".repeat(4);
    let cases = [
        format!("sk-{forty}"),
        format!("sk-proj-{forty}_-{forty}"),
        format!("sk-ant-api03-{forty}-{forty}"),
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        format!("ghp_{forty}"),
        format!("github_pat_{forty}_{forty}"),
        format!("glpat-{}", &forty[..20]),
        // in two parts, so that nobody takes it for a real one
        format!("xox{}-123456789012-{}", "b", &forty[..24]),
        format!("AIza{}", &forty[..35]),
        format!("hf_{}", &forty[..34]),
        format!("sk_{}_{}", "live", &forty[..24]),
        format!("dop_v1_{sixty_four}"),
        format!("bt-st-{forty}"),
    ];
    for key in &cases {
        let text = format!("key={key}. Next: \"{key}\", Bearer {key}");
        assert_eq!(masked(Detector::ApiKey, &text), "key=[API_KEY]. Next: \"[API_KEY]\", Bearer [API_KEY]", "{key}");
        assert_eq!(masked(Detector::ApiKey, &format!("x{key}")), format!("x{key}"));
    }
    check(
        Detector::ApiKey,
        &[],
        &[
            "sk-short1",
            "sk-a-name-of-words-with-hyphens-in-it",
            "task-12345678901234567890",
            "AKIAIOSFODNN7EXAMPL",
            "AKIAIOSFODNN7EXAMPLEX",
            "ghp_short1",
            "a hf_ b",
        ],
    );
}

#[test]
fn signed_tokens() {
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
    check(
        Detector::Jwt,
        &[(&format!("Bearer {token}."), "Bearer []."), (token, "[]")],
        &[
            "eyJ",
            "eyJhbGciOiJIUzI1NiJ9",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.",
            "eyJhbGciOiJIUzI1NiJ9.a.b",
            "eyJhbGciOiJIUzI1NiJ9.",
            &format!("x{token}"),
        ],
    );
}

#[test]
fn private_keys() {
    let block = |label: &str| format!("-----BEGIN {label}-----\nMIIE\nAbc=\n-----END {label}-----");
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        let text = format!("a {} b {} c", block(label), block(label));
        assert_eq!(masked(Detector::PrivateKey, &text), "a [PRIVATE_KEY] b [PRIVATE_KEY] c");
    }
    let cut = "-----BEGIN PRIVATE KEY-----\nMIIE";
    check(
        Detector::PrivateKey,
        &[(cut, "[]"), (&format!("{} {cut}", block("PUBLIC KEY")), &format!("{} []", block("PUBLIC KEY")))],
        &[&block("CERTIFICATE"), "-----BEGIN ", "BEGIN PRIVATE KEY", "-----BEGIN PRIVATE KEY"],
    );
}

#[test]
fn names_lead_back_to_their_detectors() {
    for detector in Detector::ALL {
        assert_eq!(Detector::named(detector.name()), Some(detector));
        assert_eq!(masked(detector, detector.placeholder()), detector.placeholder());
    }
    assert_eq!(Detector::named("name"), None);
}

/// Texts of pieces that detectors look at.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[0-9+() ./:@-]{1,6}",
        2 => "[a-zé@. -]{1,6}",
        1 => prop::sample::select(vec![
            "ada@example.com", "415-555-0123", "+14155550123", "(415) 555-0123", "10.0.0.1", "2001:db8::1",
            "4111111111111111", "DE89370400440532013000", "078-05-1120", "sk-aB3dE6gH9jK2mN5pQ8sT1v",
            "eyJhbGciOiJIUzI1NiJ9", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "::", "sk-", "0123",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn masking_twice_is_masking_once(text in text()) {
        for detector in Detector::ALL {
            let once = masked(detector, &text);
            prop_assert_eq!(&masked(detector, &once), &once, "{:?}", detector);
        }
    }

    #[test]
    fn any_text_is_read(text in ".{0,200}") {
        for detector in Detector::ALL {
            masked(detector, &text);
        }
    }
}

#[test]
fn large_texts_are_read_in_a_moment() {
    let begun = std::time::Instant::now();
    let pieces =
        ["a", "1", "@", "a@", "eyJ", "+1", "1 ", "1.", ":", "sk-a1", "-----BEGIN PRIVATE KEY", "DE89", "4111 ", "("];
    for piece in pieces {
        let text = piece.repeat((256 << 10) / piece.len());
        for detector in Detector::ALL {
            masked(detector, &text);
        }
    }
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}
