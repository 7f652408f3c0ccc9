//! Command-line tools: vm-run, vm-dump.
