//! Exit codes.

use std::process::ExitCode;
use xmem::Verdict;

/// The outcome of the program. With several answers, the last one in this order decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0: the job fits, or the command gives no verdict.
    Fits,
    /// 4: the verdict is withheld because too much is missing from the trace, or a damaged one fits.
    Withheld,
    /// 4: a recording was saved, but is incomplete.
    CutShort,
    /// 1: the simulation or the estimate differs from the recording.
    Differs,
    /// 1: a job needs more than before, by more than is accepted.
    Grew,
    /// 1: the job does not fit.
    DoesNotFit,
    /// 2: the command line is wrong.
    Usage,
    /// 3: an input cannot be read or is not a trace, or the result cannot be written.
    Unreadable,
    /// 130: SIGINT (128 plus the number of the signal, as in shells).
    Interrupted,
    /// 143: SIGTERM.
    Terminated,
    /// The exit code of a command that was run.
    OfCommand(u8),
}

impl Exit {
    /// The exit code as a number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Fits => 0,
            Self::Differs | Self::Grew | Self::DoesNotFit => 1,
            Self::Usage => 2,
            Self::Unreadable => 3,
            Self::Withheld | Self::CutShort => 4,
            Self::Interrupted => 130,
            Self::Terminated => 143,
            Self::OfCommand(code) => code,
        }
    }

    /// The outcome with `--exit-zero`: 0 for every verdict; errors keep their code.
    #[must_use]
    pub const fn zero_for_verdicts(self) -> Self {
        match self {
            Self::Differs | Self::Grew | Self::DoesNotFit | Self::Withheld => Self::Fits,
            other => other,
        }
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Fits => Self::Fits,
            Verdict::DoesNotFit | Verdict::DamagedDoesNotFit => Self::DoesNotFit,
            Verdict::DamagedFits | Verdict::Withheld => Self::Withheld,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
