//! Mutants of real modules: bit flips, length words, truncations, splices. Deterministic in their seed.

/// A small generator of pseudo-random numbers (xorshift64*), so that every mutant can be made again from its number.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with its own sequence per seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.number() % bound as u64) as usize }
    }
}

/// Values that lengths, offsets and ordinals break on.
const WORDS: [u32; 10] = [0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFC, 0xFFFF_FFFF];

/// Changes the bytes in one to four places. `donor` is another module, which splices take bytes from.
pub fn mutate(bytes: &mut Vec<u8>, donor: &[u8], random: &mut Random) {
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        match random.below(16) {
            0..=6 => bytes[at] ^= 1 << random.below(8),
            7..=8 => bytes[at] = random.number() as u8,
            9..=12 => {
                let word = WORDS[random.below(WORDS.len())].wrapping_add(random.below(3) as u32);
                let at = at & !3;
                if let Some(place) = bytes.get_mut(at..at + 4) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
            }
            13 => bytes.truncate(at),
            14 => {
                let length = random.below(64).min(bytes.len() - at).min(donor.len());
                let from = random.below(donor.len() - length + 1);
                bytes[at..at + length].copy_from_slice(&donor[from..from + length]);
            }
            _ => {
                let length = random.below(64).min(bytes.len() - at);
                let to = random.below(bytes.len() - length + 1);
                bytes.copy_within(at..at + length, to);
            }
        }
    }
}
