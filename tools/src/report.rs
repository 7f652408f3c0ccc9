//! Results as text, in the form of the official tools.

use crate::failure::printable;
use std::io::{self, Write};
use vmfb_hal::{BufferView, ViewText, format_scalar};
use vmfb_vm::{List, Ref, Value};

/// Lists inside lists are printed to this depth.
const MAX_DEPTH: usize = 64;

/// Elements of lists that are printed in all: lists that share lists can have more than anybody can read.
const MAX_CHILDREN: u64 = 1 << 20;

/// Elements of a tensor that are printed unless the command line says otherwise.
pub const DEFAULT_ELEMENT_LIMIT: u64 = 1024;

/// Prints `result[index]: ` and a value. Of each tensor at most `limit` elements are printed.
pub fn write_result(out: &mut impl Write, index: usize, value: &Value, limit: u64) -> io::Result<()> {
    write!(out, "result[{index}]: ")?;
    write_value(out, value, limit)
}

/// Prints a value and a line break. Of each tensor at most `limit` elements are printed.
pub fn write_value(out: &mut impl Write, value: &Value, limit: u64) -> io::Result<()> {
    // Lists that are being printed, and the next element of each: nesting must not become recursion.
    let mut open: Vec<(List, u32)> = Vec::new();
    let mut children = 0;
    write_one(out, value, limit, &mut open)?;
    while let Some((list, next)) = open.last_mut() {
        let index = *next;
        *next = next.saturating_add(1);
        if index as usize >= list.len() {
            open.pop();
            writeln!(out)?;
            continue;
        }
        if children == MAX_CHILDREN {
            return writeln!(out, "...");
        }
        children += 1;
        let child = list.get(index).map_err(|error| io::Error::other(error.to_string()))?;
        write!(out, "child_list[{index}]: ")?;
        write_one(out, &child, limit, &mut open)?;
    }
    Ok(())
}

/// Prints a value; of a list only its name, and opens it.
fn write_one(out: &mut impl Write, value: &Value, limit: u64, open: &mut Vec<(List, u32)>) -> io::Result<()> {
    let Some(reference) = value.as_ref() else {
        return writeln!(out, "{}", format_scalar(value).unwrap_or_default());
    };
    match reference {
        Ref::Null => writeln!(out, "(null)"),
        Ref::List(list) if open.iter().any(|(outer, _)| outer.same(list)) => writeln!(out, "vm.list\n(contains itself)"),
        Ref::List(_) if open.len() == MAX_DEPTH => writeln!(out, "vm.list\n..."),
        Ref::List(list) => {
            open.push((list.clone(), 0));
            writeln!(out, "vm.list")
        }
        _ => match reference.downcast::<BufferView>() {
            Some(view) => writeln!(out, "hal.buffer_view\n{}", ViewText::with_limit(view, limit)),
            None => writeln!(out, "{}\n(no printer)", printable(reference.type_name())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmfb_memory::MemoryAccount;
    use vmfb_vm::{Buffer, ElementKind, Handle};

    fn text(value: &Value) -> String {
        let mut bytes = Vec::new();
        write_result(&mut bytes, 0, value, DEFAULT_ELEMENT_LIMIT).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn results_look_as_in_the_official_tool() {
        let view = Handle::new(BufferView::from_f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap());
        let inner = List::of_values([Value::I32(7), Value::Ref(Ref::Null)]).unwrap();
        let list = List::of_values([view.clone().into(), Value::I32(7), Value::F32(1.5e-7), inner.into()]).unwrap();
        let print = "result[0]: vm.list\nchild_list[0]: hal.buffer_view\n2x2xf32=[1 2][3 4]\nchild_list[1]: i32=7\n\
                     child_list[2]: f32=1.5e-07\nchild_list[3]: vm.list\nchild_list[0]: i32=7\nchild_list[1]: (null)\n\n\n";
        assert_eq!(text(&list.into()), print);
        assert_eq!(text(&view.into()), "result[0]: hal.buffer_view\n2x2xf32=[1 2][3 4]\n");
        assert_eq!(text(&Value::I64(-5)), "result[0]: i64=-5\n");
        assert_eq!(text(&Value::Ref(Ref::Null)), "result[0]: (null)\n");
        assert_eq!(text(&Buffer::constant(vec![1]).into()), "result[0]: vm.buffer\n(no printer)\n");
    }

    #[test]
    fn endless_and_huge_lists_come_to_an_end() {
        let list = List::new(ElementKind::Variant, 0, &MemoryAccount::default()).unwrap();
        list.push(list.clone().into()).unwrap();
        assert_eq!(text(&list.clone().into()), "result[0]: vm.list\nchild_list[0]: vm.list\n(contains itself)\n\n");
        list.clear();
        let mut deep = list;
        for _ in 0..100_000 {
            deep = List::of_values([deep.into()]).unwrap();
        }
        assert!(text(&deep.clone().into()).len() < 10_000);
        let mut wide = List::of_values([]).unwrap();
        for _ in 0..60 {
            wide = List::of_values([wide.clone().into(), wide.into()]).unwrap();
        }
        assert!(text(&wide.into()).ends_with("...\n"));
    }
}
