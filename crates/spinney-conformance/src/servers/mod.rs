//! Servers for tests of what stands on [`spinney::network`], and wrappers of them.

pub mod flaky;
pub mod reference;
