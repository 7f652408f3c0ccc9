//! Flags of the official tools that these tools do not have, and why.

/// A flag of an official tool, or all flags that begin so.
#[derive(Clone, Copy, Debug)]
pub struct OfficialFlag {
    /// Name without dashes; `*` at the end stands for anything.
    pub name: &'static str,
    /// Value that asks for nothing, as the official `--help` prints it; `None` where every value asks for something.
    pub default: Option<&'static str>,
    /// Why it is not supported: the end of a sentence.
    pub because: &'static str,
}

const fn flag(name: &'static str, default: &'static str, because: &'static str) -> OfficialFlag {
    OfficialFlag { name, default: Some(default), because }
}

const fn request(name: &'static str, because: &'static str) -> OfficialFlag {
    OfficialFlag { name, default: None, because }
}

const ONE_DEVICE: &str = "programs run on this machine's processor and on no other device";
const NO_PINNING: &str = "threads are not pinned to processors; --threads sets how many there are";
const NO_REPLAY: &str = "calls of the HAL are not recorded; -vv prints them";
const NO_PROFILE: &str = "there is no profiler of devices; -v prints how long each dispatch takes, and perf sees machine code";
const NO_BENCHMARK: &str = "the measurements are this tool's own; see --iterations, --repetitions, --min_time and --json";
const NO_OUTPUTS: &str = "results are dropped after each call; vm-run prints, writes and compares them";

/// All of them. A flag that a tool has itself is not looked for here.
pub const FLAGS: &[OfficialFlag] = &[
    request("cuda_*", ONE_DEVICE),
    request("hip_*", ONE_DEVICE),
    request("vulkan_*", ONE_DEVICE),
    request("metal_*", ONE_DEVICE),
    request("amdgpu_*", ONE_DEVICE),
    flag("device_lead_allocator", "0", ONE_DEVICE),
    request("device_allocator", "memory comes from the process, within --max-memory"),
    request(
        "executable_plugin",
        "a plugin is machine code of another interface; functions that executables call are part of them, and kernels of your \
         own are registered by a program that embeds the runtime",
    ),
    flag("task_abort_on_failure", "false", "a failed dispatch ends the call with an error, never the process"),
    flag("task_worker_spin_us", "0", "threads without work sleep"),
    flag("task_worker_stack_size", "131072", "the runtime sizes the stacks of its threads itself"),
    flag("task_worker_local_memory", "0", "each workgroup gets the local memory that its executable asks for"),
    flag("task_topology_mode", "physical_cores", NO_PINNING),
    request("task_topology_cpu_ids", NO_PINNING),
    flag("task_topology_nodes", "current", NO_PINNING),
    flag("task_topology_snapshot", "", NO_PINNING),
    flag("task_topology_performance_level", "any", NO_PINNING),
    flag("task_topology_distribution", "scatter", NO_PINNING),
    flag("task_topology_favor", "", NO_PINNING),
    request("dump_task_topologies", NO_PINNING),
    flag("device_replay_output", "", NO_REPLAY),
    flag("device_replay_file_policy", "reference", NO_REPLAY),
    flag("device_replay_file_validation", "identity", NO_REPLAY),
    flag("device_profiling_mode", "", NO_PROFILE),
    flag("device_profiling_output", "", NO_PROFILE),
    flag("device_profiling_filter_function", "", NO_PROFILE),
    flag("device_profiling_filter_command_buffer", "-1", NO_PROFILE),
    flag("device_profiling_filter_command_index", "-1", NO_PROFILE),
    flag("device_profiling_filter_physical_device", "-1", NO_PROFILE),
    flag("device_profiling_filter_queue", "-1", NO_PROFILE),
    request("device_profiling_counter", NO_PROFILE),
    flag("device_profiling_flush_interval_ms", "0", NO_PROFILE),
    flag("print_device_statistics", "false", NO_PROFILE),
    flag("dispatch_statistics", "false", NO_PROFILE),
    flag("device_capture_tool", "", NO_PROFILE),
    flag("device_capture_file", "", NO_PROFILE),
    flag("device_capture_label", "", NO_PROFILE),
    flag("instrument_file", "", "programs are not instrumented; -vv prints what they do"),
    flag("agents_md", "false", "the guidance is about the official tool; see --help"),
    flag("trace_execution", "false", "only vm-run traces"),
    request("list_drivers", "only vm-run lists them"),
    request("list_devices", "only vm-run lists them"),
    request("dump_devices", "only vm-run lists them"),
    flag("print_statistics", "false", "each test has memory of its own; vm-run prints what a call takes"),
    flag("function", "", "the function is chosen in another way; see --help"),
    request("input", "tests take no values"),
    request("module", "one file is shown at a time: name it without a flag"),
    flag("batch_size", "1", NO_BENCHMARK),
    flag("batch_concurrency", "1", "calls of a store follow each other; measure with several processes"),
    request("time_unit", "times are printed in the unit that suits them, with --json in nanoseconds"),
    request("benchmark_*", NO_BENCHMARK),
    flag("enable_output_processing", "false", NO_OUTPUTS),
    request("output", NO_OUTPUTS),
    request("expected_output", NO_OUTPUTS),
    flag("output_max_element_count", "1024", NO_OUTPUTS),
    flag("expected_f16_threshold", "0.001", NO_OUTPUTS),
    flag("expected_f32_threshold", "0.0001", NO_OUTPUTS),
    flag("expected_f64_threshold", "0.0001", NO_OUTPUTS),
    flag("expected_bf16_threshold", "0.01", NO_OUTPUTS),
    flag("expected_rtol", "1e-05", NO_OUTPUTS),
    flag("equality_mode", "approximate", NO_OUTPUTS),
    request("gtest_*", "tests are not run by googletest; see --filter and --list"),
];

/// The entry for a flag with this name, spelled with `-` or `_`.
pub fn find(name: &str) -> Option<&'static OfficialFlag> {
    let name = name.replace('-', "_");
    FLAGS.iter().find(|flag| match flag.name.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => flag.name == name,
    })
}

impl OfficialFlag {
    /// Whether this value asks for nothing that is missing here. Settings of other devices never do.
    pub fn asks_for_nothing(&self, value: &str) -> bool {
        self.default.is_some_and(|default| default == value) || (self.name.ends_with('*') && self.because == ONE_DEVICE)
    }
}

/// Whether a flag file is the output of an official tool's `--help`, which is one once its prose is skipped.
pub fn is_help_text(text: &str) -> bool {
    text.lines().take(3).any(|line| line.starts_with('#') && line.contains("IREE: iree-"))
}
