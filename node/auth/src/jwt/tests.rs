//! Tests of valid and invalid tokens with real signatures.

use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::json;

use super::*;

/// RSA key of these tests in PKCS #8, which protects nothing.
const RSA: &str = "\
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCu/IMse1mVMC0llNz2FZMKCHHia+Dxxg0uqgGN9DWXU6l8MM3J\
    WYCRcrseYWQUUfCvWIg/E3p11XJsYlooRUq7HPI9Wvl1qE40sJNtGEjGTe+3qNiKaZHhlXva1bzI93wGSQf23oveZzMUWUn4Rcq1\
    EQAGrC6ZNk4X8xdBfWmFkCQ4xHMs3bqoA4EkOmkPO0Rin4R9niH7H2UizigY3vxctMUwirtCzLn9Ay5VnVIo+gAlibQ5itErQeg0\
    9TCXgrX4r8i+aKfTzNlPKPRN/wJMPQgduRdAyVlAU+Qb7VWPm9XK+93CAlYZZzYuF2ADV2OaE1hyfu+gHHcVdeO5NJJpAgMBAAEC\
    ggEAAVgSbFsqsBsJf7xF2bSG93ji4gu007qTE5iN8ECP0FCd0MTBseIYexWD4yr5lS/fbsNZ8Y0VX9YSvcsgGObWWPtTD35VQ+51\
    4lD4YupAtdg3pwQanK6MpqxKoh7J50vCVbyGHYLuVVga0/VPHINxuAQQSVzVc0sP3L5631+GmdZjNnX/2suY3mnVLqD7eO3UbnmF\
    YkOhtWZXnkAf8EOis8ET8om9aQbxgfxjhfX59zY3XH6oVGNN3Wpp8Qtb2LI6Jo9URCqBSWN/SjUhY6IQq2sAOgCRgyCxoO3pGmXB\
    L1rPTlAxCLmhcMc97KvEaYt1K+cviwjJ7n8WMiKD1DaUQQKBgQDVbCQbT6fDwyLWAexZC6GShSf2U4rSPZD94XpP1HzrVtaU+1IQ\
    NCCEN+2jEs6jFf3zuztn8uURd40pOgO6Il/zViMsUekSIAbwT4PZKBf8NKOJ2tZ9MIVXbP6XJrRYu/YhTcHxRT8o3AuRKxjSvyzg\
    9py2HTVoPpNOaCOi799VwQKBgQDR5V/pnAL172Q2Lt80/myxpYx6gMc7IKMukPxGbaqeNNTeNL6ja4+Fllk+CQWE9USb+mlXYLUB\
    IbuOn8HGyIDcC2NQlhAbADtMYgeXfGHQ5FabT8Rl9nprrAbGKHgy3rYWlH6YK9EDtew6kyOih+9oEri2Lri7TO3yuEaCyL52qQKB\
    gQCfZz7smykNoRDC0PrrYzGRkxzO8YTtFIjX5vII8AdBa0GoUrHvYk+rEW7PbvuheYqM4Zo0QInw6t8nHKqt+oC56espbiBrpjoo\
    gOtUZYrMl7BSBX5QUM43BzR8Rq9K21CxfTdO8k6DQR7ulUbcGWf2ups/tj8ulhZF6Kg9SXYAwQKBgG1ViCKOC9TEAHVg8RAPv9rB\
    m21si1s3YwksqNye35NNfdzJqMxDiR1S9eWkmWVqxXRiemDzlRWj1qkyeqPraYQ1wmQF5xnJgxoErmOwfNttNdftMybRv286ysSJ\
    7CLDdCJK866clGHUb9sLLjLJkGGr7t+ncr7OEdyvNLuHif8RAoGAN92+Kvduh0bag5OKSUS+cKgFaLTtNenTaE4q2vbWEf7ZKP15\
    Q5YmtTozB1TNjcIQTcPzkNmefQEGWuegTfaEbM8QzUz7939GmdkdaZC/6wy7hoWwwkB47DP38UzT+WUzFhwjos+CdBry1GxAq05J\
    T43g7DQ24Nt0cmkHEwV+HcQ=";
const SHARED: &str = "a-secret-of-the-tests-of-32-bytes-and-more";
const NOW: i64 = 1_800_000_000;

struct Issuer {
    rsa: RsaKeyPair,
    point: EcdsaKeyPair,
    random: SystemRandom,
}

fn issuer() -> Issuer {
    let random = SystemRandom::new();
    let rsa = RsaKeyPair::from_pkcs8(&STANDARD.decode(RSA).expect("base64")).expect("a key");
    let point = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
    let point = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, point.as_ref(), &random).expect("a key");
    Issuer { rsa, point, random }
}

fn text(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn rules() -> JwtRules {
    JwtRules { issuer: "https://issuer.example".into(), audience: "assay".into() }
}

fn claims(more: Value) -> Value {
    let mut claims =
        json!({"iss": "https://issuer.example", "aud": "assay", "exp": NOW + 600, "email": "ann@example.com"});
    for (name, value) in more.as_object().expect("claims") {
        match value {
            Value::Null => drop(claims.as_object_mut().expect("claims").remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    claims
}

impl Issuer {
    fn jwks(&self) -> Value {
        let public = self.rsa.public();
        let parts: RsaPublicKeyComponents<Vec<u8>> = public.into();
        let point = self.point.public_key().as_ref();
        json!({"keys": [
            {"kty": "RSA", "kid": "r", "use": "sig", "alg": "RS256", "n": text(parts.n), "e": text(parts.e), "more": [1]},
            {"kty": "EC", "kid": "p", "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..])},
            {"kty": "RSA", "kid": "for secrets", "use": "enc", "n": "x", "e": "AQAB"},
            {"kty": "oct", "kid": "published", "k": text(SHARED)},
            {"kty": "OKP", "crv": "Ed25519", "x": "x"},
        ]})
    }

    fn keys(&self) -> JwtKeys {
        JwtKeys::of_jwks(self.jwks().to_string().as_bytes()).expect("a set")
    }

    fn all(&self) -> JwtKeys {
        self.keys().and(&shared())
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", text(header.to_string()), text(claims.to_string()));
        let signature = match header["alg"].as_str() {
            Some("RS256") => {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                let signed = self.rsa.sign(&RSA_PKCS1_SHA256, &self.random, message.as_bytes(), &mut signature);
                signed.expect("signs");
                signature
            }
            Some("ES256") => self.point.sign(&self.random, message.as_bytes()).expect("signs").as_ref().to_vec(),
            _ => by_secret(SHARED.as_bytes(), &message),
        };
        format!("{message}.{}", text(signature))
    }
}

fn shared() -> JwtKeys {
    JwtKeys::of_secret(&Secret::new(SHARED.into())).expect("a secret")
}

fn by_secret(secret: &[u8], message: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes()).as_ref().to_vec()
}

fn ann() -> Result<String, JwtRefusal> {
    Ok("ann@example.com".to_owned())
}

#[test]
fn a_token_of_the_issuer_is_about_the_user_of_its_address() {
    let issuer = issuer();
    for (algorithm, kid) in [("RS256", "r"), ("ES256", "p"), ("HS256", "whatever")] {
        for header in [json!({"alg": algorithm, "kid": kid}), json!({"alg": algorithm, "typ": "at+jwt"})] {
            let token = issuer.signed(&header, &claims(json!({"org": "acme", "roles": ["Owner"]})));
            assert!(looks_like_jwt(&token));
            assert_eq!(issuer.all().verify(&token, &rules(), NOW), ann(), "{header}");
        }
    }
}

#[test]
fn the_algorithm_is_that_of_the_key_and_never_what_the_token_wants() {
    let issuer = issuer();
    let verify = |keys: &JwtKeys, token: &str| keys.verify(token, &rules(), NOW);
    let set = issuer.jwks();
    // The public key in each form that an attacker may use as a shared secret.
    let modulus = set["keys"][0]["n"].as_str().expect("a text").to_owned();
    let publics =
        [modulus.clone().into_bytes(), decoded(&modulus).expect("bytes"), set["keys"][0].to_string().into_bytes()];
    for public in publics {
        for header in [json!({"alg": "HS256", "kid": "r"}), json!({"alg": "HS256"})] {
            let message = format!("{}.{}", text(header.to_string()), text(claims(json!({})).to_string()));
            let token = format!("{message}.{}", text(by_secret(&public, &message)));
            assert_eq!(verify(&issuer.keys(), &token), Err(JwtRefusal::Algorithm), "there is no secret");
            assert_eq!(verify(&issuer.all(), &token), Err(JwtRefusal::Signature), "there is another one");
        }
    }
    // A published secret must not be accepted.
    let published = issuer.signed(&json!({"alg": "HS256", "kid": "published"}), &claims(json!({})));
    assert_eq!(verify(&issuer.keys(), &published), Err(JwtRefusal::Algorithm));
    for none in ["none", "None", "NONE", "", "HS384", "RS512", "PS256", "ES384", "EdDSA", "hs256"] {
        let message = format!("{}.{}", text(json!({"alg": none}).to_string()), text(claims(json!({})).to_string()));
        for signature in ["", "AAAA"] {
            assert_eq!(verify(&issuer.all(), &format!("{message}.{signature}")), Err(JwtRefusal::Algorithm), "{none}");
        }
    }
    let by_point = issuer.signed(&json!({"alg": "ES256", "kid": "r"}), &claims(json!({})));
    assert_eq!(verify(&issuer.all(), &by_point), Err(JwtRefusal::Algorithm), "the key of that name is for RSA");
    let unknown = issuer.signed(&json!({"alg": "RS256", "kid": "new"}), &claims(json!({})));
    assert_eq!(verify(&issuer.all(), &unknown), Err(JwtRefusal::UnknownKey), "the issuer may have it");
}

#[test]
fn what_was_changed_or_signed_by_others_is_refused() {
    let (issuer, other) = (issuer(), issuer());
    for (algorithm, kid) in [("RS256", "r"), ("ES256", "p"), ("HS256", "s")] {
        let token = issuer.signed(&json!({"alg": algorithm, "kid": kid}), &claims(json!({})));
        let (head, rest) = token.split_once('.').expect("parts");
        let (_, signature) = rest.split_once('.').expect("parts");
        let forged = text(claims(json!({"email": "owner@example.com"})).to_string());
        let verify = |token: String| issuer.all().verify(&token, &rules(), NOW);
        assert_eq!(verify(format!("{head}.{forged}.{signature}")), Err(JwtRefusal::Signature));
        assert!(verify(format!("{head}.{rest}AAAA")).is_err());
        assert!(verify(format!("{head}.{}", &rest[..rest.len() - 4])).is_err());
        assert_eq!(verify(format!("{head}.{}.", rest.split_once('.').expect("parts").0)), Err(JwtRefusal::Signature));
    }
    let of_other = other.signed(&json!({"alg": "ES256", "kid": "p"}), &claims(json!({})));
    assert_eq!(issuer.all().verify(&of_other, &rules(), NOW), Err(JwtRefusal::Signature));
    let wrong = JwtKeys::of_secret(&Secret::new("x".repeat(40))).expect("a secret");
    let token = issuer.signed(&json!({"alg": "HS256"}), &claims(json!({})));
    assert_eq!(wrong.verify(&token, &rules(), NOW), Err(JwtRefusal::Signature));
    assert_eq!(JwtKeys::default().verify(&token, &rules(), NOW), Err(JwtRefusal::Algorithm));
}

#[test]
fn it_has_to_be_for_here_for_now_and_about_somebody() {
    let issuer = issuer();
    let refused = |more: Value| {
        let token = issuer.signed(&json!({"alg": "ES256", "kid": "p"}), &claims(more));
        issuer.all().verify(&token, &rules(), NOW)
    };
    for more in [
        json!({"exp": NOW - 59}),
        json!({"nbf": NOW + 60}),
        json!({"nbf": NOW - 1, "iat": NOW + 5}),
        json!({"exp": 1_800_000_600.5}),
        json!({"aud": ["other", "assay"]}),
        json!({"email_verified": true}),
        json!({"email_verified": "true"}),
    ] {
        assert_eq!(refused(more.clone()), ann(), "{more}");
    }
    for (more, says) in [
        (json!({"exp": NOW - 60}), "expired"),
        (json!({"exp": 0}), "expired"),
        (json!({"exp": null}), "no `exp`"),
        (json!({"nbf": NOW + 61}), "not valid yet"),
        (json!({"iss": "https://issuer.example/"}), "issuer is not"),
        (json!({"iss": null}), "issuer is not"),
        (json!({"aud": "other"}), "audience is not"),
        (json!({"aud": []}), "audience is not"),
        (json!({"aud": null}), "audience is not"),
        (json!({"email": null}), "no `email`"),
        (json!({"email": ""}), "no `email`"),
        (json!({"email_verified": false}), "`email_verified`"),
        (json!({"email_verified": "false"}), "`email_verified`"),
    ] {
        assert!(matches!(refused(more.clone()), Err(JwtRefusal::Claims(why)) if why.contains(says)), "{more}");
    }
    // A claim of another type must not count as absent.
    for more in [
        json!({"exp": "1900000000"}),
        json!({"exp": [NOW + 600]}),
        json!({"nbf": "x"}),
        json!({"nbf": {}}),
        json!({"aud": 5}),
        json!({"iss": ["https://issuer.example"]}),
        json!({"email": ["ann@example.com"]}),
        json!({"email_verified": 1}),
    ] {
        assert!(matches!(refused(more.clone()), Err(JwtRefusal::Malformed(_))), "{more}");
    }
}

#[test]
fn what_is_no_token_is_refused_before_it_costs_anything() {
    let issuer = issuer();
    let verify = |token: &str| issuer.all().verify(token, &rules(), NOW);
    let long = issuer.signed(&json!({"alg": "HS256"}), &claims(json!({"more": "x".repeat(JWT_BYTES_MAX)})));
    assert!(matches!(verify(&long), Err(JwtRefusal::Malformed(why)) if why.contains("8192")));
    let crit = issuer.signed(&json!({"alg": "HS256", "crit": ["b64"], "b64": false}), &claims(json!({})));
    assert!(matches!(verify(&crit), Err(JwtRefusal::Malformed(why)) if why.contains("extension")));
    let twice = format!("{}.{}", text(r#"{"alg":"none","alg":"HS256"}"#), text(claims(json!({})).to_string()));
    let twice = format!("{twice}.{}", text(by_secret(SHARED.as_bytes(), &twice)));
    assert!(matches!(verify(&twice), Err(JwtRefusal::Malformed(why)) if why.contains("duplicate")));
    let token = issuer.signed(&json!({"alg": "HS256"}), &claims(json!({})));
    for wrong in ["", ".", "..", "...", "a.b.c", "sk-abc", &token.replace('.', "="), &format!("{token}="), &token[1..]]
    {
        assert!(matches!(verify(wrong), Err(JwtRefusal::Malformed(_))), "{wrong}");
    }
    assert!(matches!(verify(&format!("{token}.x")), Err(JwtRefusal::Malformed(_))), "four parts");
    for (credential, looks) in [
        ("a.b.c", true),
        (token.as_str(), true),
        ("a.b", false),
        ("a..c", false),
        ("a.b.c.d", false),
        ("a.b.c=", false),
    ] {
        assert_eq!(looks_like_jwt(credential), looks, "{credential}");
    }
}

#[test]
fn a_set_of_keys_is_read_whole_or_not_at_all() {
    let read = |keys: Value| JwtKeys::of_jwks(json!({"keys": keys}).to_string().as_bytes());
    let issuer = issuer();
    let set = issuer.jwks();
    assert_eq!(format!("{:?}", issuer.keys()), "JwtKeys(2)");
    let with = |name: &str, value: &str| {
        let mut key = set["keys"][0].clone();
        key[name] = value.into();
        read(json!([key])).expect_err("is refused")
    };
    assert!(with("n", "+/=").contains("keys[0]: `n` is not base64url"));
    assert!(with("n", &text([1; 128])).contains("1024 bits"));
    assert!(with("e", "").contains("`e` is not an exponent"));
    assert!(with("alg", "RS512").contains("no key for RS256"));
    assert!(read(json!([{"kty": "RSA", "n": "AQAB"}])).expect_err("half").contains("`e` is missing"));
    assert!(
        read(json!([{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}])).expect_err("short").contains("32 bytes")
    );
    assert!(read(json!([])).expect_err("none").contains("no key for RS256"));
    assert!(read(json!([{"kid": "x"}])).expect_err("no type").contains("keys[0]"));
    assert!(read(json!(vec![set["keys"][1].clone(); 33])).expect_err("many").contains("33 keys"));
    let long = vec![b' '; JWKS_BYTES_MAX + 1];
    assert!(JwtKeys::of_jwks(&long).expect_err("long").contains("at most 262144 bytes"));
    for wrong in ["", "[]", "{}", "<html>", r#"{"keys": {}}"#] {
        assert!(JwtKeys::of_jwks(wrong.as_bytes()).expect_err(wrong).contains("not a JWK set"), "{wrong}");
    }
    let short = JwtKeys::of_secret(&Secret::new("x".repeat(31))).expect_err("short");
    assert!(short.contains("at least 32 bytes, but this one has 31"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_is_taken_and_none_makes_it_fall(
        parts in prop::collection::vec("[A-Za-z0-9_=. -]{0,40}", 0..5), noise: String, cut in any::<prop::sample::Index>(),
        bit in 0_u8..8, header in "[{}\\[\\]\":,a-z0-9]{0,30}",
    ) {
        let keys = shared();
        for wrong in [parts.join("."), noise, format!("{}.{}.{}", text(&header), text(&header), text(&header))] {
            prop_assert!(keys.verify(&wrong, &rules(), NOW).is_err());
            looks_like_jwt(&wrong);
            prop_assert!(JwtKeys::of_jwks(wrong.as_bytes()).is_err());
        }
        // A valid token with one flipped bit.
        let message = format!("{}.{}", text(json!({"alg": "HS256"}).to_string()), text(claims(json!({})).to_string()));
        let good = format!("{message}.{}", text(by_secret(SHARED.as_bytes(), &message)));
        prop_assert_eq!(keys.verify(&good, &rules(), NOW), ann());
        let mut bytes = good.into_bytes();
        let place = cut.index(bytes.len());
        bytes[place] ^= 1 << bit;
        if let Ok(changed) = String::from_utf8(bytes) {
            prop_assert!(keys.verify(&changed, &rules(), NOW).is_err(), "{}", changed);
        }
    }
}

#[test]
fn who_logged_in_is_said_by_the_provider_for_this_login_alone() {
    let issuer = issuer();
    let said = |more: Value| {
        let mut all = json!({"nonce": "n", "email_verified": true});
        all.as_object_mut().expect("claims").extend(more.as_object().expect("claims").clone());
        let token = issuer.signed(&json!({"alg": "ES256", "kid": "p"}), &claims(all));
        issuer.keys().identify(&token, &rules(), "n", NOW)
    };
    let ann = |is_verified| Ok(IdTokenClaims { email: "ann@example.com".into(), is_verified });
    assert_eq!(said(json!({})), ann(true));
    assert_eq!(said(json!({"email_verified": "true"})), ann(true));
    for unverified in [json!(false), json!("false"), Value::Null] {
        assert_eq!(said(json!({"email_verified": unverified})), ann(false), "{unverified}");
    }
    assert_eq!(said(json!({"aud": ["assay"]})), ann(true));
    assert_eq!(said(json!({"aud": ["assay", "other"], "azp": "assay"})), ann(true));
    for (wrong, says) in [
        (json!({"nonce": "m"}), "nonce"),
        (json!({"nonce": null}), "nonce"),
        (json!({"aud": ["assay", "other"]}), "azp"),
        (json!({"azp": "other"}), "azp"),
        (json!({"aud": "other"}), "audience"),
        (json!({"iss": "https://other.example"}), "issuer"),
        (json!({"exp": NOW - 61}), "expired"),
        (json!({"email": ""}), "no `email`"),
    ] {
        let refused = said(wrong.clone());
        assert!(matches!(&refused, Err(JwtRefusal::Claims(why)) if why.contains(says)), "{wrong}: {refused:?}");
    }
    assert!(matches!(said(json!({"nonce": 7})), Err(JwtRefusal::Malformed(_))));
    let token = issuer.signed(&json!({"alg": "ES256", "kid": "p"}), &claims(json!({"nonce": "n"})));
    let (message, _) = token.rsplit_once('.').expect("parts");
    let forged = format!("{message}.{}", text([7; 64]));
    assert_eq!(issuer.keys().identify(&forged, &rules(), "n", NOW), Err(JwtRefusal::Signature));
}
