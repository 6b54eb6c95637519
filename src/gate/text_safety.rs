//! Text safety: characters that act on whoever reads them, whatever the words say.
//!
//! Free text stays untrusted after this check; it only can no longer move a cursor, reverse an
//! order, hide a sentence between two letters or break the next model call. Nothing is repaired:
//! text with such a character is refused.
//!
//! A declared field is one line: line breaks and tabs are controls like any other. The joiners
//! U+200C and U+200D refuse too, although Persian and Hindi spell some words with them: between any
//! two letters they hide as well as they join.

mod tables;

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

/// Unsafe ranges in order, beyond ASCII's controls. Named beside each is the Unicode 16 property that
/// it comes from: general categories Cc, Cf, Co, Zl and Zp, Bidi_Control (UAX #9), Variation_Selector,
/// Default_Ignorable_Code_Point (DI), Noncharacter_Code_Point; and letters and symbols whose glyph is
/// blank. Cf characters with a glyph of their own, such as Arabic number signs, are text.
const UNSAFE: [(char, char, TextHazard); 36] = [
    ('\u{7f}', '\u{9f}', Control),                 // Cc
    ('\u{ad}', '\u{ad}', Invisible),               // DI: soft hyphen
    ('\u{34f}', '\u{34f}', Invisible),             // DI: combining grapheme joiner
    ('\u{61c}', '\u{61c}', Bidi),                  // Bidi_Control: Arabic letter mark
    ('\u{115f}', '\u{1160}', Invisible),           // DI: Hangul fillers
    ('\u{17b4}', '\u{17b5}', Invisible),           // DI: Khmer inherent vowels
    ('\u{180b}', '\u{180d}', VariationSelector),   // Variation_Selector: Mongolian
    ('\u{180e}', '\u{180e}', Invisible),           // DI: Mongolian vowel separator
    ('\u{180f}', '\u{180f}', VariationSelector),   // Variation_Selector: Mongolian
    ('\u{200b}', '\u{200d}', Invisible),           // DI: zero-width space, non-joiner, joiner
    ('\u{200e}', '\u{200f}', Bidi),                // Bidi_Control: marks
    ('\u{2028}', '\u{2029}', LineSeparator),       // Zl, Zp
    ('\u{202a}', '\u{202e}', Bidi),                // Bidi_Control: embeddings and overrides
    ('\u{2060}', '\u{2065}', Invisible),           // DI: word joiner, invisible operators
    ('\u{2066}', '\u{2069}', Bidi),                // Bidi_Control: isolates
    ('\u{206a}', '\u{206f}', Invisible),           // DI: deprecated format characters
    ('\u{2800}', '\u{2800}', Invisible),           // blank: braille pattern without dots
    ('\u{3164}', '\u{3164}', Invisible),           // DI: Hangul filler
    ('\u{e000}', '\u{f8ff}', PrivateUse),          // Co
    ('\u{fdd0}', '\u{fdef}', Noncharacter),        // Noncharacter_Code_Point
    ('\u{fe00}', '\u{fe0f}', VariationSelector),   // Variation_Selector: 1 to 16
    ('\u{feff}', '\u{feff}', Invisible),           // DI: zero-width no-break space
    ('\u{ffa0}', '\u{ffa0}', Invisible),           // DI: half-width Hangul filler
    ('\u{fff0}', '\u{fff8}', Invisible),           // DI: unassigned
    ('\u{fff9}', '\u{fffb}', Control),             // Cf: interlinear annotation
    ('\u{fffe}', '\u{ffff}', Noncharacter),        // Noncharacter_Code_Point; as at the end of each plane
    ('\u{13430}', '\u{1343f}', Control),           // Cf: hieroglyph format controls
    ('\u{16fe4}', '\u{16fe4}', Invisible),         // blank: Khitan small script filler
    ('\u{1bca0}', '\u{1bca3}', Invisible),         // DI: shorthand format controls
    ('\u{1d159}', '\u{1d159}', Invisible),         // blank: musical null notehead
    ('\u{1d173}', '\u{1d17a}', Invisible),         // DI: musical format controls
    ('\u{e0000}', '\u{e007f}', Tag),               // DI: tags
    ('\u{e0080}', '\u{e00ff}', Invisible),         // DI: unassigned
    ('\u{e0100}', '\u{e01ef}', VariationSelector), // Variation_Selector: 17 to 256
    ('\u{e01f0}', '\u{e0fff}', Invisible),         // DI: unassigned
    ('\u{f0000}', '\u{10ffff}', PrivateUse),       // Co: planes 15 and 16
];

/// Marks in a row on one character. Hebrew with vowels and cantillation has four; a flood has dozens,
/// and paints over the lines around it.
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
        marks = if tables::contains(&tables::MARKS, c) { marks + 1 } else { 0 };
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

/// The two characters that hold emoji sequences together, in the places where they do (UTS #51,
/// sections 1.4.4 and 2.3): U+FE0F once after a pictograph, U+200D between two, where the first may
/// have a skin tone. Keycaps, flags of tags and variation selectors elsewhere stay refused.
fn joins_emoji(before: Option<char>, c: char, after: Option<char>) -> bool {
    let is_pictograph = |c: char| tables::contains(&tables::PICTOGRAPHS, c);
    let ends_emoji = |c: char| is_pictograph(c) || matches!(c, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}');
    match c {
        '\u{fe0f}' => before.is_some_and(is_pictograph),
        '\u{200d}' => before.is_some_and(ends_emoji) && after.is_some_and(is_pictograph),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranges of a Unicode property, from the regex library's own tables.
    pub(super) fn ranges_of(class: &str) -> Vec<(u32, u32)> {
        use regex_syntax::hir::{Class, HirKind};
        let HirKind::Class(Class::Unicode(class)) = regex_syntax::parse(class).unwrap().into_kind() else {
            panic!("{class} is no class");
        };
        class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
    }

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

    /// Held against the properties themselves, over all of Unicode: nothing is forgotten, and
    /// nothing is refused without a reason.
    #[test]
    fn the_table_has_these_properties_and_no_others() {
        let listed = r"[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]";
        let unsafe_by_property = ranges_of(listed);
        let has_a_glyph = ranges_of(r"[\x{600}-\x{605}\x{6dd}\x{70f}\x{890}\x{891}\x{8e2}\x{110bd}\x{110cd}]");
        let blank = ['\u{2800}', '\u{16fe4}', '\u{1d159}'];
        for c in '\0'..=char::MAX {
            let property = tables::contains(&unsafe_by_property, c) && !tables::contains(&has_a_glyph, c);
            assert_eq!(hazard(c).is_some(), property || blank.contains(&c), "{:x}", u32::from(c));
        }
    }

    #[test]
    fn words_of_all_scripts_pass() {
        for text in [
            "",
            "Docs typo",
            "Größe",
            "日本語",
            "हिन्दी",
            "שלום",
            "e\u{301}",
            "naïve ☃",
            "Ship it 🚀",
            "שִׁ֣ב",
            "\u{627}\u{64e}\u{644}\u{651}\u{670}\u{647}",
            "བསྒྲུབས",
            "ที่นี่",
            "1\u{a0}000\u{202f}€",
            "全角\u{3000}",
        ] {
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
            ("\u{13430}", Control),
            ("\u{115f}", Invisible),
            ("\u{180e}", Invisible),
            ("\u{200d}", Invisible),
            ("a\u{200c}b", Invisible),
            ("ᠠ\u{180b}", VariationSelector),
            ("a\u{300}\u{300}\u{300}\u{300}\u{300}", TextHazard::CombiningFlood),
            ("ก\u{e47}\u{e47}\u{e47}\u{e47}\u{e47}", TextHazard::CombiningFlood),
            ("a\u{488}\u{20dd}\u{334}\u{64e}\u{94d}", TextHazard::CombiningFlood),
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
        for text in [
            "Ship it 👨\u{200d}💻 ❤\u{fe0f}",
            "👩🏽\u{200d}🚀",
            "❤\u{fe0f}\u{200d}🔥",
            "🏳\u{fe0f}\u{200d}🌈",
            "👨\u{200d}👩\u{200d}👧",
            "™\u{fe0f}",
        ] {
            assert_eq!(check(text, &rule), Ok(()), "{text:?}");
            assert!(check(text, &TextRule { emoji: false, ..rule }).is_err());
        }
        for text in [
            "a\u{200d}b",
            "👨\u{200d}",
            "\u{fe0f}",
            "😀\u{fe0f}\u{fe0f}",
            "😀\u{e0067}",
            "a\u{fe0f}",
            "👨\u{200d}a",
            "\u{200d}👨",
            "👨\u{200d}\u{200d}👩",
            "1\u{fe0f}\u{20e3}",
            "👨\u{fe0f}\u{200d}",
            "←\u{fe0f}",
            "🏴\u{e0067}\u{e0062}\u{e007f}",
            "😀\u{fe0e}",
            "👨\u{200b}👩",
            "\u{1f3fb}\u{fe0f}",
        ] {
            assert!(check(text, &rule).is_err(), "{text:?}");
        }
    }

    #[test]
    fn output_may_have_lines_and_tabs() {
        assert!(!is_unsafe_in_output('\n') && !is_unsafe_in_output('\t') && !is_unsafe_in_output('\r'));
        assert!(is_unsafe_in_output('\u{1b}') && is_unsafe_in_output('\u{200b}') && is_unsafe_in_output('\0'));
    }
}
