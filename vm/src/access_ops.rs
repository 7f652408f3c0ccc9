//! The ops that read and write elements of buffers: one table that gives their internal opcodes and their execution.
//!
//! Each access exists in several forms, which differ in how the index of the element is computed; compiled kernels compute an index
//! right before almost every access.

/// Hands the table to a macro. A row names the opcodes of an access for an index that is a register, the sum of two registers, of
/// three, a product and a sum, a product and two sums, and a bitwise and; then the method of `Span` and the conversion from or to a
/// register. Tokens behind the consumer's name go in front of the table.
macro_rules! for_each_access_op {
    ($consumer:ident $($extra:tt)*) => {
        $consumer! {
        $($extra)*
        load {
            BufferLoadI8U BufferLoadI8USum BufferLoadI8USum3 BufferLoadI8UFma BufferLoadI8UFmaSum BufferLoadI8UAnd
                = load_element_u8 -> u32 = u32::from;
            BufferLoadI8S BufferLoadI8SSum BufferLoadI8SSum3 BufferLoadI8SFma BufferLoadI8SFmaSum BufferLoadI8SAnd
                = load_element_u8 -> i32 = |value: u8| i32::from(value as i8);
            BufferLoadI16U BufferLoadI16USum BufferLoadI16USum3 BufferLoadI16UFma BufferLoadI16UFmaSum BufferLoadI16UAnd
                = load_element_u16 -> u32 = u32::from;
            BufferLoadI16S BufferLoadI16SSum BufferLoadI16SSum3 BufferLoadI16SFma BufferLoadI16SFmaSum BufferLoadI16SAnd
                = load_element_u16 -> i32 = |value: u16| i32::from(value as i16);
            BufferLoad32 BufferLoad32Sum BufferLoad32Sum3 BufferLoad32Fma BufferLoad32FmaSum BufferLoad32And
                = load_element_u32 -> u32 = |value: u32| value;
            BufferLoad64 BufferLoad64Sum BufferLoad64Sum3 BufferLoad64Fma BufferLoad64FmaSum BufferLoad64And
                = load_element_u64 -> u64 = |value: u64| value;
        }
        store {
            BufferStore8 BufferStore8Sum BufferStore8Sum3 BufferStore8Fma BufferStore8FmaSum BufferStore8And
                = store_element_u8 <- u32 = |value: u32| value as u8;
            BufferStore16 BufferStore16Sum BufferStore16Sum3 BufferStore16Fma BufferStore16FmaSum BufferStore16And
                = store_element_u16 <- u32 = |value: u32| value as u16;
            BufferStore32 BufferStore32Sum BufferStore32Sum3 BufferStore32Fma BufferStore32FmaSum BufferStore32And
                = store_element_u32 <- u32 = |value: u32| value;
            BufferStore64 BufferStore64Sum BufferStore64Sum3 BufferStore64Fma BufferStore64FmaSum BufferStore64And
                = store_element_u64 <- u64 = |value: u64| value;
        }
        }
    };
}
pub(crate) use for_each_access_op;
