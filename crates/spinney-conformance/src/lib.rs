//! spinney-conformance

#![forbid(unsafe_code)]
