//! Field and enum numbers never move: the golden file is the agreement with everybody's stored
//! records. `TOOLGATE_UPDATE_GOLDEN=1` writes it anew; a line that changes or goes is a break.

use std::{env, fs, path::Path};

#[test]
fn field_numbers_stand_still() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/wire_fields.txt");
    let actual = include_str!(concat!(env!("OUT_DIR"), "/wire_fields.txt"));
    if env::var_os("TOOLGATE_UPDATE_GOLDEN").is_some() {
        fs::write(&golden, actual).expect("writable golden file");
    }
    let expected = fs::read_to_string(&golden).expect("tests/golden/wire_fields.txt");
    for line in expected.lines() {
        assert!(actual.lines().any(|actual| actual == line), "moved or removed: {line}");
    }
    assert_eq!(actual, expected, "new fields: run again with TOOLGATE_UPDATE_GOLDEN=1");
}
