//! Tests of the policy against a corpus of URL and DNS tricks, with the expected decisions.

mod cases;

use std::net::IpAddr;

use assay_node_egress::{EgressPolicy, EgressPurpose, EgressSettings, EgressUrl, OwnEndpoints};
use cases::{CASES, Expected, PolicyName};

/// Settings of an installation with a private network. Each case uses one of their policies.
fn policy(name: PolicyName) -> EgressPolicy {
    let settings = match name {
        PolicyName::Closed => "public = false",
        PolicyName::Public => "public = true",
        PolicyName::Listed => {
            r#"
            public = false
            [[allow]]
            cidr = "10.1.0.0/16"
            ports = [443, "8000-8100"]
            for = ["models"]
            [[allow]]
            host = "vllm.corp.example"
            ports = [8000]
            for = ["models"]
            [[allow]]
            host = "localhost"
            ports = [11434]
            for = ["models"]
            [[allow]]
            suffix = ".hooks.example"
            ports = [80, 443]
            for = ["models", "webhooks"]
            [[allow]]
            cidr = "fd12:3456::/32"
            ports = [443]
            for = ["models"]
            [[allow]]
            cidr = "0.0.0.0/0"
            ports = [9999]
            for = ["models"]
            [[allow]]
            cidr = "::/0"
            ports = [9999]
            for = ["models"]
            "#
        }
    };
    let settings: EgressSettings = toml::from_str(settings).expect("settings of a test");
    let address = |text: &str| text.parse().expect("an address of a test");
    let own = OwnEndpoints {
        listeners: vec!["0.0.0.0:8000".parse().expect("a listener"), "10.1.0.7:8001".parse().expect("a listener")],
        addresses: vec![address("10.1.0.5"), address("fd12:3456::5")],
        cluster_ports: vec![8050],
    };
    EgressPolicy::new(&settings, own).expect("a policy of a test")
}

/// Returns the decision of the policy in words: the addresses, or the reason.
fn decision(case: &cases::PolicyCase) -> Result<String, String> {
    let url: EgressUrl = case.url.parse().map_err(|error| format!("{error}"))?;
    let addresses = case.dns.iter().map(|text| text.parse().expect("an address of a test")).collect::<Vec<IpAddr>>();
    let checked = policy(case.policy).check(EgressPurpose::Models, &url, &addresses);
    let checked = checked.map_err(|refusal| refusal.to_string())?;
    Ok(checked.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
}

#[test]
fn every_case_is_decided_for_its_reason() {
    let mut wrong = Vec::new();
    for case in CASES {
        let decision = decision(case);
        let is_right = match (&case.expected, &decision) {
            (Expected::Allowed(addresses), Ok(checked)) => checked == addresses,
            (Expected::Refused(reason), Err(why)) => why.contains(reason),
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{} ({:?}, {:?}): {decision:?}", case.url, case.dns, case.policy));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(CASES.len() >= 100, "{} cases", CASES.len());
}

#[test]
fn one_wrong_address_refuses_the_call_wherever_it_stands() {
    let policy = policy(PolicyName::Public);
    let url: EgressUrl = "https://rebind.example/".parse().expect("a URL");
    let good: Vec<IpAddr> = ["93.184.216.34", "1.1.1.1", "2606:4700::1111"].map(|a| a.parse().expect("good")).to_vec();
    assert_eq!(policy.check(EgressPurpose::Models, &url, &good).expect("all are public").len(), 3);
    for bad in ["10.0.0.1", "127.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "0.0.0.0"] {
        for at in 0..=good.len() {
            let mut mixed = good.clone();
            mixed.insert(at, bad.parse().expect("bad"));
            assert!(policy.check(EgressPurpose::Models, &url, &mixed).is_err(), "{bad} at {at}");
        }
    }
}

#[test]
fn an_entry_is_for_its_purposes_only() {
    let policy = policy(PolicyName::Listed);
    let url: EgressUrl = "http://10.1.2.3:8080/".parse().expect("a URL");
    for (purpose, is_allowed) in [
        (EgressPurpose::Models, true),
        (EgressPurpose::Webhooks, false),
        (EgressPurpose::Mcp, false),
        (EgressPurpose::Media, false),
        (EgressPurpose::Evals, false),
    ] {
        assert_eq!(policy.check(purpose, &url, &[]).is_ok(), is_allowed, "{purpose}");
    }
}

#[test]
fn mistaken_settings_are_refused_with_their_place() {
    for (settings, says) in [
        ("[[allow]]\nports = [443]\nfor = [\"mcp\"]", "egress.allow[0] needs exactly one of"),
        ("[[allow]]\nhost = \"h\"\ncidr = \"10.0.0.0/8\"\nports = [1]\nfor = [\"mcp\"]", "needs exactly one of"),
        ("[[allow]]\nhost = \"h\"\nfor = [\"mcp\"]", "egress.allow[0].ports needs"),
        ("[[allow]]\nhost = \"h\"\nports = [443]", "egress.allow[0].for needs"),
        ("[[allow]]\ncidr = \"10.1.0.0/8\"\nports = [443]\nfor = [\"mcp\"]", "write 10.0.0.0/8"),
        ("[[allow]]\nhost = \"a b\"\nports = [443]\nfor = [\"mcp\"]", "`a b` is no DNS name"),
        ("[[allow]]\nsuffix = \"10.0.0.1\"\nports = [443]\nfor = [\"mcp\"]", "`10.0.0.1` is no DNS name"),
    ] {
        let settings: EgressSettings = toml::from_str(settings).expect(says);
        let why = EgressPolicy::new(&settings, OwnEndpoints::default()).expect_err(says).to_string();
        assert!(why.contains(says), "{why}");
    }
    for (settings, says) in [
        ("[[allow]]\nhost = \"h\"\nports = [0]\nfor = [\"mcp\"]", "no port"),
        ("[[allow]]\nhost = \"h\"\nports = [\"9-1\"]\nfor = [\"mcp\"]", "no port"),
        ("[[allow]]\nhost = \"h\"\nports = [443]\nfor = [\"mail\"]", "unknown variant"),
        ("[[allow]]\nhots = \"h\"", "unknown field"),
    ] {
        let why = toml::from_str::<EgressSettings>(settings).expect_err(says).to_string();
        assert!(why.contains(says), "{why}");
    }
}
