//! What commands that use object stores have in common.

/// What to do if a store refuses.
pub(crate) const CREDENTIALS: &str = "the environment names credentials, region and endpoint: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on";
