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

    /// List the drivers and stop
    #[arg(long = "list_drivers", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false, hide_default_value = true, hide_possible_values = true, action = ArgAction::Set)]
    list_drivers: bool,
}

/// Drivers and what they are. Each has one device.
const DRIVERS: [(&str, &str); 2] =
    [("local-sync", "this machine's processor"), ("local-task", "this machine's processor, the same device under another name")];

impl DeviceArguments {
    /// What was asked for, as text; `None` if nothing was.
    pub fn answer(&self) -> Result<Option<String>> {
        if self.list_drivers {
            return Ok(Some(DRIVERS.iter().map(|(name, meaning)| format!("{name:>16}: {meaning}\n")).collect()));
        }
        let Some(wanted) = &self.list_devices else { return Ok(None) };
        let fits = |name: &str| wanted.is_empty() || wanted == name;
        let devices: String = DRIVERS.iter().filter(|(name, _)| fits(name)).map(|(name, _)| format!("{name}://\n")).collect();
        if devices.is_empty() {
            return Err(Failure::new(Status::NotFound, format!("there is no driver '{wanted}'")).help("see --list_drivers"));
        }
        Ok(Some(devices))
    }
}
