//! Parse attempts of code as JavaScript, TypeScript, or TypeScript with JSX.

use oxc_allocator::Allocator;
use oxc_ast::ast::{JSXElement, JSXFragment, Program};
use oxc_ast_visit::Visit;
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_span::SourceType;

use crate::error::{CodePosition, TypeScriptError};

/// Language to parse code as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    JavaScript,
    TypeScript,
    TypeScriptWithJsx,
}

/// Syntax tree of valid code.
#[derive(Debug)]
pub(crate) struct Parsed<'a> {
    pub program: Program<'a>,
    pub is_module: bool,
}

/// First error in code that is not valid.
#[derive(Debug)]
pub(crate) struct SyntaxFailure {
    pub offset: u32,
    message: String,
}

impl SyntaxFailure {
    fn of(diagnostics: &[OxcDiagnostic], source: &str) -> Self {
        let offset_of = |diagnostic: &OxcDiagnostic| diagnostic.labels.first().map(|label| label.offset());
        let first = diagnostics.iter().min_by_key(|diagnostic| offset_of(diagnostic).unwrap_or(u32::MAX));
        let offset = first.and_then(offset_of).unwrap_or(source.len() as u32);
        let message = first.map_or_else(
            || "the code could not be parsed".to_owned(),
            |first| match &first.help {
                Some(help) => format!("{}. {help}", first.message.trim_end_matches('.')),
                None => first.message.to_string(),
            },
        );
        Self { offset, message }
    }

    pub fn into_error(self, source: &str) -> TypeScriptError {
        TypeScriptError::Syntax { position: CodePosition::at(source, self.offset), message: self.message }
    }
}

/// Parses `source` as a script unless only a module may contain what it contains.
pub(crate) fn parse<'a>(
    allocator: &'a Allocator,
    source: &'a str,
    language: Language,
) -> Result<Parsed<'a>, SyntaxFailure> {
    let base = match language {
        Language::JavaScript => SourceType::script(),
        Language::TypeScript => SourceType::ts(),
        Language::TypeScriptWithJsx => SourceType::tsx(),
    };
    let attempt = |source_type| {
        // A script becomes the body of a CommonJS module, which is a function.
        let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
        let parser = Parser::new(allocator, source, source_type).with_options(options);
        let ParserReturn { program, diagnostics, panicked, .. } = parser.parse();
        if panicked || diagnostics.has_errors() {
            return Err(SyntaxFailure::of(&diagnostics, source));
        }
        let is_module = program.source_type.is_module();
        Ok(Parsed { program, is_module })
    };
    let as_either = attempt(base.with_unambiguous(true));
    as_either.or_else(|first| {
        // Top-level `await` makes a module, and so no import or export has to.
        attempt(base.with_module(true)).map_err(|second| if first.offset > second.offset { first } else { second })
    })
}

/// Position of the first JSX element in code that is valid with JSX.
pub(crate) fn find_jsx(allocator: &Allocator, source: &str) -> Option<u32> {
    #[derive(Default)]
    struct Finder(Option<u32>);
    impl<'a> Visit<'a> for Finder {
        fn visit_jsx_element(&mut self, element: &JSXElement<'a>) {
            self.0.get_or_insert(element.span.start);
        }
        fn visit_jsx_fragment(&mut self, fragment: &JSXFragment<'a>) {
            self.0.get_or_insert(fragment.span.start);
        }
    }
    let parsed = parse(allocator, source, Language::TypeScriptWithJsx).ok()?;
    let mut finder = Finder::default();
    finder.visit_program(&parsed.program);
    finder.0
}
