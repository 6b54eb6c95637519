//! Log lines on standard error: text for people, JSON for machines.

use std::io::IsTerminal;

use thiserror::Error;
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogLevel};

/// Logging was set up before in this process.
#[derive(Debug, Error)]
#[error("logging is already set up")]
pub struct AlreadySetUp;

/// What the process's environment says about colours. Passed in, because only `main` reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Colours where standard error is a terminal.
    Auto,
    Never,
}

impl Colour {
    /// `NO_COLOR` counts when it is set and not empty (no-color.org).
    pub fn from_no_color(value: Option<&str>) -> Self {
        if value.is_some_and(|text| !text.is_empty()) { Colour::Never } else { Colour::Auto }
    }
}

/// Sets up logging for the whole process. Standard output stays free for data.
///
/// The level holds for this program; libraries speak from `warn` on, because their lines below
/// that are not written with hostile input in mind.
pub fn init(format: LogFormat, level: LogLevel, colour: Colour) -> Result<(), AlreadySetUp> {
    let filter = EnvFilter::new(filter_text(level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let outcome = match format {
        LogFormat::Json => builder.json().flatten_event(true).with_current_span(false).try_init(),
        LogFormat::Text => {
            let ansi = colour == Colour::Auto && std::io::stderr().is_terminal();
            builder.with_ansi(ansi).with_target(false).try_init()
        }
    };
    outcome.map_err(|_| AlreadySetUp)
}

fn filter_text(level: LogLevel) -> String {
    let of_libraries = match level {
        LogLevel::Error => LogLevel::Error,
        LogLevel::Warn | LogLevel::Info | LogLevel::Debug | LogLevel::Trace => LogLevel::Warn,
    };
    format!("{},toolgate={}", of_libraries.name(), level.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_stay_quiet_whatever_our_level() {
        assert_eq!(filter_text(LogLevel::Trace), "warn,toolgate=trace");
        assert_eq!(filter_text(LogLevel::Error), "error,toolgate=error");
    }

    #[test]
    fn no_color_counts_only_when_it_says_something() {
        assert_eq!(Colour::from_no_color(None), Colour::Auto);
        assert_eq!(Colour::from_no_color(Some("")), Colour::Auto);
        assert_eq!(Colour::from_no_color(Some("1")), Colour::Never);
    }
}
