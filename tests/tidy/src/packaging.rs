//! Contents of `docker/`, as far as they can be checked without the programs that read them: existing instructions and
//! settings, an image without root and with a health check, consistent versions. Compose files are checked in
//! `compose`. `.ci/packaging` runs the programs.

use std::collections::BTreeSet;

const INSTRUCTIONS: [&str; 14] = [
    "FROM",
    "ARG",
    "ENV",
    "WORKDIR",
    "RUN",
    "COPY",
    "USER",
    "VOLUME",
    "EXPOSE",
    "STOPSIGNAL",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
    "LABEL",
];
const SECTIONS: [&str; 3] = ["Unit", "Service", "Install"];
/// Required instructions of the image's last stage, with their beginnings.
const IMAGE: [(&str, &str); 4] = [
    ("USER", "a user other than root"),
    ("HEALTHCHECK", "a health check"),
    ("ENTRYPOINT", "a program that it starts"),
    ("VOLUME", "a place for its data"),
];
/// Required settings of the systemd unit.
const UNIT: [&str; 8] = [
    "ExecStart",
    "Restart",
    "TimeoutStopSec",
    "StateDirectory",
    "NoNewPrivileges",
    "ProtectSystem",
    "UMask",
    "WantedBy",
];

/// Instructions with their words, continued lines joined, remarks left out.
pub fn instructions(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let split = joined.lines().map(str::trim).filter(|line| !line.is_empty());
    split.map(|line| line.split_once(' ').unwrap_or((line, ""))).map(|(a, b)| (a.into(), b.trim().into())).collect()
}

/// Returns the defects of a Dockerfile; `rust` is the version in the toolchain file.
pub fn dockerfile(text: &str, rust: &str) -> Vec<String> {
    let all = instructions(text);
    let mut found = Vec::new();
    found.extend(
        all.iter()
            .filter(|(name, _)| !INSTRUCTIONS.contains(&name.as_str()))
            .map(|(name, _)| format!("`{name}` is no instruction")),
    );
    for (_, image) in all.iter().filter(|(name, _)| name == "FROM") {
        let image = image.split(' ').next().unwrap_or_default();
        if !image.contains(':') || image.ends_with(":latest") {
            found.push(format!("{image} may be another image tomorrow: name its version"));
        }
    }
    let last_stage = all.iter().rposition(|(name, _)| name == "FROM").unwrap_or(0);
    let last = &all[last_stage..];
    for (wanted, what) in IMAGE {
        if !last.iter().any(|(name, _)| name == wanted) {
            found.push(format!("the image has no {wanted}: {what}"));
        }
    }
    let user = last.iter().rfind(|(name, _)| name == "USER").map(|(_, user)| user.as_str()).unwrap_or_default();
    if user.starts_with("root") || user.split(':').next() == Some("0") {
        found.push(format!("the image runs as {user}"));
    }
    if last.iter().any(|(name, words)| name == "HEALTHCHECK" && !words.contains("/healthz")) {
        found.push("the health check does not ask /healthz".into());
    }
    let versions = all.iter().filter_map(|(name, words)| words.strip_prefix("RUST_VERSION=").filter(|_| name == "ARG"));
    found.extend(
        versions
            .filter(|version| *version != rust)
            .map(|version| format!("Rust {version}, and {rust} in the toolchain file")),
    );
    found
}

/// Returns the defects of a systemd unit.
pub fn unit(text: &str) -> Vec<String> {
    let (mut found, mut section, mut said) = (Vec::new(), None, BTreeSet::new());
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = Some(name);
            found.extend(
                (!SECTIONS.contains(&name)).then(|| format!("line {number}: [{name}] is no section of a service")),
            );
        } else if let (Some(_), Some((name, _))) = (section, line.split_once('=')) {
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
            found.extend((!is_name).then(|| format!("line {number}: `{name}` is no setting")));
            found.extend(
                (!said.insert(name) && name != "Environment").then(|| format!("line {number}: {name} is said twice")),
            );
        } else {
            found.push(format!("line {number}: `{line}` belongs to no section or sets nothing"));
        }
    }
    found.extend(UNIT.iter().filter(|name| !said.contains(*name)).map(|name| format!("{name} is not said")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# x\nARG RUST_VERSION=1.95.0\nFROM rust:${RUST_VERSION} AS build\nRUN a \\\n    && b\n\
        FROM base:1\nUSER 65532\nVOLUME /d\nHEALTHCHECK CMD x http://h/healthz\nENTRYPOINT [\"/a\"]\n";

    #[test]
    fn an_image_without_what_it_needs_is_named() {
        assert_eq!(dockerfile(GOOD, "1.95.0"), Vec::<String>::new());
        let complaint = |from: &str, to: &str| dockerfile(&GOOD.replace(from, to), "1.95.0").join("; ");
        assert!(complaint("RUN a", "RAN a").contains("`RAN` is no instruction"));
        assert!(complaint("USER 65532", "USER root").contains("runs as root"));
        assert!(complaint("USER 65532", "USER 0:0").contains("runs as 0:0"));
        assert!(complaint("USER 65532\n", "").contains("no USER"));
        assert!(complaint("/healthz", "/").contains("/healthz"));
        assert!(complaint("FROM base:1", "FROM base").contains("another image tomorrow"));
        assert!(complaint("=1.95.0", "=1.94.0").contains("Rust 1.94.0"));
    }

    #[test]
    fn a_unit_that_says_nonsense_is_named() {
        let good: String = UNIT.iter().map(|name| format!("{name}=x\n")).collect();
        let good = format!("[Service]\n# remark\n{good}");
        assert_eq!(unit(&good), Vec::<String>::new());
        assert_eq!(unit(&format!("{good}[Serivce]\n")), ["line 11: [Serivce] is no section of a service"]);
        assert_eq!(unit(&format!("{good}UMask=1\n")), ["line 11: UMask is said twice"]);
        assert_eq!(unit(&format!("{good}nothing\n")), ["line 11: `nothing` belongs to no section or sets nothing"]);
        assert_eq!(unit(&good.replace("UMask=x\n", "")), ["UMask is not said"]);
    }
}
