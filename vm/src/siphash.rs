//! SipHash-2-4 with the key bytes 00 to 0F, as `buffer.hash` computes it.

use crate::{Meter, Result, bulk};
use vmfb_memory::Span;

/// Hash of a range of bytes.
pub(crate) fn hash(meter: &Meter, span: &Span, offset: usize, length: usize) -> Result<u64> {
    span.check(offset, length)?;
    let mut state = State::new(0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908);
    let words = length / 8;
    bulk::in_pieces(meter, words * 8, |start, part| {
        for at in (start..start + part).step_by(8) {
            state.absorb(span.load_u64(offset + at).unwrap_or_default());
        }
        Ok(())
    })?;
    let mut last = [0; 8];
    let rest = length % 8;
    if let Some(tail) = last.get_mut(..rest) {
        span.read(offset + words * 8, tail)?;
    }
    last[7] = length as u8;
    state.absorb(u64::from_le_bytes(last));
    Ok(state.finish())
}

struct State([u64; 4]);

impl State {
    fn new(k0: u64, k1: u64) -> Self {
        Self([k0 ^ 0x736f_6d65_7073_6575, k1 ^ 0x646f_7261_6e64_6f6d, k0 ^ 0x6c79_6765_6e65_7261, k1 ^ 0x7465_6462_7974_6573])
    }

    fn absorb(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    fn finish(mut self) -> u64 {
        self.0[2] ^= 0xFF;
        (0..4).for_each(|_| self.round());
        self.0.iter().fold(0, |hash, word| hash ^ word)
    }

    fn round(&mut self) {
        let [v0, v1, v2, v3] = &mut self.0;
        *v0 = v0.wrapping_add(*v1);
        *v1 = v1.rotate_left(13) ^ *v0;
        *v0 = v0.rotate_left(32);
        *v2 = v2.wrapping_add(*v3);
        *v3 = v3.rotate_left(16) ^ *v2;
        *v0 = v0.wrapping_add(*v3);
        *v3 = v3.rotate_left(21) ^ *v0;
        *v2 = v2.wrapping_add(*v1);
        *v1 = v1.rotate_left(17) ^ *v2;
        *v2 = v2.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;

    #[test]
    fn hashes_are_those_measured_on_the_official_runtime() {
        let span = Span::from_vector(vec![0; 15]);
        assert_eq!(hash(&Meter::default(), &span, 0, 0).unwrap(), 8_246_050_544_436_514_353);
        assert_eq!(hash(&Meter::default(), &span, 0, 15).unwrap(), 3_740_926_846_336_961_724);
    }

    #[test]
    fn the_reference_vector_of_the_algorithm_holds() {
        let span = Span::from_vector((0..15).collect());
        assert_eq!(hash(&Meter::default(), &span, 0, 15).unwrap(), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn pieces_make_no_difference() {
        let span = Span::from_vector((0..2 * bulk::PIECE + 13).map(|at| (at % 249) as u8).collect());
        let mut state = State::new(0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908);
        let bytes = span.to_vec().unwrap();
        let (words, rest) = bytes[1..].as_chunks();
        words.iter().for_each(|word| state.absorb(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = (bytes.len() - 1) as u8;
        state.absorb(u64::from_le_bytes(last));
        let meter = Meter::default();
        assert_eq!(hash(&meter, &span, 1, bytes.len() - 1).unwrap(), state.finish());
        meter.interrupt_handle().interrupt();
        assert_eq!(hash(&meter, &span, 1, bytes.len() - 1).unwrap_err().status(), Status::Cancelled);
    }
}
