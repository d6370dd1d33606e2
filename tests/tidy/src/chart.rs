//! The Helm chart, as far as it can be checked without helm: versions, names of settings, and what it shares with the
//! image. `.ci/packages` renders it and runs what it says.

use std::collections::{BTreeMap, BTreeSet};

use crate::packaging::instructions;
use crate::yaml::yaml;

const PREFIX: &str = "ASSAY_";

/// Returns the defects of `Chart.yaml`. The chart is released with the program, under the same version.
pub fn versions(chart: &str, workspace: &str) -> Vec<String> {
    let values = match yaml(chart) {
        Ok(values) => values,
        Err(problem) => return vec![problem],
    };
    let said = |name: &str| values.get(name).map_or("none", String::as_str).to_owned();
    let differing = ["version", "appVersion"].into_iter().filter(|name| said(name) != workspace);
    differing.map(|name| format!("{name} is {}, and {workspace} in Cargo.toml", said(name))).collect()
}

/// Returns the variables of the program in a text that do not exist.
pub fn unknown_variables(text: &str, known: &BTreeSet<String>) -> Vec<String> {
    let is_name = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    let words: BTreeSet<&str> = text.split(|letter| !is_name(letter)).collect();
    // The bare prefix is completed by a template.
    let variables = words.into_iter().filter(|word| word.starts_with(PREFIX) && *word != PREFIX);
    variables.filter(|name| !known.contains(*name)).map(|name| format!("the program knows no {name}")).collect()
}

/// Returns the defects of `values.yaml`: settings that do not exist, and values without a schema or the reverse.
///
/// The schema is indented by two blanks a level, so a property of the whole begins after four.
pub fn values(text: &str, schema: &str, known: &BTreeSet<String>) -> Vec<String> {
    let values = match yaml(text) {
        Ok(values) => values,
        Err(problem) => return vec![problem],
    };
    let mut found = Vec::new();
    let settings = values.keys().filter_map(|path| path.strip_prefix("settings."));
    for setting in settings {
        let variable = format!("{PREFIX}{}", setting.replace('.', "_").to_uppercase());
        found.extend((!known.contains(&variable)).then(|| format!("there is no setting {setting}")));
    }
    let names: BTreeSet<&str> = values.keys().map(|path| path.split('.').next().unwrap_or_default()).collect();
    let properties = schema.lines().skip_while(|line| *line != "  \"properties\": {");
    let described = properties.filter_map(|line| line.strip_prefix("    \"")?.split('"').next());
    // Helm's own, for values that charts share.
    let described: BTreeSet<&str> = described.filter(|name| *name != "global").collect();
    found.extend(
        names.symmetric_difference(&described).map(|name| format!("{name} is a value or has a schema, not both")),
    );
    found
}

/// Returns what pods do otherwise than the image says: its user, its program, its ports and the place of its data.
pub fn differences(stateful: &str, helpers: &str, dockerfile: &str) -> Vec<String> {
    let image: BTreeMap<String, String> = instructions(dockerfile).into_iter().collect();
    let said = |name: &str| image.get(name).map_or("", String::as_str);
    let user = said("USER").split(':').next().unwrap_or_default();
    let program = said("ENTRYPOINT").trim_matches(['[', ']']).to_owned();
    let mut wanted = vec![
        (stateful, format!("runAsUser: {user}")),
        (stateful, format!("fsGroup: {user}")),
        (stateful, format!("command: [{program}, \"serve\"]")),
        (helpers, format!("mountPath: {} }}", said("VOLUME"))),
    ];
    wanted.extend(said("EXPOSE").split(' ').map(|port| (stateful, format!("containerPort: {port} }}"))));
    wanted.into_iter().filter(|(text, part)| !text.contains(part)).map(|(_, part)| format!("no `{part}`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_named() {
        let chart = "name: a\nversion: 0.6.0\nappVersion: \"0.6.0\"\n";
        assert_eq!(versions(chart, "0.6.0"), Vec::<String>::new());
        let found = versions(&chart.replace("n: 0.6.0", "n: 0.5.0"), "0.6.0");
        assert_eq!(found, ["version is 0.5.0, and 0.6.0 in Cargo.toml"]);
        assert_eq!(versions("name: a\n", "0.6.0").len(), 2);
    }

    #[test]
    fn a_name_that_the_program_does_not_know_is_named() {
        let known = BTreeSet::from(["ASSAY_LOG_FORMAT".to_owned()]);
        let text = "- name: ASSAY_LOG_FORMAT\n- name: ASSAY_{{ $name }}\n- value: $(ASSAY_LOG_FROM)\n";
        assert_eq!(unknown_variables(text, &known), ["the program knows no ASSAY_LOG_FROM"]);
    }

    #[test]
    fn values_have_schemas_and_settings_exist() {
        let known = BTreeSet::from(["ASSAY_LOG_FORMAT".to_owned()]);
        let schema = "{\n  \"properties\": {\n    \"global\": {},\n    \"settings\": {\n      \"type\": \"object\"\n    },\n    \
            \"tls\": {}\n  }\n}\n";
        let good = "settings:\n  log.format: json\ntls:\n  existingSecret: \"\"\n";
        assert_eq!(values(good, schema, &known), Vec::<String>::new());
        let wrong = values(&good.replace("format", "form").replace("tls", "tsl"), schema, &known);
        assert_eq!(wrong[0], "there is no setting log.form");
        assert!(wrong[1].starts_with("tls is a value") && wrong[2].starts_with("tsl is a value"), "{wrong:?}");
    }

    #[test]
    fn what_differs_from_the_image_is_named() {
        let image = "FROM a:1\nUSER 65532:65532\nVOLUME /d\nEXPOSE 8000 7400\nENTRYPOINT [\"/a\"]\n";
        let stateful = "runAsUser: 65532\nfsGroup: 65532\ncommand: [\"/a\", \"serve\"]\n{ containerPort: 8000 }\n\
            { containerPort: 7400 }\n";
        let helpers = "- { name: data, mountPath: /d }\n";
        assert_eq!(differences(stateful, helpers, image), Vec::<String>::new());
        assert_eq!(differences(&stateful.replace("User: 65532", "User: 0"), helpers, image), ["no `runAsUser: 65532`"]);
        assert_eq!(differences(stateful, helpers, &image.replace("7400", "7401")), ["no `containerPort: 7401 }`"]);
    }
}
