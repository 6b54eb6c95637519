//! Rules of the documents: what they say must be what the code says.

use std::fs;

use toolgate::{
    config,
    gate::reason::{Reason, Stage},
    telemetry::catalog::{Metric, Type},
};

use crate::{
    none,
    tree::{File, exists, file, files, root},
};

const HEADINGS: [&str; 4] = ["## What happened", "## What the agent saw", "## What to do", "## Example"];

fn page_name(reason: Reason) -> String {
    format!("{}.md", reason.code().to_lowercase().replace('_', "-"))
}

#[test]
fn each_reason_has_a_page_that_helps() {
    let mut problems = Vec::new();
    for reason in Reason::ALL {
        let path = format!("docs/reasons/{}", page_name(*reason));
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            problems.push(format!("{path}: missing"));
            continue;
        };
        if !text.starts_with(&format!("# {reason}\n")) {
            problems.push(format!("{path}:1: must open with `# {reason}`"));
        }
        if !text.contains(reason.summary()) {
            problems.push(format!("{path}: lacks the sentence of the code: {}", reason.summary()));
        }
        let place = Stage::ALL.iter().position(|s| *s == reason.stage()).unwrap() + 1;
        if !text.contains(&format!("Stage {place} of 10: {}", reason.stage())) {
            problems.push(format!("{path}: lacks `Stage {place} of 10: {}`", reason.stage()));
        }
        let found: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        if found != HEADINGS {
            problems.push(format!("{path}: has the headings {found:?}"));
        }
        if !(15..=60).contains(&text.lines().count()) {
            problems.push(format!("{path}: {} lines, 15 to 60 are useful", text.lines().count()));
        }
    }
    none(problems);
}

#[test]
fn each_page_of_a_reason_belongs_to_one_and_the_index_lists_them() {
    let index = file("docs/reasons/README.md").text;
    let pages: Vec<String> = Reason::ALL.iter().map(|r| page_name(*r)).collect();
    let mut problems = Vec::new();
    for file in files().iter().filter(|f| f.is_in("docs/reasons") && !f.ends_with("/README.md")) {
        if !pages.iter().any(|page| file.path.ends_with(&format!("/{page}"))) {
            problems.push(format!("{}: no reason has this page", file.path));
        }
    }
    for reason in Reason::ALL {
        let row = format!("| {} | [`{reason}`]({}) | {} |", reason.stage(), page_name(*reason), reason.summary());
        if !index.contains(&row) {
            problems.push(format!("docs/reasons/README.md: lacks the row {row}"));
        }
    }
    none(problems);
}

/// The second cell of the rows `| 1 | ingest | … |`.
fn stage_rows(file: &File) -> Vec<(String, String)> {
    let rows = file.text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        cells.next()?.parse::<usize>().ok()?;
        Some((cells.next()?.to_owned(), line.to_owned()))
    });
    rows.collect()
}

#[test]
fn the_stage_tables_equal_the_stages() {
    let stages: Vec<&str> = Stage::ALL.iter().map(|s| s.name()).collect();
    for path in ["README.md", "ARCHITECTURE.md"] {
        let rows = stage_rows(&file(path));
        assert_eq!(rows.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), stages, "{path}");
    }
}

#[test]
fn the_architecture_lists_each_reason_with_its_stage() {
    let rows = stage_rows(&file("ARCHITECTURE.md"));
    let mut problems = Vec::new();
    for reason in Reason::ALL {
        for (stage, row) in &rows {
            let listed = row.contains(&format!("`{reason}`"));
            if listed != (stage == reason.stage().name()) {
                let what = if listed { "does not refuse with" } else { "lacks" };
                problems.push(format!("ARCHITECTURE.md: the row of {stage} {what} {reason}"));
            }
        }
    }
    none(problems);
}

fn is_document(file: &File) -> bool {
    let kind = [".md", ".json", ".yml", ".yaml", ".toml", ".txt"].iter().any(|suffix| file.ends_with(suffix));
    let place = ["docs", "deploy", "helm"].iter().any(|folder| file.is_in(folder)) || !file.path.contains('/');
    kind && place && file.path != "Cargo.lock"
}

/// Runs of letters, digits and underscores that begin with `prefix`.
fn names<'t>(line: &'t str, prefix: &'t str) -> impl Iterator<Item = &'t str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(move |word| word.starts_with(prefix))
}

fn is_series_of(metric: Metric, name: &str) -> bool {
    let histogram = ["_bucket", "_sum", "_count"].iter().any(|s| name.strip_suffix(s) == Some(metric.name()));
    name == metric.name() || (histogram && metric.kind() == Type::Histogram)
}

#[test]
fn each_metric_in_a_document_exists() {
    let mut problems = Vec::new();
    for file in files().iter().filter(|f| is_document(f)) {
        for (number, line) in file.lines() {
            for name in names(line, "toolgate_").filter(|name| *name != "toolgate_") {
                if !Metric::ALL.iter().any(|metric| is_series_of(*metric, name)) {
                    problems.push(format!("{}:{number}: {name} is not in telemetry/catalog.rs", file.path));
                }
            }
        }
    }
    none(problems);
}

/// Once there are dashboards and alerts, a metric that none of them shows is one that nobody needs.
#[test]
fn each_metric_is_shown_somewhere() {
    let deployed: Vec<File> = files().into_iter().filter(|f| f.is_in("deploy") || f.is_in("helm")).collect();
    let is_shown = |metric: &Metric| {
        let mut lines = deployed.iter().flat_map(File::lines);
        lines.any(|(_, line)| names(line, "toolgate_").any(|name| is_series_of(*metric, name)))
    };
    let unseen = Metric::ALL.iter().filter(|metric| !deployed.is_empty() && !is_shown(metric));
    none(unseen.map(|m| format!("{} is in no dashboard or alert", m.name())).collect());
}

#[test]
fn the_configuration_page_is_the_table_of_settings() {
    let page = config::documentation();
    let path = root().join("docs/configuration.md");
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/configuration.md is out of date: TOOLGATE_BLESS=1 cargo test --test tidy");
}

#[test]
fn each_setting_in_a_document_exists() {
    let page = config::documentation();
    let sections: Vec<&str> = page.lines().filter_map(|l| l.strip_prefix("## [")?.strip_suffix(']')).collect();
    assert!(sections.contains(&"worker"));
    let known = |section: &str, key: &str| {
        page.contains(&format!("`TOOLGATE_{}_{}`", section.to_uppercase(), key.to_uppercase()))
    };
    let mut problems = Vec::new();
    for file in files().iter().filter(|f| is_document(f) && f.ends_with(".md")) {
        for (number, line) in file.lines() {
            for span in line.split('`').skip(1).step_by(2) {
                let name = span.split(" = ").next().unwrap_or_default();
                if let Some((section, key)) = name.split_once('.')
                    && sections.contains(&section)
                    && !known(section, key)
                {
                    problems.push(format!("{}:{number}: {name} is not a setting", file.path));
                }
            }
        }
    }
    none(problems);
}

/// Links of a page, outside of code: `[text](target)`.
fn links(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in file.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(targets.map(|target| (number, target.to_owned())));
    }
    found
}

/// The anchor that a heading gets: lower case, spaces as dashes, other signs dropped.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        title.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn each_link_leads_somewhere() {
    let mut problems = Vec::new();
    for page in files().iter().filter(|f| f.ends_with(".md")) {
        for (number, link) in links(page) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            if !path.is_empty() && !exists(&page.path, path) {
                problems.push(format!("{}:{number}: {link} does not exist", page.path));
                continue;
            }
            let folder = page.path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
            let target = if path.is_empty() { page.text.clone() } else { read_if_text(&format!("{folder}{path}")) };
            if !anchor.is_empty() && !anchors(&target).contains(&anchor.to_owned()) {
                problems.push(format!("{}:{number}: {link} has no such heading", page.path));
            }
        }
    }
    none(problems);
}

fn read_if_text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}
