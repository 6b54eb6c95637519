//! The partitioner of Kafka's Java client, so that every producer puts a request id on the same partition.
//!
//! Source: `org.apache.kafka.common.utils.Utils.murmur2` and `BuiltInPartitioner.partitionForKey`.

use super::record::Partition;

const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;
const SHIFT: u32 = 24;

/// Kafka's murmur2, bit for bit as the Java client computes it.
#[must_use]
pub fn murmur2(data: &[u8]) -> i32 {
    // Java mixes in the length as a 32-bit int; keys are bounded far below that.
    let mut hash = SEED ^ (data.len() as u32);
    let words = data.chunks_exact(4);
    let tail = words.remainder();
    for word in words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(MULTIPLIER);
        k ^= k >> SHIFT;
        hash = hash.wrapping_mul(MULTIPLIER) ^ k.wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        for (i, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * i);
        }
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    (hash ^ (hash >> 15)) as i32
}

/// The partition of a key among `partitions` (at least 1; less counts as 1): `toPositive(murmur2(key)) % n`.
///
/// `toPositive` clears the sign bit; it is not the absolute value.
#[must_use]
pub fn partition_of(key: &[u8], partitions: i32) -> Partition {
    Partition((murmur2(key) & 0x7fff_ffff) % partitions.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Kafka's own `UtilsTest.testMurmur2`.
    #[test]
    fn agrees_with_the_vectors_of_kafka() {
        let vectors: [(&[u8], i32); 7] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
            (b"", 275_646_681),
        ];
        for (key, expected) in vectors {
            assert_eq!(murmur2(key), expected, "{}", String::from_utf8_lossy(key));
        }
    }

    #[test]
    fn clears_the_sign_rather_than_negating() {
        // -973_932_308 & 0x7fff_ffff = 1_173_551_340
        assert_eq!(partition_of(b"21", 7), Partition(1_173_551_340 % 7));
        assert_eq!(partition_of(b"anything", 1), Partition(0));
        assert_eq!(partition_of(b"anything", 0), Partition(0));
    }
}
