//! Bytes with several owners, and checked access to them.
//!
//! A [`Span`] is a range of reference-counted storage: a 64-byte aligned zeroed allocation, a file map, or bytes that the
//! host gave. Kernels, two bindings of one dispatch and two threads may alias one storage, so no Rust slice into shared
//! storage leaves this crate: elements are relaxed atomics of their width, bulk operations work word by word.
//!
//! What is not here: modules, access rights of guests, element types.

mod account;
mod bulk;
mod charged;
mod error;
mod exclusive;
mod memory_file;
mod pages;
mod private_view;
mod span;
mod storage;

pub use account::{Charge, MemoryAccount};
pub use charged::ChargedVec;
pub use error::{Error, Result};
pub use exclusive::{Exclusive, Guard};
pub use private_view::PrivateView;
pub use span::Span;
pub use storage::{BASE_ALIGNMENT, STORAGE_OVERHEAD, live_allocations};
