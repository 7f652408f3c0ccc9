//! The ops that compute values from values: one table that gives the internal opcode, its lowering and its execution.
//!
//! Semantics are those of the official runtime where it is right: integers wrap, shift amounts are masked, `fma` rounds twice,
//! floats convert to integers by rounding half away from zero.

/// Hands the table to a macro. A row is `Name { operand: type, … } -> type = function;`; names and operands are those of
/// [`vmfb_bytecode::isa::Op`]. The sections are: `unary`, `binary`, `ternary` (total functions), `fallible` (binary, may fail) and
/// `compare` (binary, with the names of the opcodes that branch if it holds and if it does not). Tokens behind the consumer's name
/// go in front of the table.
macro_rules! for_each_value_op {
    ($consumer:ident $($extra:tt)*) => {
        $consumer! {
        $($extra)*
        unary {
            NotI32 { a: u32 } -> u32 = |a: u32| !a;
            NotI64 { a: u64 } -> u64 = |a: u64| !a;
            TruncI32I8 { a: u32 } -> u32 = |a: u32| a & 0xFF;
            TruncI32I16 { a: u32 } -> u32 = |a: u32| a & 0xFFFF;
            TruncI64I32 { a: u64 } -> u32 = |a: u64| a as u32;
            ExtI8I32S { a: u32 } -> i32 = |a: u32| i32::from(a as i8);
            ExtI8I32U { a: u32 } -> u32 = |a: u32| a & 0xFF;
            ExtI16I32S { a: u32 } -> i32 = |a: u32| i32::from(a as i16);
            ExtI16I32U { a: u32 } -> u32 = |a: u32| a & 0xFFFF;
            ExtI32I64S { a: i32 } -> i64 = i64::from;
            ExtI32I64U { a: u32 } -> u64 = u64::from;
            CmpNzI32 { a: u32 } -> bool = |a: u32| a != 0;
            CmpNzI64 { a: u64 } -> bool = |a: u64| a != 0;
            CtlzI32 { a: u32 } -> u32 = u32::leading_zeros;
            CtlzI64 { a: u64 } -> u64 = |a: u64| u64::from(a.leading_zeros());
            AbsI32 { a: i32 } -> i32 = i32::wrapping_abs;
            AbsI64 { a: i64 } -> i64 = i64::wrapping_abs;
            AbsF32 { a: f32 } -> f32 = f32::abs;
            NegF32 { a: f32 } -> f32 = |a: f32| -a;
            CeilF32 { a: f32 } -> f32 = f32::ceil;
            FloorF32 { a: f32 } -> f32 = f32::floor;
            CastSi32F32 { a: i32 } -> f32 = |a: i32| a as f32;
            CastUi32F32 { a: u32 } -> f32 = |a: u32| a as f32;
            CastF32Si32 { a: f32 } -> u32 = |a: f32| math::round_to_i64(f64::from(a)) as u32;
            CastF32Ui32 { a: f32 } -> u32 = |a: f32| math::round_to_i64(f64::from(a)) as u32;
            CastF32Si64 { a: f32 } -> i64 = |a: f32| math::round_to_i64(f64::from(a));
            CastF32Ui64 { a: f32 } -> u64 = |a: f32| math::round_to_u64(f64::from(a));
            CastSi64F32 { a: i64 } -> f32 = |a: i64| a as f32;
            CastUi64F32 { a: u64 } -> f32 = |a: u64| a as f32;
            AtanF32 { a: f32 } -> f32 = f32::atan;
            CosF32 { a: f32 } -> f32 = f32::cos;
            SinF32 { a: f32 } -> f32 = f32::sin;
            ExpF32 { a: f32 } -> f32 = f32::exp;
            Exp2F32 { a: f32 } -> f32 = f32::exp2;
            Expm1F32 { a: f32 } -> f32 = f32::exp_m1;
            LogF32 { a: f32 } -> f32 = f32::ln;
            Log10F32 { a: f32 } -> f32 = f32::log10;
            Log1pF32 { a: f32 } -> f32 = f32::ln_1p;
            Log2F32 { a: f32 } -> f32 = f32::log2;
            RsqrtF32 { a: f32 } -> f32 = |a: f32| 1.0 / a.sqrt();
            SqrtF32 { a: f32 } -> f32 = f32::sqrt;
            TanhF32 { a: f32 } -> f32 = f32::tanh;
            ErfF32 { a: f32 } -> f32 = libm::erff;
            CmpNanF32 { a: f32 } -> bool = f32::is_nan;
            RoundF32 { a: f32 } -> f32 = f32::round;
            RoundF32Even { a: f32 } -> f32 = f32::round_ties_even;
            AbsF64 { a: f64 } -> f64 = f64::abs;
            NegF64 { a: f64 } -> f64 = |a: f64| -a;
            CeilF64 { a: f64 } -> f64 = f64::ceil;
            FloorF64 { a: f64 } -> f64 = f64::floor;
            TruncF64F32 { a: f64 } -> f32 = |a: f64| a as f32;
            ExtF32F64 { a: f32 } -> f64 = f64::from;
            CastSi32F64 { a: i32 } -> f64 = f64::from;
            CastUi32F64 { a: u32 } -> f64 = f64::from;
            CastF64Si32 { a: f64 } -> u32 = |a: f64| math::round_to_i64(a) as u32;
            CastF64Ui32 { a: f64 } -> u32 = |a: f64| math::round_to_i64(a) as u32;
            CastSi64F64 { a: i64 } -> f64 = |a: i64| a as f64;
            CastUi64F64 { a: u64 } -> f64 = |a: u64| a as f64;
            CastF64Si64 { a: f64 } -> i64 = math::round_to_i64;
            CastF64Ui64 { a: f64 } -> i64 = math::round_to_i64;
            AtanF64 { a: f64 } -> f64 = f64::atan;
            CosF64 { a: f64 } -> f64 = f64::cos;
            SinF64 { a: f64 } -> f64 = f64::sin;
            ExpF64 { a: f64 } -> f64 = f64::exp;
            Exp2F64 { a: f64 } -> f64 = f64::exp2;
            Expm1F64 { a: f64 } -> f64 = f64::exp_m1;
            LogF64 { a: f64 } -> f64 = f64::ln;
            Log10F64 { a: f64 } -> f64 = f64::log10;
            Log1pF64 { a: f64 } -> f64 = f64::ln_1p;
            Log2F64 { a: f64 } -> f64 = f64::log2;
            RsqrtF64 { a: f64 } -> f64 = |a: f64| 1.0 / a.sqrt();
            SqrtF64 { a: f64 } -> f64 = f64::sqrt;
            TanhF64 { a: f64 } -> f64 = f64::tanh;
            ErfF64 { a: f64 } -> f64 = libm::erf;
            CmpNanF64 { a: f64 } -> bool = f64::is_nan;
            RoundF64 { a: f64 } -> f64 = f64::round;
            RoundF64Even { a: f64 } -> f64 = f64::round_ties_even;
        }
        binary {
            AddI32 { a: u32, b: u32 } -> u32 = u32::wrapping_add;
            SubI32 { a: u32, b: u32 } -> u32 = u32::wrapping_sub;
            MulI32 { a: u32, b: u32 } -> u32 = u32::wrapping_mul;
            AddI64 { a: u64, b: u64 } -> u64 = u64::wrapping_add;
            SubI64 { a: u64, b: u64 } -> u64 = u64::wrapping_sub;
            MulI64 { a: u64, b: u64 } -> u64 = u64::wrapping_mul;
            AndI32 { a: u32, b: u32 } -> u32 = |a, b| a & b;
            OrI32 { a: u32, b: u32 } -> u32 = |a, b| a | b;
            XorI32 { a: u32, b: u32 } -> u32 = |a, b| a ^ b;
            AndI64 { a: u64, b: u64 } -> u64 = |a, b| a & b;
            OrI64 { a: u64, b: u64 } -> u64 = |a, b| a | b;
            XorI64 { a: u64, b: u64 } -> u64 = |a, b| a ^ b;
            ShlI32 { a: u32, amount: u32 } -> u32 = u32::wrapping_shl;
            ShrI32S { a: i32, amount: u32 } -> i32 = i32::wrapping_shr;
            ShrI32U { a: u32, amount: u32 } -> u32 = u32::wrapping_shr;
            ShlI64 { a: u64, amount: u32 } -> u64 = u64::wrapping_shl;
            ShrI64S { a: i64, amount: u32 } -> i64 = i64::wrapping_shr;
            ShrI64U { a: u64, amount: u32 } -> u64 = u64::wrapping_shr;
            MinI32S { a: i32, b: i32 } -> i32 = i32::min;
            MinI32U { a: u32, b: u32 } -> u32 = u32::min;
            MaxI32S { a: i32, b: i32 } -> i32 = i32::max;
            MaxI32U { a: u32, b: u32 } -> u32 = u32::max;
            MinI64S { a: i64, b: i64 } -> i64 = i64::min;
            MinI64U { a: u64, b: u64 } -> u64 = u64::min;
            MaxI64S { a: i64, b: i64 } -> i64 = i64::max;
            MaxI64U { a: u64, b: u64 } -> u64 = u64::max;
            AddF32 { a: f32, b: f32 } -> f32 = |a, b| a + b;
            SubF32 { a: f32, b: f32 } -> f32 = |a, b| a - b;
            MulF32 { a: f32, b: f32 } -> f32 = |a, b| a * b;
            DivF32 { a: f32, b: f32 } -> f32 = |a, b| a / b;
            RemF32 { a: f32, b: f32 } -> f32 = libm::remainderf;
            Atan2F32 { a: f32, b: f32 } -> f32 = f32::atan2;
            PowF32 { a: f32, b: f32 } -> f32 = f32::powf;
            MinF32 { a: f32, b: f32 } -> f32 = |a, b| if b < a { b } else { a };
            MaxF32 { a: f32, b: f32 } -> f32 = |a, b| if a < b { b } else { a };
            FpowiF32 { a: f32, exponent: u64 } -> f32 = |a, n| math::powi_f32(a, n as i32);
            AddF64 { a: f64, b: f64 } -> f64 = |a, b| a + b;
            SubF64 { a: f64, b: f64 } -> f64 = |a, b| a - b;
            MulF64 { a: f64, b: f64 } -> f64 = |a, b| a * b;
            DivF64 { a: f64, b: f64 } -> f64 = |a, b| a / b;
            RemF64 { a: f64, b: f64 } -> f64 = libm::remainder;
            Atan2F64 { a: f64, b: f64 } -> f64 = f64::atan2;
            PowF64 { a: f64, b: f64 } -> f64 = f64::powf;
            MinF64 { a: f64, b: f64 } -> f64 = |a, b| if b < a { b } else { a };
            MaxF64 { a: f64, b: f64 } -> f64 = |a, b| if a < b { b } else { a };
            FpowiF64 { a: f64, exponent: u64 } -> f64 = |a, n| math::powi_f64(a, n as i32);
            CmpEqF32U { a: f32, b: f32 } -> bool = |a, b| a == b || a.is_nan() || b.is_nan();
            CmpNeF32U { a: f32, b: f32 } -> bool = |a, b| a != b;
            CmpLtF32U { a: f32, b: f32 } -> bool = |a, b| a < b || a.is_nan() || b.is_nan();
            CmpLteF32U { a: f32, b: f32 } -> bool = |a, b| a <= b || a.is_nan() || b.is_nan();
            CmpEqF64U { a: f64, b: f64 } -> bool = |a, b| a == b || a.is_nan() || b.is_nan();
            CmpNeF64U { a: f64, b: f64 } -> bool = |a, b| a != b;
            CmpLtF64U { a: f64, b: f64 } -> bool = |a, b| a < b || a.is_nan() || b.is_nan();
            CmpLteF64U { a: f64, b: f64 } -> bool = |a, b| a <= b || a.is_nan() || b.is_nan();
        }
        ternary {
            FmaI32 { a: u32, b: u32, c: u32 } -> u32 = |a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c);
            FmaI64 { a: u64, b: u64, c: u64 } -> u64 = |a: u64, b: u64, c: u64| a.wrapping_mul(b).wrapping_add(c);
            FmaF32 { a: f32, b: f32, c: f32 } -> f32 = |a, b, c| a * b + c;
            FmaF64 { a: f64, b: f64, c: f64 } -> f64 = |a, b, c| a * b + c;
            SelectI32 { condition: u32, if_true: u32, if_false: u32 } -> u32 = |c, t, f| if c != 0 { t } else { f };
            SelectI64 { condition: u32, if_true: u64, if_false: u64 } -> u64 = |c, t, f| if c != 0 { t } else { f };
            SelectF32 { condition: u32, if_true: u32, if_false: u32 } -> u32 = |c, t, f| if c != 0 { t } else { f };
            SelectF64 { condition: u32, if_true: u64, if_false: u64 } -> u64 = |c, t, f| if c != 0 { t } else { f };
        }
        fallible {
            DivI32S { a: i32, b: i32 } -> i32 = math::div_i32;
            DivI32U { a: u32, b: u32 } -> u32 = |a: u32, b: u32| a.checked_div(b).ok_or(Fault::DivisionByZero);
            RemI32S { a: i32, b: i32 } -> i32 = math::rem_i32;
            RemI32U { a: u32, b: u32 } -> u32 = |a: u32, b: u32| a.checked_rem(b).ok_or(Fault::DivisionByZero);
            DivI64S { a: i64, b: i64 } -> i64 = math::div_i64;
            DivI64U { a: u64, b: u64 } -> u64 = |a: u64, b: u64| a.checked_div(b).ok_or(Fault::DivisionByZero);
            RemI64S { a: i64, b: i64 } -> i64 = math::rem_i64;
            RemI64U { a: u64, b: u64 } -> u64 = |a: u64, b: u64| a.checked_rem(b).ok_or(Fault::DivisionByZero);
        }
        compare {
            CmpEqI32 branch BrEqI32 unless BrNotEqI32 { a: u32, b: u32 } = |a, b| a == b;
            CmpNeI32 branch BrNeI32 unless BrNotNeI32 { a: u32, b: u32 } = |a, b| a != b;
            CmpLtI32S branch BrLtI32S unless BrNotLtI32S { a: i32, b: i32 } = |a, b| a < b;
            CmpLtI32U branch BrLtI32U unless BrNotLtI32U { a: u32, b: u32 } = |a, b| a < b;
            CmpEqI64 branch BrEqI64 unless BrNotEqI64 { a: u64, b: u64 } = |a, b| a == b;
            CmpNeI64 branch BrNeI64 unless BrNotNeI64 { a: u64, b: u64 } = |a, b| a != b;
            CmpLtI64S branch BrLtI64S unless BrNotLtI64S { a: i64, b: i64 } = |a, b| a < b;
            CmpLtI64U branch BrLtI64U unless BrNotLtI64U { a: u64, b: u64 } = |a, b| a < b;
            CmpEqF32O branch BrEqF32 unless BrNotEqF32 { a: f32, b: f32 } = |a, b| a == b;
            CmpNeF32O branch BrNeF32 unless BrNotNeF32 { a: f32, b: f32 } = |a, b| a != b;
            CmpLtF32O branch BrLtF32 unless BrNotLtF32 { a: f32, b: f32 } = |a, b| a < b;
            CmpLteF32O branch BrLteF32 unless BrNotLteF32 { a: f32, b: f32 } = |a, b| a <= b;
            CmpEqF64O branch BrEqF64 unless BrNotEqF64 { a: f64, b: f64 } = |a, b| a == b;
            CmpNeF64O branch BrNeF64 unless BrNotNeF64 { a: f64, b: f64 } = |a, b| a != b;
            CmpLtF64O branch BrLtF64 unless BrNotLtF64 { a: f64, b: f64 } = |a, b| a < b;
            CmpLteF64O branch BrLteF64 unless BrNotLteF64 { a: f64, b: f64 } = |a, b| a <= b;
        }
        }
    };
}
pub(crate) use for_each_value_op;
