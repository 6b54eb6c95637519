//! Every case of `tests/cases` is a test of its own name: `cargo test --test corpus 086` runs one.

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::Command;

fn main() {
    let output = Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["vet", "--cases", "tests/cases", "--json"])
        .output()
        .expect("the program runs");
    let stdout = String::from_utf8(output.stdout).expect("JSON lines are UTF-8");
    let lines: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).expect("each line is a JSON object")).collect();
    let (summary, cases) = lines.split_last().expect("a summary comes last");
    let all = summary["agree"].as_u64() == Some(cases.len() as u64);
    let code = output.status.code();
    let mut trials: Vec<Trial> = cases.iter().map(trial).collect();
    trials.push(Trial::test("all_cases_agree_and_the_exit_code_says_so", move || {
        if all && code == Some(0) { Ok(()) } else { Err(Failed::from("not all cases agree")) }
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn trial(case: &serde_json::Value) -> Trial {
    let file = case["file"].as_str().unwrap_or_default();
    let name = file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_owned();
    let difference = case["difference"].as_str().map(str::to_owned);
    Trial::test(name, move || difference.map_or(Ok(()), |difference| Err(Failed::from(difference))))
}
