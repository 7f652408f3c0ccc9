//! The devices that `--device` names, listed as the official tool lists them.

use crate::failure::{Failure, Result};
use clap::{ArgAction, Args};
use vmfb_vm::Status;

/// Questions about devices.
#[derive(Args, Clone, Debug)]
pub struct DeviceArguments {
    /// List the devices, or those of one driver, and stop
    #[arg(
        long = "list_devices",
        value_name = "DRIVER",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    list_devices: Option<String>,

    /// Describe the devices, or those of one driver, and stop
    #[arg(
        long = "dump_devices",
        value_name = "DRIVER",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    dump_devices: Option<String>,

    /// List the drivers and stop
    #[arg(long = "list_drivers", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    list_drivers: bool,
}

/// Drivers and what they are. Each has one device.
const DRIVERS: [(&str, &str); 2] =
    [("local-sync", "this machine's processor"), ("local-task", "this machine's processor, the same device under another name")];

/// What the official tool says of a device, and what the machine has.
fn description(name: &str) -> String {
    let (thick, thin) = ("=".repeat(76), "-".repeat(68));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "# {thick}\n# Enumerated devices for driver '{name}'\n# {thick}\n\n# ==={thin}===\n# --device={name}://\n#   default\n\
         # ==={thin}===\n#   architecture: {}\n#   threads that run at once: {processors}\n\n",
        std::env::consts::ARCH
    )
}

impl DeviceArguments {
    /// What was asked for, as text; `None` if nothing was.
    pub fn answer(&self) -> Result<Option<String>> {
        if self.list_drivers {
            return Ok(Some(DRIVERS.iter().map(|(name, meaning)| format!("{name:>16}: {meaning}\n")).collect()));
        }
        let (wanted, form): (_, fn(&str) -> String) = match (&self.list_devices, &self.dump_devices) {
            (Some(wanted), _) => (wanted, |name| format!("{name}://\n")),
            (None, Some(wanted)) => (wanted, description),
            (None, None) => return Ok(None),
        };
        let fits = |name: &str| wanted.is_empty() || wanted == name;
        let devices: String = DRIVERS.iter().filter(|(name, _)| fits(name)).map(|(name, _)| form(name)).collect();
        if devices.is_empty() {
            return Err(Failure::new(Status::NotFound, format!("there is no driver '{wanted}'")).help("see --list_drivers"));
        }
        Ok(Some(devices))
    }
}
