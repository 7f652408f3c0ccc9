//! The match loop: runs ops on any platform, and is what the threaded core is checked against.

use super::environment::Environment;
use super::steps::{self, for_each_step};
use super::{Action, ThreadedOp};
use crate::Result;
use crate::access_ops::for_each_access_op;
use crate::code::{Code, Inst, distance};
use crate::fault::{Fault, Quick};
use crate::math;
use crate::registers::RegisterValue;
use crate::stack::Values;
use crate::value_ops::for_each_value_op;
use vmfb_memory::Span;

impl Environment<'_> {
    /// Runs ops from `next` on until the frame calls, returns, suspends or fails; `next` is then behind the last op.
    pub(super) fn execute(&mut self, values: &mut Values, next: &mut usize) -> Result<Action> {
        let code: &[ThreadedOp] = &self.body.code;
        let mut at = *next;
        macro_rules! attempt {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(error) => {
                        *next = at;
                        return Err(error);
                    }
                }
            };
        }
        macro_rules! quick {
            ($op:ident, $result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(fault) => {
                        *next = at;
                        return Err(self.explain(fault, $op));
                    }
                }
            };
        }
        macro_rules! stop {
            ($action:expr) => {{
                *next = at;
                return Ok($action);
            }};
        }
        macro_rules! branch_if {
            ($op:ident, $holds:expr) => {
                if $holds {
                    at = (at - 1).wrapping_add_signed($op.distance());
                }
            };
        }
        macro_rules! run {
            (
                load { $($load:ident $ls:ident $ls3:ident $lf:ident $lfs:ident $la:ident = $lm:ident -> $lt:ty = $lb:expr;)* }
                store { $($store:ident $ss:ident $ss3:ident $sf:ident $sfs:ident $sa:ident = $sm:ident <- $st:ty = $sb:expr;)* }
                quick { $($quick:ident = $quick_function:expr;)* }
                slow { $($slow:ident = $slow_function:expr;)* }
                test { $($test:ident = $test_function:expr;)* }
                unary { $($unary:ident { $ua:ident: $ut:ty } -> $ur:ty = $ub:expr;)* }
                binary { $($binary:ident { $ba:ident: $bt:ty, $bb:ident: $bu:ty } -> $br:ty = $bf:expr;)* }
                ternary { $($ternary:ident { $ta:ident: $tt:ty, $tb:ident: $tu:ty, $tc:ident: $tv:ty } -> $tr:ty = $tf:expr;)* }
                fallible { $($fallible:ident { $fa:ident: $ft:ty, $fb:ident: $fu:ty } -> $fr:ty = $ff:expr;)* }
                compare { $($compare:ident branch $branch:ident unless $unless:ident { $ca:ident: $ct:ty, $cb:ident: $cu:ty } = $cf:expr;)* }
            ) => {
                loop {
                    let op = &code[at].inst;
                    at += 1;
                    match op.code {
                        $(Code::$unary => {
                            let function: fn($ut) -> $ur = $ub;
                            function(<$ut>::get(values, op.b)).set(values, op.a);
                        })*
                        $(Code::$binary => {
                            let function: fn($bt, $bu) -> $br = $bf;
                            function(<$bt>::get(values, op.b), <$bu>::get(values, op.c)).set(values, op.a);
                        })*
                        $(Code::$ternary => {
                            let function: fn($tt, $tu, $tv) -> $tr = $tf;
                            let (b, c, d) = (<$tt>::get(values, op.b), <$tu>::get(values, op.c), <$tv>::get(values, op.d));
                            function(b, c, d).set(values, op.a);
                        })*
                        $(Code::$fallible => {
                            let function: fn($ft, $fu) -> Quick<$fr> = $ff;
                            quick!(op, function(<$ft>::get(values, op.b), <$fu>::get(values, op.c))).set(values, op.a);
                        })*
                        $(Code::$compare => {
                            let function: fn($ct, $cu) -> bool = $cf;
                            function(<$ct>::get(values, op.b), <$cu>::get(values, op.c)).set(values, op.a);
                        })*
                        $(Code::$branch => {
                            let function: fn($ct, $cu) -> bool = $cf;
                            branch_if!(op, function(<$ct>::get(values, op.b), <$cu>::get(values, op.c)));
                        })*
                        $(Code::$unless => {
                            let function: fn($ct, $cu) -> bool = $cf;
                            branch_if!(op, !function(<$ct>::get(values, op.b), <$cu>::get(values, op.c)));
                        })*
                        $(Code::$load => quick!(op, steps::load::<steps::Direct, _, $lt, _>(self, values, op, Span::$lm, $lb)),)*
                        $(Code::$ls => quick!(op, steps::load::<steps::Sum, _, $lt, _>(self, values, op, Span::$lm, $lb)),)*
                        $(Code::$ls3 => quick!(op, steps::load::<steps::Sum3, _, $lt, _>(self, values, op, Span::$lm, $lb)),)*
                        $(Code::$lf => quick!(op, steps::load::<steps::Fma, _, $lt, _>(self, values, op, Span::$lm, $lb)),)*
                        $(Code::$lfs => quick!(op, steps::load::<steps::FmaSum, _, $lt, _>(self, values, op, Span::$lm, $lb)),)*
                        $(Code::$la => quick!(op, steps::load::<steps::And, _, $lt, _>(self, values, op, Span::$lm, $lb)),)*
                        $(Code::$store => quick!(op, steps::store::<steps::Direct, _, $st, _>(self, values, op, Span::$sm, $sb)),)*
                        $(Code::$ss => quick!(op, steps::store::<steps::Sum, _, $st, _>(self, values, op, Span::$sm, $sb)),)*
                        $(Code::$ss3 => quick!(op, steps::store::<steps::Sum3, _, $st, _>(self, values, op, Span::$sm, $sb)),)*
                        $(Code::$sf => quick!(op, steps::store::<steps::Fma, _, $st, _>(self, values, op, Span::$sm, $sb)),)*
                        $(Code::$sfs => quick!(op, steps::store::<steps::FmaSum, _, $st, _>(self, values, op, Span::$sm, $sb)),)*
                        $(Code::$sa => quick!(op, steps::store::<steps::And, _, $st, _>(self, values, op, Span::$sm, $sb)),)*
                        $(Code::$quick => quick!(op, $quick_function(self, values, op)),)*
                        $(Code::$slow => attempt!($slow_function(self, values, op)),)*
                        Code::Poll => attempt!(steps::poll(self)),
                        $(Code::$test => {
                            let test: fn(&mut Values, &Inst) -> bool = $test_function;
                            branch_if!(op, test(values, op));
                        })*
                        Code::BrTable => {
                            let table = &self.body.lists[op.imm as usize];
                            let index = u32::get(values, op.a) as usize;
                            at = (at - 1).wrapping_add_signed(distance(table[index.min(table.len() - 1)]));
                        }
                        Code::Return | Code::Return0 | Code::Return32 | Code::Return64 => stop!(Action::Return(op.imm)),
                        Code::Call | Code::CallGeneral => stop!(Action::Call(op.imm)),
                        Code::CallImport => match attempt!(self.call_import(values, op.imm)) {
                            None => {}
                            Some(Action::Wait(wait)) => {
                                // The call is repeated when the wait is over.
                                at -= 1;
                                stop!(Action::Wait(wait))
                            }
                            Some(action) => stop!(action),
                        },
                        Code::Yield => {
                            at = (at - 1).wrapping_add_signed(op.distance());
                            stop!(Action::Yield)
                        }
                    }
                }
            };
        }
        macro_rules! with_values {
            ($($tables:tt)*) => {
                for_each_value_op!(run $($tables)*)
            };
        }
        macro_rules! with_steps {
            ($($tables:tt)*) => {
                for_each_step!(with_values $($tables)*)
            };
        }
        for_each_access_op!(with_steps)
    }
}
