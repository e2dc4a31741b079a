//! spinney-conformance
