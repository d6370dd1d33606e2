//! Tests of the sources of settings, and of their precedence.

use super::*;

fn sources(file: Option<&Path>, environment: &[(&str, &str)], flags: &[&str]) -> Sources {
    let environment = environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let file = file.map(|file| (file.to_owned(), "--config".to_owned()));
    Sources { file, environment, flags: flags.iter().map(|flag| (*flag).into()).collect(), port: None }
}

#[test]
fn the_later_word_wins() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("assay.toml");
    std::fs::write(&file, "[store]\ndata_dir = \"/file\"\nshards = 8\nseal_age_seconds = 7\n").unwrap();
    let environment =
        [("ASSAY_STORE_DATA_DIR", "/environment"), ("ASSAY_STORE_SHARDS", "32"), ("ASSAY_API_KEY", "sk-x")];
    let config = load(&sources(Some(&file), &environment, &["store.data_dir=/flag"])).unwrap();
    assert_eq!(config.store.data_dir, Path::new("/flag"));
    assert_eq!((config.store.shards, config.store.seal_age_seconds), (32, 7));
    assert_eq!(config.store.memory_budget_bytes, MEMORY_BUDGET_BYTES);
}

/// A compose file passed on what nobody had set, and the node started for ever.
#[test]
fn an_empty_variable_counts_as_not_set() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("assay.toml");
    std::fs::write(&file, "[store]\nshards = 8\ncluster_id = \"x\"\n").unwrap();
    let empty = [("ASSAY_HTTP_PUBLIC_URL", ""), ("ASSAY_STORE_SHARDS", ""), ("ASSAY_STORE_CLUSTER_ID", "")];
    let config = load(&sources(None, &empty, &[])).unwrap();
    assert_eq!((config.http.public_url, config.store.shards), (None, SHARDS_DEFAULT));
    let config = load(&sources(Some(&file), &empty, &[])).unwrap();
    assert_eq!((config.store.shards, config.store.cluster_id.as_str()), (8, "x"), "what the file says holds");
    let typo = load(&sources(None, &[("ASSAY_HTTP_PUBLIC_ULR", "")], &[])).unwrap_err();
    assert!(typo.problem.contains("did you mean `ASSAY_HTTP_PUBLIC_URL`?"), "{typo}");
    assert!(load(&sources(None, &[], &["http.public_url="])).is_err(), "a flag says what it says");
}

#[test]
fn what_is_not_understood_is_named_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("assay.toml");
    let of_file = |text: &str| {
        std::fs::write(&file, text).unwrap();
        load(&sources(Some(&file), &[], &[])).unwrap_err()
    };
    assert!(of_file("[store]\ndata_dri = \"x\"").problem.contains("did you mean `store.data_dir`?"));
    assert!(of_file("[stor]\nshards = 1").problem.contains("did you mean `store.shards`?"));
    assert!(of_file("[store]\nshards = \"many\"").problem.contains("has to be a whole number"));
    assert!(of_file("[store\n").place.ends_with("assay.toml"));
    let environment = load(&sources(None, &[("ASSAY_STORE_SHARD", "4")], &[])).unwrap_err();
    assert_eq!(environment.place, "environment ASSAY_STORE_SHARD");
    assert!(environment.problem.contains("ASSAY_STORE_SHARDS"));
    assert_eq!(
        load(&sources(None, &[], &["store.shards=x"])).unwrap_err().problem,
        "`store.shards` is `x`; it has to be a whole number"
    );
    assert!(load(&sources(None, &[], &["store.shards"])).unwrap_err().problem.contains("name=value"));
}

#[test]
fn what_has_no_default_can_be_set_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("assay.toml");
    std::fs::write(&file, "[http.tls]\ncertificates = \"/c\"\nprivate_key = \"/k\"\n").unwrap();
    let environment = [("ASSAY_HTTP_PUBLIC_URL", "https://assay.example"), ("ASSAY_CONSOLE_DIR", "/d")];
    let config = load(&sources(Some(&file), &environment, &["http.metrics_listen=127.0.0.1:9"])).unwrap();
    assert_eq!(config.console.dir, Some(PathBuf::from("/d")));
    assert_eq!(config.http.public_url.as_deref(), Some("https://assay.example"));
    assert_eq!(config.http.metrics_listen.as_deref(), Some("127.0.0.1:9"));
    assert_eq!(config.http.tls.map(|tls| tls.private_key), Some(PathBuf::from("/k")));
}

const RULE: &str = "endpoint = \"/logs3\", per = \"organization\", requests = 100, seconds = 1";

#[test]
fn rules_of_rates_are_a_list_wherever_they_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("assay.toml");
    let more = "[[limits.rates]]\nendpoint = \"/v1/*\"\nmethods = [\"POST\"]\nper = \"organization+project\"\nrequests = 5\n\
         seconds = 60\nburst = 2\norganizations = [\"acme\"]\n";
    std::fs::write(&file, format!("[[limits.rates]]\n{}\n{more}", RULE.replace(", ", "\n"))).unwrap();
    let of_file = load(&sources(Some(&file), &[], &[])).unwrap();
    assert_eq!((of_file.limits.rates.len(), of_file.limits.rates[1].burst), (2, Some(2)));
    let inline = format!("[{{{RULE}}}]");
    let of_environment = load(&sources(Some(&file), &[("ASSAY_LIMITS_RATES", &inline)], &[])).unwrap();
    assert_eq!(of_environment.limits.rates, of_file.limits.rates[..1], "the later word wins");
    let of_flag = load(&sources(None, &[], &[&format!("limits.rates={inline}")])).unwrap();
    assert_eq!(of_flag.limits, of_environment.limits);
    let text = printed(&of_file).unwrap();
    std::fs::write(&file, &text).unwrap();
    let again = load(&sources(Some(&file), &[], &[])).unwrap();
    assert_eq!((again.limits, printed(&of_file).unwrap()), (of_file.limits.clone(), text));
}

#[test]
fn rules_of_rates_that_are_not_understood_are_named() {
    let refused = |value: &str| load(&sources(None, &[], &[&format!("limits.rates={value}")])).unwrap_err().problem;
    assert!(refused("5").contains("not a list"));
    assert!(refused("[").contains("not a list in TOML"));
    assert!(refused("[]\nhttp = 1").contains("not a list"));
    assert!(refused(&format!("[{{{RULE}, bursts = 1}}]")).contains("unknown field `bursts`"));
    assert!(refused("[{endpoint = \"/logs3\", per = \"organization\", requests = 1}]").contains("seconds"));
    assert!(refused(&format!("[{{{}}}]", RULE.replace("organization", "planet"))).contains("`planet`"));
    let unclear = refused(&format!("[{{{RULE}}}, {{{}}}]", RULE.replace("/logs3", "logs3")));
    assert!(unclear.contains("limits.rates, rule 2 (`logs3`)") && unclear.contains("`/v1/*`"), "{unclear}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("assay.toml");
    std::fs::write(&file, "[limits]\nrates = 5\n").unwrap();
    let typed = load(&sources(Some(&file), &[], &[])).unwrap_err();
    assert!(typed.problem.contains("`limits.rates` is a whole number; it has to be a list"), "{typed}");
}

const TARGET: &str = "{cidr = \"127.0.0.0/8\", ports = [8080, \"9000-9100\"], for = [\"models\"]}";

#[test]
fn targets_of_outbound_calls_are_a_list_wherever_they_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("assay.toml");
    let text = "[[egress.allow]]\ncidr = \"127.0.0.0/8\"\nports = [8080, \"9000-9100\"]\nfor = [\"models\"]\n";
    std::fs::write(&file, text).unwrap();
    let of_file = load(&sources(Some(&file), &[], &[])).unwrap();
    assert!(of_file.egress.public && of_file.egress.allow.len() == 1);
    let inline = format!("[{TARGET}]");
    let of_environment = load(&sources(None, &[("ASSAY_EGRESS_ALLOW", &inline)], &[])).unwrap();
    let of_flag = load(&sources(None, &[], &[&format!("egress.allow={inline}")])).unwrap();
    assert_eq!((&of_environment.egress, &of_flag.egress), (&of_file.egress, &of_file.egress));
    std::fs::write(&file, printed(&of_file).unwrap()).unwrap();
    assert_eq!(load(&sources(Some(&file), &[], &[])).unwrap().egress, of_file.egress);
}

#[test]
fn settings_of_outbound_and_model_calls_that_do_not_fit_are_named() {
    let refused = |flag: &str| load(&sources(None, &[], &[flag])).unwrap_err().problem;
    for (flag, says) in [
        (&*format!("egress.allow=[{{{}}}]", "host = \"a\", ports = [443]"), "egress.allow[0].for needs"),
        (&format!("egress.allow=[{}]", TARGET.replace("127.0.0.0/8", "127.0.0.1/8")), "write 127.0.0.0/8"),
        (&format!("egress.allow=[{}]", TARGET.replace("models", "mail")), "`mail`"),
        ("egress.proxy=https://proxy.example", "egress.proxy: "),
        ("egress.proxy_authorization_file=/x", "without egress.proxy"),
        ("egress.calls_max=0", "egress.calls_max is 0; set it to 1 to 1048576"),
        ("gateway.calls_max=0", "gateway.calls_max is 0; set it to 1 to 1048576"),
        ("gateway.request_bytes_max=1000000000", "above http.bodies_bytes_max"),
        ("gateway.forward_headers=[\"cookie\"]", "gateway.forward_headers[0]: `cookie`"),
        ("gateway.retry_budget_second=45", "did you mean `gateway.retry_budget_seconds`?"),
    ] {
        let why = refused(flag);
        assert!(why.contains(says), "{flag}: {why}");
    }
    let paths = load(&sources(None, &[("ASSAY_GATEWAY_PASSTHROUGH_PATHS", "[\"rerank\"]")], &[])).unwrap();
    assert_eq!(paths.gateway.passthrough_paths, ["rerank"]);
}

#[test]
fn a_list_stands_as_in_the_file() {
    let files = |environment: &[(&str, &str)], flags: &[&str]| {
        load(&sources(None, environment, flags)).unwrap().secrets.old_master_key_files
    };
    let named = "ASSAY_SECRETS_OLD_MASTER_KEY_FILES";
    assert_eq!(files(&[(named, "[\"/a\", \"/b\"]")], &[]), [Path::new("/a"), Path::new("/b")]);
    assert_eq!(files(&[(named, "[\"/a\"]")], &["secrets.old_master_key_files=[\"/c\"]"]), [Path::new("/c")]);
    assert_eq!(files(&[(named, "[\"/a\"]")], &["secrets.old_master_key_files="]), [] as [&Path; 0]);
}

#[test]
fn what_is_printed_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("assay.toml");
    let config = load(&sources(None, &[], &["store.shards=8"])).unwrap();
    let text = printed(&config).unwrap();
    assert!(text.contains("# http.public_url"), "{text}");
    std::fs::write(&file, &text).unwrap();
    assert_eq!(printed(&load(&sources(Some(&file), &[], &[])).unwrap()).unwrap(), text);
}

#[test]
fn no_two_settings_share_a_name_in_the_environment() {
    let names: Vec<String> = KnownSettings::all().0.into_keys().collect();
    let in_environment: std::collections::BTreeSet<String> = names.iter().map(|name| environment_name(name)).collect();
    assert_eq!(in_environment.len(), names.len());
    assert!(NOT_SETTINGS.iter().all(|name| !in_environment.contains(*name)));
}

#[test]
fn a_value_that_does_not_fit_is_named_in_plain_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("assay.toml");
    std::fs::write(&file, "[http]\nworkers = -1\n").unwrap();
    let said = load(&sources(Some(&file), &[], &["store.shards=8"])).unwrap_err();
    assert!(said.place.ends_with("assay.toml"), "{said}");
    assert!(said.problem.contains("`http.workers`") && said.problem.contains("a whole number, 0 or more"), "{said}");
    let said = load(&sources(None, &[("ASSAY_STORE_SHARDS", "70000")], &[])).unwrap_err().to_string();
    assert!(said.contains("environment ASSAY_STORE_SHARDS: `store.shards`") && said.contains("0 to 65535"), "{said}");
    let said = load(&sources(None, &[], &["log.format=xml"])).unwrap_err().to_string();
    assert!(said.contains("`log.format`") && said.contains("`text` or `json`"), "{said}");
    for text in ["usize", "u16", "u64", "type "] {
        assert!(!said.contains(text), "{said}");
    }
}

/// A sum of the clock and such a duration overflowed in the middle of the start.
#[test]
fn a_duration_beyond_a_century_is_refused_with_its_place() {
    for (setting, flag) in [
        ("retention.every_seconds", "retention.every_seconds=9223372036854775807"),
        ("http.request_seconds_max", "http.request_seconds_max=3153600001"),
        ("cluster.heartbeat_ms", "cluster.heartbeat_ms=3153600000001"),
    ] {
        let said = load(&sources(None, &[], &[flag])).unwrap_err().to_string();
        assert!(said.contains(flag) && said.contains(&format!("`{setting}`")) && said.contains("at most"), "{said}");
    }
    assert!(load(&sources(None, &[], &["http.request_seconds_max=3153600000"])).is_ok());
}

#[test]
fn a_configuration_file_that_is_not_there_is_named_with_its_option() {
    let said = load(&sources(Some(Path::new("/nowhere/assay.toml")), &[], &[])).unwrap_err().to_string();
    assert!(said.starts_with("--config /nowhere/assay.toml: the file does not exist") && said.contains("assay config"));
}

#[test]
fn a_port_takes_the_place_of_that_of_the_address() {
    let port = |flags: &[&str]| load(&Sources { port: Some(9000), ..sources(None, &[], flags) }).unwrap().http.listen;
    assert_eq!(port(&[]), "127.0.0.1:9000");
    assert_eq!(port(&["http.listen=[::]:1"]), "[::]:9000");
}

#[test]
fn an_address_without_a_port_is_refused_with_what_to_write() {
    let said = |listen: &str| load(&sources(None, &[], &[&format!("http.listen={listen}")])).unwrap_err().to_string();
    assert!(said("0.0.0.0").contains("no port") && said("0.0.0.0").contains("0.0.0.0:8000"), "{}", said("0.0.0.0"));
    assert!(said("::1").contains("[::1]:8000"), "{}", said("::1"));
}

/// An empty directory founds a cluster only when nothing says that its node belongs to one.
#[test]
fn settings_say_whether_a_node_has_data_already() {
    let expects = |flags: &[&str]| load(&sources(None, &[], flags)).unwrap().node().unwrap().expects_data;
    assert_eq!(expects(&[]), None);
    assert!(expects(&["cluster.peer_address=10.0.0.1:7400"]).unwrap().contains("cluster.peer_address"));
    let id = "store.cluster_id=00000000-0000-4000-8000-000000000001";
    assert!(expects(&[id]).unwrap().contains("store.cluster_id"));
    assert!(expects(&["store.create_if_missing=false"]).unwrap().contains("store.create_if_missing"));
}

#[test]
fn times_of_elections_keep_their_relation_or_the_setting_is_named() {
    let timing = |flags: &[&str]| load(&sources(None, &[], flags)).unwrap().node().map(|node| node.timing);
    let far = ["cluster.heartbeat_ms=800", "cluster.election_min_ms=2400", "cluster.election_max_ms=4000"];
    assert_eq!(timing(&far).unwrap().heartbeat, Duration::from_millis(800));
    assert_eq!(timing(&[]).unwrap(), Timing::default());
    for (flags, place) in [
        (&["cluster.heartbeat_ms=1"][..], "cluster.heartbeat_ms"),
        (&["cluster.heartbeat_ms=800"], "cluster.election_min_ms"),
        (&["cluster.election_max_ms=450"], "cluster.election_max_ms"),
        (&["cluster.election_max_ms=60000"], "cluster.election_max_ms"),
    ] {
        assert_eq!(timing(flags).unwrap_err().place, place);
    }
}
