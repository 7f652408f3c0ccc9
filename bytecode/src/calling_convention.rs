//! Calling-convention strings, and where the arguments of a function stand in its frame.

use std::fmt;
use std::str::FromStr;

use smallvec::SmallVec;

use crate::{Error, Result, Status};

/// The arguments and results of a function, for example `0rIiiiiCiDCrIID_v`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallingConvention {
    /// The arguments.
    pub arguments: SmallVec<[Item; 3]>,
    /// The results.
    pub results: SmallVec<[Kind; 8]>,
}

/// One top-level item of an argument string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// One value.
    Plain(Kind),
    /// Any number of tuples of these values; only imports have it.
    Span(Box<[Kind]>),
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `i`
    I32,
    /// `I`
    I64,
    /// `f`
    F32,
    /// `F`
    F64,
    /// `r`: a reference of any type, or null.
    Ref,
}

impl Kind {
    /// The letter.
    pub const fn letter(self) -> char {
        match self {
            Self::I32 => 'i',
            Self::I64 => 'I',
            Self::F32 => 'f',
            Self::F64 => 'F',
            Self::Ref => 'r',
        }
    }

    /// The kind with this letter.
    pub const fn from_letter(letter: char) -> Option<Self> {
        Some(match letter {
            'i' => Self::I32,
            'I' => Self::I64,
            'f' => Self::F32,
            'F' => Self::F64,
            'r' => Self::Ref,
            _ => return None,
        })
    }

    /// How many value slots it takes: 0 for a ref.
    pub const fn value_slots(self) -> u16 {
        match self {
            Self::I32 | Self::F32 => 1,
            Self::I64 | Self::F64 => 2,
            Self::Ref => 0,
        }
    }
}

impl CallingConvention {
    /// Whether an argument is a span.
    pub fn has_spans(&self) -> bool {
        self.arguments.iter().any(|item| matches!(item, Item::Span(_)))
    }

    /// The kinds of the arguments; `None` if one is a span.
    pub fn plain_arguments(&self) -> Option<SmallVec<[Kind; 8]>> {
        let kind = |item: &Item| match item {
            Item::Plain(kind) => Some(*kind),
            Item::Span(_) => None,
        };
        self.arguments.iter().map(kind).collect()
    }

    /// Where the arguments stand in the frame of a function with this convention.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if an argument is a span, which functions defined in bytecode cannot have, or if the arguments need more
    /// registers than a frame can have.
    pub fn placement(&self, rule: PlacementRule) -> Result<Placement> {
        let mut placer = Placer::new(rule);
        for item in &self.arguments {
            match item {
                Item::Plain(kind) => placer.place(*kind)?,
                Item::Span(_) => return Err(Error::invalid(format!("a defined function cannot take a span: {self}"))),
            };
        }
        Ok(placer.placement)
    }

    /// Whether the two rules place the arguments differently.
    pub fn placement_depends_on_rule(&self) -> bool {
        // The rules part where a single slot follows a pair that left a gap.
        let (mut odd, mut gap) = (false, false);
        for item in &self.arguments {
            let Item::Plain(kind) = item else { return false };
            match kind.value_slots() {
                1 if gap => return true,
                1 => odd = !odd,
                2 => (odd, gap) = (false, gap || odd),
                _ => {}
            }
        }
        false
    }
}

impl FromStr for CallingConvention {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut convention = Self::default();
        let Some((version, body)) = text.as_bytes().split_first() else { return Ok(convention) };
        if *version != b'0' {
            return Err(Error::new(Status::Unimplemented, format!("calling convention version of {text:?}; only version 0 is known")));
        }
        let (arguments, results) = match body.iter().position(|letter| *letter == b'_') {
            Some(position) => body.split_at(position),
            None => (body, &b"_"[..]),
        };
        if arguments != b"v" {
            parse_arguments(text, arguments, &mut convention.arguments)?;
        }
        if results != b"_v" {
            for letter in results.iter().skip(1) {
                convention.results.push(parse_kind(text, *letter)?);
            }
        }
        Ok(convention)
    }
}

impl fmt::Display for CallingConvention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        f.write_char('0')?;
        if self.arguments.is_empty() {
            f.write_char('v')?;
        }
        for item in &self.arguments {
            match item {
                Item::Plain(kind) => f.write_char(kind.letter())?,
                Item::Span(kinds) => {
                    f.write_char('C')?;
                    kinds.iter().try_for_each(|kind| f.write_char(kind.letter()))?;
                    f.write_char('D')?;
                }
            }
        }
        f.write_char('_')?;
        if self.results.is_empty() {
            f.write_char('v')?;
        }
        self.results.iter().try_for_each(|kind| f.write_char(kind.letter()))
    }
}

fn parse_arguments(text: &str, arguments: &[u8], items: &mut SmallVec<[Item; 3]>) -> Result<()> {
    let mut span: Option<Vec<Kind>> = None;
    for letter in arguments {
        match (letter, &mut span) {
            (b'C', None) => span = Some(Vec::new()),
            (b'D', Some(kinds)) => {
                items.push(Item::Span(std::mem::take(kinds).into()));
                span = None;
            }
            (letter, None) => items.push(Item::Plain(parse_kind(text, *letter)?)),
            (letter, Some(kinds)) => kinds.push(parse_kind(text, *letter)?),
        }
    }
    match span {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("span without an end in calling convention {text:?}"))),
    }
}

fn parse_kind(text: &str, letter: u8) -> Result<Kind> {
    match Kind::from_letter(char::from(letter)) {
        Some(kind) => Ok(kind),
        None => Err(unknown_letter(text, letter)),
    }
}

#[cold]
fn unknown_letter(text: &str, letter: u8) -> Error {
    Error::invalid(format!("'{}' in calling convention {text:?}; one of i I f F r wanted", letter.escape_ascii()))
}

/// How a compiler placed the arguments of a function. The compilers of 2023 to 3.4.0 used one rule, later ones the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlacementRule {
    /// Behind the arguments before it; a pair starts at the next even slot and leaves a gap (3.5.0 and later).
    NextFree,
    /// At the lowest free slot or even pair: a later 32-bit argument fills the gap (up to 3.4.0).
    LowestFree,
}

/// Where the arguments of a function stand in its frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The slot of each argument, in the bank of its kind; of a pair the even one.
    pub slots: SmallVec<[u16; 8]>,
    /// Value slots needed, gaps included.
    pub value_slots: u16,
    /// Ref slots needed.
    pub ref_slots: u16,
}

/// Places arguments one after another.
#[derive(Clone, Debug)]
pub(crate) struct Placer {
    rule: PlacementRule,
    pub(crate) placement: Placement,
    /// The gap that a pair left. There is one at most: while it is open, the end is even.
    gap: Option<u16>,
}

/// More registers than any function can declare.
const MAXIMUM_SLOTS: u16 = 0x7FFF;

impl Placer {
    pub(crate) fn new(rule: PlacementRule) -> Self {
        Self { rule, placement: Placement::default(), gap: None }
    }

    /// The slot that an argument of this kind would get.
    pub(crate) fn slot(&self, kind: Kind) -> u16 {
        match kind.value_slots() {
            0 => self.placement.ref_slots,
            1 => self.gap.unwrap_or(self.placement.value_slots),
            _ => self.placement.value_slots.next_multiple_of(2),
        }
    }

    /// Places an argument of this kind.
    pub(crate) fn place(&mut self, kind: Kind) -> Result<()> {
        let slot = self.slot(kind);
        let placement = &mut self.placement;
        if slot >= MAXIMUM_SLOTS - 2 {
            return Err(Error::invalid(format!("the arguments need more than {slot} registers")));
        }
        placement.slots.push(slot);
        match kind.value_slots() {
            0 => placement.ref_slots = slot + 1,
            1 if self.gap.is_some() => self.gap = None,
            1 => placement.value_slots = slot + 1,
            _ => {
                if self.rule == PlacementRule::LowestFree && slot > placement.value_slots {
                    self.gap = Some(placement.value_slots);
                }
                placement.value_slots = slot + 2;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> CallingConvention {
        text.parse().unwrap()
    }

    #[test]
    fn real_strings_come_back() {
        for text in ["0v_v", "0rr_r", "0rIIiiCID_r", "0riiiiCiDCrIID_v", "0rIiiiCiDCrIID_v", "0iICrD_i", "0iIfFrr_iIfFr", "0v_i"] {
            assert_eq!(parse(text).to_string(), text);
        }
    }

    #[test]
    fn dispatch_has_two_spans() {
        let convention = parse("0riiiiCiDCrIID_v");
        let expected = [
            Item::Plain(Kind::Ref),
            Item::Plain(Kind::I32),
            Item::Plain(Kind::I32),
            Item::Plain(Kind::I32),
            Item::Plain(Kind::I32),
            Item::Span([Kind::I32].into()),
            Item::Span([Kind::Ref, Kind::I64, Kind::I64].into()),
        ];
        assert_eq!(convention.arguments.as_slice(), expected);
        assert!(convention.results.is_empty());
        assert!(convention.has_spans());
        assert_eq!(convention.plain_arguments(), None);
    }

    #[test]
    fn nothing_can_be_said_in_several_ways() {
        for text in ["", "0", "0v", "0_", "0v_", "0_v", "0v_v"] {
            assert_eq!(parse(text), CallingConvention::default(), "{text:?}");
        }
    }

    #[test]
    fn malformed_strings_are_refused() {
        let status = |text: &str| text.parse::<CallingConvention>().unwrap_err().status;
        for text in ["1v_v", "v_v", "_", "i"] {
            assert_eq!(status(text), Status::Unimplemented, "{text:?}");
        }
        for text in ["0x_v", "0i_x", "0C", "0CiCiDD_v", "0D_v", "0v_CiD", "0iv_v", "0i_v_v", "0é_v", "0i_iv"] {
            assert_eq!(status(text), Status::InvalidArgument, "{text:?}");
        }
    }

    fn slots(text: &str, rule: PlacementRule) -> (Vec<u16>, u16, u16) {
        let placement = parse(text).placement(rule).unwrap();
        (placement.slots.to_vec(), placement.value_slots, placement.ref_slots)
    }

    #[test]
    fn placement_of_measured_signatures() {
        use PlacementRule::{LowestFree, NextFree};
        for rule in [NextFree, LowestFree] {
            assert_eq!(slots("0iIfFrr_i", NextFree), (vec![0, 2, 4, 6, 0, 1], 8, 2));
            assert_eq!(slots("0Iii_v", rule), (vec![0, 2, 3], 4, 0));
            assert_eq!(slots("0iiI_v", rule), (vec![0, 1, 2], 4, 0));
        }
        assert_eq!(slots("0iIiI_I", NextFree), (vec![0, 2, 4, 6], 8, 0));
        assert_eq!(slots("0iIiI_I", LowestFree), (vec![0, 2, 1, 4], 6, 0));
        assert_eq!(slots("0iIIfii_v", LowestFree), (vec![0, 2, 4, 1, 6, 7], 8, 0));
    }

    #[test]
    fn placement_refuses_spans_and_floods() {
        assert_eq!(parse("0CiD_v").placement(PlacementRule::NextFree).unwrap_err().status, Status::InvalidArgument);
        let flood = format!("0{}_v", "i".repeat(40_000));
        assert_eq!(parse(&flood).placement(PlacementRule::NextFree).unwrap_err().status, Status::InvalidArgument);
    }

    /// Lowest-free placement by its definition: a bitmap and a search from 0.
    fn lowest_free_by_search(kinds: &[Kind]) -> Vec<u16> {
        let (mut used, mut refs) = (vec![false; 4 * kinds.len() + 2], 0);
        let mut slots = Vec::new();
        for kind in kinds {
            let width = usize::from(kind.value_slots());
            if width == 0 {
                slots.push(refs);
                refs += 1;
                continue;
            }
            let slot = (0..used.len()).step_by(width).find(|&slot| !used[slot..slot + width].contains(&true)).unwrap();
            used[slot..slot + width].fill(true);
            slots.push(u16::try_from(slot).unwrap());
        }
        slots
    }

    fn kinds() -> impl Strategy<Value = Vec<Kind>> {
        let kind = prop_oneof![Just(Kind::I32), Just(Kind::I64), Just(Kind::F32), Just(Kind::F64), Just(Kind::Ref)];
        proptest::collection::vec(kind, 0..24)
    }

    proptest! {
        #[test]
        fn display_and_parse_agree(arguments in kinds(), span in kinds(), results in kinds()) {
            let mut convention = CallingConvention { arguments: SmallVec::new(), results: results.into_iter().collect() };
            convention.arguments.extend(arguments.into_iter().map(Item::Plain));
            convention.arguments.push(Item::Span(span.into()));
            prop_assert_eq!(parse(&convention.to_string()), convention);
        }

        #[test]
        fn placement_follows_the_rules(kinds in kinds()) {
            let convention = CallingConvention {
                arguments: kinds.iter().copied().map(Item::Plain).collect(),
                results: SmallVec::new(),
            };
            let old = convention.placement(PlacementRule::LowestFree).unwrap();
            let new = convention.placement(PlacementRule::NextFree).unwrap();
            prop_assert_eq!(old.slots.to_vec(), lowest_free_by_search(&kinds));
            prop_assert_eq!(convention.placement_depends_on_rule(), old.slots != new.slots);
            prop_assert!(old.value_slots <= new.value_slots);
        }

        #[test]
        fn any_text_parses_or_fails(text in "[0iIfFrvCD_x]{0,12}") {
            let _ = text.parse::<CallingConvention>();
        }
    }
}
