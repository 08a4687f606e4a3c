//! Servers that end.

use crate::error::{Explanation, Failure};
use crate::exit::Exit;
use miette::Diagnostic;
use thiserror::Error;
use xmem_serve::ServeError;

/// A server that cannot start, or ends.
#[derive(Debug, Error, Diagnostic)]
#[error(transparent)]
pub(crate) struct ServeFailure(#[from] ServeError);

impl Failure for ServeFailure {
    fn exit(&self) -> Exit {
        match self.0 {
            ServeError::Site { .. } | ServeError::Certificate { .. } => Exit::Usage,
            _ => Exit::Unreadable,
        }
    }

    fn error_code(&self) -> &'static str {
        match self.0 {
            ServeError::Site { .. } => "XM0831",
            ServeError::Certificate { .. } => "XM0832",
            _ => "XM0833",
        }
    }
}

/// The explanations of the codes.
pub(crate) const EXPLAINED: &[Explanation] = &[
    Explanation {
        code: "XM0831",
        exit: Exit::Usage,
        title: "site file that the server cannot use",
        cause: "The site file of the webhook does not exist or is invalid.",
        example: "xmem serve --site broken.toml --tls-cert tls.crt --tls-key tls.key",
        fix: "Check the file against the schema that `xmem config --format schema` prints.",
    },
    Explanation {
        code: "XM0832",
        exit: Exit::Usage,
        title: "certificate that the server cannot use",
        cause: "The certificate or its key cannot be read, or they do not belong together.",
        example: "xmem serve --site site.toml --tls-cert tls.crt --tls-key other.key",
        fix: "Check the pair with `openssl x509 -noout -pubkey -in tls.crt` and `openssl pkey -pubout -in tls.key`, which \
            print the same key.",
    },
    Explanation {
        code: "XM0833",
        exit: Exit::Unreadable,
        title: "server that cannot start",
        cause: "The address is in use or needs more rights, the authority of clients is invalid, or the system refuses threads.",
        example: "xmem serve --listen 0.0.0.0:443 --site site.toml --tls-cert tls.crt --tls-key tls.key",
        fix: "Choose another address, for example `--listen 0.0.0.0:8443`; `ss -ltn` lists those in use.",
    },
];
