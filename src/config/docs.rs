//! `docs/configuration.md`, written from the table of settings.

use std::fmt::Write;

use super::settings::{Fallback, SECTIONS, SETTINGS, Setting};

const PREAMBLE: &str = "# Configuration

<!-- Written from src/config/settings.rs; `TOOLGATE_BLESS=1 cargo test --test tidy` writes it anew. -->

`toolgate` reads `toolgate.toml`, environment variables and flags. A value is taken from the first of
**flag, environment, file, default** that has one. All mistakes are reported together, each with its line and
column, before a file, port or log is opened (exit code 78):

```text
toolgate.toml:3:21: worker.batch_records_max: 0 is out of range: write an integer in 1..=10000
toolgate.toml:4:1: worker.pol_wait: unknown setting: did you mean worker.poll_wait?
```

A duration is a whole number with `ms`, `s`, `m`, `h` or `d`; a size is one with `B`, `KiB`, `MiB` or `GiB`. A unit is
always required. The environment name of a setting is `TOOLGATE_<SECTION>_<KEY>`. The file holds no secrets: they are
files of their own in `contracts.secrets_dir`.

A file that says only what it must:

```toml
[log]
path = \"toolgate.db\"
```
";

/// The whole page. A test compares it with the file in the repository.
pub fn documentation() -> String {
    let mut page = String::from(PREAMBLE);
    for (section, about) in SECTIONS {
        // Writing to a String cannot fail.
        let _ = write!(
            page,
            "\n## [{section}]\n\n{about}\n\n| key | environment | may be | default | |\n|---|---|---|---|---|\n"
        );
        for setting in SETTINGS.iter().filter(|s| s.section == *section) {
            page.push_str(&row(setting));
        }
    }
    page
}

fn row(setting: &Setting) -> String {
    let default = match setting.default {
        Fallback::Text(text) => format!("`{text}`"),
        Fallback::Required(_) => "(required)".to_owned(),
    };
    let expectation = setting.kind.expectation();
    format!("| `{}` | `{}` | {expectation} | {default} | {} |\n", setting.key, setting.variable(), setting.doc)
}
