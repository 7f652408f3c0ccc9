//! Bytes with several owners: aligned allocations, file maps, static and owned bytes, with checked element access.
