//! spinney-lab
