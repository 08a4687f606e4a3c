//! What a submission finds under the name `xmem`: the program, counted, or one that fails.

use serde::Deserialize;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use xmem_task::Error;

/// The program that the client finds.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Program {
    #[default]
    Real,
    Missing,
    Slow,
    Crashed,
    Nonsense,
    Silent,
    Endless,
}

impl Program {
    const ALL: [Self; 7] = [
        Self::Real,
        Self::Missing,
        Self::Slow,
        Self::Crashed,
        Self::Nonsense,
        Self::Silent,
        Self::Endless,
    ];

    /// The folder that comes first in the path of the client.
    pub(super) fn folder(self, folder: &Path) -> PathBuf {
        folder.join("programs").join(format!("{self:?}").to_lowercase())
    }

    /// The commands of the program; none if it is missing.
    fn commands(self, xmem: &Path) -> Option<String> {
        Some(match self {
            Self::Real => format!("exec '{}' \"$@\"", xmem.display()),
            Self::Missing => return None,
            Self::Slow => "echo action=admit\nsleep 600".to_owned(),
            Self::Crashed => "echo action=admit\nkill -ABRT $$".to_owned(),
            Self::Nonsense => "echo action\necho 'action = admit'\nprintf '\\0\\377\\n'".to_owned(),
            Self::Silent => "cat >/dev/null".to_owned(),
            Self::Endless => "echo action=admit\nexec yes message=x".to_owned(),
        })
    }
}

/// Writes the programs. Each adds a line to the file in `XMEM_TEST_ASKED` when it is started.
pub(super) fn write(folder: &Path, xmem: &Path) -> Result<(), Error> {
    for program in Program::ALL {
        let home = program.folder(folder);
        std::fs::create_dir_all(&home).map_err(Error::file(&home))?;
        let Some(commands) = program.commands(xmem) else { continue };
        let path = home.join("xmem");
        let text = format!("#!/bin/sh\necho asked >>\"$XMEM_TEST_ASKED\"\n{commands}\n");
        std::fs::write(&path, text).map_err(Error::file(&path))?;
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, executable).map_err(Error::file(&path))?;
    }
    Ok(())
}
