//! Files of contrib, and the admission policy. One program, so that it is linked once.

mod admission_policy;
mod contrib;
