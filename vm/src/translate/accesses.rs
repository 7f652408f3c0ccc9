//! Which value registers an op reads and writes.

use crate::access_ops::for_each_access_op;
use crate::code::{Code, Inst};
use crate::registers::{RegisterValue, Width};
use crate::value_ops::for_each_value_op;

/// Whether a register is read or written. An op reads all its operands before it writes its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Shows the register operands of an op to a visitor, which may replace them: what is read first. Registers in lists and at call
/// sites are not among them, nor those of ops that only fusion makes.
pub(super) fn visit(inst: &mut Inst, visitor: &mut impl FnMut(Access, Width, &mut u16)) {
    use Access::{Read, Write};
    use Width::{One, Pair};
    macro_rules! visit_table {
        (
            load { $($load:ident $ls:ident $ls3:ident $lf:ident $lfs:ident $la:ident = $lm:ident -> $load_type:ty = $lb:expr;)* }
            store { $($store:ident $ss:ident $ss3:ident $sf:ident $sfs:ident $sa:ident = $sm:ident <- $store_type:ty = $sb:expr;)* }
            unary { $($unary:ident { $ua:ident: $ut:ty } -> $ur:ty = $ub:expr;)* }
            binary { $($binary:ident { $ba:ident: $bt:ty, $bb:ident: $bu:ty } -> $br:ty = $bf:expr;)* }
            ternary { $($ternary:ident { $ta:ident: $tt:ty, $tb:ident: $tu:ty, $tc:ident: $tv:ty } -> $tr:ty = $tf:expr;)* }
            fallible { $($fallible:ident { $fa:ident: $ft:ty, $fb:ident: $fu:ty } -> $fr:ty = $ff:expr;)* }
            compare { $($compare:ident branch $branch:ident unless $unless:ident { $ca:ident: $ct:ty, $cb:ident: $cu:ty } = $cf:expr;)* }
        ) => {
            match inst.code {
                $(Code::$load => {
                    visitor(Read, Pair, &mut inst.c);
                    visitor(Write, <$load_type>::WIDTH, &mut inst.a);
                })*
                $(Code::$store => {
                    visitor(Read, Pair, &mut inst.c);
                    visitor(Read, <$store_type>::WIDTH, &mut inst.a);
                })*
                $(Code::$unary => {
                    visitor(Read, <$ut>::WIDTH, &mut inst.b);
                    visitor(Write, <$ur>::WIDTH, &mut inst.a);
                })*
                $(Code::$binary => {
                    visitor(Read, <$bt>::WIDTH, &mut inst.b);
                    visitor(Read, <$bu>::WIDTH, &mut inst.c);
                    visitor(Write, <$br>::WIDTH, &mut inst.a);
                })*
                $(Code::$ternary => {
                    visitor(Read, <$tt>::WIDTH, &mut inst.b);
                    visitor(Read, <$tu>::WIDTH, &mut inst.c);
                    visitor(Read, <$tv>::WIDTH, &mut inst.d);
                    visitor(Write, <$tr>::WIDTH, &mut inst.a);
                })*
                $(Code::$fallible => {
                    visitor(Read, <$ft>::WIDTH, &mut inst.b);
                    visitor(Read, <$fu>::WIDTH, &mut inst.c);
                    visitor(Write, <$fr>::WIDTH, &mut inst.a);
                })*
                $(Code::$compare => {
                    visitor(Read, <$ct>::WIDTH, &mut inst.b);
                    visitor(Read, <$cu>::WIDTH, &mut inst.c);
                    visitor(Write, One, &mut inst.a);
                })*
                $(Code::$branch | Code::$unless => {
                    visitor(Read, <$ct>::WIDTH, &mut inst.b);
                    visitor(Read, <$cu>::WIDTH, &mut inst.c);
                })*
                _ => visit_other(inst, visitor),
            }
        };
    }
    macro_rules! with_accesses {
        ($($accesses:tt)*) => {
            for_each_value_op!(visit_table $($accesses)*)
        };
    }
    for_each_access_op!(with_accesses);
}

fn visit_other(inst: &mut Inst, visitor: &mut impl FnMut(Access, Width, &mut u16)) {
    use Access::{Read, Write};
    use Width::{One, Pair};
    match inst.code {
        Code::Const32 | Code::GlobalLoad32 | Code::ImportResolved | Code::ListSize => visitor(Write, One, &mut inst.a),
        Code::CmpEqRef | Code::CmpNeRef | Code::CmpNzRef => visitor(Write, One, &mut inst.a),
        Code::Const64 | Code::GlobalLoad64 | Code::BufferLength => visitor(Write, Pair, &mut inst.a),
        Code::GlobalStore32 | Code::BrTable | Code::Fail => visitor(Read, One, &mut inst.a),
        Code::GlobalStore64 => visitor(Read, Pair, &mut inst.a),
        Code::ListAlloc | Code::ListReserve | Code::ListResize | Code::SelectRef | Code::SwitchRef | Code::BrIf | Code::BrUnless => {
            visitor(Read, One, &mut inst.b);
        }
        Code::BrIf64 | Code::BrUnless64 => visitor(Read, Pair, &mut inst.b),
        Code::Move32 | Code::GlobalLoadIndirect32 => {
            visitor(Read, One, &mut inst.b);
            visitor(Write, One, &mut inst.a);
        }
        Code::Move64 => {
            visitor(Read, Pair, &mut inst.b);
            visitor(Write, Pair, &mut inst.a);
        }
        Code::GlobalLoadIndirect64 => {
            visitor(Read, One, &mut inst.b);
            visitor(Write, Pair, &mut inst.a);
        }
        Code::GlobalStoreIndirect32 => {
            visitor(Read, One, &mut inst.b);
            visitor(Read, One, &mut inst.a);
        }
        Code::GlobalStoreIndirect64 => {
            visitor(Read, One, &mut inst.b);
            visitor(Read, Pair, &mut inst.a);
        }
        Code::GlobalLoadIndirectRef | Code::GlobalStoreIndirectRef => immediate(inst, Read, visitor),
        Code::ListGetI32 | Code::ListGetF32 => {
            visitor(Read, One, &mut inst.c);
            visitor(Write, One, &mut inst.a);
        }
        Code::ListGetI64 | Code::ListGetF64 => {
            visitor(Read, One, &mut inst.c);
            visitor(Write, Pair, &mut inst.a);
        }
        Code::ListSetI32 | Code::ListSetF32 => {
            visitor(Read, One, &mut inst.c);
            visitor(Read, One, &mut inst.a);
        }
        Code::ListSetI64 | Code::ListSetF64 => {
            visitor(Read, One, &mut inst.c);
            visitor(Read, Pair, &mut inst.a);
        }
        Code::ListGetRef | Code::ListSetRef => visitor(Read, One, &mut inst.c),
        // And the registers of their lists.
        Code::Switch32 => {
            visitor(Read, One, &mut inst.b);
            visitor(Read, One, &mut inst.c);
            visitor(Write, One, &mut inst.a);
        }
        Code::Switch64 => {
            visitor(Read, One, &mut inst.b);
            visitor(Read, Pair, &mut inst.c);
            visitor(Write, Pair, &mut inst.a);
        }
        _ => visit_whole_buffers(inst, visitor),
    }
}

fn visit_whole_buffers(inst: &mut Inst, visitor: &mut impl FnMut(Access, Width, &mut u16)) {
    use Access::{Read, Write};
    use Width::{One, Pair};
    match inst.code {
        Code::BufferAlloc => {
            visitor(Read, Pair, &mut inst.b);
            if inst.d != 0 {
                visitor(Read, One, &mut inst.c);
            }
        }
        Code::BufferClone => {
            visitor(Read, Pair, &mut inst.c);
            visitor(Read, Pair, &mut inst.d);
            if inst.imm != 0 {
                visitor(Read, One, &mut inst.e);
            }
        }
        Code::BufferCopy | Code::BufferCompare => {
            visitor(Read, Pair, &mut inst.b);
            visitor(Read, Pair, &mut inst.d);
            visitor(Read, Pair, &mut inst.e);
            if inst.code == Code::BufferCompare {
                immediate(inst, Write, visitor);
            }
        }
        Code::BufferFill => {
            visitor(Read, Pair, &mut inst.b);
            visitor(Read, Pair, &mut inst.c);
            visitor(Read, if inst.e == 8 { Pair } else { One }, &mut inst.d);
        }
        Code::BufferHash => {
            visitor(Read, Pair, &mut inst.c);
            visitor(Read, Pair, &mut inst.d);
            visitor(Write, Pair, &mut inst.a);
        }
        _ => {}
    }
}

/// Visits a 32-bit register that stands in the immediate.
fn immediate(inst: &mut Inst, access: Access, visitor: &mut impl FnMut(Access, Width, &mut u16)) {
    let mut register = inst.imm as u16;
    visitor(access, Width::One, &mut register);
    inst.imm = register.into();
}
