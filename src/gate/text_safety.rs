//! Text safety: characters that act on whoever reads them, whatever the words say.
//!
//! Free text stays untrusted after this check; it only can no longer move a cursor, reverse an
//! order, hide a sentence between two letters or break the next model call. Nothing is repaired:
//! text with such a character is refused.

/// How a declared free text field is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRule {
    /// Unicode scalar values, not bytes.
    pub max_chars: u32,
    /// Admit emoji sequences: U+200D between two emoji, and one U+FE0F after one.
    pub emoji: bool,
}

/// What a text holds that it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextHazard {
    Control,
    Bidi,
    Invisible,
    Tag,
    VariationSelector,
    LineSeparator,
    PrivateUse,
    Noncharacter,
    CombiningFlood,
    TooLong,
}

impl TextHazard {
    /// What the contract wants instead.
    pub const fn expected(self) -> &'static str {
        match self {
            TextHazard::Control => "no control characters",
            TextHazard::Bidi => "no characters that change the direction of text",
            TextHazard::Invisible => "no invisible characters",
            TextHazard::Tag => "no tag characters",
            TextHazard::VariationSelector => "no variation selectors",
            TextHazard::LineSeparator => "no line or paragraph separators",
            TextHazard::PrivateUse => "no private-use characters",
            TextHazard::Noncharacter => "no noncharacters",
            TextHazard::CombiningFlood => "at most four combining marks on a character",
            TextHazard::TooLong => "at most the declared number of characters",
        }
    }
}

use TextHazard::{Bidi, Control, Invisible, LineSeparator, Noncharacter, PrivateUse, Tag, VariationSelector};

/// Unsafe ranges in order, beyond ASCII's controls. The property each comes from is that of
/// Unicode 16: general categories Cc, Co, Zl and Zp, Bidi_Control, Default_Ignorable_Code_Point,
/// Noncharacter_Code_Point; and blanks that look like nothing (U+2800, fillers).
const UNSAFE: &[(char, char, TextHazard)] = &[
    ('\u{7f}', '\u{9f}', Control),                 // Cc
    ('\u{ad}', '\u{ad}', Invisible),               // soft hyphen, default ignorable
    ('\u{34f}', '\u{34f}', Invisible),             // combining grapheme joiner
    ('\u{61c}', '\u{61c}', Bidi),                  // Arabic letter mark, Bidi_Control
    ('\u{115f}', '\u{1160}', Invisible),           // Hangul fillers
    ('\u{17b4}', '\u{17b5}', Invisible),           // Khmer inherent vowels, default ignorable
    ('\u{180b}', '\u{180d}', VariationSelector),   // Mongolian free variation selectors
    ('\u{180e}', '\u{180e}', Invisible),           // Mongolian vowel separator
    ('\u{180f}', '\u{180f}', VariationSelector),   // Mongolian free variation selector four
    ('\u{200b}', '\u{200d}', Invisible),           // zero-width space, non-joiner, joiner
    ('\u{200e}', '\u{200f}', Bidi),                // direction marks
    ('\u{2028}', '\u{2029}', LineSeparator),       // Zl, Zp
    ('\u{202a}', '\u{202e}', Bidi),                // embeddings and overrides
    ('\u{2060}', '\u{2065}', Invisible),           // word joiner, invisible operators
    ('\u{2066}', '\u{2069}', Bidi),                // isolates
    ('\u{206a}', '\u{206f}', Invisible),           // deprecated format characters
    ('\u{2800}', '\u{2800}', Invisible),           // braille blank
    ('\u{3164}', '\u{3164}', Invisible),           // Hangul filler
    ('\u{e000}', '\u{f8ff}', PrivateUse),          // Co
    ('\u{fdd0}', '\u{fdef}', Noncharacter),        // Noncharacter_Code_Point
    ('\u{fe00}', '\u{fe0f}', VariationSelector),   // variation selectors 1 to 16
    ('\u{feff}', '\u{feff}', Invisible),           // zero-width no-break space
    ('\u{ffa0}', '\u{ffa0}', Invisible),           // half-width Hangul filler
    ('\u{fff0}', '\u{fff8}', Invisible),           // default ignorable, unassigned
    ('\u{fff9}', '\u{fffb}', Control),             // interlinear annotation
    ('\u{fffe}', '\u{ffff}', Noncharacter),        // Noncharacter_Code_Point
    ('\u{1bca0}', '\u{1bca3}', Invisible),         // shorthand format controls
    ('\u{1d173}', '\u{1d17a}', Invisible),         // musical format controls
    ('\u{e0000}', '\u{e007f}', Tag),               // tags
    ('\u{e0080}', '\u{e00ff}', Invisible),         // default ignorable, unassigned
    ('\u{e0100}', '\u{e01ef}', VariationSelector), // variation selectors 17 to 256
    ('\u{e01f0}', '\u{e0fff}', Invisible),         // default ignorable, unassigned
    ('\u{f0000}', '\u{10ffff}', PrivateUse),       // planes 15 and 16
];

const MARKS_MAX: u32 = 4;

/// Holds declared free text against its rule.
///
/// # Errors
/// The first hazard in the text, or that it is too long.
pub fn check(text: &str, rule: &TextRule) -> Result<(), TextHazard> {
    if text.len() > rule.max_chars as usize && text.chars().count() > rule.max_chars as usize {
        return Err(TextHazard::TooLong);
    }
    characters(text, rule.emoji)
}

/// Holds any other string against the table: patterns and enums rarely admit such characters,
/// but a pattern like `^[^ ]{1,20}$` does.
///
/// # Errors
/// The first hazard in the text.
pub fn check_characters(text: &str) -> Result<(), TextHazard> {
    characters(text, false)
}

/// Is this character unsafe in a command's whole output, where lines and tabs are the structure?
pub fn is_unsafe_in_output(c: char) -> bool {
    !matches!(c, '\n' | '\r' | '\t') && hazard(c).is_some()
}

fn characters(text: &str, emoji: bool) -> Result<(), TextHazard> {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Ok(());
    }
    let mut before = None;
    let mut marks = 0;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if let Some(found) = hazard(c) {
            let is_sequence = emoji && joins_emoji(before, c, rest.peek().copied());
            if !is_sequence {
                return Err(found);
            }
        }
        marks = if is_combining_mark(c) { marks + 1 } else { 0 };
        if marks > MARKS_MAX {
            return Err(TextHazard::CombiningFlood);
        }
        before = Some(c);
    }
    Ok(())
}

fn hazard(c: char) -> Option<TextHazard> {
    if c < ' ' {
        return Some(Control);
    }
    if c < '\u{7f}' {
        return None;
    }
    let beyond_plane = u32::from(c) & 0xfffe == 0xfffe;
    if beyond_plane {
        return Some(Noncharacter);
    }
    let at = UNSAFE.partition_point(|(_, last, _)| *last < c);
    UNSAFE.get(at).filter(|(first, _, _)| *first <= c).map(|(_, _, hazard)| *hazard)
}

/// The two characters that hold emoji sequences together, in the places where they do
/// (UTS #51, sections 1.4.4 and 2.3).
fn joins_emoji(before: Option<char>, c: char, after: Option<char>) -> bool {
    match c {
        '\u{fe0f}' => before.is_some_and(is_pictograph),
        '\u{200d}' => before.is_some_and(|b| is_pictograph(b) || b == '\u{fe0f}') && after.is_some_and(is_pictograph),
        _ => false,
    }
}

/// Blocks of pictographs and their modifiers: coarse, since it only says where a joiner may stand.
fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// Blocks of combining marks (general category Mn) that stack on one character in any script.
fn is_combining_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_case(text: &str, expect: Result<(), TextHazard>) {
        assert_eq!(check(text, &TextRule { max_chars: 40, emoji: false }), expect, "{text:?}");
    }

    #[test]
    fn the_table_is_sorted_and_does_not_overlap() {
        for pair in UNSAFE.windows(2) {
            assert!(pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0, "{:?}", pair[1].0);
        }
    }

    #[test]
    fn words_of_all_scripts_pass() {
        for text in ["", "Docs typo", "Größe", "日本語", "हिन्दी", "שלום", "e\u{301}", "naïve ☃", "Ship it 🚀"]
        {
            check_case(text, Ok(()));
        }
    }

    #[test]
    fn characters_that_act_are_refused() {
        for (text, hazard) in [
            ("a\0b", Control),
            ("line\nbreak", Control),
            ("tab\tstop", Control),
            ("\u{1b}]8;;https://evil.example\u{7}x", Control),
            ("a\u{7f}", Control),
            ("a\u{9b}31m", Control),
            ("a\u{202e}b", Bidi),
            ("a\u{2066}b", Bidi),
            ("del\u{200b}ete", Invisible),
            ("st\u{2060}aging", Invisible),
            ("\u{feff}a", Invisible),
            ("a\u{ad}b", Invisible),
            ("\u{3164}", Invisible),
            ("\u{2800}", Invisible),
            ("Docs typo\u{e006d}\u{e0065}", Tag),
            ("😀\u{e015d}", VariationSelector),
            ("❤\u{fe0f}", VariationSelector),
            ("a\u{2028}b", LineSeparator),
            ("\u{e000}", PrivateUse),
            ("\u{10fffd}", PrivateUse),
            ("\u{fffe}", Noncharacter),
            ("\u{1ffff}", Noncharacter),
            ("\u{fdd0}", Noncharacter),
            ("a\u{300}\u{300}\u{300}\u{300}\u{300}", TextHazard::CombiningFlood),
        ] {
            check_case(text, Err(hazard));
        }
    }

    #[test]
    fn length_is_counted_in_characters() {
        check_case(&"ü".repeat(40), Ok(()));
        check_case(&"ü".repeat(41), Err(TextHazard::TooLong));
    }

    #[test]
    fn emoji_sequences_pass_only_where_the_contract_allows_them() {
        let rule = TextRule { max_chars: 40, emoji: true };
        for text in ["Ship it 👨\u{200d}💻 ❤\u{fe0f}", "👩🏽\u{200d}🚀", "❤\u{fe0f}\u{200d}🔥"] {
            assert_eq!(check(text, &rule), Ok(()), "{text:?}");
            assert!(check(text, &TextRule { emoji: false, ..rule }).is_err());
        }
        for text in ["a\u{200d}b", "👨\u{200d}", "\u{fe0f}", "😀\u{fe0f}\u{fe0f}", "😀\u{e0067}", "a\u{fe0f}"] {
            assert!(check(text, &rule).is_err(), "{text:?}");
        }
    }

    #[test]
    fn output_may_have_lines_and_tabs() {
        assert!(!is_unsafe_in_output('\n') && !is_unsafe_in_output('\t') && !is_unsafe_in_output('\r'));
        assert!(is_unsafe_in_output('\u{1b}') && is_unsafe_in_output('\u{200b}') && is_unsafe_in_output('\0'));
    }
}
