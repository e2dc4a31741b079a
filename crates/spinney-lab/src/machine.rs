//! The machine of a run, as records carry it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// Foreign load per core from which a measurement counts as noisy.
const FOREIGN_LOAD_PER_CORE_MAX: f64 = 0.5;

/// The one-minute load average.
pub fn load1() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// How many cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Whether others use more than half a core per core; one core is ours.
pub fn is_noisy(load1: Option<f64>) -> bool {
    load1.is_some_and(|load| (load - 1.0).max(0.0) / cores() as f64 > FOREIGN_LOAD_PER_CORE_MAX)
}

/// The file system that holds `folder`, by its name in `/proc/self/mounts`.
pub fn file_system(folder: &Path) -> Option<(String, String)> {
    let folder = folder.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            let (device, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
            folder.starts_with(point).then_some((point.len(), kind, device))
        })
        .max_by_key(|(depth, ..)| *depth)
        .map(|(_, kind, device)| (kind.to_owned(), device.to_owned()))
}

/// Processor, memory, system and disk below `folder`; null where the system does not tell.
pub fn describe(folder: &Path) -> Value {
    let (fs, disk) = file_system(folder).unzip();
    let uname = rustix::system::uname();
    let ram_bytes = {
        let info = rustix::system::sysinfo();
        info.totalram as u64 * u64::from(info.mem_unit)
    };
    json!({
        "cpu": field("/proc/cpuinfo", "model name", ':'),
        "cores": cores(),
        "ram": ram_bytes,
        "os": field("/etc/os-release", "PRETTY_NAME", '='),
        "kernel": uname.release().to_string_lossy(),
        "fs": fs,
        "disk": disk,
        "governor": fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            .ok().map(|text| text.trim().to_owned()),
        "load1": load1(),
    })
}

fn field(path: &str, name: &str, separator: char) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let (_, value) = text
        .lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(key, _)| key.trim() == name)?;
    Some(value.trim().trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described() {
        let machine = describe(Path::new("."));
        assert!(machine["cores"].as_u64().expect("a count") >= 1);
        assert!(machine["fs"].is_string() && machine["kernel"].is_string(), "{machine}");
    }

    #[test]
    fn one_core_of_load_is_our_own() {
        assert!(!is_noisy(Some(1.0)));
        assert!(is_noisy(Some(1.6 + cores() as f64)));
    }
}
