//! The command's processes: which there are, what memory they have, and how they are ended.

use crate::message::ProcessId;
use nix::sys::signal::{Signal, kill};
use std::collections::BTreeMap;
use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System};
use xmem_types::Bytes;

/// The command and all that it started.
#[derive(Debug)]
pub(crate) struct Tree {
    root: Pid,
    system: System,
    members: BTreeMap<Pid, Member>,
}

/// A process that was there at the last look.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// In seconds: tells it from another one that got its number.
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
    /// That of the process `root`.
    pub(crate) fn of(root: ProcessId) -> Self {
        let mut tree =
            Self { root: Pid::from_u32(root), system: System::new(), members: BTreeMap::new() };
        tree.look();
        tree
    }

    /// Looks who is there, through all processes of the host. A process whose parent has ended stays a
    /// member.
    pub(crate) fn look(&mut self) {
        self.refresh(ProcessesToUpdate::All, ProcessRefreshKind::nothing());
        let mut strangers: BTreeMap<Pid, (Option<Pid>, Member)> = self
            .system
            .processes()
            .values()
            .filter_map(|process| Some((process.pid(), (process.parent(), Member::of(process)?))))
            .collect();
        let before = std::mem::take(&mut self.members);
        let mut found: Vec<Pid> = strangers
            .iter()
            .filter(|(pid, (_, now))| **pid == self.root || now.is_the_same(before.get(pid)))
            .map(|(pid, _)| *pid)
            .collect();
        while let Some(pid) = found.pop() {
            if let Some((_, member)) = strangers.remove(&pid) {
                self.members.insert(pid, member);
            }
            let is_child = |(_, (parent, _)): &(&Pid, &(Option<Pid>, Member))| *parent == Some(pid);
            found.extend(strangers.iter().filter(is_child).map(|(child, _)| *child));
        }
        self.look_at_members();
    }

    /// Looks only at those that were there at the last look, which is cheap.
    pub(crate) fn look_at_members(&mut self) {
        let pids: Vec<Pid> = self.members.keys().copied().collect();
        self.refresh(ProcessesToUpdate::Some(&pids), ProcessRefreshKind::nothing().with_memory());
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

    fn refresh(&mut self, which: ProcessesToUpdate<'_>, what: ProcessRefreshKind) {
        self.system.refresh_processes_specifics(which, true, what.without_tasks());
    }

    /// Whether a process was there at the last look.
    pub(crate) fn has(&self, pid: ProcessId) -> bool {
        self.members.contains_key(&Pid::from_u32(pid))
    }

    /// Memory that the processes had resident at the last look. What several of them share counts
    /// for each.
    pub(crate) fn resident(&self) -> Bytes {
        self.members.values().map(|m| m.resident).sum()
    }

    /// The same with what is shared counted once, where the platform tells (Linux). It takes the
    /// kernel a walk through all pages, so it is for when it matters.
    pub(crate) fn resident_once(&self) -> Bytes {
        self.members.iter().map(|(pid, m)| proportional(*pid).unwrap_or(m.resident)).sum()
    }

    /// Sends a signal to all that were there at the last look.
    pub(crate) fn signal(&self, signal: Signal) {
        for pid in self.members.keys() {
            send(pid.as_u32(), signal);
        }
    }
}

/// Sends a signal to a process, if it is still there.
pub(crate) fn send(pid: ProcessId, signal: Signal) {
    if let Ok(raw) = i32::try_from(pid)
        && raw > 0
    {
        // It may have ended since.
        let _ = kill(nix::unistd::Pid::from_raw(raw), signal);
    }
}

/// The process's memory, of shared pages its part (proc(5), `/proc/pid/smaps_rollup`, `Pss`).
fn proportional(pid: Pid) -> Option<Bytes> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib * xmem_types::KIB))
}
