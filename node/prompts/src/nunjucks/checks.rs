//! Checks of a nunjucks template before it is rendered: its size, and expressions whose values cannot be bounded.
//!
//! A list of variables may have itself twice in it, again and again: it is small, and its text is not. So lists and
//! objects in templates are constants. Concatenation by `~` prints its sides without a limit: it is refused. A list that
//! is added to itself again and again takes long to be counted: additions of values with a name are few.

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, ErrorKind};

/// Words, signs and texts within one tag. The engine's recursion is as deep as they are many.
pub const TAG_TOKENS_MAX: usize = 256;
/// `elif` tags in one template, which nest within each other.
pub const ELIFS_MAX: usize = 100;

/// Additions within values that get a name, in one template.
pub const NAMED_ADDITIONS_MAX: usize = 8;

/// Refuses templates that could take more than they are charged for.
pub(super) fn check(template: &str) -> Result<(), Error> {
    check_tokens(template)?;
    let parsed = parse(template, "template", SyntaxConfig::default())?;
    TemplateCheck::default().statement(&parsed)
}

fn check_tokens(template: &str) -> Result<(), Error> {
    let (mut in_tag, mut elifs) = (0, 0);
    for token in tokenize(template, false, SyntaxConfig::default()) {
        match token?.0 {
            Token::BlockStart | Token::VariableStart => in_tag = 0,
            Token::Ident("elif") => (in_tag, elifs) = (in_tag + 1, elifs + 1),
            _ => in_tag += 1,
        }
        if in_tag > TAG_TOKENS_MAX {
            return Err(refused(format!("a tag has more than {TAG_TOKENS_MAX} words and signs")));
        }
        if elifs > ELIFS_MAX {
            return Err(refused(format!("the template has more than {ELIFS_MAX} `elif` tags")));
        }
    }
    Ok(())
}

/// What is counted over a template.
#[derive(Default)]
struct TemplateCheck {
    additions: usize,
    named_additions: usize,
}

impl TemplateCheck {
    /// Checks a value that gets a name, by which it may be added again.
    fn named(&mut self, expression: &Expr<'_>) -> Result<(), Error> {
        let before = self.additions;
        self.expression(expression)?;
        self.named_additions += self.additions - before;
        match self.named_additions > NAMED_ADDITIONS_MAX {
            true => Err(refused(format!("values with a name have more than {NAMED_ADDITIONS_MAX} `+` and `*`"))),
            false => Ok(()),
        }
    }

    fn statement(&mut self, statement: &Stmt<'_>) -> Result<(), Error> {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => self.expression(&emit.expr),
            Stmt::EmitRaw(_) => Ok(()),
            Stmt::ForLoop(each) => {
                if each.recursive {
                    return Err(refused("`recursive` is not supported".to_owned()));
                }
                self.named(&each.iter)?;
                each.filter_expr.iter().try_for_each(|one| self.expression(one))?;
                self.statements(&each.body)?;
                self.statements(&each.else_body)
            }
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr)?;
                self.statements(&condition.true_body)?;
                self.statements(&condition.false_body)
            }
            Stmt::WithBlock(with) => {
                with.assignments.iter().try_for_each(|(_, value)| self.named(value))?;
                self.statements(&with.body)
            }
            Stmt::Set(set) => self.named(&set.expr),
            Stmt::SetBlock(set) => {
                set.filter.iter().try_for_each(|one| self.expression(one))?;
                self.statements(&set.body)
            }
            Stmt::FilterBlock(block) => {
                self.expression(&block.filter)?;
                self.statements(&block.body)
            }
            Stmt::AutoEscape(_) => Err(refused("`autoescape` is not supported: nothing is escaped".to_owned())),
            Stmt::Do(_) => Err(refused("`do` is not supported".to_owned())),
        }
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) -> Result<(), Error> {
        statements.iter().try_for_each(|one| self.statement(one))
    }

    fn expression(&mut self, expression: &Expr<'_>) -> Result<(), Error> {
        match expression {
            Expr::Var(_) | Expr::Const(_) => Ok(()),
            Expr::Slice(slice) => {
                self.expression(&slice.expr)?;
                [&slice.start, &slice.stop, &slice.step].into_iter().flatten().try_for_each(|one| self.expression(one))
            }
            Expr::UnaryOp(operation) => self.expression(&operation.expr),
            Expr::BinOp(operation) if matches!(operation.op, BinOpKind::Concat) => {
                Err(refused("`~` is not supported: print one value after the other, or add texts by `+`".to_owned()))
            }
            Expr::BinOp(operation) => {
                if matches!(operation.op, BinOpKind::Add | BinOpKind::Mul) {
                    if is_literal_list(&operation.left) || is_literal_list(&operation.right) {
                        return Err(refused("a list in a template is neither added nor multiplied".to_owned()));
                    }
                    self.additions += 1;
                }
                self.expression(&operation.left)?;
                self.expression(&operation.right)
            }
            Expr::Compare(compare) => {
                self.expression(&compare.expr)?;
                compare.ops.iter().try_for_each(|operation| self.expression(&operation.expr))
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr)?;
                self.expression(&choice.true_expr)?;
                choice.false_expr.iter().try_for_each(|one| self.expression(one))
            }
            Expr::Filter(filter) => {
                filter.expr.iter().try_for_each(|one| self.expression(one))?;
                self.arguments(&filter.args)
            }
            Expr::Test(test) => {
                self.expression(&test.expr)?;
                self.arguments(&test.args)
            }
            Expr::GetAttr(attribute) => self.expression(&attribute.expr),
            Expr::GetItem(item) => {
                self.expression(&item.expr)?;
                self.expression(&item.subscript_expr)
            }
            Expr::Call(call) => {
                self.expression(&call.expr)?;
                self.arguments(&call.args)
            }
            Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) if expression.as_const().is_some() => Ok(()),
            Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => {
                Err(refused("a list or an object in a template holds only constants".to_owned()))
            }
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) -> Result<(), Error> {
        arguments.iter().try_for_each(|argument| match argument {
            CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.expression(value),
            CallArg::PosSplat(_) | CallArg::KwargSplat(_) => Err(refused("`*` before an argument".to_owned())),
        })
    }
}

fn is_literal_list(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => true,
        Expr::Const(constant) => constant.value.as_object().is_some(),
        _ => false,
    }
}

fn refused(why: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, why)
}
