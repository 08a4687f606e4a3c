//! Running a program with a limit to its time, its output kept in files.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use xmem_task::Error;

/// What a program did.
#[derive(Debug)]
pub(crate) struct Done {
    /// None if it was killed, here or elsewhere.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) time: Duration,
}

/// How long a program may run, and how long it has to tidy up after that.
const LIMIT: Duration = Duration::from_secs(600);
const GRACE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Runs the command to its end; its output goes to `NAME.stdout` and `NAME.stderr` in the folder.
pub(crate) fn run(mut command: Command, folder: &Path, name: &str) -> Result<Done, Error> {
    let spelled = format!("{command:?}");
    let [out, err] = ["stdout", "stderr"].map(|end| folder.join(format!("{name}.{end}")));
    let create = |path: &Path| File::create(path).map_err(Error::file(path));
    command.stdin(Stdio::null()).stdout(create(&out)?).stderr(create(&err)?);
    // A group of its own, so that it ends with all that it started.
    let start = Instant::now();
    let mut child = command.process_group(0).spawn().map_err(Error::start(&spelled))?;
    let status = wait(&mut child, &spelled)?;
    let read = |path: &Path| {
        let bytes = std::fs::read(path).map_err(Error::file(path))?;
        Ok::<_, Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Done {
        code: status.code(),
        stdout: read(&out)?,
        stderr: read(&err)?,
        time: start.elapsed(),
    })
}

fn wait(child: &mut Child, spelled: &str) -> Result<ExitStatus, Error> {
    let failed = |source| Error::start(spelled)(source);
    let start = Instant::now();
    let mut asked = None;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        match asked {
            None if start.elapsed() > LIMIT => {
                signal("-TERM", child);
                asked = Some(Instant::now());
            }
            Some(since) if Instant::elapsed(&since) > GRACE => signal("-KILL", child),
            _ => {}
        }
        std::thread::sleep(PAUSE);
    }
}

fn signal(signal: &str, child: &Child) {
    let group = format!("-{}", child.id());
    // Fails only if the group has ended by itself, which the next look at the child shows.
    drop(Command::new("kill").args([signal, "--", &group]).status());
}
