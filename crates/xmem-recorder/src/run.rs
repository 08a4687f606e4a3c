//! Runs a command to its end, with measures and without recording it: on a virtual GPU, or on the device that is there.

use crate::conclusion;
use crate::error::RecordError;
use crate::progress::Progress;
use crate::request::{Purpose, Request};
use crate::session::Session;
use crate::signals::{self, Received, Sender};
use crate::tree;
use crate::watch;
use nix::sys::signal::Signal;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::time::Duration;
use xmem_overlay::{Choice, Overlay, Writable};

/// The time between two looks at the command.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// On a virtual GPU: watches the command, and returns its status. What it writes is kept out of the files of the user: nothing
/// is computed.
pub(crate) fn on_virtual_gpu(
    request: &Request,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<ExitStatus, RecordError> {
    let (evidence, overlay) = watch::watched(request, None, observer)?;
    let kept = overlay.kept();
    if !kept.is_nothing() {
        observer(Progress::Kept(&kept));
    }
    match conclusion::refused(&evidence.processes) {
        Some(error) => Err(error),
        None => Ok(evidence.status),
    }
}

/// On the device that is there: the command runs as without xmem, but for the measures.
pub(crate) fn on_device(request: &Request) -> Result<ExitStatus, RecordError> {
    debug_assert_eq!(request.purpose, Purpose::RunOnDevice);
    let (program, arguments) = &request.command;
    let session_error = |source| RecordError::Session { source };
    let overlay =
        Overlay::prepare((program, arguments), &Writable::Everything, Choice::default(), None)
            .map_err(|source| RecordError::Overlay { source })?;
    let (session, _control) = Session::open(request, &overlay).map_err(session_error)?;
    let (sender, events) = mpsc::channel::<Received>();
    signals::forward(sender).map_err(session_error)?;
    let mut command = Command::new(program);
    command.args(session.arguments(program, arguments));
    command.envs(session.environment(request, |name| std::env::var_os(name)));
    command.envs(request.variables.iter().map(|(name, value)| (name, value)));
    let mut child = command.spawn().map_err(|source| RecordError::Spawn {
        program: program.to_string_lossy().into_owned(),
        source,
    })?;
    loop {
        if let Some(status) = child.try_wait().map_err(session_error)? {
            return Ok(status);
        }
        match events.recv_timeout(POLL_INTERVAL) {
            // The terminal has sent it to the command, too.
            Ok(Received { signal: Signal::SIGINT, sender: Sender::Terminal }) | Err(_) => {}
            Ok(Received { signal, .. }) => tree::send(child.id(), signal),
        }
    }
}
