//! Servers for tests of what stands on [`spinney::network`], what all of them must do, and wrappers of
//! them.

pub mod contract;
pub mod flaky;
pub mod mongodb;
pub mod mongodb_proxy;
pub mod proxy;
pub mod redis;
pub mod redis_cluster;
pub mod reference;
