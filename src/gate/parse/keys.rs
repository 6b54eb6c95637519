//! Duplicate names: one object never has two members of the same name, compared after unescaping.
//!
//! Small objects compare each new name with the earlier ones by a cheap hash; the names of large
//! ones are sorted when the object closes. The hash is public, and an adversary may choose names
//! that collide: that costs comparisons within a small object, or ties in a sort, and never more
//! than n log n of them.

/// Up to this many members, a new name is compared with all earlier ones.
pub(super) const SMALL: usize = 16;

/// A name of an object that is still open: its hash, and its entry on the tape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub hash: u32,
    pub entry: u32,
}

/// Mixes length, first and last bytes: enough to tell the names of one object apart cheaply.
#[inline]
pub(super) fn hash(name: &[u8]) -> u32 {
    let (head, tail) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => (short(name), 0),
    };
    let mixed = (head ^ tail.rotate_left(23) ^ (name.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed >> 32) as u32
}

fn short(name: &[u8]) -> u64 {
    name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The entry of a name that stands twice among `keys`, which are sorted by this.
pub(super) fn find_duplicate<'n>(keys: &mut [Key], name_of: impl Fn(u32) -> &'n [u8]) -> Option<u32> {
    keys.sort_unstable_by(|a, b| a.hash.cmp(&b.hash).then_with(|| name_of(a.entry).cmp(name_of(b.entry))));
    let same = |pair: &&[Key]| pair[0].hash == pair[1].hash && name_of(pair[0].entry) == name_of(pair[1].entry);
    keys.windows(2).find(same).map(|pair| pair[0].entry.max(pair[1].entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_equal_hashes_and_near_ones_rarely() {
        for name in ["", "a", "state", "observed_at", "a_rather_long_member_name"] {
            assert_eq!(hash(name.as_bytes()), hash(name.as_bytes()));
        }
        assert_ne!(hash(b"a"), hash(b"b"));
        assert_ne!(hash(b"ab"), hash(b"ba"));
        assert_ne!(hash(b"member_1"), hash(b"member_2"));
    }

    #[test]
    fn a_duplicate_is_found_among_many() {
        let names: Vec<String> = (0..100).map(|i| format!("name_{}", i % 99)).collect();
        let mut keys: Vec<Key> =
            names.iter().enumerate().map(|(i, name)| Key { hash: hash(name.as_bytes()), entry: i as u32 }).collect();
        assert_eq!(find_duplicate(&mut keys, |entry| names[entry as usize].as_bytes()), Some(99));
    }

    /// Names with one hash in an order that no sort finds easy.
    #[test]
    fn names_that_collide_cost_n_log_n_comparisons() {
        for count in [100usize, 1000, 10_000] {
            let names: Vec<String> = (0..count).map(|i| format!("aaaaaaaa{:06}bbbbbbbb", i * 7919 % count)).collect();
            let mut keys: Vec<Key> =
                names.iter().zip(0..).map(|(name, entry)| Key { hash: hash(name.as_bytes()), entry }).collect();
            assert!(keys.iter().all(|key| key.hash == keys[0].hash), "the hash has changed: choose other names");
            let read = std::cell::Cell::new(0);
            let name_of = |entry: u32| {
                read.set(read.get() + 1);
                names[entry as usize].as_bytes()
            };
            assert_eq!(find_duplicate(&mut keys, name_of), None);
            // Two names are read for each comparison, and again for each pair of neighbours.
            let bound = 4 * count * count.ilog2() as usize;
            assert!((2 * count..=bound).contains(&read.get()), "{count} names cost {} reads", read.get());
        }
    }
}
