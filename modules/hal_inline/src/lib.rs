//! The hal_inline native module: buffers and buffer views without a device.
