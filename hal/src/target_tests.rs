use super::*;

const MESSAGE: &str = "HAL device `__device_0` not found or unavailable: #hal.device.target<\"local\", \
    [#hal.executable.target<\"llvm-cpu\", \"embedded-elf-x86_64\", {cpu = \"znver4\", cpu_features = \"+avx,-avx2,+fma4\", \
    data_layout = \"e-m:e-{}>,-S128\", iree.encoding.resolver = #iree_cpu.cpu_encoding_resolver<>, \
    nested = {cpu = \"inner\", list = [1, 2]}, max_stack_allocation_size = 2097152 : i64, native_vector_size = 32 : i64}>, \
    #hal.executable.target<\"vmvx\", \"vmvx-bytecode-fb\">]>y";

#[test]
fn targets_are_read_out_of_a_message() {
    let target = StatedTarget {
        device: 1,
        format: "embedded-elf-x86_64".to_owned(),
        cpu: "znver4".to_owned(),
        cpu_features: "+avx,-avx2,+fma4".to_owned(),
        stack_allocation: Some(2 << 20),
    };
    let vmvx = StatedTarget { device: 1, format: "vmvx-bytecode-fb".to_owned(), ..StatedTarget::default() };
    assert_eq!(read_targets(MESSAGE.as_bytes()), [target.clone(), vmvx.clone()]);
    let twice = [b"\x85#\xFF".as_slice(), MESSAGE.as_bytes(), MESSAGE.as_bytes()].concat();
    let devices: Vec<usize> = read_targets(&twice).iter().map(|target| target.device).collect();
    assert_eq!(devices, [1, 1, 2, 2]);
}

#[test]
fn what_is_cut_off_or_odd_is_read_without_harm() {
    for end in 0..MESSAGE.len() {
        read_targets(&MESSAGE.as_bytes()[..end]);
    }
    for text in
        ["#hal.executable.target<", "#hal.executable.target<\"a\", \"b\", {x = )))", "#hal.executable.target<\"a\", \"b\", {=, , }>"]
    {
        assert!(read_targets(text.as_bytes()).len() <= 1, "{text}");
    }
    let many = "#hal.executable.target<\"a\", \"b\">".repeat(1000);
    assert_eq!(read_targets(many.as_bytes()).len(), MOST_TARGETS);
}

#[test]
fn formats_are_described_by_their_architecture() {
    assert_eq!(describe_format("embedded-elf-arm_64"), "aarch64 (embedded-elf-arm_64)");
    assert_eq!(describe_format("system-elf-riscv_64"), "riscv64 (system-elf-riscv_64)");
    assert_eq!(describe_format("cuda-nvptx-fb"), "cuda-nvptx-fb");
}
