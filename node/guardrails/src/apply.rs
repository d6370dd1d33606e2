//! Rules applied to one text.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::GuardrailRefusal;
use crate::json::TEXT_BYTES_MAX;
use crate::pattern::MATCHES_MAX;
use crate::policy::{GuardrailAction, GuardrailPolicy, GuardrailRule, GuardrailStage, RuleSubject};
use crate::report::GuardrailReport;

impl GuardrailPolicy {
    /// Applies the rules of a stage to a text, in their order, each to what those before it left. Returns the text with
    /// what was masked, and counts of what was found.
    pub fn apply_to_text<'t>(
        &self,
        stage: GuardrailStage,
        text: &'t str,
    ) -> Result<(Cow<'t, str>, GuardrailReport), GuardrailRefusal> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(GuardrailRefusal::Size { max: TEXT_BYTES_MAX });
        }
        let mut report = GuardrailReport::default();
        let masked = self.masked(stage, text, &mut report)?;
        Ok((masked.map_or(Cow::Borrowed(text), Cow::Owned), report))
    }

    /// Returns the text with what was masked; none if nothing was.
    pub(crate) fn masked(
        &self,
        stage: GuardrailStage,
        text: &str,
        report: &mut GuardrailReport,
    ) -> Result<Option<String>, GuardrailRefusal> {
        let mut masked: Option<String> = None;
        for rule in self.rules.iter().filter(|rule| rule.is_for(stage)) {
            let current = masked.as_deref().unwrap_or(text);
            if let Some(changed) = rule.apply(stage, current, report)? {
                masked = Some(changed);
            }
        }
        Ok(masked)
    }
}

impl GuardrailRule {
    fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        match &self.subject {
            RuleSubject::Detector(detector) => detector.find(text, from),
            RuleSubject::Pattern(pattern) => pattern.find(text, from),
        }
    }

    /// Returns the text with what was masked, if anything was.
    fn apply(
        &self,
        stage: GuardrailStage,
        text: &str,
        report: &mut GuardrailReport,
    ) -> Result<Option<String>, GuardrailRefusal> {
        let is_masked = match (self.action, stage) {
            (GuardrailAction::Block, GuardrailStage::Request) => {
                return match self.find(text, 0) {
                    Some(_) => Err(GuardrailRefusal::Rule { rule: self.name.clone() }),
                    None => Ok(None),
                };
            }
            (GuardrailAction::Block | GuardrailAction::Mask, _) => true,
            (GuardrailAction::Report, _) => false,
        };
        let (mut masked, mut end, mut matches) = (String::new(), 0, 0);
        while let Some(found) = self.find(text, end) {
            matches += 1;
            // So that a pattern without end cannot be searched for without end. The rest is masked unread.
            let found = if matches > MATCHES_MAX { found.start..text.len() } else { found };
            if is_masked {
                masked.push_str(&text[end..found.start]);
                masked.push_str(&self.replacement);
            }
            end = found.end;
        }
        if matches == 0 {
            return Ok(None);
        }
        report.add(&self.name, self.action, matches as u64);
        if !is_masked {
            return Ok(None);
        }
        masked.push_str(&text[end..]);
        Ok(Some(masked))
    }
}
