//! Visitor that finds the types in expressions, functions and statements.

use oxc_allocator::Vec as ArenaVec;
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};

use crate::blanks::{Blank, Blanks, Mark};
use crate::declarations::is_type_only;
use crate::error::{self, TypeScriptError};
use crate::source_text::SourceText;

/// Visitor of a program that collects what has to become white space.
#[derive(Debug)]
pub(crate) struct Eraser<'s> {
    pub(crate) text: SourceText<'s>,
    pub(crate) blanks: Vec<Blank>,
    /// First syntax that is neither a type nor JavaScript.
    unsupported: Option<TypeScriptError>,
}

impl<'s> Eraser<'s> {
    /// Finds the types of `program`, which was parsed from `source`.
    pub fn over(source: &'s str, program: &Program<'_>) -> Result<Blanks, TypeScriptError> {
        let mut eraser = Self { text: SourceText(source), blanks: Vec::new(), unsupported: None };
        eraser.visit_program(program);
        eraser.unsupported.map_or_else(|| Ok(Blanks::new(eraser.blanks)), Err)
    }

    pub(crate) fn blank(&mut self, start: u32, end: u32) {
        self.blanks.push(Blank { start, end, mark: Mark::None });
    }

    /// Blanks a whole statement or member, and keeps those around it apart.
    pub(crate) fn blank_statement(&mut self, span: Span) {
        let mark = if self.text.continues_after(span.end) { Mark::Semicolon } else { Mark::None };
        self.blanks.push(Blank { start: span.start, end: span.end, mark });
    }

    /// Blanks the sign at the first token after `position`.
    pub(crate) fn suffix(&mut self, position: u32, sign: u8) {
        let at = self.text.next_token(position);
        if self.text.byte(at) == sign {
            self.blank(at, at + 1);
        }
    }

    /// Blanks an element of a list, and the comma after it.
    fn list_element(&mut self, span: Span) {
        self.blank(span.start, span.end);
        self.suffix(span.end, b',');
    }

    /// Puts a semicolon where a blank at the end of a statement lets the next one continue it.
    pub(crate) fn end_of_statement(&mut self, span: Span, is_ambiguous: bool) {
        let next = self.text.byte(self.text.next_token(span.end));
        let is_ended = self.text.byte(span.end - 1) == b';' || next == b';';
        if is_ended || !(is_ambiguous || self.text.continues_after(span.end)) {
            return;
        }
        if let Some(blank) = self.blanks.iter_mut().rev().find(|blank| blank.end == span.end)
            && blank.mark == Mark::None
        {
            blank.mark = Mark::Semicolon;
        }
    }

    pub(crate) fn unsupported(&mut self, offset: u32, syntax: &'static str, instead: &'static str) {
        if self.unsupported.is_none() {
            self.unsupported = Some(error::unsupported(self.text.0, offset, syntax, instead));
        }
    }

    /// Blanks type parameters before which no line may break, and moves the parenthesis after them up.
    fn arrow_type_parameters(&mut self, parameters: Span, opening: u32) {
        let broken = self.text.breaks_line(parameters.start, opening) && self.text.byte(opening) == b'(';
        if broken {
            self.blanks.push(Blank { start: parameters.start, end: parameters.end, mark: Mark::Opening });
            self.blank(opening, opening + 1);
        } else {
            self.blank(parameters.start, parameters.end);
        }
    }

    /// Blanks a return type after which no line may break, and moves the parenthesis before it down.
    fn arrow_return_type(&mut self, parameters_end: u32, return_type: Span) {
        let closing = parameters_end - 1;
        if self.text.breaks_line(parameters_end, return_type.end) && self.text.byte(closing) == b')' {
            self.blank(closing, parameters_end);
            self.blanks.push(Blank { start: return_type.start, end: return_type.end, mark: Mark::Closing });
        } else {
            self.blank(return_type.start, return_type.end);
        }
    }

    fn assertion(&mut self, expression: u32, end: u32) {
        self.blank(self.text.next_token(expression), end);
    }
}

impl<'a> Visit<'a> for Eraser<'_> {
    fn visit_statements(&mut self, statements: &ArenaVec<'a, Statement<'a>>) {
        for statement in statements {
            if is_type_only(statement) {
                self.blank_statement(statement.span());
            } else {
                self.visit_statement(statement);
            }
        }
    }

    fn visit_statement(&mut self, statement: &Statement<'a>) {
        walk::walk_statement(self, statement);
        self.end_of_statement(statement.span(), false);
    }

    fn visit_class(&mut self, class: &Class<'a>) {
        self.class_head(class);
        walk::walk_class(self, class);
    }

    fn visit_class_element(&mut self, element: &ClassElement<'a>) {
        self.class_element(element, |eraser| walk::walk_class_element(eraser, element));
    }

    fn visit_ts_class_implements_list(&mut self, _: &ArenaVec<'a, TSClassImplements<'a>>) {}

    fn visit_formal_parameter(&mut self, parameter: &FormalParameter<'a>) {
        if parameter.accessibility.is_some() || parameter.readonly || parameter.r#override {
            self.unsupported(
                parameter.span.start,
                "a parameter property",
                "declare the field in the class, and assign the parameter to it in the constructor",
            );
        }
        if parameter.optional {
            self.suffix(parameter.pattern.span().end, b'?');
        }
        walk::walk_formal_parameter(self, parameter);
    }

    fn visit_variable_declarator(&mut self, variable: &VariableDeclarator<'a>) {
        if variable.definite {
            self.suffix(variable.id.span().end, b'!');
        }
        walk::walk_variable_declarator(self, variable);
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        if let Some(parameters) = &arrow.type_parameters {
            self.arrow_type_parameters(parameters.span, arrow.params.span.start);
        }
        self.visit_formal_parameters(&arrow.params);
        if let Some(return_type) = &arrow.return_type {
            self.arrow_return_type(arrow.params.span.end, return_type.span);
        }
        self.visit_arrow_function_body(&arrow.body);
    }

    fn visit_import_specifier(&mut self, specifier: &ImportSpecifier<'a>) {
        if specifier.import_kind.is_type() {
            self.list_element(specifier.span);
        }
    }

    fn visit_export_specifier(&mut self, specifier: &ExportSpecifier<'a>) {
        if specifier.export_kind.is_type() {
            self.list_element(specifier.span);
        }
    }

    fn visit_ts_this_parameter(&mut self, parameter: &TSThisParameter<'a>) {
        self.list_element(parameter.span);
    }

    fn visit_ts_type_annotation(&mut self, annotation: &TSTypeAnnotation<'a>) {
        self.blank(annotation.span.start, annotation.span.end);
    }

    fn visit_ts_type_parameter_declaration(&mut self, parameters: &TSTypeParameterDeclaration<'a>) {
        self.blank(parameters.span.start, parameters.span.end);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, arguments: &TSTypeParameterInstantiation<'a>) {
        self.blank(arguments.span.start, arguments.span.end);
    }

    fn visit_ts_as_expression(&mut self, assertion: &TSAsExpression<'a>) {
        self.visit_expression(&assertion.expression);
        self.assertion(assertion.expression.span().end, assertion.span.end);
    }

    fn visit_ts_satisfies_expression(&mut self, assertion: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&assertion.expression);
        self.assertion(assertion.expression.span().end, assertion.span.end);
    }

    fn visit_ts_type_assertion(&mut self, assertion: &TSTypeAssertion<'a>) {
        self.blank(assertion.span.start, assertion.expression.span().start);
        self.visit_expression(&assertion.expression);
    }

    fn visit_ts_non_null_expression(&mut self, assertion: &TSNonNullExpression<'a>) {
        self.visit_expression(&assertion.expression);
        self.blank(assertion.span.end - 1, assertion.span.end);
    }

    fn visit_ts_enum_declaration(&mut self, declaration: &TSEnumDeclaration<'a>) {
        self.unsupported(declaration.span.start, "an `enum`", "write an object with `as const`");
    }

    fn visit_ts_namespace_declaration(&mut self, declaration: &TSNamespaceDeclaration<'a>) {
        self.unsupported(
            declaration.span.start,
            "a `namespace` with values",
            "write an object, or declarations outside of it",
        );
    }

    fn visit_ts_import_equals_declaration(&mut self, import: &TSImportEqualsDeclaration<'a>) {
        let instead = match import.module_reference {
            TSModuleReference::ExternalModuleReference(_) => {
                "write `import name from \"module\"`, or `const name = require(\"module\")`"
            }
            _ => "write `const name = ...`, or `type Name = ...` for a type",
        };
        self.unsupported(import.span.start, "an `import` with `=`", instead);
    }

    fn visit_ts_export_assignment(&mut self, export: &TSExportAssignment<'a>) {
        self.unsupported(export.span.start, "an `export =`", "write `export default`");
    }

    fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
        self.unsupported(decorator.span.start, "a decorator", "call a function with the class or the value");
    }
}
