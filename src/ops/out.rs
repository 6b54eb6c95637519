//! Standard output is data. A reader that goes away (`| head`) ends the program quietly.

use anyhow::Result;
use std::io::{self, IsTerminal, Write};

/// Writes a line to standard output.
///
/// # Errors
/// Output could not be written.
pub fn line(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.write_all(b"\n")?;
    Ok(())
}

/// Writes text as it is.
///
/// # Errors
/// Output could not be written.
pub fn text(text: &str) -> Result<()> {
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// Was this error a reader that went away?
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe))
}

/// Colours, where a person looks and has not said no (<https://no-color.org>).
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    pub fn stdout() -> Paint {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Paint { on: !refused && io::stdout().is_terminal() }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }
}

/// Makes bytes from outside safe to print: everything but printable ASCII becomes an escape, so
/// that no response can move a cursor, change a title or hide text.
pub fn escaped(bytes: &[u8], limit: usize) -> String {
    let shown = bytes.iter().take(limit).flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from);
    let mut text: String = shown.collect::<String>().replace("\\\"", "\"").replace("\\'", "'");
    if bytes.len() > limit {
        text.push_str(&format!("... ({} bytes)", bytes.len()));
    }
    text
}

/// The last gate before a terminal, for a line that may hold what others wrote to a topic of ours: what is neither
/// printable ASCII nor a space becomes an escape that JSON knows as well. White space between members of JSON becomes a space.
pub fn harmless(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    for char in line.chars() {
        match char {
            '\t' | '\n' | '\r' => safe.push(' '),
            ' '..='~' => safe.push(char),
            other => other.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_can_steer_a_terminal_and_json_means_the_same() {
        assert_eq!(harmless("{\"a\":\n\"\u{e9}\u{202e}\u{1f600}\"}"), r#"{"a": "\u00e9\u202e\ud83d\ude00"}"#);
        assert_eq!(harmless("\u{1b}[2J\u{9b}31m\u{7f}"), r"\u001b[2J\u009b31m\u007f");
    }

    #[test]
    fn bytes_from_outside_cannot_steer_a_terminal() {
        assert_eq!(escaped(b"{\"a\":\"\x1b]0;x\x07\"}\n", 100), "{\"a\":\"\\x1b]0;x\\x07\"}\\n");
        assert_eq!(escaped("\u{202e}x".as_bytes(), 100), "\\xe2\\x80\\xaex");
        assert_eq!(escaped(b"abcdef", 3), "abc... (6 bytes)");
    }
}
