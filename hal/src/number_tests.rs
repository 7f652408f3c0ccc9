//! Tests of `%G`: bit patterns and what C's conversion (through Python's `%`) makes of them.

use super::*;
use proptest::prelude::*;

const SAMPLES: &[(u64, &str)] = &[
    (0x0000000000000000, "0"),
    (0x8000000000000000, "-0"),
    (0x3FF0000000000000, "1"),
    (0xBFF8000000000000, "-1.5"),
    (0x40F86A0000000000, "100000"),
    (0x412E847E00000000, "999999"),
    (0x412E848000000000, "1E+06"),
    (0x412E847F00000000, "1E+06"),
    (0x416312CF60000000, "1E+07"),
    (0x3F1A36E2EB1C432D, "0.0001"),
    (0x3EE4F8B588E368F1, "1E-05"),
    (0x3F202E85684E0BEB, "0.000123457"),
    (0x3F202E85BE111841, "0.000123457"),
    (0x40FE240800000000, "123456"),
    (0x40FE23F800000000, "123456"),
    (0x412E848A00000000, "1E+06"),
    (0x412E849E00000000, "1.00002E+06"),
    (0x412E84B200000000, "1.00002E+06"),
    (0x3FB999999999999A, "0.1"),
    (0x3FD5555555555555, "0.333333"),
    (0x3FE5555555555555, "0.666667"),
    (0x7E37E43C8800759C, "1E+300"),
    (0x0000000000000001, "4.94066E-324"),
    (0x0010000000000000, "2.22507E-308"),
    (0x7FEFFFFFFFFFFFFF, "1.79769E+308"),
    (0x3E7AD7F29ABCAF48, "1E-07"),
    (0x4170000000000000, "1.67772E+07"),
    (0x4170000010000000, "1.67772E+07"),
    (0x47EFFFFFE0000000, "3.40282E+38"),
    (0x36A0000000000000, "1.4013E-45"),
    (0x3FE0000000000000, "0.5"),
    (0x3FD0000000000000, "0.25"),
    (0x40F86A0000000000, "100000"),
    (0x430C6BF526340000, "1E+15"),
    (0x4341C37937E08000, "1E+16"),
    (0x4480F0CF064DD592, "1E+22"),
    (0x44B52D02C7E14AF6, "1E+23"),
    (0x412E847EFFFFFFFF, "999999"),
    (0x40F869FF33333333, "99999.9"),
    (0x3F1A36E2D51EC34B, "0.0001"),
    (0x3F1A36E1E33A449B, "9.99999E-05"),
    (0x40EFFC0000000000, "65504"),
    (0x407C000000000000, "448"),
    (0xC0EC000000000000, "-57344"),
    (0x4004000000000000, "2.5"),
    (0x4132D68700000000, "1.23457E+06"),
    (0x3FF000053E2D6239, "1.00001"),
    (0x6513270E269E0D37, "7.76112E+178"),
    (0x1818E811892F902B, "1.36476E-192"),
    (0x36F675CC81E74EF5, "6.29468E-44"),
    (0x3D9C172411E20B8F, "6.38702E-12"),
    (0x90C192CFD3AC94AF, "-5.7955E-228"),
    (0x953F48F1A09F76B5, "-2.43612E-206"),
    (0x0CB1E29C658CDA14, "1.59874E-247"),
    (0x2217BEADDBC496CB, "1.90157E-144"),
    (0x922766581E27A1C0, "-3.23672E-221"),
    (0x1A61DBE22E44158B, "1.34496E-181"),
    (0x18F135D25F557203, "1.54508E-188"),
    (0x9E7769B10F4205B4, "-6.50514E-162"),
    (0xC6F877186D76B07E, "-7.93942E+33"),
    (0x5C90A9587403E430, "7.75055E+137"),
    (0xC7A2EA20B2F14C94, "-1.25709E+37"),
    (0x7EBFF20686734721, "3.42298E+302"),
    (0x9BE4BCFC49B64A08, "-2.62026E-174"),
    (0x2A3AF4D46B0A18E8, "2.93835E-105"),
    (0x6BF46C697D2CAF82, "1.0743E+212"),
    (0x8EDE0D7AC3BAEA9E, "-4.61515E-237"),
    (0xC22FF35940000000, "-6.86133E+10"),
    (0xBE3FDC11E0000000, "-7.4179E-09"),
    (0x47E4C28960000000, "2.20757E+38"),
    (0x46993BED40000000, "1.27952E+32"),
    (0x3AFEBD06E0000000, "1.58914E-24"),
    (0x472BD04520000000, "7.22081E+34"),
    (0x3A147AD640000000, "6.4623E-29"),
    (0xBE729F66C0000000, "-6.93748E-08"),
    (0xBA7E891660000000, "-6.16659E-27"),
    (0xC24D3534A0000000, "-2.50893E+11"),
    (0xBEEE9D6A40000000, "-1.45983E-05"),
    (0xBD659A63C0000000, "-6.13997E-13"),
    (0xC619CB06A0000000, "-5.10884E+29"),
    (0x3D60A6FCC0000000, "4.73287E-13"),
    (0x47CC554140000000, "7.53221E+37"),
    (0xC0955D5820000000, "-1367.34"),
    (0xBFA0AC3CC0000000, "-0.0325641"),
    (0x4482A8F380000000, "1.10149E+22"),
    (0x47E3620780000000, "2.06115E+38"),
    (0x465FBE4040000000, "1.00598E+31"),
    (0x40F2B84C3E9EF274, "76676.8"),
    (0x4195DEF886000000, "9.17335E+07"),
    (0xBFB1DA80781D8FD8, "-0.0697403"),
    (0x4180DD0C34000000, "3.53653E+07"),
    (0x4035F6658D289575, "21.9625"),
    (0x418D45DB92000000, "6.13897E+07"),
    (0xC14027EFD71A62A6, "-2.1176E+06"),
    (0x417AD12A88000000, "2.81197E+07"),
    (0xBF14D8C54C97FAD6, "-7.95241E-05"),
    (0x4162310780000000, "9.5376E+06"),
    (0x408C777D06A6C771, "910.936"),
    (0x418DDEFA74000000, "6.2644E+07"),
    (0x3FDFF550A57B6FB4, "0.499348"),
    (0x417A5CE634000000, "2.76435E+07"),
    (0x3EB00E4B5C4CF9BB, "9.57002E-07"),
    (0x4186CFEED8000000, "4.78407E+07"),
    (0xBF76B03CB20A6108, "-0.00553917"),
    (0x4179AF5394000000, "2.69325E+07"),
    (0xBF4231583CB03D5C, "-0.000555199"),
    (0x419729F7BE000000, "9.71566E+07"),
    (0xC15E5A5E434A8D5D, "-7.95686E+06"),
    (0x418EBBE64A000000, "6.44538E+07"),
    (0x3F80C8D320B594E1, "0.00819554"),
    (0x4166661108000000, "1.17434E+07"),
    (0x3F3D76FDD58BF45E, "0.000449597"),
    (0x419502E4D0000000, "8.81278E+07"),
    (0xBF120A43E71AE7F0, "-6.88175E-05"),
];

fn upper(value: f64) -> String {
    General(value, Letters::Upper).to_string()
}

#[test]
fn samples_print_as_in_c() {
    for (bits, text) in SAMPLES {
        let value = f64::from_bits(*bits);
        assert_eq!(upper(value), *text, "{value:?}");
        assert_eq!(General(value, Letters::Lower).to_string(), text.to_lowercase(), "{value:?}");
    }
}

#[test]
fn what_is_no_number_prints_as_in_c() {
    let values = [f64::NAN.copysign(1.0), f64::NAN.copysign(-1.0), f64::INFINITY, f64::NEG_INFINITY];
    assert_eq!(values.map(upper), ["NAN", "-NAN", "INF", "-INF"]);
    assert_eq!(values.map(|value| General(value, Letters::Lower).to_string()), ["nan", "-nan", "inf", "-inf"]);
}

proptest! {
    /// Six digits are within half a unit of the sixth of the value, and a six-digit number is printed exactly.
    #[test]
    fn the_text_is_near_the_value(value in proptest::num::f64::NORMAL) {
        let text = upper(value);
        let read: f64 = text.parse().unwrap();
        let unit = 10f64.powi(value.abs().log10().floor() as i32 - 5);
        if unit.is_normal() && read.is_finite() {
            prop_assert!((read - value).abs() <= unit * 0.51, "{value:e} {text}");
        }
        prop_assert_eq!(upper(read), text);
    }

    #[test]
    fn integers_of_six_digits_are_printed_whole(value in -999_999i32..1_000_000) {
        prop_assert_eq!(upper(f64::from(value)), value.to_string());
    }
}
