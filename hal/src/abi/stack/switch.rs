//! Stacks of our own, and the switch to them.

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::ptr;
use vmfb_vm::{Error, Result};

thread_local! {
    /// The thread's stack.
    static BOUNDS: Cell<Bounds> = const { Cell::new(Bounds { low: 0, high: 0, found: false }) };
    /// The stack that the thread keeps.
    static OWN: Own = const { Own { top: Cell::new(ptr::null_mut()), size: Cell::new(0), busy: Cell::new(false) } };
    /// Its owner.
    static KEPT: Kept = const { Kept(Cell::new(None)) };
}

/// Above the first frame: what looks for a frame behind it finds zeros.
const TOP_SLACK: usize = 4096;

/// Lowest and highest address of a stack; both 0 where not known.
#[derive(Clone, Copy)]
struct Bounds {
    low: usize,
    high: usize,
    found: bool,
}

impl Bounds {
    fn left_below(self, address: usize) -> usize {
        if address < self.high { address.saturating_sub(self.low) } else { 0 }
    }
}

/// The stack that a thread keeps; of no bytes where there is none.
struct Own {
    top: Cell<*mut u8>,
    size: Cell<usize>,
    /// Whether a call is on it, or on one that is new.
    busy: Cell<bool>,
}

/// Ends with the thread; what runs later on the thread finds no stack.
struct Kept(Cell<Option<Stack>>);

impl Drop for Kept {
    fn drop(&mut self) {
        OWN.with(|own| own.size.set(0));
    }
}

/// Bytes that are left of the thread's stack; 0 on a stack that is not the thread's.
#[inline]
pub(super) fn remaining() -> usize {
    let bounds = BOUNDS.get();
    let here = address();
    if here < bounds.high { bounds.left_below(here) } else { remaining_elsewhere(bounds) }
}

/// The same, where the bounds are not known yet or the stack is another.
#[cold]
fn remaining_elsewhere(bounds: Bounds) -> usize {
    if bounds.found { 0 } else { find_bounds().left_below(address()) }
}

/// About where the stack ends.
#[inline]
fn address() -> usize {
    let here = 0u8;
    (&raw const here).addr()
}

/// Runs `work` on a stack with room for `size` bytes.
#[inline]
pub(super) fn on_own_stack<R, F: FnMut() -> R>(size: usize, work: F) -> Result<R> {
    OWN.with(|own| {
        if own.busy.get() || own.size.get() < size {
            return on_new_stack(own, size, work);
        }
        own.busy.set(true);
        // SAFETY: the thread owns the stack until it ends, and while it is busy no other call is made on it.
        let result = unsafe { run_at(own.top.get(), work) };
        own.busy.set(false);
        result
    })
}

/// The same, on a stack that is new. The thread keeps it, unless a call is on the one that it has.
#[cold]
fn on_new_stack<R, F: FnMut() -> R>(own: &Own, size: usize, work: F) -> Result<R> {
    let stack = Stack::new(size)?;
    let top = stack.top();
    let busy = own.busy.replace(true);
    // SAFETY: the stack is new, and no other call is on it while this function owns it.
    let result = unsafe { run_at(top, work) };
    own.busy.set(busy);
    if !busy && KEPT.try_with(|kept| kept.0.set(Some(stack))).is_ok() {
        own.top.set(top);
        own.size.set(size);
    }
    result
}

/// Runs `work` on a stack.
///
/// # Safety
/// `top` is the aligned top of a stack that is not in use and stays until this returns.
#[inline]
unsafe fn run_at<R, F: FnMut() -> R>(top: *mut u8, work: F) -> Result<R> {
    let mut job = Job { work, result: None };
    // SAFETY: by the contract of this function. `enter` is given the job that it is made for, which is not used elsewhere until
    // it returns.
    unsafe { call_on(top, enter::<R, F>, (&raw mut job).cast()) };
    job.result.ok_or_else(|| Error::internal("work on a stack of its own left no result"))
}

/// What is to be done on another stack.
struct Job<R, F> {
    work: F,
    result: Option<R>,
}

/// Does a job. A panic cannot leave this function: it ends the process.
extern "C" fn enter<R, F: FnMut() -> R>(job: *mut c_void) {
    // SAFETY: `run_at` gives a job of this type, which it does not touch meanwhile.
    let job = unsafe { &mut *job.cast::<Job<R, F>>() };
    job.result = Some((job.work)());
}

/// Memory for a stack, with a guard of the same size below it.
#[derive(Debug)]
pub(super) struct Stack {
    base: *mut u8,
    length: usize,
}

impl Stack {
    #[cold]
    pub(super) fn new(size: usize) -> Result<Self> {
        Self::map(size).map_err(|error| Error::exhausted(format!("no {size} bytes of stack for machine code: {error}")))
    }

    fn map(size: usize) -> io::Result<Self> {
        let page = rustix::param::page_size().max(TOP_SLACK);
        // Frames of this crate, and what lies above the first one.
        let usable = size.checked_add(page.saturating_mul(5)).and_then(|bytes| bytes.checked_next_multiple_of(page));
        let usable = usable.ok_or(io::ErrorKind::OutOfMemory)?;
        let length = usable.checked_mul(2).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new private mapping at an address that the system chooses touches no memory of anybody.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), MapFlags::PRIVATE)? };
        let stack = Self { base: base.cast(), length };
        // SAFETY: the upper half of the mapping, which nobody uses yet.
        unsafe { mprotect(base.wrapping_byte_add(length - usable), usable, MprotectFlags::READ | MprotectFlags::WRITE)? };
        #[cfg(target_os = "linux")]
        // SAFETY: as above. Small pages are to be taken one by one; a system that does not know the advice goes on without.
        unsafe {
            let _ = rustix::mm::madvise(base, length, rustix::mm::Advice::LinuxNoHugepage);
        }
        Ok(stack)
    }

    /// Where the first frame begins: a multiple of 16.
    pub(super) fn top(&self) -> *mut u8 {
        self.base.wrapping_add(self.length - TOP_SLACK)
    }

    /// Lowest address that may be used.
    #[cfg(test)]
    pub(super) fn bottom(&self) -> usize {
        self.base.addr() + self.length / 2
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and no call is on it: each is made by a function that keeps it.
        let _ = unsafe { munmap(self.base.cast(), self.length) };
    }
}

/// Calls a function on another stack.
///
/// # Safety
/// `top` is the aligned top of a stack that is not in use, and the function may be called with the job.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn call_on(top: *mut u8, function: extern "C" fn(*mut c_void), job: *mut c_void) {
    // SAFETY: the stack pointer is kept in a register that functions preserve; all others that they may change are declared.
    unsafe {
        std::arch::asm!(
            "xchg rsp, r12",
            "call {function}",
            "mov rsp, r12",
            function = in(reg) function,
            inout("r12") top => _,
            in("rdi") job,
            clobber_abi("sysv64"),
        );
    }
}

/// Calls a function on another stack.
///
/// # Safety
/// `top` is the aligned top of a stack that is not in use, and the function may be called with the job.
#[cfg(target_arch = "aarch64")]
#[inline]
unsafe fn call_on(top: *mut u8, function: extern "C" fn(*mut c_void), job: *mut c_void) {
    // SAFETY: the stack pointer is kept in a register that functions preserve; all others that they may change are declared.
    unsafe {
        std::arch::asm!(
            "mov x20, sp",
            "mov sp, {top}",
            "blr {function}",
            "mov sp, x20",
            top = in(reg) top,
            function = in(reg) function,
            out("x20") _,
            in("x0") job,
            clobber_abi("C"),
        );
    }
}

/// Calls a function on another stack.
///
/// # Safety
/// `top` is the aligned top of a stack that is not in use, and the function may be called with the job.
#[cfg(target_arch = "riscv64")]
#[inline]
unsafe fn call_on(top: *mut u8, function: extern "C" fn(*mut c_void), job: *mut c_void) {
    // SAFETY: the stack pointer is kept in a register that functions preserve; all others that they may change are declared.
    unsafe {
        std::arch::asm!(
            "mv s2, sp",
            "mv sp, {top}",
            "jalr {function}",
            "mv sp, s2",
            top = in(reg) top,
            function = in(reg) function,
            out("s2") _,
            in("a0") job,
            clobber_abi("C"),
        );
    }
}

#[cold]
fn find_bounds() -> Bounds {
    let (low, high) = thread_bounds().unwrap_or((0, 0));
    let bounds = Bounds { low, high, found: true };
    BOUNDS.set(bounds);
    bounds
}

/// Lowest and highest address of this thread's stack, as the C library knows them.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn thread_bounds() -> Option<(usize, usize)> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut low, mut size, mut guard) = (ptr::null_mut(), 0, 0);
    // SAFETY: the attributes are written by the first call, if it succeeds, and released by the last one; all pointers are to
    // variables of this function.
    let found = unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size) == 0
            && libc::pthread_attr_getguardsize(attributes.as_ptr(), &raw mut guard) == 0;
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        found
    };
    // Some libraries count the guard in.
    found.then(|| (low.addr().saturating_add(guard), low.addr().saturating_add(size)))
}

/// Lowest and highest address of this thread's stack, as the C library knows them.
#[cfg(target_vendor = "apple")]
fn thread_bounds() -> Option<(usize, usize)> {
    // SAFETY: both functions only read what is known of the thread.
    let (high, size) = unsafe {
        let thread = libc::pthread_self();
        (libc::pthread_get_stackaddr_np(thread).addr(), libc::pthread_get_stacksize_np(thread))
    };
    Some((high.saturating_sub(size), high))
}

/// Not known here: kernels always run on stacks of their own.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn thread_bounds() -> Option<(usize, usize)> {
    None
}
