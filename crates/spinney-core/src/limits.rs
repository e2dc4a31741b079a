//! The limits of the model, each enforced with [`crate::ErrorKind::LimitExceeded`].

/// Containers on the way from the store's root to a node, the node included.
pub const DEPTH_MAX: usize = 512;

/// Bytes of a map key in UTF-8.
pub const KEY_LEN_MAX: usize = 64 * 1024;

/// Bytes of one string or bytes value.
pub const VALUE_LEN_MAX: usize = 1 << 30;

/// Bytes of a path as text.
pub const PATH_LEN_MAX: usize = 1 << 20;

/// Bytes of a number's text.
pub const NUMBER_LEN_MAX: usize = 64 * 1024;

/// Digits of a number's exponent, so that exponents can be compared as 64-bit integers.
pub const NUMBER_EXPONENT_DIGITS_MAX: usize = 18;

/// Bytes of a node's metadata, encoded: it is stored beside the value.
pub const META_LEN_MAX: usize = 64 * 1024;

/// Elements of one list and entries of one map.
pub const COUNT_MAX: u64 = 1 << 40;
