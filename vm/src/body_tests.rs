//! What [`Body::check`] refuses: the threaded core has no other check of where ops lead.

use super::*;
use crate::code::Inst;
use vmfb_bytecode::Status;

fn checked(code: &[(Code, u32)], lists: Vec<Box<[u32]>>) -> std::result::Result<(), Status> {
    let ops = code.iter().map(|(code, imm)| ThreadedOp::new(Inst::new(*code, [0; 5], *imm)));
    let body = Body {
        code: ops.collect(),
        pcs: vec![0; code.len()].into(),
        late_pcs: Box::default(),
        lists: lists.into(),
        messages: Box::default(),
        calls: Box::default(),
        zeroed: Box::default(),
        value_slots: 2,
        ref_slots: 0,
    };
    body.check().map_err(|error| error.status())
}

#[test]
fn branches_lead_to_ops() {
    for code in [Code::Br, Code::BrIf, Code::BrUnless, Code::BrLtI32S, Code::AddBrLtI32S, Code::AddBrLtI64S, Code::Yield] {
        // From the first of three ops: to the last one, one past the end, and in front of the first.
        for (distance, wanted) in [(2, Ok(())), (3, Err(Status::Internal)), (-1, Err(Status::Internal))] {
            let ops = [(code, encode_distance(distance)), (Code::Const32, 0), (Code::Return0, 0)];
            assert_eq!(checked(&ops, Vec::new()), wanted, "{code:?} {distance}");
        }
    }
}

#[test]
fn tables_lead_to_ops() {
    for (distance, wanted) in [(1, Ok(())), (0, Ok(())), (2, Err(Status::Internal)), (-1, Err(Status::Internal))] {
        let table = [encode_distance(1), encode_distance(distance)];
        assert_eq!(checked(&[(Code::BrTable, 0), (Code::Return0, 0)], vec![table.into()]), wanted, "{distance}");
    }
    assert_eq!(checked(&[(Code::BrTable, 0), (Code::Return0, 0)], vec![Box::default()]), Err(Status::Internal));
    assert_eq!(checked(&[(Code::BrTable, 1), (Code::Return0, 0)], vec![[0].into()]), Err(Status::Internal));
}

#[test]
fn the_last_op_does_not_fall_through() {
    for code in [Code::Return, Code::Return0, Code::Return32, Code::Return64, Code::Fail] {
        assert_eq!(checked(&[(Code::Const32, 0), (code, 0)], Vec::new()), Ok(()), "{code:?}");
    }
    for code in [Code::Const32, Code::AddI32, Code::Call, Code::CallImport, Code::BrIf, Code::AddBrLtI64S, Code::Poll, Code::Fuel] {
        assert_eq!(checked(&[(code, encode_distance(-1)), (code, encode_distance(-1))], Vec::new()), Err(Status::Internal), "{code:?}");
    }
    assert_eq!(checked(&[], Vec::new()), Err(Status::Internal));
}
