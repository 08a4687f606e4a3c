//! Which paths are covered: everything but temporary files, the system's own file systems, and what the user
//! excepts.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Paths that the command writes to as if it ran alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writable {
    /// These files and folders, besides temporary ones. Each exists.
    Paths(Vec<PathBuf>),
    /// All files: nothing is covered.
    Everything,
}

/// Folders of the system, and of temporary files. A command writes there without asking, and nothing that is kept
/// lies there, unless the job itself does.
const UNCOVERED: [&str; 6] = ["/dev", "/proc", "/run", "/sys", "/tmp", "/var/tmp"];

/// Paths that are left as they are, and paths below them that are covered all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// Left as they are.
    pub(crate) uncovered: BTreeSet<PathBuf>,
    /// Entries of uncovered folders that are covered, as the job lies there.
    pub(crate) covered: BTreeSet<PathBuf>,
}

impl Coverage {
    /// The coverage of a job that uses these paths: its working folder, and what its arguments name.
    ///
    /// `temporary` is the folder for temporary files (`TMPDIR`), `own` are files of the caller that the command
    /// writes to, and `writable` what the user excepts. All paths are absolute and without symbolic links.
    pub(crate) fn new(
        job: &[PathBuf],
        temporary: &Path,
        own: &[PathBuf],
        writable: &[PathBuf],
    ) -> Self {
        let mut uncovered: BTreeSet<PathBuf> = UNCOVERED.iter().map(PathBuf::from).collect();
        if temporary.components().count() > 1 {
            uncovered.insert(temporary.to_owned());
        }
        let system = ["/dev", "/proc", "/sys"].map(Path::new);
        let mut covered = BTreeSet::new();
        for folder in &uncovered {
            if system.iter().any(|system| folder.starts_with(system)) {
                continue;
            }
            covered.extend(job.iter().filter_map(|path| entry_of(folder, path)));
        }
        // A job in shared memory.
        covered.extend(job.iter().filter_map(|path| entry_of(Path::new("/dev/shm"), path)));
        uncovered.extend(own.iter().cloned());
        uncovered.extend(writable.iter().cloned());
        covered.retain(|path| !uncovered.contains(path));
        Self { uncovered, covered }
    }

    /// The coverage where only files of one user can be changed: each writable path of the job gets a cover of its own,
    /// at the highest folder from which on everything belongs to the user.
    ///
    /// In a namespace in which only this user is known, overlayfs cannot copy a file or folder of others, nor a folder
    /// that lies in one (`ovl_copy_up_one` in fs/overlayfs/copy_up.c: EOVERFLOW).
    ///
    /// # Errors
    /// The first path to which the user can write and which belongs to others.
    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn of_one_user(
        self,
        written: &[PathBuf],
        is_own: impl Fn(&Path) -> bool,
    ) -> Result<Self, PathBuf> {
        let mut found = self.clone();
        for path in written.iter().filter(|path| self.covers(path)) {
            let own = path.ancestors().take_while(|path| path.parent().is_some() && is_own(path));
            match own.last() {
                Some(highest) => found.covered.insert(highest.to_owned()),
                None => return Err(path.clone()),
            };
        }
        Ok(found)
    }

    /// True if a path is covered: the longest of the listed paths that contains it decides.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        let longest = |paths: &BTreeSet<PathBuf>| {
            let all = path.ancestors().filter(|above| paths.contains(*above));
            all.map(|above| above.components().count()).max()
        };
        longest(&self.uncovered) <= longest(&self.covered)
    }
}

/// The entry of `folder` that contains `path`; none if `path` is the folder itself, or elsewhere.
fn entry_of(folder: &Path, path: &Path) -> Option<PathBuf> {
    match path.strip_prefix(folder).ok()?.components().next()? {
        Component::Normal(name) => Some(folder.join(name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_covered_but_temporary_files_and_exceptions() {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let home = paths(&["/home/ada/job", "/home/ada/job/train.py"]);
        let in_tmp = paths(&["/tmp/job/sub", "/tmp/job/train.py", "/usr/bin/python3"]);
        let rows = [
            (&home, "/tmp", "/home/ada/job/model.pt", true),
            (&home, "/tmp", "/", true),
            (&home, "/tmp", "/data/set", true),
            (&home, "/tmp", "/home/ada/outputs/a", false),
            (&home, "/tmp", "/home/ada/outputs2", true),
            (&home, "/tmp", "/tmp/scratch", false),
            (&home, "/tmp", "/var/tmp/scratch", false),
            (&home, "/tmp", "/var/log/x", true),
            (&home, "/tmp", "/dev/null", false),
            (&home, "/home/ada/tmp", "/home/ada/tmp/x", false),
            (&in_tmp, "/tmp", "/tmp/job/model.pt", true),
            (&in_tmp, "/tmp", "/tmp/job2/model.pt", false),
            (&in_tmp, "/tmp", "/tmp/own/log", false),
            (&in_tmp, "/", "/srv/x", true),
        ];
        let own = paths(&["/tmp/own"]);
        for (job, temporary, path, is_covered) in rows {
            let writable = paths(&["/home/ada/outputs"]);
            let coverage = Coverage::new(job, Path::new(temporary), &own, &writable);
            assert_eq!(coverage.covers(Path::new(path)), is_covered, "{path}: {coverage:?}");
        }
    }

    #[test]
    fn a_folder_in_one_of_others_gets_a_cover_of_its_own() {
        let job = ["/scratch/group/ada/run".into(), "/home/ada".into()];
        let own =
            |path: &Path| path.starts_with("/scratch/group/ada") || path == Path::new("/home/ada");
        let coverage = || Coverage::new(&job, Path::new("/tmp"), &[], &[]);
        let found = coverage().of_one_user(&job, own).expect("all are the user's");
        let covered: Vec<_> =
            found.covered.iter().map(|path| path.to_str().expect("text")).collect();
        assert_eq!(covered, ["/home/ada", "/scratch/group/ada"]);
        let others = ["/scratch/group/cache".into()];
        assert_eq!(coverage().of_one_user(&others, own), Err("/scratch/group/cache".into()));
        let temporary = ["/tmp/x".into()];
        assert_eq!(coverage().of_one_user(&temporary, own), Ok(coverage()));
    }

    #[test]
    fn an_exception_below_a_covered_entry_wins() {
        let job = [PathBuf::from("/tmp/job/train.py")];
        let writable = [PathBuf::from("/tmp/job/outputs"), PathBuf::from("/tmp/job2")];
        let coverage = Coverage::new(&job, Path::new("/tmp"), &[], &writable);
        for (path, is_covered) in [("/tmp/job/a", true), ("/tmp/job/outputs/a", false)] {
            assert_eq!(coverage.covers(Path::new(path)), is_covered, "{path}");
        }
    }
}
