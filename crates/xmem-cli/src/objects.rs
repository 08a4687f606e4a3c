//! Object stores that cannot be used.

use crate::error::failures;
use miette::Diagnostic;
use thiserror::Error;
use xmem_objects::ObjectsError;

failures! {
    /// An object store that cannot be used.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum ObjectsFailure {
        #[error("cannot use the object store")]
        #[diagnostic(help(
            "credentials, region and endpoint are those of the environment: AWS_ACCESS_KEY_ID, GOOGLE_SERVICE_ACCOUNT, \
             AZURE_STORAGE_ACCOUNT_NAME and so on"
        ))]
        Store(#[from] ObjectsError) => Unreadable XM0916 {
            title: "object store that cannot be used",
            cause:
                "The object store cannot be reached, has no such bucket, or refuses the credentials of \
                 the environment.",
            example: "xmem eval matrix.toml --store s3://missing-bucket/runs",
            fix:
                "Set the variables that the provider's own tools read, for example `AWS_ACCESS_KEY_ID`, \
                 `AWS_SECRET_ACCESS_KEY` and `AWS_REGION`; `AWS_ENDPOINT_URL` for another server, and \
                 `AWS_ALLOW_HTTP=true` if it has no TLS.",
        },
    }
}
