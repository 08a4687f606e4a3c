//! Total and available memory of the host, or of the control group that this process is in.

use std::path::{Path, PathBuf};
use sysinfo::System;
use xmem_types::Bytes;

/// The host, with the control groups that limit this process.
#[derive(Debug)]
pub(crate) struct Host {
    system: System,
    groups: Vec<Group>,
}

/// Total and available memory at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostMemory {
    /// Total memory.
    pub(crate) total: Bytes,
    /// Memory that can be allocated without swapping.
    pub(crate) available: Bytes,
}

impl HostMemory {
    /// True if so little is available that the kernel may soon kill a process. The thresholds allow for
    /// the growth of a job between two measurements, and for the export.
    pub(crate) fn is_short(self) -> bool {
        let part = Bytes(self.total.get() / 32);
        self.available < part.clamp(Bytes::mib(192), Bytes::gib(2))
    }
}

impl Host {
    /// The host of this process.
    pub(crate) fn new() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let groups = groups(&read("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"));
        Self { system: System::new(), groups }
    }

    /// The memory now: the minimum over the host and the groups.
    pub(crate) fn memory(&mut self) -> HostMemory {
        self.system.refresh_memory();
        let host = HostMemory {
            total: Bytes(self.system.total_memory()),
            available: Bytes(self.system.available_memory()),
        };
        self.groups.iter().filter_map(Group::memory).fold(host, |a, b| HostMemory {
            total: a.total.min(b.total),
            available: a.available.min(b.available),
        })
    }
}

/// A control group with its files.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    folder: PathBuf,
    files: Files,
}

/// The names of the files in a version of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Files {
    limit: &'static str,
    used: &'static str,
    inactive: &'static str,
    active: &'static str,
}

/// Kernel documentation, `admin-guide/cgroup-v2.rst`, "Memory Interface Files".
const V2: Files = Files {
    limit: "memory.max",
    used: "memory.current",
    inactive: "inactive_file",
    active: "active_file",
};

/// Kernel documentation, `admin-guide/cgroup-v1/memory.rst`.
const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    inactive: "total_inactive_file",
    active: "total_active_file",
};

impl Group {
    /// Its memory; `None` if it has no limit.
    fn memory(&self) -> Option<HostMemory> {
        let read = |name: &str| std::fs::read_to_string(self.folder.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let total = number(self.files.limit)?;
        let used = number(self.files.used)?;
        if used < total / 2 {
            // `memory.stat` is slow to read, and the caches do not matter yet.
            return Some(HostMemory { total: Bytes(total), available: Bytes(total - used) });
        }
        let stat = read("memory.stat").unwrap_or_default();
        // The kernel reclaims pages of files before it kills.
        let files: u64 =
            [self.files.inactive, self.files.active].iter().filter_map(|n| entry(&stat, n)).sum();
        let available = total.saturating_sub(used.saturating_sub(files));
        Some(HostMemory { total: Bytes(total), available: Bytes(available) })
    }
}

fn entry(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The groups that limit a process, from `/proc/self/cgroup` (cgroups(7)): its own, and all above.
fn groups(own: &str, mount: &Path) -> Vec<Group> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (root, files) = if controllers.is_empty() {
            (mount.to_owned(), V2)
        } else if controllers.split(',').any(|c| c == "memory") {
            (mount.join("memory"), V1)
        } else {
            continue;
        };
        // In a container, the path may be the one outside; the mount's root is the container's group.
        let below = root.join(path.trim_start_matches('/'));
        let chain = below.ancestors().take_while(|a| a.starts_with(&root));
        found.extend(chain.map(|folder| Group { folder: folder.to_owned(), files }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and contents.
    type FileRows<'a> = &'a [(&'a str, &'a str)];

    fn write(root: &Path, files: FileRows<'_>) {
        for (name, content) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().expect("below the root")).expect("made");
            std::fs::write(path, content).expect("written");
        }
    }

    #[test]
    fn the_tightest_group_above_counts_and_pages_of_files_are_free() {
        let rows: [(&str, FileRows<'_>, &[HostMemory]); 4] = [
            (
                "0::/job/step\n",
                &[
                    ("memory.max", "max\n"),
                    ("memory.current", "1\n"),
                    ("job/memory.max", "1000\n"),
                    ("job/memory.current", "900\n"),
                    ("job/memory.stat", "anon 5\ninactive_file 300\nactive_file 50\n"),
                    ("job/step/memory.max", "800\n"),
                    ("job/step/memory.current", "100\n"),
                ],
                &[
                    HostMemory { total: Bytes(800), available: Bytes(700) },
                    HostMemory { total: Bytes(1000), available: Bytes(450) },
                ],
            ),
            // The path outside a container does not exist in it, the root of the mount does.
            (
                "0::/kubepods/pod1\n",
                &[("memory.max", "1000"), ("memory.current", "1500")],
                &[HostMemory { total: Bytes(1000), available: Bytes(0) }],
            ),
            (
                "5:cpu,cpuacct:/x\n4:memory:/docker/1\n",
                &[
                    ("memory/memory.limit_in_bytes", "1000"),
                    ("memory/memory.usage_in_bytes", "600"),
                    ("memory/memory.stat", "inactive_file 7\ntotal_inactive_file 100"),
                ],
                &[HostMemory { total: Bytes(1000), available: Bytes(500) }],
            ),
            ("", &[], &[]),
        ];
        for (own, files, expected) in rows {
            let root = tempfile::tempdir().expect("a folder");
            write(root.path(), files);
            let found: Vec<HostMemory> =
                groups(own, root.path()).iter().filter_map(Group::memory).collect();
            assert_eq!(found, expected, "{own}");
        }
    }

    #[test]
    fn the_threshold_is_a_part_of_the_total_within_bounds() {
        let rows = [
            (Bytes::gib(4), Bytes::mib(190), true),
            (Bytes::gib(4), Bytes::mib(200), false),
            (Bytes::gib(32), Bytes::mib(1000), true),
            (Bytes::gib(32), Bytes::mib(1100), false),
            (Bytes::gib(1024), Bytes::gib(3), false),
        ];
        for (total, available, short) in rows {
            assert_eq!(HostMemory { total, available }.is_short(), short, "{available} of {total}");
        }
    }

    #[test]
    fn this_host_has_memory() {
        let memory = Host::new().memory();
        assert!(memory.total > Bytes::mib(16) && memory.available <= memory.total, "{memory:?}");
    }
}
