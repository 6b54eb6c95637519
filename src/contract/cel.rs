//! The escape hatch: rules in a guarded subset of CEL, over the validated data and the arguments.
//!
//! The language has no execution bound of its own, so this one admits only what is linear in the
//! data: a limited source and tree, `all` and `exists` without nesting, no concatenation in them,
//! no `matches`, and no names but `data` and `args`. What the guard admits is checked when the
//! contract is loaded; while judging, a rule holds, does not hold, or can't be decided, and the
//! last two refuse.

use crate::gate::decimal::Decimal;
use crate::gate::parse::{Kind, Node};
use cel::common::ast::{EntryExpr, Expr, IdedExpr};
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
    arguments: BTreeSet<String>,
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
        let program = Program::compile(source).map_err(|errors| RuleError::Syntax(errors.to_string()))?;
        let mut guard = Guard { program: &program, nodes: 0, arguments: BTreeSet::new() };
        guard.walk(program.expression(), &Scope::default())?;
        let arguments = guard.arguments;
        Ok(Rule { id: id.into(), program, arguments })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The request arguments that the rule reads.
    pub fn arguments(&self) -> impl Iterator<Item = String> {
        self.arguments.clone().into_iter()
    }

    /// Evaluates the rule.
    ///
    /// # Errors
    /// It can't be decided on this data.
    pub fn holds(&self, data: Node<'_>, arguments: Option<Node<'_>>) -> Result<bool, RuleFailure> {
        let mut context = Context::default();
        context.add_variable_from_value("data", value_of(data)?);
        let arguments = arguments.map_or_else(|| Ok(Value::Null), value_of)?;
        context.add_variable_from_value("args", arguments);
        match self.program.execute(&context) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(_) => Err(RuleFailure::NotBoolean),
            Err(_) => Err(RuleFailure::Evaluation),
        }
    }
}

/// The parser of the language recurses; brackets are what makes it recurse deep.
fn bracket_depth(source: &str) -> usize {
    let step = |(depth, most): (usize, usize), byte: u8| match byte {
        b'(' | b'[' | b'{' | b'?' | b'!' | b'-' => (depth + 1, most.max(depth + 1)),
        b')' | b']' | b'}' => (depth.saturating_sub(1), most),
        _ => (depth, most),
    };
    source.bytes().fold((0, 0), step).1
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
    arguments: BTreeSet<String>,
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
            Expr::Ident(name) if scope.bound.contains(name) || name == "data" => Ok(()),
            Expr::Ident(name) if name == "args" => self.refuse(node, "args without a member (write args.name)"),
            Expr::Ident(name) => self.refuse(node, format!("the name {name}")),
            Expr::Select(select) => match &select.operand.expr {
                Expr::Ident(name) if name == "args" && !scope.bound.contains(name) => {
                    self.arguments.insert(select.field.clone());
                    Ok(())
                }
                _ => self.walk(&select.operand, &inner),
            },
            Expr::Call(call) => {
                if !FUNCTIONS.contains(&call.func_name.as_str()) {
                    return self.refuse(node, format!("the function {}", call.func_name));
                }
                if scope.in_comprehension && call.func_name == "_+_" {
                    return self
                        .refuse(node, "adding or concatenating inside all or exists, and map, filter and exists_one");
                }
                call.target.iter().try_for_each(|target| self.walk(target, &inner))?;
                call.args.iter().try_for_each(|argument| self.walk(argument, &inner))
            }
            Expr::List(list) => list.elements.iter().try_for_each(|element| self.walk(element, &inner)),
            Expr::Comprehension(_) if scope.in_comprehension => self.refuse(node, "all or exists inside another"),
            Expr::Comprehension(comprehension) => {
                self.walk(&comprehension.iter_range, &inner)?;
                self.walk(&comprehension.accu_init, &inner)?;
                let mut bound = scope.bound.clone();
                bound.extend([comprehension.iter_var.clone(), comprehension.accu_var.clone()]);
                bound.extend(comprehension.iter_var2.clone());
                let body = Scope { bound, in_comprehension: true, depth: inner.depth };
                [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result]
                    .into_iter()
                    .try_for_each(|part| self.walk(part, &body))
            }
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.walk(&entry.key, &inner).and_then(|()| self.walk(&entry.value, &inner))
                }
                EntryExpr::StructField(_) => self.refuse(node, "a message"),
            }),
            Expr::Struct(_) => self.refuse(node, "a message"),
            Expr::Unspecified => self.refuse(node, "an empty expression"),
        }
    }
}

/// JSON as CEL sees it: integers are `int`, other numbers `double` where that is exact.
fn value_of(node: Node<'_>) -> Result<Value, RuleFailure> {
    Ok(match node.kind() {
        Kind::Null => Value::Null,
        Kind::True => Value::Bool(true),
        Kind::False => Value::Bool(false),
        Kind::String => Value::String(Arc::new(node.as_str().unwrap_or_default().to_owned())),
        Kind::Number => number_of(node.lexeme().unwrap_or_default())?,
        Kind::Array => Value::List(Arc::new(node.items().map(value_of).collect::<Result<_, _>>()?)),
        Kind::Object => {
            let members =
                node.members().map(|(name, value)| Ok((Key::String(Arc::new(name.to_owned())), value_of(value)?)));
            Value::Map(Map { map: Arc::new(members.collect::<Result<HashMap<_, _>, RuleFailure>>()?) })
        }
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
mod tests {
    use super::*;
    use crate::gate::parse::{Limits, Tape};

    const DATA: &str = r#"{"state":"succeeded","ended":"2026-12-01T11:58:00Z","count":3,"id":18446744073709551617,"share":0.5,"jobs":[{"ok":true},{"ok":false}]}"#;

    #[track_caller]
    fn check(source: &str, expect: Result<bool, RuleFailure>) {
        let (mut data, mut args) = (Tape::default(), Tape::default());
        let data_text = DATA.replace(r#""id":18446744073709551617,"#, "");
        let data = data.parse(data_text.as_bytes(), &Limits::default()).unwrap().root();
        let args = args.parse(br#"{"min":2}"#, &Limits::default()).unwrap().root();
        assert_eq!(Rule::compile("rule", source).unwrap().holds(data, Some(args)), expect, "{source}");
    }

    #[track_caller]
    fn refused(source: &str, part: &str) {
        let error = Rule::compile("rule", source).unwrap_err().to_string();
        assert!(error.contains(part), "{source}: {error}");
    }

    #[test]
    fn rules_over_data_and_arguments() {
        check("data.state != 'running' || !has(data.ended)", Ok(true));
        check("has(data.ended) && data.count >= args.min", Ok(true));
        check("data.jobs.exists(j, j.ok) && !data.jobs.all(j, j.ok)", Ok(true));
        check("size(data.jobs) == 2 && data.state.startsWith('succ')", Ok(true));
        check("data.share < 1.0 && data.count + 1 == 4", Ok(true));
        check("data.state in ['failed', 'cancelled']", Ok(false));
    }

    #[test]
    fn what_cannot_be_decided_does_not_hold() {
        check("data.missing == 1", Err(RuleFailure::Evaluation));
        check("data.count", Err(RuleFailure::NotBoolean));
        check("data.count / 0 == 1", Err(RuleFailure::Evaluation));
        let mut tape = Tape::default();
        let data = tape.parse(DATA.as_bytes(), &Limits::default()).unwrap().root();
        assert_eq!(Rule::compile("r", "data.count == 3").unwrap().holds(data, None), Err(RuleFailure::Number));
    }

    #[test]
    fn the_subset_leaves_out_what_has_no_bound() {
        refused("data.state.matches('a')", "function matches");
        refused("data.jobs.all(a, data.jobs.all(b, a.ok == b.ok))", "inside another");
        refused("data.jobs.map(j, j.ok) == []", "adding or concatenating");
        refused("data.jobs.filter(j, j.ok).size() > 0", "adding or concatenating");
        refused("now > 1", "the name now");
        refused("args == {}", "args without a member");
        refused("data.count == ", "no CEL expression");
        refused(&format!("data.count in [{}1]", "1, ".repeat(300)), "more than 200 parts");
        refused(&format!("data.count == {}", "1 + ".repeat(300) + "1"), "nesting this deep");
        refused(&"(".repeat(500), "nesting");
        refused(&"x".repeat(3000), "3000 bytes");
    }

    #[test]
    fn a_string_cannot_be_doubled_24_times() {
        let bomb = (0..24).fold("'ab'".to_owned(), |inner, i| format!("[{inner}].map(x{i}, x{i} + x{i})[0]"));
        assert!(Rule::compile("bomb", &bomb).is_err());
    }

    #[test]
    fn the_arguments_of_a_rule_are_known() {
        let rule = Rule::compile("r", "data.count >= args.min && data.state == args.state").unwrap();
        assert_eq!(rule.arguments().collect::<Vec<_>>(), ["min", "state"]);
    }
}
