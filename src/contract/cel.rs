//! The escape hatch: rules in a guarded subset of CEL, over the validated data and the arguments.
//!
//! The language has no execution bound of its own, so this one admits only what is linear in the
//! data: a limited source and tree, `all` and `exists` without nesting, in which nothing grows and
//! nothing is copied, no `matches`, and no names but `data` and `args`. What the guard admits is
//! checked when the contract is loaded; while judging, a rule holds, does not hold, or can't be
//! decided, and the last two refuse.
//!
//! A rule sees the members that it reads and no others. Their integers are `int` (64 bits, signed);
//! other numbers are `double` where reading and writing one gives the same number again. Numbers
//! that fit neither can't be decided: a rule about a rounded number would be about another one.

use crate::gate::decimal::Decimal;
use crate::gate::parse::{Kind, Node};
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr, SelectExpr};
use cel::objects::{Key, Map};
use cel::{Context, Program, Value};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

/// Bytes of a rule's source.
pub const SOURCE_BYTES_MAX: usize = 2048;
/// Nodes of a rule's tree, with macros expanded.
pub const NODES_MAX: usize = 200;
const DEPTH_MAX: usize = 32;
/// Additions, and items of lists and maps that are computed: each may copy as much as the data has.
pub const COPIES_MAX: usize = 16;
/// Characters of a syntax error that are passed on.
const SYNTAX_CHARS_MAX: usize = 160;

/// The functions and operators of the subset, by CEL's own names.
const FUNCTIONS: [&str; 25] = [
    "_&&_",
    "_||_",
    "!_",
    "_?_:_",
    "_==_",
    "_!=_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "_+_",
    "_-_",
    "_*_",
    "_/_",
    "_%_",
    "-_",
    "@in",
    "_in_",
    "_[_]",
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "@not_strictly_false",
    "int",
];

/// A compiled rule.
pub struct Rule {
    id: Box<str>,
    program: Program,
    data: Reads,
    arguments: Reads,
}

/// What a rule reads of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reads {
    Members(BTreeSet<String>),
    Whole,
}

impl Reads {
    fn member(&mut self, name: &str) {
        match self {
            Reads::Members(members) => drop(members.insert(name.to_owned())),
            Reads::Whole => {}
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Why a rule is not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("the rule has {0} bytes; at most 2048 are admitted")]
    TooLong(usize),
    #[error("the rule is no CEL expression: {0}")]
    Syntax(String),
    #[error("{what} at character {at} is not admitted")]
    NotAdmitted { what: String, at: u32 },
}

/// A rule that could not be decided. No value is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleFailure {
    /// A number that CEL would round.
    Number,
    /// An evaluation error, such as a member that is absent or an overflow.
    Evaluation,
    /// The rule gives something other than true or false.
    NotBoolean,
}

impl RuleFailure {
    pub const fn detail(self) -> &'static str {
        match self {
            RuleFailure::Number => "a number is too large for the rule to be decided exactly",
            RuleFailure::Evaluation => "the rule could not be evaluated on this data",
            RuleFailure::NotBoolean => "the rule gave neither true nor false",
        }
    }
}

impl Rule {
    /// Compiles a rule of the guarded subset.
    ///
    /// # Errors
    /// It is too long, no CEL, or uses what the subset leaves out; with the place.
    pub fn compile(id: &str, source: &str) -> Result<Rule, RuleError> {
        if source.len() > SOURCE_BYTES_MAX {
            return Err(RuleError::TooLong(source.len()));
        }
        if bracket_depth(source) > DEPTH_MAX {
            return Err(RuleError::NotAdmitted { what: "nesting deeper than 32".into(), at: 0 });
        }
        let program = Program::compile(source).map_err(|errors| RuleError::Syntax(first_error(&errors)))?;
        let nothing = || Reads::Members(BTreeSet::new());
        let mut guard = Guard { program: &program, nodes: 0, copies: 0, data: nothing(), arguments: nothing() };
        guard.walk(program.expression(), &Scope::default())?;
        let Guard { data, arguments, .. } = guard;
        Ok(Rule { id: id.into(), program, data, arguments })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The request arguments that the rule reads.
    pub fn arguments(&self) -> impl Iterator<Item = String> {
        let members = match &self.arguments {
            Reads::Members(members) => members.clone(),
            Reads::Whole => BTreeSet::new(),
        };
        members.into_iter()
    }

    /// Evaluates the rule. Without arguments, `args` has no members.
    ///
    /// # Errors
    /// It can't be decided on this data.
    pub fn holds(&self, data: Node<'_>, arguments: Option<Node<'_>>) -> Result<bool, RuleFailure> {
        let mut context = Context::default();
        context.add_variable_from_value("data", read(data, &self.data)?);
        let arguments = match arguments {
            Some(arguments) => read(arguments, &self.arguments)?,
            None => Value::Map(Map { map: Arc::default() }),
        };
        context.add_variable_from_value("args", arguments);
        match self.program.execute(&context) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(_) => Err(RuleFailure::NotBoolean),
            Err(_) => Err(RuleFailure::Evaluation),
        }
    }
}

/// Nesting by brackets, counted in texts too. The parser has a limit of its own, and a worse message.
fn bracket_depth(source: &str) -> usize {
    let step = |(depth, most): (usize, usize), byte: u8| match byte {
        b'(' | b'[' | b'{' => (depth + 1, most.max(depth + 1)),
        b')' | b']' | b'}' => (depth.saturating_sub(1), most),
        _ => (depth, most),
    };
    source.bytes().fold((0, 0), step).1
}

/// The first error of the parser on one line.
fn first_error(errors: &cel::ParseErrors) -> String {
    let Some(error) = errors.errors.first() else { return String::new() };
    let text = format!("line {}, column {}: {}", error.pos.0, error.pos.1, error.msg);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SYNTAX_CHARS_MAX).collect()
}

/// Names that are bound where an expression stands.
#[derive(Clone, Default)]
struct Scope {
    bound: Vec<String>,
    in_comprehension: bool,
    depth: usize,
}

struct Guard<'p> {
    program: &'p Program,
    nodes: usize,
    copies: usize,
    data: Reads,
    arguments: Reads,
}

impl Guard<'_> {
    fn refuse<T>(&self, node: &IdedExpr, what: impl Into<String>) -> Result<T, RuleError> {
        let at = self.program.source_info().offset_for(node.id).map_or(0, |(start, _)| start);
        Err(RuleError::NotAdmitted { what: what.into(), at })
    }

    fn walk(&mut self, node: &IdedExpr, scope: &Scope) -> Result<(), RuleError> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return self.refuse(node, format!("a rule of more than {NODES_MAX} parts"));
        }
        if scope.depth > DEPTH_MAX * 2 {
            return self.refuse(node, "nesting this deep");
        }
        let inner = Scope { depth: scope.depth + 1, ..scope.clone() };
        match &node.expr {
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.name(node, name, scope),
            Expr::Select(select) => self.select(select, &inner),
            Expr::Call(call) => {
                if !FUNCTIONS.contains(&call.func_name.as_str()) {
                    return self.refuse(node, format!("the function {}", call.func_name));
                }
                if call.func_name == "_+_" {
                    self.copies(node, 1, scope)?;
                }
                call.target.iter().try_for_each(|target| self.walk(target, &inner))?;
                call.args.iter().try_for_each(|argument| self.walk(argument, &inner))
            }
            Expr::List(list) => self.items(node, list.elements.iter(), scope, &inner),
            Expr::Comprehension(comprehension) => self.comprehension(node, comprehension, scope, &inner),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => self.items(node, [&entry.key, &entry.value].into_iter(), scope, &inner),
                EntryExpr::StructField(_) => self.refuse(node, "a message"),
            }),
            Expr::Struct(_) => self.refuse(node, "a message"),
            Expr::Unspecified => self.refuse(node, "an empty expression"),
        }
    }

    fn select(&mut self, select: &SelectExpr, inner: &Scope) -> Result<(), RuleError> {
        let Expr::Ident(name) = &select.operand.expr else { return self.walk(&select.operand, inner) };
        match name.as_str() {
            "args" => self.arguments.member(&select.field),
            "data" => self.data.member(&select.field),
            _ => return self.walk(&select.operand, inner),
        }
        Ok(())
    }

    fn name(&mut self, node: &IdedExpr, name: &str, scope: &Scope) -> Result<(), RuleError> {
        match name {
            "args" => self.refuse(node, "args without a member (write args.name)"),
            "data" if scope.in_comprehension => self.refuse(node, "the whole of data inside all or exists"),
            "data" => {
                self.data = Reads::Whole;
                Ok(())
            }
            bound if scope.bound.iter().any(|known| known == bound) => Ok(()),
            unknown => self.refuse(node, format!("the name {unknown}")),
        }
    }

    /// Counts what may copy a part of the data. In a comprehension it would do so for each item, and
    /// what grows there doubles.
    fn copies(&mut self, node: &IdedExpr, count: usize, scope: &Scope) -> Result<(), RuleError> {
        if scope.in_comprehension && count > 0 {
            let what = "adding, concatenating or listing inside all or exists, and map, filter and exists_one";
            return self.refuse(node, what);
        }
        self.copies += count;
        if self.copies > COPIES_MAX {
            return self.refuse(node, format!("a rule with more than {COPIES_MAX} additions and computed items"));
        }
        Ok(())
    }

    fn items<'e>(
        &mut self,
        node: &IdedExpr,
        items: impl Iterator<Item = &'e IdedExpr> + Clone,
        scope: &Scope,
        inner: &Scope,
    ) -> Result<(), RuleError> {
        let computed = items.clone().filter(|item| !matches!(item.expr, Expr::Literal(_))).count();
        self.copies(node, computed, scope)?;
        items.into_iter().try_for_each(|item| self.walk(item, inner))
    }

    fn comprehension(
        &mut self,
        node: &IdedExpr,
        comprehension: &ComprehensionExpr,
        scope: &Scope,
        inner: &Scope,
    ) -> Result<(), RuleError> {
        if scope.in_comprehension {
            return self.refuse(node, "all or exists inside another");
        }
        let variables = [Some(&comprehension.iter_var), comprehension.iter_var2.as_ref()].into_iter().flatten();
        if let Some(taken) = variables.clone().find(|name| matches!(name.as_str(), "data" | "args")) {
            return self.refuse(node, format!("another meaning of {taken}"));
        }
        self.walk(&comprehension.iter_range, inner)?;
        self.walk(&comprehension.accu_init, inner)?;
        let bound = variables.chain([&comprehension.accu_var]).cloned().collect();
        let body = Scope { bound, in_comprehension: true, depth: inner.depth };
        [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result]
            .into_iter()
            .try_for_each(|part| self.walk(part, &body))
    }
}

/// The members of an object that a rule reads.
fn read(object: Node<'_>, reads: &Reads) -> Result<Value, RuleFailure> {
    let Reads::Members(names) = reads else { return value_of(object) };
    let members = object.members().filter(|(name, _)| names.contains(*name));
    map_of(members)
}

fn map_of<'n>(members: impl Iterator<Item = (&'n str, Node<'n>)>) -> Result<Value, RuleFailure> {
    let members = members.map(|(name, value)| Ok((Key::String(Arc::new(name.to_owned())), value_of(value)?)));
    Ok(Value::Map(Map { map: Arc::new(members.collect::<Result<HashMap<_, _>, RuleFailure>>()?) }))
}

/// JSON as CEL sees it. The nesting is that of a parsed document, which its limits have bounded.
fn value_of(node: Node<'_>) -> Result<Value, RuleFailure> {
    Ok(match node.kind() {
        Kind::Null => Value::Null,
        Kind::True => Value::Bool(true),
        Kind::False => Value::Bool(false),
        Kind::String => Value::String(Arc::new(node.as_str().unwrap_or_default().to_owned())),
        Kind::Number => number_of(node.lexeme().unwrap_or_default())?,
        Kind::Array => Value::List(Arc::new(node.items().map(value_of).collect::<Result<_, _>>()?)),
        Kind::Object => return map_of(node.members()),
    })
}

fn number_of(digits: &str) -> Result<Value, RuleFailure> {
    if let Ok(integer) = digits.parse::<i64>() {
        return Ok(Value::Int(integer));
    }
    let double: f64 = digits.parse().map_err(|_| RuleFailure::Number)?;
    let shortest = format!("{double}");
    let is_exact = Decimal::parse(digits).is_some() && Decimal::parse(digits) == Decimal::parse(&shortest);
    if is_exact { Ok(Value::Float(double)) } else { Err(RuleFailure::Number) }
}

#[cfg(test)]
mod tests;
