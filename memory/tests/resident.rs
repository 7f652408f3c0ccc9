//! What private views of a large file take, measured on the process. Alone in its process, as tests beside it would be counted.
#![cfg(target_os = "linux")]

use vmfb_memory::{MemoryAccount, PrivateView, Span};

const MIB: u64 = 1 << 20;

/// Bytes that the process has in memory now.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Eight views of 256 MiB, one page of each written: what was not touched takes no memory.
#[test]
fn views_of_a_large_file_take_the_pages_that_are_written() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(256 * MIB).unwrap();
    let account = MemoryAccount::with_limit(MIB);
    let before = resident();
    let constant = Span::map_file(&file).unwrap();
    let views: Vec<PrivateView> = (0..8).map(|_| PrivateView::of(&constant, &account).unwrap()).collect();
    for (index, view) in views.iter().enumerate() {
        let at = index * 16 * MIB as usize + 100;
        view.span().store_u8(at, 1).unwrap();
        assert!(!view.is_unchanged(at, 1).unwrap());
        assert_eq!(constant.load_u8(at), Some(0));
        // A view that was written at all is looked at page by page.
        assert!(view.is_unchanged(200 * MIB as usize, 8 * MIB as usize).unwrap());
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 4 * MIB, "{grown} bytes more");
}
