//! The report: for people, for programs, and for a pull request.
//!
//! Names in it come from files that somebody else may have written: in a terminal they are printable
//! ASCII, in Markdown they stand in code spans that they can't leave. Nothing of a response is in it.

use super::Comparison;
use crate::contract::diff::Class;
use crate::contract::diff::judge::{Example, Shift};
use crate::ops::args::DiffArgs;
use crate::ops::json::Object;
use crate::ops::out::{self, Paint};

const NAME_CHARS_MAX: usize = 300;

pub(super) fn plain(text: &str) -> String {
    out::escaped(text.as_bytes(), 4 * NAME_CHARS_MAX)
}

fn name(text: &str) -> String {
    out::escaped(text.as_bytes(), NAME_CHARS_MAX)
}

/// A code span: nothing inside is read as Markdown, HTML, a mention or the end of the span.
fn code(text: &str) -> String {
    format!("`{}`", name(text).replace('`', "'").replace('|', "\\x7c"))
}

pub(super) fn write(comparisons: &[Comparison], args: &DiffArgs) -> String {
    let mut shown: Vec<&Comparison> = comparisons.iter().filter(|comparison| is_news(comparison)).collect();
    shown.sort_by_key(|comparison| !comparison.breaks());
    if args.json {
        return comparisons.iter().map(|comparison| as_json(comparison, args.examples) + "\n").collect();
    }
    if args.markdown {
        return markdown(comparisons, &shown, args.examples);
    }
    let paint = Paint::stdout();
    let mut text: String = shown.iter().map(|comparison| for_people(comparison, args.examples, paint)).collect();
    let verdict = if comparisons.iter().any(Comparison::breaks) { paint.red("breaking") } else { paint.green("ok") };
    text.push_str(&format!("{verdict}: {}\n", summary(comparisons)));
    text
}

fn is_news(comparison: &Comparison) -> bool {
    let differs = !comparison.changes.is_empty() || !comparison.tally.differing.is_empty();
    differs || !comparison.tally.unjudged.is_empty() || comparison.old.is_none() || comparison.new.is_none()
}

fn summary(comparisons: &[Comparison]) -> String {
    let differ = comparisons.iter().filter(|comparison| is_news(comparison)).count();
    let breaking = comparisons.iter().filter(|comparison| comparison.breaks()).count();
    let judged: usize = comparisons.iter().map(|comparison| comparison.tally.judged).sum();
    format!(
        "{} compared, {differ} differ, {breaking} break without a new version; {judged} responses judged by both",
        comparisons.len()
    )
}

fn label(tool: &str, version: Option<u32>) -> String {
    version.map_or_else(|| "nothing".into(), |version| format!("{tool}@{version}"))
}

/// What it comes to, in a sentence.
fn verdict(comparison: &Comparison) -> &'static str {
    match (comparison.old, comparison.new) {
        (None, _) => "new",
        (_, None) if comparison.gone_in_use => {
            "gone while requests may still use it; set `status: retired` first, and remove it when nothing pins it"
        }
        (_, None) => "gone; it was retired",
        (Some(_), Some(_)) if comparison.breaks() => "needs a new version",
        (Some(_), Some(_)) if comparison.needs_version() => "has the new version that it needs",
        (Some(_), Some(_)) => "needs no new version",
    }
}

fn counts(comparison: &Comparison) -> String {
    let each = Shift::ALL.map(|shift| format!("{} {}", comparison.tally.count(shift), shift.name()));
    format!("{} responses judged by both: {}", comparison.tally.judged, each.join(", "))
}

fn examples(comparison: &Comparison, limit: usize) -> impl Iterator<Item = &Example> {
    Shift::ALL.into_iter().flat_map(move |shift| {
        comparison.tally.differing.iter().filter(move |example| example.shift == shift).take(limit)
    })
}

fn for_people(comparison: &Comparison, limit: usize, paint: Paint) -> String {
    let (old, new) = (label(&comparison.tool, comparison.old), label(&comparison.tool, comparison.new));
    let told = verdict(comparison);
    let told = if comparison.breaks() { paint.red(told) } else { paint.green(told) };
    let mut text = format!("{} {told}\n", paint.bold(&format!("{old} -> {new}:")));
    for change in &comparison.changes {
        let class = format!("{:10}", change.class.name());
        let class = if change.class.needs_version() { paint.yellow(&class) } else { paint.dim(&class) };
        text.push_str(&format!("  {class} {}  {} {}\n", change.id, change.file, name(&change.pointer)));
        text.push_str(&format!("             {}\n             do: {}\n", change.why, change.todo));
    }
    if comparison.tally.judged > 0 {
        text.push_str(&format!("  {}\n", counts(comparison)));
    }
    for example in examples(comparison, limit) {
        let (shift, at) = (example.shift.name(), name(&example.name));
        text.push_str(&format!("    {shift}: {at}: {} -> {}\n", name(&example.old), name(&example.new)));
    }
    for why in comparison.tally.unjudged.iter().take(limit) {
        text.push_str(&format!("    could not be judged: {}\n", name(why)));
    }
    text.push('\n');
    text
}

fn as_json(comparison: &Comparison, limit: usize) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(","));
    let mut object = Object::new();
    object.text("tool", &comparison.tool);
    for (side, version) in [("old", comparison.old), ("new", comparison.new)] {
        object.raw(side, &version.map_or("null".into(), |version| version.to_string()));
    }
    object.text("verdict", verdict(comparison));
    object.bool("needs_version", comparison.needs_version());
    object.bool("breaks", comparison.breaks());
    let changes = comparison.changes.iter().map(|change| {
        let mut object = Object::new();
        let texts = [("id", change.id.as_str()), ("class", change.class.name()), ("file", change.file)];
        texts.into_iter().for_each(|(name, text)| object.text(name, text));
        let texts = [("pointer", change.pointer.as_str()), ("why", change.why), ("todo", change.todo)];
        texts.into_iter().for_each(|(name, text)| object.text(name, text));
        object.end()
    });
    object.raw("changes", &list(changes.collect()));
    object.number("judged", comparison.tally.judged as u64);
    for shift in Shift::ALL {
        object.number(&shift.name().replace(' ', "_"), comparison.tally.count(shift) as u64);
    }
    let examples = examples(comparison, limit).map(|example| {
        let mut object = Object::new();
        object.text("name", &example.name);
        object.text("shift", example.shift.name());
        object.text("old", &example.old);
        object.text("new", &example.new);
        object.end()
    });
    object.raw("examples", &list(examples.collect()));
    object.texts("unjudged", comparison.tally.unjudged.iter().cloned());
    object.end()
}

fn markdown(all: &[Comparison], shown: &[&Comparison], limit: usize) -> String {
    let breaking = all.iter().any(Comparison::breaks);
    let title = if breaking { "Contract changes: a new version is needed" } else { "Contract changes" };
    let mut text = format!("## {title}\n\n{}.\n", summary(all));
    for comparison in shown {
        let (old, new) = (label(&comparison.tool, comparison.old), label(&comparison.tool, comparison.new));
        text.push_str(&format!("\n### {} to {}: {}\n", code(&old), code(&new), verdict(comparison)));
        for class in Class::ALL {
            let of_class: Vec<_> = comparison.changes.iter().filter(|change| change.class == class).collect();
            if of_class.is_empty() {
                continue;
            }
            text.push_str(&format!("\n{}:\n\n", heading(class)));
            for change in of_class {
                let at = format!("{} at {}", code(&change.id), code(&format!("{} {}", change.file, change.pointer)));
                text.push_str(&format!("- {at}: {}. To do: {}.\n", change.why, change.todo));
            }
        }
        if comparison.tally.judged > 0 {
            text.push_str(&format!("\n{}.\n\n", counts(comparison)));
        }
        for example in examples(comparison, limit) {
            let both = format!("{} to {}", code(&example.old), code(&example.new));
            text.push_str(&format!("- {}: {}: {both}\n", example.shift.name(), code(&example.name)));
        }
        for why in comparison.tally.unjudged.iter().take(limit) {
            text.push_str(&format!("- could not be judged: {}\n", code(why)));
        }
    }
    text
}

fn heading(class: Class) -> &'static str {
    match class {
        Class::Agent => "**Agents can tell** (needs a new version)",
        Class::Acceptance => "**Other responses are evidence** (needs a new version)",
        Class::Operation => "Operation (no verdict and no byte differs)",
        Class::Wording => "Wording",
    }
}
