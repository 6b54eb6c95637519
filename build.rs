//! Compiles `proto/` without a `protoc`, and lists every field number for the test that holds
//! them still.

use std::path::{Path, PathBuf};
use std::{env, error::Error, fs};

const FILES: [&str; 7] = [
    "toolgate/v1/audit.proto",
    "toolgate/v1/binding.proto",
    "toolgate/v1/common.proto",
    "toolgate/v1/quarantine.proto",
    "toolgate/v1/request.proto",
    "toolgate/v1/response.proto",
    "toolgate/v1/retry.proto",
];

/// Messages whose derived `Debug` would print text of a response; `wire/redact.rs` has theirs.
const HOSTILE: [&str; 4] = ["ToolResponse", "QuarantineRecord", "PlainPayload", "Header"];

/// Lists the pages of `docs/reasons/` for `toolgate explain`.
fn reason_pages(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=docs/reasons");
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("docs/reasons");
    let mut pages: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    // The texts themselves, not their paths: a checkout may move with its target folder.
    let mut rows = Vec::new();
    for page in &pages {
        let name = page.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        rows.push(format!("({name:?}, {:?})", fs::read_to_string(page)?));
    }
    let table = format!("const REASON_PAGES: &[(&str, &str)] = &[{}];", rows.join(", "));
    fs::write(out.join("reason_pages.rs"), table)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    reason_pages(&out)?;
    let set = protox::compile(FILES, ["proto"])?;

    let mut lines = Vec::new();
    for file in &set.file {
        for message in &file.message_type {
            for field in &message.field {
                let kind = format!("{:?} {:?}", field.label(), field.r#type()).to_lowercase();
                let of = field.type_name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
                lines.push(format!("{}.{} = {} {kind}{of}", message.name(), field.name(), field.number()));
            }
        }
        for names in &file.enum_type {
            for value in &names.value {
                lines.push(format!("{}.{} = {}", names.name(), value.name(), value.number()));
            }
        }
    }
    fs::write(out.join("wire_fields.txt"), lines.join("\n") + "\n")?;

    let mut config = prost_build::Config::new();
    config.out_dir(&out).skip_debug(HOSTILE.map(|name| format!(".toolgate.v1.{name}")));
    config.compile_fds(set)?;
    Ok(())
}
