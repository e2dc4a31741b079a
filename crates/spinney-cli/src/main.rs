//! The spinney command.

#![forbid(unsafe_code)]

fn main() {}
