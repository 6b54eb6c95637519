//! The walkthrough of `docs/contracts.md` is true: every file in it is written, every command run, every output compared.

use crate::examples::root;
use crate::support::{command, finished, write};
use std::path::Path;

const PAGE: &str = "docs/contracts.md";
const START: &str = "## From an example to a proven contract";

/// What the program says to one line of a `console` block.
fn said(dir: &Path, line: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_toolgate")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let words: Vec<&str> = line.split(' ').collect();
    let run = if words[0] == "toolgate" {
        finished(command(dir).args(&words[1..]).output().unwrap())
    } else {
        finished(
            std::process::Command::new("sh").args(["-c", line]).current_dir(dir).env("PATH", path).output().unwrap(),
        )
    };
    assert!(matches!(run.code, 0 | 3), "{line}: {}{}", run.stdout, run.stderr);
    format!("{}{}", run.stderr, run.stdout)
}

/// The page with the outputs that its commands have now.
fn played(page: &str) -> (String, usize) {
    let dir = tempfile::tempdir().unwrap();
    let (mut out, mut file, mut commands) = (String::new(), None, 0);
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if let Some(name) = line.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->")) {
            file = Some(name);
        }
        if !line.starts_with("```") || (file.is_none() && line != "```console") {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match file.take() {
            Some(name) => {
                write(dir.path(), name, &format!("{}\n", block.join("\n")));
                block.iter().for_each(|line| out.push_str(&format!("{line}\n")));
            }
            None => {
                for command in block.iter().filter_map(|line| line.strip_prefix("$ ")) {
                    commands += 1;
                    out.push_str(&format!("$ {command}\n{}", said(dir.path(), command)));
                }
            }
        }
        out.push_str("```\n");
    }
    (out, commands)
}

/// `TOOLGATE_BLESS=1` writes the outputs anew; review the difference.
#[test]
fn every_command_of_the_walkthrough_says_what_the_page_says() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let (reference, walkthrough) = page.split_at(page.find(START).unwrap());
    let (now, commands) = played(walkthrough);
    assert!(commands >= 5);
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        std::fs::write(root().join(PAGE), format!("{reference}{now}")).unwrap();
        return;
    }
    assert_eq!(now, walkthrough, "{PAGE} tells another story: TOOLGATE_BLESS=1 writes it anew");
}
