use super::*;
use crate::Status;
use std::time::Instant;
use vmfb_memory::MemoryAccount;

/// Longer than two pieces, and not a multiple of anything.
const LONG: usize = 2 * PIECE + 4099;

fn numbered(length: usize) -> Span {
    let span = Span::zeroed(length, 1, &MemoryAccount::default()).unwrap();
    span.write(0, &(0..length).map(|at| (at % 251) as u8).collect::<Vec<_>>()).unwrap();
    span
}

fn interrupted() -> Meter {
    let meter = Meter::default();
    meter.interrupt_handle().interrupt();
    meter
}

#[test]
fn copies_within_one_buffer_are_as_if_read_first() {
    for (from, to) in [(0, 5), (5, 0), (0, PIECE), (PIECE, 0), (0, PIECE + 3), (7, 7), (0, 2 * PIECE)] {
        let length = LONG - from.max(to);
        let span = numbered(LONG);
        let mut wanted = span.to_vec().unwrap();
        wanted.copy_within(from..from + length, to);
        copy(&Meter::default(), (&span, from), (&span, to), length).unwrap();
        assert!(span.to_vec().unwrap() == wanted, "{from} to {to}");
    }
}

#[test]
fn fills_keep_the_pattern_from_piece_to_piece() {
    let span = numbered(LONG);
    let mut wanted = span.to_vec().unwrap();
    let length = LONG - 10;
    (0..length).for_each(|at| wanted[3 + at] = [1, 2, 3, 4, 5, 6, 7, 8][at % 8]);
    fill(&Meter::default(), (&span, 3), length, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    assert!(span.to_vec().unwrap() == wanted);
}

#[test]
fn a_difference_is_found_in_every_piece() {
    for at in [0, 1, PIECE - 1, PIECE, 2 * PIECE, LONG - 4] {
        let (a, b) = (numbered(LONG), numbered(LONG));
        assert!(equals(&Meter::default(), (&a, 1), (&b, 1), LONG - 2).unwrap());
        b.store_u8(at + 1, 252).unwrap();
        assert!(!equals(&Meter::default(), (&a, 1), (&b, 1), LONG - 2).unwrap());
        let (start, part) = first_difference(&Meter::default(), (&a, 1), (&b, 1), LONG - 2).unwrap().unwrap();
        assert!(start <= at && at < start + part, "{at}: {start}, {part}");
    }
}

#[test]
fn vectors_hold_all_bytes() {
    let span = numbered(LONG);
    assert!(to_vec(&Meter::default(), &span).unwrap() == span.to_vec().unwrap());
}

#[test]
fn ranges_are_checked_before_anything_is_done() {
    let (a, b) = (numbered(LONG), numbered(LONG));
    let meter = Meter::default();
    for at in [1, LONG, usize::MAX] {
        assert!(copy(&meter, (&a, at), (&b, 0), LONG).is_err());
        assert!(copy(&meter, (&b, 0), (&a, at), LONG).is_err());
        assert!(fill(&meter, (&a, at), LONG, &[0]).is_err());
        assert!(equals(&meter, (&a, 0), (&b, at), LONG).is_err());
    }
    assert!(a.to_vec().unwrap() == b.to_vec().unwrap());
}

/// Both ends of a computation, after the first piece: the others are as they were.
#[test]
fn what_ends_early_has_done_whole_pieces() {
    let late = {
        let mut meter = Meter::default();
        meter.set_deadline(Some(Instant::now()));
        meter
    };
    for (meter, status) in [(interrupted(), Status::Cancelled), (late, Status::DeadlineExceeded)] {
        let span = numbered(LONG);
        let before = span.to_vec().unwrap();
        assert_eq!(fill(&meter, (&span, 0), LONG, &[255]).unwrap_err().status(), status);
        let after = span.to_vec().unwrap();
        assert!(after[..PIECE].iter().all(|byte| *byte == 255) && after[PIECE..] == before[PIECE..]);

        // Upwards within the same bytes: from the end.
        let span = numbered(LONG);
        assert_eq!(copy(&meter, (&span, 0), (&span, 5), LONG - 5).unwrap_err().status(), status);
        let after = span.to_vec().unwrap();
        let kept = LONG - PIECE;
        assert!(after[..kept] == before[..kept] && after[kept..] == before[kept - 5..LONG - 5]);

        assert_eq!(equals(&meter, (&span, 0), (&span, 0), LONG).unwrap_err().status(), status);
        assert_eq!(to_vec(&meter, &span).unwrap_err().status(), status);
        // One piece needs no look at the clock.
        fill(&meter, (&span, 0), PIECE, &[1]).unwrap();
    }
}
