//! What every HAL flavour shares: element types, buffers, buffer views, executables and the executable-library ABI.
