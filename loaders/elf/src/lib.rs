//! Loader of embedded ELF executables: parse, lay out, relocate, protect, call.
