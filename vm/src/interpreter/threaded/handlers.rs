//! The handlers of all opcodes, made of the same tables as the match loop.

use super::super::steps::{self, for_each_step};
use super::{Core, Ended, Handler, Ip, Leave, Window, branch, quick, return_value, slow};
use crate::access_ops::for_each_access_op;
use crate::code::Code;
use crate::fault::{Fault, Quick};
use crate::math;
use crate::registers::RegisterValue;
use crate::value_ops::for_each_value_op;
use vmfb_memory::Span;

/// The handlers of all opcodes.
pub(super) static HANDLERS: [Handler; Code::COUNT] = handlers();

macro_rules! make_table {
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
        const fn handlers() -> [Handler; Code::COUNT] {
            let mut table: [Option<Handler>; Code::COUNT] = [None; Code::COUNT];
            $(table[Code::$unary as usize] = Some(|ip, window, core| quick(ip, window, core, |_, values, op| {
                let function: fn($ut) -> $ur = $ub;
                function(<$ut>::get(values, op.b)).set(values, op.a);
                Ok(())
            }));)*
            $(table[Code::$binary as usize] = Some(|ip, window, core| quick(ip, window, core, |_, values, op| {
                let function: fn($bt, $bu) -> $br = $bf;
                function(<$bt>::get(values, op.b), <$bu>::get_settled(values, op.c)).set(values, op.a);
                Ok(())
            }));)*
            $(table[Code::$ternary as usize] = Some(|ip, window, core| quick(ip, window, core, |_, values, op| {
                let function: fn($tt, $tu, $tv) -> $tr = $tf;
                let (b, c, d) = (<$tt>::get(values, op.b), <$tu>::get_settled(values, op.c), <$tv>::get(values, op.d));
                function(b, c, d).set(values, op.a);
                Ok(())
            }));)*
            $(table[Code::$fallible as usize] = Some(|ip, window, core| quick(ip, window, core, |_, values, op| {
                let function: fn($ft, $fu) -> Quick<$fr> = $ff;
                function(<$ft>::get(values, op.b), <$fu>::get_settled(values, op.c))?.set(values, op.a);
                Ok(())
            }));)*
            $(table[Code::$compare as usize] = Some(|ip, window, core| quick(ip, window, core, |_, values, op| {
                let function: fn($ct, $cu) -> bool = $cf;
                function(<$ct>::get(values, op.b), <$cu>::get_settled(values, op.c)).set(values, op.a);
                Ok(())
            }));)*
            $(table[Code::$branch as usize] = Some(|ip, window, core| branch(ip, window, core, |values, op| {
                let function: fn($ct, $cu) -> bool = $cf;
                function(<$ct>::get(values, op.b), <$cu>::get_settled(values, op.c))
            }));)*
            $(table[Code::$unless as usize] = Some(|ip, window, core| branch(ip, window, core, |values, op| {
                let function: fn($ct, $cu) -> bool = $cf;
                !function(<$ct>::get(values, op.b), <$cu>::get_settled(values, op.c))
            }));)*
            make_table!(accesses table load Direct $($load = $lm $lt = $lb;)*);
            make_table!(accesses table load Sum $($ls = $lm $lt = $lb;)*);
            make_table!(accesses table load Sum3 $($ls3 = $lm $lt = $lb;)*);
            make_table!(accesses table load Fma $($lf = $lm $lt = $lb;)*);
            make_table!(accesses table load FmaSum $($lfs = $lm $lt = $lb;)*);
            make_table!(accesses table load And $($la = $lm $lt = $lb;)*);
            make_table!(accesses table store Direct $($store = $sm $st = $sb;)*);
            make_table!(accesses table store Sum $($ss = $sm $st = $sb;)*);
            make_table!(accesses table store Sum3 $($ss3 = $sm $st = $sb;)*);
            make_table!(accesses table store Fma $($sf = $sm $st = $sb;)*);
            make_table!(accesses table store FmaSum $($sfs = $sm $st = $sb;)*);
            make_table!(accesses table store And $($sa = $sm $st = $sb;)*);
            $(table[Code::$quick as usize] = Some(|ip, window, core| quick(ip, window, core, $quick_function));)*
            $(table[Code::$slow as usize] = Some(|ip, window, core| slow(ip, window, core, $slow_function));)*
            table[Code::Poll as usize] = Some(poll);
            $(table[Code::$test as usize] = Some(|ip, window, core| branch(ip, window, core, $test_function));)*
            table[Code::BrTable as usize] = Some(branch_table);
            table[Code::Yield as usize] = Some(|ip, _, core| core.suspend(ip.jump()));
            table[Code::Call as usize] = Some(call);
            table[Code::CallGeneral as usize] = Some(|ip, _, core| core.leave(ip, Leave::Call));
            table[Code::CallImport as usize] = Some(call_import);
            table[Code::Return as usize] = Some(|ip, _, core| core.leave(ip, Leave::Return));
            table[Code::Return0 as usize] = Some(return_nothing);
            table[Code::Return32 as usize] = Some(return_value::<u32>);
            table[Code::Return64 as usize] = Some(return_value::<u64>);
            complete(&table)
        }
    };
    (accesses $table:ident $function:ident $index:ident $($code:ident = $method:ident $type:ty = $convert:expr;)*) => {
        $($table[Code::$code as usize] = Some(|ip, window, core| quick(ip, window, core, |environment, values, op| {
            steps::$function::<steps::$index, _, $type, _>(environment, values, op, Span::$method, $convert)
        }));)*
    };
}

macro_rules! with_values {
    ($($tables:tt)*) => {
        for_each_value_op!(make_table $($tables)*);
    };
}

macro_rules! with_steps {
    ($($tables:tt)*) => {
        for_each_step!(with_values $($tables)*);
    };
}

for_each_access_op!(with_steps);

/// The table, if no opcode was forgotten; else it does not compile.
const fn complete(table: &[Option<Handler>; Code::COUNT]) -> [Handler; Code::COUNT] {
    let mut complete: [Handler; Code::COUNT] = [call; Code::COUNT];
    let mut at = 0;
    while at < table.len() {
        complete[at] = table[at].expect("every opcode has a handler");
        at += 1;
    }
    complete
}

/// Looks at a counter, and at the clock once in a while, which is out of the way in a function of its own.
fn poll(ip: Ip, window: Window, core: &mut Core<'_>) -> Ended {
    if steps::poll_is_due(&mut core.environment) {
        return poll_now(ip, window, core);
    }
    ip.next().run(window, core)
}

#[cold]
#[inline(never)]
fn poll_now(ip: Ip, window: Window, core: &mut Core<'_>) -> Ended {
    slow(ip, window, core, |environment, _, _| environment.context.meter.poll())
}

fn branch_table(ip: Ip, window: Window, core: &mut Core<'_>) -> Ended {
    let op = ip.op();
    let targets = &core.environment.body.lists[op.imm as usize];
    let index = u32::get(&window, op.a) as usize;
    ip.go(targets[index.min(targets.len() - 1)]).run(window, core)
}

fn call(ip: Ip, _: Window, core: &mut Core<'_>) -> Ended {
    match core.call(ip) {
        Some((ip, window)) => ip.run(window, core),
        None => core.leave(ip, Leave::Call),
    }
}

fn call_import(ip: Ip, window: Window, core: &mut Core<'_>) -> Ended {
    if core.import(ip, window) { ip.next().run(window, core) } else { Ended }
}

fn return_nothing(ip: Ip, _: Window, core: &mut Core<'_>) -> Ended {
    match core.back() {
        Some((ip, window)) => ip.run(window, core),
        None => core.leave(ip, Leave::Return),
    }
}
