//! The tree of the command's processes: members, memory, signals.

use crate::message::ProcessId;
use nix::sys::signal::{Signal, kill};
use std::collections::BTreeMap;
use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System};
use xmem_types::Bytes;

/// The command and all processes that it started.
#[derive(Debug)]
pub(crate) struct Tree {
    root: Pid,
    system: System,
    members: BTreeMap<Pid, Member>,
}

/// A process that existed at the last refresh.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// Start time in seconds, which distinguishes it from a later process of the same number.
    started: u64,
    resident: Bytes,
}

impl Member {
    /// A process, unless it has ended.
    fn of(process: &Process) -> Option<Self> {
        let ended = matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead);
        (!ended).then(|| Self { started: process.start_time(), resident: Bytes(process.memory()) })
    }

    fn is_the_same(&self, before: Option<&Self>) -> bool {
        before.is_some_and(|before| before.started == self.started)
    }
}

impl Tree {
    /// The tree of the process `root`.
    pub(crate) fn of(root: ProcessId) -> Self {
        let mut tree =
            Self { root: Pid::from_u32(root), system: System::new(), members: BTreeMap::new() };
        tree.refresh();
        tree
    }

    /// Finds the members among all processes of the host. A process whose parent has ended stays a
    /// member.
    pub(crate) fn refresh(&mut self) {
        self.update(ProcessesToUpdate::All, ProcessRefreshKind::nothing());
        let mut others: BTreeMap<Pid, (Option<Pid>, Member)> = self
            .system
            .processes()
            .values()
            .filter_map(|process| Some((process.pid(), (process.parent(), Member::of(process)?))))
            .collect();
        let before = std::mem::take(&mut self.members);
        let mut found: Vec<Pid> = others
            .iter()
            .filter(|(pid, (_, now))| **pid == self.root || now.is_the_same(before.get(pid)))
            .map(|(pid, _)| *pid)
            .collect();
        while let Some(pid) = found.pop() {
            if let Some((_, member)) = others.remove(&pid) {
                self.members.insert(pid, member);
            }
            let is_child = |(_, (parent, _)): &(&Pid, &(Option<Pid>, Member))| *parent == Some(pid);
            found.extend(others.iter().filter(is_child).map(|(child, _)| *child));
        }
        self.refresh_members();
    }

    /// Updates the members that existed at the last refresh, which is cheap.
    pub(crate) fn refresh_members(&mut self) {
        let pids: Vec<Pid> = self.members.keys().copied().collect();
        self.update(ProcessesToUpdate::Some(&pids), ProcessRefreshKind::nothing().with_memory());
        let system = &self.system;
        self.members.retain(|pid, member| {
            let now = system.process(*pid).and_then(Member::of);
            match now.filter(|now| now.is_the_same(Some(member))) {
                Some(now) => {
                    *member = now;
                    true
                }
                None => false,
            }
        });
    }

    fn update(&mut self, which: ProcessesToUpdate<'_>, what: ProcessRefreshKind) {
        self.system.refresh_processes_specifics(which, true, what.without_tasks());
    }

    /// True if a process existed at the last refresh.
    pub(crate) fn has(&self, pid: ProcessId) -> bool {
        self.members.contains_key(&Pid::from_u32(pid))
    }

    /// Resident memory of all members at the last refresh. Shared memory counts for each of them.
    pub(crate) fn resident(&self) -> Bytes {
        self.members.values().map(|m| m.resident).sum()
    }

    /// Resident memory of all members now. Shared memory counts once where the platform reports it
    /// (Linux). It is slow: the kernel walks through all pages.
    pub(crate) fn proportional(&self) -> Bytes {
        self.members.iter().map(|(pid, m)| proportional_set_size(*pid).unwrap_or(m.resident)).sum()
    }

    /// Sends a signal to all members of the last refresh.
    pub(crate) fn signal(&self, signal: Signal) {
        for pid in self.members.keys() {
            send(pid.as_u32(), signal);
        }
    }
}

/// Sends a signal to a process, if it still exists.
pub(crate) fn send(pid: ProcessId, signal: Signal) {
    if let Ok(raw) = i32::try_from(pid)
        && raw > 0
    {
        // It may have ended since.
        let _ = kill(nix::unistd::Pid::from_raw(raw), signal);
    }
}

/// The memory of a process with its share of shared pages (proc(5), `/proc/pid/smaps_rollup`, `Pss`).
fn proportional_set_size(pid: Pid) -> Option<Bytes> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib * xmem_types::KIB))
}
