//! Outline of a syntax tree: the shape of everything that is JavaScript, to compare the trees before and after.
//!
//! White space in place of a type may join two statements, or regroup operators. Instead of a rule for each such case
//! the result is parsed again, and has to have the outline of the code with its types.

use oxc_ast::ast::Program;
use oxc_ast::{AstKind, AstType};
use oxc_ast_visit::Visit;
use oxc_span::GetSpan;

use crate::blanks::Blanks;

/// Node of a syntax tree, in the order of the text.
#[derive(Clone, Copy, Debug)]
struct OutlineNode {
    kind: AstType,
    depth: u32,
    start: u32,
    end: u32,
}

/// Nodes of a syntax tree that remain without its types.
#[derive(Debug)]
pub(crate) struct Outline {
    nodes: Vec<OutlineNode>,
}

impl Outline {
    /// Outline of `program`, without the nodes that are blank.
    pub fn of(program: &Program<'_>, blanks: &Blanks) -> Self {
        let mut tracer = Tracer { blanks, depth: 0, nodes: Vec::new() };
        tracer.visit_program(program);
        Self { nodes: tracer.nodes }
    }

    /// Range of the first node of `self` that `other` has not, or has elsewhere.
    pub fn difference(&self, other: &Self) -> Option<(u32, u32)> {
        let differ = |(mine, its): &(&OutlineNode, &OutlineNode)| {
            mine.kind != its.kind || mine.depth != its.depth || is_leaf(mine.kind) && mine.start != its.start
        };
        let first = self.nodes.iter().zip(&other.nodes).find(differ).map(|(mine, _)| mine);
        first
            .or_else(|| self.nodes.get(other.nodes.len()))
            .or_else(|| if other.nodes.len() > self.nodes.len() { self.nodes.last() } else { None })
            .map(|node| (node.start, node.end))
    }
}

struct Tracer<'b> {
    blanks: &'b Blanks,
    depth: u32,
    nodes: Vec<OutlineNode>,
}

impl Tracer<'_> {
    fn remains(&self, node: AstKind<'_>) -> bool {
        let span = node.span();
        // A node without text is blank if its neighbours are.
        let margin = u32::from(span.start == span.end);
        let is_blank = self.blanks.cover(span.start.saturating_sub(margin), span.end + margin);
        !is_blank && !is_transparent(node.ty())
    }
}

impl<'a> Visit<'a> for Tracer<'_> {
    fn enter_node(&mut self, node: AstKind<'a>) {
        if self.remains(node) {
            let span = node.span();
            let kind = match node.ty() {
                // A string statement becomes a directive when the types before it vanish.
                AstType::Directive => AstType::ExpressionStatement,
                kind => kind,
            };
            self.nodes.push(OutlineNode { kind, depth: self.depth, start: span.start, end: span.end });
            self.depth += 1;
        }
    }

    fn leave_node(&mut self, node: AstKind<'a>) {
        if self.remains(node) {
            self.depth -= 1;
        }
    }
}

/// Whether a node stands for no more than the nodes inside it.
fn is_transparent(kind: AstType) -> bool {
    matches!(
        kind,
        AstType::ChainExpression
            | AstType::EmptyStatement
            | AstType::TSAsExpression
            | AstType::TSInstantiationExpression
            | AstType::TSNonNullExpression
            | AstType::TSSatisfiesExpression
            | AstType::TSTypeAssertion
    )
}

/// Whether a node is a single token, which keeps its position.
fn is_leaf(kind: AstType) -> bool {
    matches!(
        kind,
        AstType::BigIntLiteral
            | AstType::BindingIdentifier
            | AstType::BooleanLiteral
            | AstType::IdentifierName
            | AstType::IdentifierReference
            | AstType::NullLiteral
            | AstType::NumericLiteral
            | AstType::PrivateIdentifier
            | AstType::RegExpLiteral
            | AstType::StringLiteral
            | AstType::Super
            | AstType::TemplateElement
            | AstType::ThisExpression
    )
}
