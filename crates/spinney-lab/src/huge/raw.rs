//! LMDB without anything on top: one database, a durable commit a batch.
#![allow(unsafe_code)]

use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions};
use spinney_core::{Error, Result};

/// Address space for the file.
const MAP_LEN_BYTES: usize = 1 << 38;

/// An open environment.
pub struct Raw {
    env: Env,
    records: Database<'static, Bytes, Bytes>,
}

impl Raw {
    /// A new one in an empty folder.
    pub fn open(folder: &Path) -> Result<Raw> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_LEN_BYTES);
        // SAFETY: the folder is this run's own, and it is opened once.
        let env = unsafe { options.open(folder) }.map_err(failed)?;
        let transaction = env.write_txn().map_err(failed)?;
        let records = env
            .create_databases_and_commit(transaction, |opener, transaction| {
                opener.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
            })
            .map_err(failed)?
            .unwrap_commit();
        Ok(Raw { env, records })
    }

    /// Puts records in one durable commit.
    pub fn put(&self, records: &[(String, String)]) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(failed)?;
        for (id, text) in records {
            let put = self.records.put(&mut transaction, id.as_bytes(), text.as_bytes());
            put.map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }

    /// How many records there are.
    pub fn count(&self) -> Result<u64> {
        let transaction = self.env.read_txn().map_err(failed)?;
        self.records.len(&transaction).map_err(failed)
    }
}

fn failed(error: heed::Error) -> Error {
    Error::io("lmdb").with_source(error)
}
