//! The meter of a control group against the kernel's own files.

use edgeloom_common::units::{Bytes, MilliCores};
use edgeloom_observe::meter::Meter;
use std::fs;
use std::path::{Path, PathBuf};

/// A group of the test's own, in whichever version this kernel has mounted with cpu and memory.
struct Group {
    name: String,
    dirs: Vec<PathBuf>,
}

impl Group {
    fn with_limits(settings_v1: [(&str, &str); 3], settings_v2: [(&str, &str); 2]) -> Self {
        let name = format!("edgeloom-meter-{}", std::process::id());
        let mounts = Path::new("/sys/fs/cgroup");
        if mounts.join("cpu").is_dir() {
            let dirs = ["cpu", "cpuacct", "memory"].map(|controller| mounts.join(controller).join(&name));
            Self::make(name, dirs.into(), &settings_v1)
        } else {
            Self::make(name.clone(), vec![mounts.join(name)], &settings_v2)
        }
    }

    fn make(name: String, dirs: Vec<PathBuf>, settings: &[(&str, &str)]) -> Self {
        dirs.iter().for_each(|dir| fs::create_dir_all(dir).unwrap());
        let group = Self { name, dirs };
        for (file, value) in settings {
            let found = group.dirs.iter().map(|dir| dir.join(file)).find(|path| path.exists());
            fs::write(found.unwrap_or_else(|| panic!("no {file} in {:?}", group.dirs)), value).unwrap();
        }
        group
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for dir in &self.dirs {
            let _ = fs::remove_dir(dir);
        }
    }
}

#[test]
fn quota_and_limit_of_a_real_group_are_its_capacity() {
    if !edgeloom_prepare::lab_allowed(&[]) {
        return;
    }
    let v1 = [
        ("cpu.cfs_period_us", "100000"),
        ("cpu.cfs_quota_us", "35000"),
        ("memory.limit_in_bytes", "67108864"),
    ];
    let group = Group::with_limits(v1, [("cpu.max", "35000 100000"), ("memory.max", "67108864")]);
    let mut meter = Meter::open(Some(&group.name)).unwrap();
    let capacity = meter.capacity().unwrap();
    assert_eq!((capacity.cpu, capacity.memory), (MilliCores(350), Bytes(67_108_864)));
    let load = meter.load().unwrap();
    assert_eq!(load.cpu, MilliCores(0), "nothing runs in the group");
    assert!(load.memory <= capacity.memory);
}
