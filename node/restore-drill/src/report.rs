//! Report about a drill, as Markdown for people and as JSON for programs: pure.

use std::fmt::Write;

use serde::Serialize;

use crate::comparison::{ComparedObject, Comparison, DrillVerdict};

/// Objects that the Markdown shows. The JSON has all of them.
const SHOWN_MAX: usize = 200;
/// Characters of a name that the Markdown shows.
const NAME_CHARS_MAX: usize = 60;

/// Figures of the restore.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RestoreFigures {
    pub location: String,
    /// Restored time, in RFC 3339.
    pub restored: String,
    /// Seconds between the restored time and the beginning of the drill.
    pub age_seconds: f64,
    pub bytes: u64,
    pub log_entries: u64,
    pub restore_seconds: f64,
}

/// Report about a drill.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrillReport {
    /// Whether the restored state has everything that the living server had at its time.
    pub holds: bool,
    /// Beginning of the drill, in RFC 3339.
    pub began: String,
    /// Version of the program.
    pub program: String,
    /// Address of the living server.
    pub compared_with: String,
    #[serde(flatten)]
    pub figures: RestoreFigures,
    #[serde(flatten)]
    pub comparison: Comparison,
}

impl DrillReport {
    /// Returns the report as Markdown.
    pub fn markdown(&self) -> String {
        let (figures, comparison) = (&self.figures, &self.comparison);
        let verdict = if self.holds { "The backup holds." } else { "**The backup does not hold.**" };
        let mut text = format!("# Restore drill of {}\n\n{verdict}\n\n", self.began);
        let mut row = |name: &str, value: String| {
            // A string takes everything that is written to it.
            let _ = writeln!(text, "| {name} | {value} |");
        };
        row("", String::new());
        row("---", "---".into());
        row("backup", cell(&figures.location));
        row("restored time", figures.restored.clone());
        row("age of that time", format!("{:.1} s", figures.age_seconds));
        row("restore", format!("{:.1} s", figures.restore_seconds));
        row("fetched", format!("{:.1} MB", figures.bytes as f64 / 1e6));
        row("entries of logs applied", figures.log_entries.to_string());
        row("compared with", cell(&self.compared_with));
        row("objects that are equal", comparison.count(DrillVerdict::Equal).to_string());
        row("objects with later changes", comparison.count(DrillVerdict::ChangedSince).to_string());
        row("objects that lack rows", comparison.count(DrillVerdict::Lacks).to_string());
        row("restored objects that the key does not see", comparison.not_compared.to_string());
        row("version", self.program.clone());
        let _ = write!(text, "\nRows are compared up to the restored time. Changes behind it are no difference.\n\n");
        text.push_str(
            "| object | name | verdict | rows restored | rows expected | rows now | newest write | expected |\n",
        );
        text.push_str("|---|---|---|---|---|---|---|---|\n");
        for object in comparison.objects.iter().take(SHOWN_MAX) {
            push_object(&mut text, object);
        }
        if let Some(more) = comparison.objects.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
            let _ = writeln!(text, "\n{more} further objects are in the JSON.");
        }
        text
    }
}

fn push_object(text: &mut String, object: &ComparedObject) {
    let verdict = match object.verdict {
        DrillVerdict::Equal => "equal",
        DrillVerdict::ChangedSince => "changed since",
        DrillVerdict::Lacks => "**lacks rows**",
    };
    let xact = |xact: Option<assay_storage_model::Xact>| xact.map_or_else(String::new, |xact| xact.to_string());
    let (restored, expected) = (xact(object.restored_newest), xact(object.expected_newest));
    let ComparedObject { kind, id, name, restored_rows, expected_rows, living_rows, .. } = object;
    let (source, name) = (kind.source(), cell(name));
    let _ = writeln!(
        text,
        "| {source} {id} | {name} | {verdict} | {restored_rows} | {expected_rows} | {living_rows} | {restored} | \
         {expected} |"
    );
}

/// Returns a text that stays within its cell of a table.
fn cell(text: &str) -> String {
    let plain = text.chars().map(|c| if c == '|' || c == '`' || c.is_control() { ' ' } else { c });
    plain.take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use assay_storage_model::Xact;
    use uuid::Uuid;

    use super::*;
    use crate::comparison::DrillKind;

    fn report(objects: usize) -> DrillReport {
        let object = |number: usize| ComparedObject {
            kind: DrillKind::Dataset,
            id: Uuid::nil(),
            name: format!("set | {number}\n# x"),
            verdict: if number == 0 { DrillVerdict::Lacks } else { DrillVerdict::Equal },
            restored_rows: 3,
            expected_rows: 4,
            living_rows: 5,
            restored_newest: Some(Xact::new(7, 0)),
            expected_newest: None,
        };
        let comparison = Comparison { objects: (0..objects).map(object).collect(), not_compared: 2 };
        let figures = RestoreFigures {
            location: "s3://bucket/assay".into(),
            restored: "2026-11-30T12:00:00.000Z".into(),
            age_seconds: 4.25,
            bytes: 1_500_000,
            log_entries: 7,
            restore_seconds: 1.0,
        };
        let (began, program) = ("2026-11-30T12:00:04.000Z".into(), "1.0.0".into());
        let compared_with = "http://127.0.0.1:8000".into();
        DrillReport { holds: comparison.holds(), began, program, compared_with, figures, comparison }
    }

    #[test]
    fn the_markdown_says_whether_it_held_and_shows_each_object_in_one_row() {
        let text = report(3).markdown();
        assert!(text.contains("**The backup does not hold.**") && text.contains("| fetched | 1.5 MB |"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("| dataset ")).count(), 3);
        assert!(text.contains("| set   0 # x | **lacks rows** | 3 | 4 | 5 |"), "{text}");
        assert!(report(0).markdown().contains("The backup holds."));
        let long = report(SHOWN_MAX + 5).markdown();
        assert!(long.ends_with("\n5 further objects are in the JSON.\n"), "{long}");
    }

    #[test]
    fn the_json_has_the_numbers() {
        let json = serde_json::to_value(report(1)).expect("JSON");
        assert_eq!(json["holds"], false);
        assert_eq!(json["restored"], "2026-11-30T12:00:00.000Z");
        assert_eq!(json["objects"][0]["verdict"], "lacks");
        assert_eq!(json["objects"][0]["restored_newest"], Xact::new(7, 0).to_string());
    }
}
