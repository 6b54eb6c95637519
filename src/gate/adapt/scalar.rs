//! Scalars on their way from a vendor document into the candidate: captured, replaced, mapped, converted.

use super::plan::Steps;
use crate::contract::raw::Convert;
use crate::gate::cond::is_integer_lexeme;
use crate::gate::decimal::Decimal;
use crate::gate::parse::{Kind, Node, TapeWriter};
use crate::time::Timestamp;
use serde_json::Value;
use std::borrow::Cow;

/// A scalar of the document, the request or the contract. Numbers are their own digits.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(Cow<'a, str>),
    Text(Cow<'a, str>),
    Time(Timestamp),
}

/// A step that could not be taken: the contract's key and what it wanted.
#[derive(Debug)]
pub(super) struct Misfit {
    pub keyword: &'static str,
    pub expected: &'static str,
}

impl<'a> Scalar<'a> {
    /// The scalar at `node`; `None` for arrays and objects, which never pass whole.
    pub(super) fn of(node: Node<'a>) -> Option<Scalar<'a>> {
        match node.kind() {
            Kind::Null => Some(Scalar::Null),
            Kind::False => Some(Scalar::Bool(false)),
            Kind::True => Some(Scalar::Bool(true)),
            Kind::Number => node.lexeme().map(|lexeme| Scalar::Number(lexeme.into())),
            Kind::String => node.as_str().map(|text| Scalar::Text(text.into())),
            Kind::Array | Kind::Object => None,
        }
    }

    /// A scalar of the contract; `None` for a list or map.
    pub(super) fn of_contract(value: &'a Value) -> Option<Scalar<'a>> {
        match value {
            Value::Null => Some(Scalar::Null),
            Value::Bool(value) => Some(Scalar::Bool(*value)),
            Value::Number(number) => Some(Scalar::Number(number.to_string().into())),
            Value::String(text) => Some(Scalar::Text(text.into())),
            Value::Array(_) | Value::Object(_) => None,
        }
    }

    pub(super) fn kind_name(&self) -> &'static str {
        match self {
            Scalar::Null => "null",
            Scalar::Bool(_) => "boolean",
            Scalar::Number(_) => "number",
            Scalar::Text(_) | Scalar::Time(_) => "string",
        }
    }

    pub(super) fn write(&self, out: &mut TapeWriter<'_>) {
        match self {
            Scalar::Null => out.null(),
            Scalar::Bool(value) => out.bool(*value),
            Scalar::Number(lexeme) => out.number(lexeme),
            Scalar::Text(text) => out.string(text),
            Scalar::Time(time) => out.display(time),
        }
    }
}

/// Applies the transforms in their fixed order: capture, replace, map, as.
pub(super) fn apply<'a>(mut scalar: Scalar<'a>, steps: &'a Steps) -> Result<Scalar<'a>, Misfit> {
    if let Some(regex) = &steps.capture {
        scalar = capture(scalar, regex)?;
    }
    if !steps.replace.is_empty() {
        scalar = replace(scalar, &steps.replace)?;
    }
    if let Some(map) = &steps.map {
        scalar = look_up(&scalar, map)?;
    }
    match steps.convert {
        Some(convert) => apply_convert(scalar, convert),
        None => Ok(scalar),
    }
}

fn capture<'a>(scalar: Scalar<'a>, regex: &regex::Regex) -> Result<Scalar<'a>, Misfit> {
    let misfit = Misfit { keyword: "capture", expected: "a string that matches the pattern" };
    let Scalar::Text(text) = scalar else { return Err(misfit) };
    let range = regex.captures(&text).and_then(|found| found.get(1)).map(|group| group.range());
    let Some(range) = range else { return Err(misfit) };
    Ok(Scalar::Text(match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
        Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
    }))
}

fn replace<'a>(scalar: Scalar<'a>, pairs: &[(Box<str>, Box<str>)]) -> Result<Scalar<'a>, Misfit> {
    let Scalar::Text(mut text) = scalar else {
        return Err(Misfit { keyword: "replace", expected: "a string" });
    };
    for (from, to) in pairs {
        if text.contains(from.as_ref()) {
            text = Cow::Owned(text.replace(from.as_ref(), to));
        }
    }
    Ok(Scalar::Text(text))
}

/// The closed table: the input must be one of its names, spelled exactly so.
fn look_up<'a>(scalar: &Scalar<'_>, map: &'a [(Box<str>, Value)]) -> Result<Scalar<'a>, Misfit> {
    let name = match scalar {
        Scalar::Text(text) | Scalar::Number(text) => text.as_ref(),
        Scalar::Bool(true) => "true",
        Scalar::Bool(false) => "false",
        Scalar::Null | Scalar::Time(_) => "null",
    };
    map.iter()
        .find(|(from, _)| from.as_ref() == name)
        .and_then(|(_, to)| Scalar::of_contract(to))
        .ok_or(Misfit { keyword: "map", expected: "one of the names that the table lists" })
}

fn apply_convert<'a>(scalar: Scalar<'a>, convert: Convert) -> Result<Scalar<'a>, Misfit> {
    let (converted, expected) = match convert {
        Convert::String => (as_string(scalar), "a string, or an integer whose digits become one"),
        Convert::Integer => (keep(scalar, is_integer), "a number written as an integer"),
        Convert::Number => (keep(scalar, |s| matches!(s, Scalar::Number(_))), "a number"),
        Convert::Boolean => (keep(scalar, |s| matches!(s, Scalar::Bool(_))), "true or false"),
        Convert::Timestamp => (time_by(scalar, Timestamp::parse_rfc3339), "an RFC 3339 time"),
        Convert::Iso8601 => (time_by(scalar, Timestamp::parse_iso8601), "an ISO 8601 time with an offset"),
        Convert::EpochS => (epoch(scalar, 0), "seconds since the epoch"),
        Convert::EpochMs => (epoch(scalar, 3), "milliseconds since the epoch"),
        Convert::EpochUs => (epoch(scalar, 6), "microseconds since the epoch"),
        Convert::ParseInteger => (parse_number(scalar, is_integer_lexeme), "a string that holds an integer"),
        Convert::ParseNumber => (parse_number(scalar, |_| true), "a string that holds a number"),
    };
    converted.ok_or(Misfit { keyword: "as", expected })
}

fn as_string(scalar: Scalar<'_>) -> Option<Scalar<'_>> {
    match scalar {
        Scalar::Text(_) => Some(scalar),
        Scalar::Number(lexeme) => is_integer_lexeme(&lexeme).then_some(Scalar::Text(lexeme)),
        Scalar::Null | Scalar::Bool(_) | Scalar::Time(_) => None,
    }
}

fn is_integer(scalar: &Scalar<'_>) -> bool {
    matches!(scalar, Scalar::Number(lexeme) if is_integer_lexeme(lexeme))
}

fn keep<'a>(scalar: Scalar<'a>, test: impl Fn(&Scalar<'a>) -> bool) -> Option<Scalar<'a>> {
    test(&scalar).then_some(scalar)
}

fn time_by<'a>(scalar: Scalar<'a>, read: impl Fn(&str) -> Option<Timestamp>) -> Option<Scalar<'a>> {
    match scalar {
        Scalar::Text(text) => read(&text).map(Scalar::Time),
        Scalar::Null | Scalar::Bool(_) | Scalar::Number(_) | Scalar::Time(_) => None,
    }
}

fn epoch(scalar: Scalar<'_>, unit: u32) -> Option<Scalar<'_>> {
    match scalar {
        Scalar::Number(digits) | Scalar::Text(digits) => {
            Decimal::parse(&digits).and_then(|at| at.as_timestamp(unit)).map(Scalar::Time)
        }
        Scalar::Null | Scalar::Bool(_) | Scalar::Time(_) => None,
    }
}

/// A string of JSON's own number grammar: no plus sign, no leading zeros, no spaces.
fn parse_number(scalar: Scalar<'_>, admits: impl Fn(&str) -> bool) -> Option<Scalar<'_>> {
    let Scalar::Text(text) = scalar else { return None };
    let digits = text.strip_prefix('-').unwrap_or(&text);
    let leading_zero = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    let ends_in_digit = digits.ends_with(|c: char| c.is_ascii_digit());
    let valid = !leading_zero && ends_in_digit && admits(&text) && Decimal::parse(&text).is_some();
    valid.then_some(Scalar::Number(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Scalar<'_> {
        Scalar::Text(value.into())
    }

    fn number(value: &str) -> Scalar<'_> {
        Scalar::Number(value.into())
    }

    #[track_caller]
    fn check(convert: Convert, input: Scalar<'_>, expect: Option<&str>) {
        let shown = apply_convert(input, convert).ok().map(|scalar| match scalar {
            Scalar::Null => "null".to_owned(),
            Scalar::Bool(value) => value.to_string(),
            Scalar::Number(lexeme) => lexeme.into_owned(),
            Scalar::Text(text) => format!("{text:?}"),
            Scalar::Time(time) => time.to_string(),
        });
        assert_eq!(shown.as_deref(), expect);
    }

    #[test]
    fn an_integer_keeps_its_own_digits_as_a_string() {
        check(Convert::String, number("653247040368672768"), Some("\"653247040368672768\""));
        check(
            Convert::String,
            number("340282366920938463463374607431768211457"),
            Some("\"340282366920938463463374607431768211457\""),
        );
        check(Convert::String, text("run_1"), Some("\"run_1\""));
        check(Convert::String, number("4200.0"), None);
        check(Convert::String, number("1e3"), None);
        check(Convert::String, Scalar::Bool(true), None);
    }

    #[test]
    fn types_are_kept_apart() {
        check(Convert::Integer, number("4200"), Some("4200"));
        check(Convert::Integer, number("4200.0"), None);
        check(Convert::Integer, text("4200"), None);
        check(Convert::Number, number("4200.5"), Some("4200.5"));
        check(Convert::Boolean, Scalar::Bool(false), Some("false"));
        check(Convert::Boolean, text("false"), None);
    }

    #[test]
    fn numbers_in_strings_follow_jsons_grammar() {
        check(Convert::ParseInteger, text("3"), Some("3"));
        check(Convert::ParseInteger, text("-3"), Some("-3"));
        check(Convert::ParseNumber, text("0.5"), Some("0.5"));
        for bad in ["", " 3", "+3", "03", "3.", "0x3", "٣", "3 ", "-", "1e"] {
            check(Convert::ParseInteger, text(bad), None);
            check(Convert::ParseNumber, text(bad), None);
        }
        check(Convert::ParseInteger, number("3"), None);
    }

    #[test]
    fn times_come_in_the_vendors_units() {
        check(Convert::EpochS, number("1796126296.101"), Some("2026-12-01T11:58:16.101Z"));
        check(Convert::EpochMs, number("1796126100000"), Some("2026-12-01T11:55:00Z"));
        check(Convert::EpochUs, text("1796126350009823"), Some("2026-12-01T11:59:10.009823Z"));
        check(Convert::Timestamp, text("2026-12-01T11:58:55.000+0000"), None);
        check(Convert::Iso8601, text("2026-12-01T11:58:55.000+0000"), Some("2026-12-01T11:58:55Z"));
        check(Convert::Timestamp, number("1796126100000"), None);
    }

    #[test]
    fn a_map_is_closed_and_spelled_exactly() {
        let steps = Steps {
            map: Some(vec![("approved".into(), "APPROVED".into()), ("true".into(), Value::Bool(true))]),
            ..Steps::default()
        };
        assert_eq!(apply(text("approved"), &steps).unwrap(), text("APPROVED"));
        assert_eq!(apply(Scalar::Bool(true), &steps).unwrap(), Scalar::Bool(true));
        assert_eq!(apply(text("Approved"), &steps).unwrap_err().keyword, "map");
    }
}
