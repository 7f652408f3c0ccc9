//! Values of the command line: parsed or refused, whatever is expected.

use vmfb::bytecode::calling_convention::Kind;
use vmfb::memory::MemoryAccount;
use vmfb_tools::declaration::Slot;
use vmfb_tools::values::ValueReader;

/// The text as a value of every kind. Texts that name files are left out: the fuzzer must not read what it happens to name.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.contains(['@', '+', '*']) {
        return;
    }
    for kind in [Kind::I32, Kind::I64, Kind::F32, Kind::F64, Kind::Ref] {
        let slot = || Slot { kind, declared: None };
        let mut reader = ValueReader::new(MemoryAccount::with_limit(1 << 24));
        let _ = reader.inputs(&[text], &[slot()]);
        let _ = reader.expectations(&[text], &[slot()]);
    }
}
