//! Runs `xmem serve`.

use super::args::ServeArgs;
use super::error::ServeFailure;
use crate::commands::Outcome;
use crate::config::site_file;
use crate::exit::Exit;
use xmem_serve::{Limits, Mutation, Settings};

/// Runs the command.
pub(crate) fn run(args: &ServeArgs) -> Outcome {
    let settings = Settings {
        listen: args.listen,
        certificate: args.tls_cert.clone(),
        key: args.tls_key.clone(),
        client_ca: args.client_ca.clone(),
        site: site_file(args.site.clone(), true),
        mutation: if args.mutate { Mutation::Annotate } else { Mutation::Off },
        limits: Limits::default(),
    };
    xmem_serve::serve(settings).map_err(ServeFailure::from)?;
    Ok(Exit::Fits)
}
