//! Tests of the formats together.
