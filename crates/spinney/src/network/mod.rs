//! What the backends of servers share: a cache of records, one consistent state for each reader,
//! commits that are sent again when their answer was lost.

pub mod server;
