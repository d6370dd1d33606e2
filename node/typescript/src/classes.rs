//! Types in classes: modifiers, overloads, abstract members, fields and index signatures.

use oxc_ast::ast::{
    AccessorPropertyType, Class, ClassElement, MethodDefinition, PropertyDefinition, PropertyDefinitionType,
    PropertyKey,
};
use oxc_span::{GetSpan, Span};

use crate::blanks::Mark;
use crate::eraser::Eraser;

/// Modifiers of members that only the type checker knows.
const TYPE_MODIFIERS: [&str; 7] = ["abstract", "declare", "override", "private", "protected", "public", "readonly"];
/// Names of fields that would be read as modifiers of the next member without a type or a semicolon after them.
const AMBIGUOUS_NAMES: [&str; 5] = ["accessor", "async", "get", "set", "static"];

/// Whether a member of a class has no effect at run time.
fn is_type_member(element: &ClassElement<'_>) -> bool {
    match element {
        ClassElement::TSIndexSignature(_) => true,
        ClassElement::MethodDefinition(method) => method.value.body.is_none(),
        ClassElement::PropertyDefinition(field) => {
            field.declare || field.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition
        }
        ClassElement::AccessorProperty(accessor) => accessor.r#type == AccessorPropertyType::TSAbstractAccessorProperty,
        ClassElement::StaticBlock(_) => false,
    }
}

/// Whether the name of a field is also a modifier.
fn is_ambiguous_field(element: &ClassElement<'_>) -> bool {
    let ClassElement::PropertyDefinition(field) = element else { return false };
    field.value.is_none()
        && !field.computed
        && field.key.static_name().is_some_and(|name| AMBIGUOUS_NAMES.contains(&name.as_ref()))
}

impl Eraser<'_> {
    /// Blanks `abstract` and `implements`.
    pub(crate) fn class_head(&mut self, class: &Class<'_>) {
        if class.r#abstract {
            self.blank(class.span.start, class.span.start + "abstract".len() as u32);
        }
        let Some(last) = class.implements.last() else { return };
        let before = class.heritage.as_ref().map(|heritage| {
            heritage.type_arguments.as_ref().map_or(heritage.expression.span().end, |arguments| arguments.span.end)
        });
        let before = before
            .or_else(|| class.type_parameters.as_ref().map(|parameters| parameters.span.end))
            .or_else(|| class.id.as_ref().map(|id| id.span.end));
        let keyword = match before {
            Some(end) => self.text.next_token(end),
            None => self.implements_of_unnamed(class),
        };
        self.blank(keyword, last.span.end);
    }

    fn implements_of_unnamed(&self, class: &Class<'_>) -> u32 {
        let decorated = class.decorators.last().map_or(0, |decorator| decorator.span.end);
        let mut position = self.text.next_token(class.span.start.max(decorated));
        if self.text.word(position) == "abstract" {
            position = self.text.next_token(position + "abstract".len() as u32);
        }
        self.text.next_token(position + "class".len() as u32)
    }

    /// Blanks a member if it is only a type, or else calls `walk` on it.
    pub(crate) fn class_element(&mut self, element: &ClassElement<'_>, walk: impl FnOnce(&mut Self)) {
        let span = element.span();
        if is_type_member(element) {
            self.blank_statement(span);
            return;
        }
        match element {
            ClassElement::MethodDefinition(method) => self.method(method),
            ClassElement::PropertyDefinition(field) => self.field(field),
            ClassElement::AccessorProperty(accessor) => self.unsupported(
                accessor.span.start,
                "an `accessor` field",
                "write a private field with a getter and a setter",
            ),
            ClassElement::StaticBlock(_) | ClassElement::TSIndexSignature(_) => {}
        }
        walk(self);
        self.end_of_statement(span, is_ambiguous_field(element));
    }

    fn method(&mut self, method: &MethodDefinition<'_>) {
        self.modifiers(method.span, &method.key);
        if method.optional {
            self.suffix(self.end_of_key(&method.key, method.computed), b'?');
        }
    }

    fn field(&mut self, field: &PropertyDefinition<'_>) {
        self.modifiers(field.span, &field.key);
        let end = self.end_of_key(&field.key, field.computed);
        if field.optional {
            self.suffix(end, b'?');
        }
        if field.definite {
            self.suffix(end, b'!');
        }
    }

    fn end_of_key(&self, key: &PropertyKey<'_>, computed: bool) -> u32 {
        let end = key.span().end;
        if computed { self.text.next_token(end) + 1 } else { end }
    }

    fn modifiers(&mut self, span: Span, key: &PropertyKey<'_>) {
        let first = self.blanks.len();
        let mut keeps_word = false;
        let mut position = self.text.next_token(span.start);
        while position < key.span().start {
            let word = self.text.word(position);
            if word.is_empty() {
                break;
            }
            let word_end = position + word.len() as u32;
            if TYPE_MODIFIERS.contains(&word) {
                self.blank(position, word_end);
            } else {
                keeps_word = true;
            }
            position = self.text.next_token(word_end);
        }
        // A bracket or a star that is left at the start would continue the member before.
        if !keeps_word
            && matches!(self.text.byte(position), b'[' | b'*')
            && let Some(blank) = self.blanks.get_mut(first)
        {
            blank.mark = Mark::Semicolon;
        }
    }
}
