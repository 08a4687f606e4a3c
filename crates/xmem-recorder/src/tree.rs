//! The tree of the command's processes: members, memory, signals.

use crate::message::ProcessId;
use nix::sys::signal::{Signal, kill};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use sysinfo::{
    Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind,
};
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
    tie: Tie,
}

/// The way in which a member was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tie {
    /// The command, or a child of a member.
    Descendant,
    /// By its environment: it has detached itself from the command (a daemon), and gets no signals.
    Environment,
}

impl Member {
    /// A process, unless it has ended.
    fn of(process: &Process, tie: Tie) -> Option<Self> {
        let ended = matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead);
        let (started, resident) = (process.start_time(), Bytes(process.memory()));
        (!ended).then_some(Self { started, resident, tie })
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
            .filter_map(|process| {
                let member = Member::of(process, Tie::Descendant)?;
                Some((process.pid(), (process.parent(), member)))
            })
            .collect();
        let before = std::mem::take(&mut self.members);
        let tie = |(pid, (_, now)): (&Pid, &(Option<Pid>, Member))| {
            let before = before.get(pid).filter(|before| now.is_the_same(Some(before)));
            let root = (*pid == self.root).then_some(Tie::Descendant);
            Some((*pid, root.or(before.map(|before| before.tie))?))
        };
        let mut found: Vec<(Pid, Tie)> = others.iter().filter_map(tie).collect();
        while let Some((pid, tie)) = found.pop() {
            if let Some((_, member)) = others.remove(&pid) {
                self.members.insert(pid, Member { tie, ..member });
            }
            let is_child = |(_, (parent, _)): &(&Pid, &(Option<Pid>, Member))| *parent == Some(pid);
            found.extend(others.iter().filter(is_child).map(|(child, _)| (*child, tie)));
        }
        self.refresh_members();
    }

    /// Finds processes by a variable of their environment, which they inherited: also those whose parent
    /// ended before they were seen.
    pub(crate) fn adopt(&mut self, name: &str, value: &OsStr) {
        self.update(
            ProcessesToUpdate::All,
            ProcessRefreshKind::nothing().with_environ(UpdateKind::Always),
        );
        let mut wanted = OsString::from(name);
        wanted.push("=");
        wanted.push(value);
        let this = std::process::id();
        for process in self.system.processes().values() {
            if process.pid().as_u32() != this
                && process.environ().contains(&wanted)
                && let Some(member) = Member::of(process, Tie::Environment)
            {
                self.members.entry(process.pid()).or_insert(member);
            }
        }
        self.refresh_members();
    }

    /// Ids and names of the members at the last refresh.
    pub(crate) fn names(&self) -> Vec<(ProcessId, String)> {
        let name = |pid: &Pid| {
            let process = self.system.process(*pid);
            process.map_or_else(String::new, |p| p.name().to_string_lossy().into_owned())
        };
        self.members.keys().map(|pid| (pid.as_u32(), name(pid))).collect()
    }

    /// True if no member existed at the last refresh.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Updates the members that existed at the last refresh, which is cheap.
    pub(crate) fn refresh_members(&mut self) {
        let pids: Vec<Pid> = self.members.keys().copied().collect();
        self.update(ProcessesToUpdate::Some(&pids), ProcessRefreshKind::nothing().with_memory());
        let system = &self.system;
        self.members.retain(|pid, member| {
            let now = system.process(*pid).and_then(|process| Member::of(process, member.tie));
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

    /// Sends a signal to the members of the last refresh that have not detached themselves.
    pub(crate) fn signal(&self, signal: Signal) {
        let attached = self.members.iter().filter(|(_, member)| member.tie == Tie::Descendant);
        for (pid, _) in attached {
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
