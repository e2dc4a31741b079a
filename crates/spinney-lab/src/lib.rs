//! spinney-lab

#![forbid(unsafe_code)]
