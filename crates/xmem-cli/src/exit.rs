//! Exit codes.

use std::process::ExitCode;
use xmem::Verdict;

/// How the program ends. With several answers the one that comes last in this order decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0: the job fits, or there was nothing to judge.
    Fits,
    /// 4: the verdict is withheld, as too much is missing from the trace.
    Withheld,
    /// 4: a recording was saved, but it is not all that was asked for.
    CutShort,
    /// 1: the simulator or the estimate is not what was recorded.
    Differs,
    /// 1: the job does not fit.
    DoesNotFit,
    /// 2: the command line is wrong.
    Usage,
    /// 3: an input cannot be read or is not a trace, or the result cannot be written.
    Unreadable,
    /// 130: SIGINT; as shells say it, 128 and the signal's number.
    Interrupted,
    /// 143: SIGTERM.
    Terminated,
}

impl Exit {
    /// The number that the shell sees.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Fits => 0,
            Self::Differs | Self::DoesNotFit => 1,
            Self::Usage => 2,
            Self::Unreadable => 3,
            Self::Withheld | Self::CutShort => 4,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// With `--exit-zero`, verdicts do not fail; errors still do.
    #[must_use]
    pub const fn zero_for_verdicts(self) -> Self {
        match self {
            Self::Differs | Self::DoesNotFit | Self::Withheld => Self::Fits,
            other => other,
        }
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Fits => Self::Fits,
            Verdict::DoesNotFit => Self::DoesNotFit,
            Verdict::Withheld => Self::Withheld,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
