//! Arguments of `xmem serve`.

use clap::{Args, ValueHint};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    next_help_heading = "Server",
    after_help = "Examples:\n  \
        xmem serve --tls-cert tls.crt --tls-key tls.key --site site.toml\n  \
        xmem serve --tls-cert /tls/tls.crt --tls-key /tls/tls.key --listen 0.0.0.0:8443 --mutate\n  \
        xmem serve --tls-cert tls.crt --tls-key tls.key --client-ca api-server-ca.crt\n\n\
        Paths: /validate, /mutate, /healthz, /readyz, /metrics. Logs are lines of JSON on standard error;\n\
        XMEM_LOG=xmem_serve=debug shows more. The certificate, its key, the authority of clients and the site\n\
        file are read again when they change. SIGTERM and SIGINT end the server after the requests that have begun.\n\n\
        Exit code: 0 after a signal, 2 for files it cannot start with, 3 for an address it cannot listen on."
)]
pub(crate) struct ServeArgs {
    /// The chain of certificates (PEM), the server's own first
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) tls_cert: PathBuf,
    /// The private key (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) tls_key: PathBuf,
    /// The authority (PEM) that signs the client certificate of the API server: without such a certificate, there are
    /// no reviews, only /healthz, /readyz and /metrics
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) client_ca: Option<PathBuf>,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443")]
    pub(crate) listen: SocketAddr,
    /// The site file (default: XMEM_SITE, else /etc/xmem/site.toml if there is one)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) site: Option<PathBuf>,
    /// Answer /mutate, too: it annotates new objects with the decision
    #[arg(long)]
    pub(crate) mutate: bool,
}
