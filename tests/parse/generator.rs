//! Generated documents: valid ones, and ones with a few bytes changed.

/// A small generator whose every document can be made again from its seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const NAMES: [&str; 12] = [
    "a",
    "b",
    "state",
    "\\u0061",
    "id",
    "",
    "observed_at",
    "é",
    "\\u00e9",
    "a\\/b",
    "😀",
    "long_member_name_of_the_vendor",
];
const STRINGS: [&str; 12] = [
    "",
    "x",
    "plain text",
    "\\n",
    "\\ud83d\\ude00",
    "\\\"",
    "ü",
    "日本",
    "\\u0000",
    "tab\\t",
    "\\\\",
    "a longer string, as responses have them",
];
const NUMBERS: [&str; 14] = [
    "0",
    "-0",
    "1",
    "-17",
    "3.25",
    "1e3",
    "1E-7",
    "0.1",
    "123456789",
    "18446744073709551615",
    "18446744073709551617",
    "-9223372036854775808",
    "1.7976931348623157e308",
    "338888888888838888888388888888388888888",
];
const SPACES: [&str; 6] = ["", "", "", " ", "\n", "\t "];
const BYTES: &[u8] = b"{}[]\",:\\ \n0123456789-+.eEtrufalsn\x00\x1f\x7f\x80\xc3\xed\xff";

/// A document, about one in two of them with mutations.
pub(crate) fn document(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut text = String::new();
    value(&mut random, &mut text, 0);
    text.push_str(random.pick(&SPACES));
    let mut bytes = text.into_bytes();
    if random.below(2) == 0 {
        for _ in 0..=random.below(3) {
            mutate(&mut random, &mut bytes);
        }
    }
    bytes
}

fn value(random: &mut Random, out: &mut String, depth: usize) {
    out.push_str(random.pick(&SPACES));
    let kinds = if depth > 5 { 5 } else { 8 };
    match random.below(kinds) {
        0 => out.push_str(random.pick(&["null", "true", "false"])),
        1 | 2 => number(random, out),
        3 | 4 => string(random, out),
        5 => {
            out.push('[');
            for i in 0..random.below(5) {
                if i > 0 {
                    out.push(',');
                }
                value(random, out, depth + 1);
            }
            out.push(']');
        }
        _ => object(random, out, depth),
    }
}

fn object(random: &mut Random, out: &mut String, depth: usize) {
    out.push('{');
    let wide = random.below(40) == 0;
    let count = if wide { 10 + random.below(30) } else { random.below(5) };
    // Every other wide object has one name twice: only the sort at its end finds that.
    let twice = wide && random.below(2) == 0;
    let mut first = None;
    for i in 0..count {
        if i > 0 {
            out.push(',');
        }
        out.push_str(random.pick(&SPACES));
        // Mostly distinct names, now and then two spellings of one.
        let name = if twice && i + 1 == count {
            first.clone().unwrap_or_default()
        } else if wide || random.below(3) > 0 {
            format!("m{}", random.below(1000) + i * 1000)
        } else {
            random.pick(&NAMES).to_owned()
        };
        out.push_str(&format!("\"{name}\""));
        first.get_or_insert(name);
        out.push_str(random.pick(&SPACES));
        out.push(':');
        value(random, out, depth + 1);
    }
    out.push('}');
}

fn number(random: &mut Random, out: &mut String) {
    if random.below(3) == 0 {
        // A double by its bits, written in its shortest form.
        let bits = (random.below(usize::MAX) as u64) << 20 ^ random.below(usize::MAX) as u64;
        let double = f64::from_bits(bits);
        if double.is_finite() {
            return out.push_str(&format!("{double:e}"));
        }
    }
    out.push_str(random.pick(&NUMBERS));
}

fn string(random: &mut Random, out: &mut String) {
    out.push('"');
    for _ in 0..random.below(4) {
        out.push_str(random.pick(&STRINGS));
    }
    out.push('"');
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len() + 1);
    let byte = BYTES[random.below(BYTES.len())];
    match random.below(5) {
        0 => bytes.insert(at, byte),
        1 if at < bytes.len() => drop(bytes.remove(at)),
        2 => bytes.truncate(at),
        3 if at < bytes.len() => {
            let piece: Vec<u8> = bytes[at..(at + random.below(6)).min(bytes.len())].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, piece);
        }
        _ if at < bytes.len() => bytes[at] = byte,
        _ => bytes.push(byte),
    }
}
