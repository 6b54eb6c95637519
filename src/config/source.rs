//! Collects what each source says about each setting.
//!
//! A value travels as the text one would write in an environment variable, so that the same check
//! serves all sources; only the type as written in TOML is looked at here.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Config, Mistake, Place, Sources, kafka,
    mistake::nearest,
    settings::{Kind, SECTIONS, SETTINGS, Setting},
    units::{duration_text, parse_duration, parse_size, size_text},
};

/// From the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    File,
    Environment,
    Flag,
}

/// A text and where it was written.
type Written = (String, Place);

/// What was written, by index into [`SETTINGS`].
#[derive(Debug, Default)]
pub(super) struct Found {
    values: BTreeMap<(usize, Origin), Written>,
    /// Settings that were written somewhere, however wrongly.
    attempted: Vec<usize>,
    sections: BTreeMap<String, Place>,
}

impl Found {
    /// The text of the strongest source that has a valid value.
    pub(super) fn strongest(&self, index: usize) -> Option<&str> {
        self.entry(index).map(|(_, (text, _))| text.as_str())
    }

    pub(super) fn origin(&self, index: usize) -> Option<Origin> {
        self.entry(index).map(|((_, origin), _)| *origin)
    }

    pub(super) fn attempted(&self, index: usize) -> bool {
        self.attempted.contains(&index)
    }

    pub(super) fn place(&self, section: &str, key: &str) -> Option<Place> {
        let index = position(section, key)?;
        self.entry(index).map(|(_, (_, place))| place.clone())
    }

    /// The section's header, or the file as a whole.
    pub(super) fn section_place(&self, section: &str, sources: &Sources<'_>) -> Place {
        let nowhere = || Place::Nowhere { name: sources.file_name.to_owned() };
        self.sections.get(section).cloned().unwrap_or_else(nowhere)
    }

    fn entry(&self, index: usize) -> Option<(&(usize, Origin), &Written)> {
        self.values.range((index, Origin::File)..=(index, Origin::Flag)).next_back()
    }

    fn take(&mut self, index: usize, origin: Origin, text: String, place: Place, mistakes: &mut Vec<Mistake>) {
        self.attempted.push(index);
        let setting = &SETTINGS[index];
        match setting.kind.check(&text) {
            Ok(()) => {
                self.values.insert((index, origin), (text, place));
            }
            Err(message) => mistakes.push(Mistake { place, key: setting.name(), message }),
        }
    }
}

fn position(section: &str, key: &str) -> Option<usize> {
    SETTINGS.iter().position(|s| s.section == section && s.key == key)
}

pub(super) fn collect(sources: &Sources<'_>, mistakes: &mut Vec<Mistake>) -> Found {
    let mut found = Found::default();
    if let Some(text) = sources.toml {
        File { name: sources.file_name, text, found: &mut found, mistakes }.read();
    }
    from_environment(sources.env, &mut found, mistakes);
    from_flags(sources.flags, &mut found, mistakes);
    found
}

fn from_flags(flags: &BTreeMap<String, String>, found: &mut Found, mistakes: &mut Vec<Mistake>) {
    for (name, text) in flags {
        match name.split_once('.').and_then(|(section, key)| position(section, key)) {
            Some(index) => found.take(index, Origin::Flag, text.clone(), Place::Flag, mistakes),
            None => mistakes.push(Mistake { place: Place::Flag, key: name.clone(), message: unknown_setting(name) }),
        }
    }
}

/// Names of other `TOOLGATE_*` variables are left alone: Kubernetes puts `TOOLGATE_PORT` and
/// `TOOLGATE_SERVICE_HOST` into every pod beside a service called toolgate. Only a name that
/// begins like one of our sections is taken for a slip.
fn from_environment(env: &BTreeMap<String, String>, found: &mut Found, mistakes: &mut Vec<Mistake>) {
    for (variable, text) in env.range("TOOLGATE_".to_owned()..).take_while(|(name, _)| name.starts_with("TOOLGATE_")) {
        let place = Place::Environment { variable: variable.clone() };
        if let Some(index) = SETTINGS.iter().position(|s| s.variable() == *variable) {
            found.take(index, Origin::Environment, text.clone(), place, mistakes);
        } else if looks_like_a_setting(variable) {
            let names: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
            let message = match nearest(variable, names.iter().map(String::as_str)) {
                Some(name) => format!("unknown variable: did you mean {name}?"),
                None => "unknown variable: docs/configuration.md lists them all".to_owned(),
            };
            mistakes.push(Mistake { place, key: String::new(), message });
        }
    }
}

fn looks_like_a_setting(variable: &str) -> bool {
    let of_kubernetes = variable.contains("_SERVICE_") || variable.ends_with("_PORT") || variable.contains("_PORT_");
    let rest = &variable["TOOLGATE_".len()..];
    let section = rest.split('_').next().unwrap_or_default().to_ascii_lowercase();
    !of_kubernetes && SECTIONS.iter().any(|(name, _)| *name == section)
}

fn unknown_setting(written: &str) -> String {
    let names: Vec<String> = SETTINGS.iter().map(Setting::name).collect();
    let key = written.rsplit('.').next().unwrap_or(written);
    let by_name = nearest(written, names.iter().map(String::as_str));
    let elsewhere = || names.iter().map(String::as_str).find(|name| name.ends_with(&format!(".{key}")));
    let by_key = || {
        let close = nearest(key, SETTINGS.iter().map(|s| s.key))?;
        names.iter().map(String::as_str).find(|name| name.ends_with(&format!(".{close}")))
    };
    match by_name.or_else(elsewhere).or_else(by_key) {
        Some(name) => format!("unknown setting: did you mean {name}?"),
        None => "unknown setting: remove it; docs/configuration.md lists them all".to_owned(),
    }
}

struct File<'a> {
    name: &'a str,
    text: &'a str,
    found: &'a mut Found,
    mistakes: &'a mut Vec<Mistake>,
}

impl File<'_> {
    fn read(&mut self) {
        let text = self.text;
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let offset = error.span().map_or(0, |span| span.start);
            let message = format!("not TOML: {}", error.message().replace('\n', "; "));
            self.complain(offset, String::new(), message);
        }
        for (section, value) in table.get_ref() {
            self.section(section, value);
        }
    }

    fn section(&mut self, section: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let (name, offset) = (section.get_ref().as_ref(), section.span().start);
        if !SECTIONS.iter().any(|(known, _)| *known == name) {
            let message = match nearest(name, SECTIONS.iter().map(|(known, _)| *known)) {
                Some(close) => format!("unknown section: did you mean [{close}]?"),
                None if position_of_key(name).is_some() => unknown_setting(name),
                None => "unknown section: remove it; docs/configuration.md lists them all".to_owned(),
            };
            return self.complain(offset, name.to_owned(), message);
        }
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("expected a section: write [{name}] on a line of its own, its settings below it");
            return self.complain(offset, name.to_owned(), message);
        };
        self.found.sections.insert(name.to_owned(), Place::in_file(self.name, self.text, offset));
        for (key, value) in table {
            self.setting(name, key, value);
        }
    }

    fn setting(&mut self, section: &str, key: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let Some(index) = position(section, key.get_ref()) else {
            let written = format!("{section}.{}", key.get_ref());
            let message = unknown_setting(&written);
            return self.complain(key.span().start, written, message);
        };
        let kind = &SETTINGS[index].kind;
        match as_text(kind, value.get_ref()) {
            Some(text) => {
                let place = Place::in_file(self.name, self.text, value.span().start);
                self.found.take(index, Origin::File, text, place, self.mistakes);
            }
            None => {
                self.found.attempted.push(index);
                let message = format!("expected {}, found {}", kind.expectation(), value.get_ref().type_str());
                self.complain(value.span().start, SETTINGS[index].name(), message);
            }
        }
    }

    fn complain(&mut self, offset: usize, key: String, message: String) {
        self.mistakes.push(Mistake { place: Place::in_file(self.name, self.text, offset), key, message });
    }
}

fn position_of_key(key: &str) -> Option<usize> {
    SETTINGS.iter().position(|s| s.key == key)
}

/// The value as text, if TOML's type fits the kind.
fn as_text(kind: &Kind, value: &DeValue<'_>) -> Option<String> {
    match kind {
        Kind::Integer { .. } => {
            let integer = value.as_integer()?;
            // Beyond 128 bits the text says as much as is needed to call it out of range.
            let number = i128::from_str_radix(integer.as_str(), integer.radix());
            Some(number.map_or_else(|_| integer.as_str().to_owned(), |n| n.to_string()))
        }
        Kind::Boolean { .. } => value.as_bool().map(|b| b.to_string()),
        Kind::Properties { .. } => {
            let pair = |(name, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
                let value = value.get_ref();
                let integer = || value.as_integer().map(|integer| integer.as_str().to_owned());
                let text = value.as_str().map(str::to_owned).or_else(integer);
                text.or_else(|| value.as_bool().map(|b| b.to_string())).map(|text| format!("{}={text}", name.get_ref()))
            };
            value.as_table()?.iter().map(pair).collect::<Option<Vec<_>>>().map(|pairs| pairs.join(";"))
        }
        Kind::Name { .. }
        | Kind::Size { .. }
        | Kind::Duration { .. }
        | Kind::Path { .. }
        | Kind::Text { .. }
        | Kind::Listen { .. }
        | Kind::Choice { .. } => value.as_str().map(str::to_owned),
    }
}

impl Kind {
    /// What may be written, as a phrase: "an integer in 1..=10000".
    pub(super) fn expectation(&self) -> String {
        match self {
            Kind::Name { chars_max, .. } => format!("1 to {chars_max} letters, digits, dots, dashes or underscores"),
            Kind::Integer { min, max, .. } => format!("an integer in {min}..={max}"),
            Kind::Size { min, max, .. } => {
                format!("a size in {}..={} such as \"8MiB\"", size_text(*min), size_text(*max))
            }
            Kind::Duration { min, max, .. } => {
                let example = if (*min..=*max).contains(&30_000) { "30s" } else { "7d" };
                format!("a duration in {}..={} such as \"{example}\"", duration_text(*min), duration_text(*max))
            }
            Kind::Boolean { .. } => "true or false".to_owned(),
            Kind::Path { .. } => "a path".to_owned(),
            Kind::Text { chars_max, .. } => format!("text of up to {chars_max} characters"),
            Kind::Properties { .. } => "a table of properties (`name=value;name=value` outside the file)".to_owned(),
            Kind::Listen { .. } => "\"off\" or an IP address and port such as \"127.0.0.1:9464\"".to_owned(),
            Kind::Choice { options } => {
                let names: Vec<String> = options.iter().map(|(name, _)| format!("\"{name}\"")).collect();
                names.join(" or ")
            }
        }
    }

    /// Checks a text and says what is wrong with it.
    fn check(&self, text: &str) -> Result<(), String> {
        if self.apply(&mut Config::default(), text) {
            return Ok(());
        }
        let out_of_range = match self {
            Kind::Integer { .. } => text.parse::<i128>().is_ok(),
            Kind::Size { .. } => parse_size(text).is_some(),
            Kind::Duration { .. } => parse_duration(text).is_some(),
            Kind::Name { .. }
            | Kind::Boolean { .. }
            | Kind::Path { .. }
            | Kind::Text { .. }
            | Kind::Properties { .. }
            | Kind::Listen { .. }
            | Kind::Choice { .. } => false,
        };
        let written: String = text.chars().take(60).flat_map(char::escape_debug).collect();
        let expectation = self.expectation();
        if out_of_range {
            return Err(format!("{written} is out of range: write {expectation}"));
        }
        if let Kind::Choice { options } = self
            && let Some(close) = nearest(text, options.iter().map(|(name, _)| *name))
        {
            return Err(format!("\"{written}\" is not a choice: did you mean \"{close}\"? It can be {expectation}"));
        }
        Err(format!("\"{written}\" does not fit: write {expectation}"))
    }

    /// Sets a text that was checked before; one that was not leaves the configuration as it is.
    pub(super) fn apply_unchecked(&self, config: &mut Config, text: &str) {
        let applied = self.apply(config, text);
        debug_assert!(applied, "{text} was checked before");
    }

    fn apply(&self, config: &mut Config, text: &str) -> bool {
        match self {
            Kind::Name { chars_max, group, set } => {
                let value = is_name(text, *chars_max, *group).then(|| text.to_owned());
                put(config, value, *set)
            }
            Kind::Integer { min, max, set } => {
                put(config, text.parse().ok().filter(|n| (min..=max).contains(&n)), *set)
            }
            Kind::Size { min, max, set } => put(config, parse_size(text).filter(|n| (min..=max).contains(&n)), *set),
            Kind::Duration { min, max, set } => {
                let bounds = Duration::from_millis(*min)..=Duration::from_millis(*max);
                put(config, parse_duration(text).filter(|d| bounds.contains(d)), *set)
            }
            Kind::Boolean { set } => put(config, text.parse().ok(), *set),
            Kind::Path { set } => {
                let usable = !text.is_empty() && !text.contains('\0');
                put(config, usable.then(|| PathBuf::from(text)), *set)
            }
            Kind::Text { chars_max, set } => {
                let usable = text.chars().count() <= *chars_max && !text.chars().any(char::is_control);
                put(config, usable.then(|| text.to_owned()), *set)
            }
            Kind::Properties { set } => put(config, kafka::parse(text), *set),
            Kind::Listen { set } => {
                let off = (text == "off").then_some(None);
                put(config, off.or_else(|| text.parse::<SocketAddr>().ok().map(Some)), *set)
            }
            Kind::Choice { options } => {
                let chosen = options.iter().find(|(name, _)| *name == text);
                chosen.inspect(|(_, set)| set(config)).is_some()
            }
        }
    }
}

fn put<T>(config: &mut Config, value: Option<T>, set: fn(&mut Config, T)) -> bool {
    value.map(|v| set(config, v)).is_some()
}

fn is_name(text: &str, chars_max: usize, group: bool) -> bool {
    let rest = if group { text.replacen("{group}", "g", 1) } else { text.to_owned() };
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=chars_max).contains(&rest.len()) && rest.bytes().all(legal) && rest != "." && rest != ".."
}
