//! `xmem completions`.

use crate::commands::Outcome;
use crate::exit::Exit;
use crate::output;
use clap::Args;

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  xmem completions bash > ~/.local/share/bash-completion/completions/xmem\n  \
        xmem completions zsh > ~/.zfunc/_xmem"
)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for
    pub(crate) shell: clap_complete::Shell,
}

/// Runs the command.
pub(crate) fn run(args: &CompletionsArgs, mut command: clap::Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "xmem", &mut script);
    output::bytes(None, |out| Ok(out.write_all(&script)?)).map(|()| Exit::Fits)
}
