//! What `--print_statistics` shows of the memory that a program took.

use vmfb_memory::MemoryAccount;

/// The most bytes at one time and those that are live now, in the lines and columns of the official tool. Everything lives in
/// the memory of one device; bytes that were allocated and freed in all are not counted.
pub fn text(device: &[String], account: &MemoryAccount) -> String {
    let device = device.first().map_or("local-task", |name| name.trim_end_matches("://"));
    format!("Device: {device}\n[[ memory statistics ]]\nDEVICE_LOCAL: {:>12}B peak / {:>12}B live\n", account.peak(), account.used())
}
