//! Why an object store cannot be used.

use crate::ObjectAddress;
use std::io;
use thiserror::Error;

/// Why an object store cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ObjectsError {
    /// The address is not one of an object store.
    #[error("`{address}` is not the address of an object store: {reason}")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The store did not do what was requested.
    #[error("{address}: {reason}")]
    Request {
        /// The folder or the object.
        address: ObjectAddress,
        /// What the store or the connection says.
        reason: String,
    },
    /// What an object is copied to or from.
    #[error(transparent)]
    Copy(#[from] io::Error),
}

impl ObjectsError {
    pub(crate) fn request(address: &ObjectAddress, error: &object_store::Error) -> Self {
        let text = causes(error);
        let reason = said(&text).map_or(text.clone(), str::to_owned);
        Self::Request { address: address.clone(), reason }
    }
}

/// What the store says in the document of a response.
fn said(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<Message>")?;
    let (message, _) = rest.split_once("</Message>")?;
    Some(message.trim()).filter(|message| !message.is_empty())
}

/// An error and what caused it, on one line; a cause that the text before has already is not repeated.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = one_line(&error.to_string());
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = one_line(&cause.to_string());
        if !text.contains(&cause_text) {
            text += &format!(": {cause_text}");
        }
        next = cause.source();
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_store_are_found_in_its_response() {
        let text = "404 Not Found: <Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist \
                    </Message></Error>";
        assert_eq!(said(text), Some("The specified bucket does not exist"));
        assert_eq!(said("connection refused"), None);
        assert_eq!(said("<Message></Message>"), None);
    }

    #[test]
    fn a_cause_is_not_repeated() {
        let inner = io::Error::other("connection\n refused");
        let outer = io::Error::other(ObjectsError::Copy(inner));
        assert_eq!(causes(&outer), "connection refused");
    }
}
