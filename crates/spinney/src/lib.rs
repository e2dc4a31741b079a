//! spinney
