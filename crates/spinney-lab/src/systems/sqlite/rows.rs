//! The rows of the suite as statements.

use serde_json::{Value, json};
use spinney_core::{Error, Result};

use super::{ENTRY_NODES, GAP, INSERT_ENTRY, JUDGED_SCHEMA, Store, failed};
use crate::answer::Answer;
use crate::datastore::document::{leaf_text, numbered};
use crate::system::{Delivery, Effect, System, Told};

impl System for Store {
    fn import(&mut self, json: &[u8]) -> Result<Effect> {
        let text = std::str::from_utf8(json)
            .map_err(|error| Error::invalid_input("the text is not UTF-8").with_source(error))?;
        self.commit(|store| {
            store.insert_document(text)?;
            Ok(Delivery::created(1))
        })
    }

    fn judge(&mut self) -> Result<()> {
        self.database.execute_batch(JUDGED_SCHEMA).map_err(failed)
    }

    fn told(&mut self) -> Option<&mut Told> {
        Some(&mut self.told)
    }

    fn replace(&mut self, json: &[u8]) -> Result<()> {
        let _: Effect = self.commit(Store::delete_all)?;
        let _: Effect = self.import(json)?;
        Ok(())
    }

    fn leaf(&mut self, i: usize) -> Result<String> {
        self.prepared("SELECT item ->> '$.l' FROM lst WHERE k1 = ?1 AND k2 = ?2")?
            .query_row((i as i64, numbered("str", i)), |row| row.get(0))
            .map_err(failed)
    }

    fn item_tree(&mut self, i: usize) -> Result<Answer> {
        self.tree_of("SELECT item ->> '$.l' FROM lst WHERE k1 = ?1 AND k2 = ?2", i)
    }

    fn query_tree(&mut self, i: usize) -> Result<Answer> {
        self.tree_of("SELECT item ->> '$.l' FROM lst WHERE +k1 = ?1 AND +k2 = ?2", i)
    }

    fn query_item(&mut self, i: usize) -> Result<String> {
        self.prepared("SELECT item ->> '$.l' FROM lst WHERE +k1 = ?1 AND +k2 = ?2")?
            .query_row((i as i64, numbered("str", i)), |row| row.get(0))
            .map_err(failed)
    }

    fn range(&mut self, _i: usize, _count: usize) -> Result<Answer> {
        Err(Error::unsupported("its keys are ordered by number, so a range has other items"))
    }

    fn ordered_tree(&mut self) -> Result<Answer> {
        let mut statement = self.prepared("SELECT k, item ->> '$.l' FROM usr_lst ORDER BY rank")?;
        let entries = statement
            .query_map([], |row| Ok(entry(row.get(0)?, row.get(1)?)))
            .and_then(Iterator::collect::<rusqlite::Result<Vec<Value>>>)
            .map_err(failed)?;
        Ok(Answer::Json(json!({ "usr-lst": entries })))
    }

    fn element(&mut self, position: usize) -> Result<Answer> {
        let sql = "SELECT k, item ->> '$.l' FROM usr_lst ORDER BY rank LIMIT 1 OFFSET ?1";
        self.prepared(sql)?
            .query_row([position as i64], |row| Ok(Answer::Json(entry(row.get(0)?, row.get(1)?))))
            .map_err(failed)
    }

    fn create_batch(&mut self, n: usize) -> Result<Effect> {
        self.insert_items(n)
    }

    fn create_paths(&mut self, n: usize) -> Result<Effect> {
        self.insert_items(n)
    }

    fn create_ordered(&mut self, n: usize) -> Result<Effect> {
        self.commit(|store| {
            let mut new = store.create_cont()?;
            let last: Option<i64> = store
                .prepared("SELECT max(rank) FROM usr_lst")?
                .query_row([], |row| row.get(0))
                .map_err(failed)?;
            let mut insert = store.prepared(INSERT_ENTRY)?;
            for i in 0..n as i64 {
                let rank = last.unwrap_or(0) + (i + 1) * GAP;
                insert.execute((rank, i, leaf_text(i as usize))).map_err(failed)?;
                new += ENTRY_NODES;
            }
            Ok(Delivery::created(new))
        })
    }

    fn remove_items(&mut self) -> Result<Effect> {
        self.commit(|store| {
            let items = store.item_nodes()?;
            store.run("DELETE FROM lst", [])?;
            Ok(Delivery::removed(items))
        })
    }

    fn remove_tree(&mut self) -> Result<Effect> {
        self.commit(Store::delete_all)
    }

    fn create_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        let sql = "UPDATE lst SET item = jsonb_insert(item, '$.l', ?3) \
             WHERE k1 = ?1 AND k2 = ?2 AND item ->> '$.l' IS NULL";
        match self.run(sql, (i as i64, numbered("str", i), text))? {
            0 => Err(Error::already_exists(format!("item {i} has `l` or does not exist"))),
            _ => Ok(self.told.tell(Delivery::created(1))),
        }
    }

    fn modify_leaf(&mut self, i: usize, text: &str) -> Result<Effect> {
        let sql = "UPDATE lst SET item = jsonb_replace(item, '$.l', ?3) \
             WHERE k1 = ?1 AND k2 = ?2 AND item ->> '$.l' <> ?3";
        let changed = self.run(sql, (i as i64, numbered("str", i), text))?;
        Ok(self.told.tell(Delivery::changed(changed as u64)))
    }

    fn remove_leaf(&mut self, i: usize) -> Result<Effect> {
        let sql = "UPDATE lst SET item = jsonb_remove(item, '$.l') \
             WHERE k1 = ?1 AND k2 = ?2 AND item ->> '$.l' IS NOT NULL";
        let removed = self.run(sql, (i as i64, numbered("str", i)))?;
        Ok(self.told.tell(Delivery::removed(removed as u64)))
    }

    fn insert_after(&mut self, after: usize, new: usize) -> Result<Effect> {
        self.commit(|store| {
            let rank = store.rank_after(after as i64)?;
            store.run(INSERT_ENTRY, (rank, new as i64, leaf_text(new)))?;
            Ok(Delivery::created(ENTRY_NODES))
        })
    }

    fn insert_storm(&mut self, after: usize, new: usize, count: usize) -> Result<Effect> {
        self.commit(|store| {
            // One by one each insert would halve the gap, and 20 of them renumber the list.
            let (rank, step) = store.gap_after(after as i64, count as i64)?;
            for at in 0..count {
                let rank = rank + step * (count - at) as i64;
                store.run(INSERT_ENTRY, (rank, (new + at) as i64, leaf_text(new + at)))?;
            }
            Ok(Delivery::created(ENTRY_NODES * count as u64))
        })
    }

    fn move_last(&mut self, after: usize, n: usize) -> Result<Effect> {
        self.commit(|store| {
            let rank = store.rank_after(after as i64)?;
            let moved =
                store.run("UPDATE usr_lst SET rank = ?1 WHERE k = ?2", (rank, n as i64 - 1))?;
            Ok(Delivery::changed(moved as u64))
        })
    }

    fn remove_element(&mut self, _position: usize, key: usize) -> Result<()> {
        self.run("DELETE FROM usr_lst WHERE k = ?1", [key as i64])?;
        Ok(())
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let sql = "SELECT EXISTS (SELECT 1 FROM cont)";
        let present: bool = self.prepared(sql)?.query_row([], |row| row.get(0)).map_err(failed)?;
        if !present {
            out.extend_from_slice(b"{}");
            return Ok(());
        }
        out.extend_from_slice(b"{\"cont\":{");
        self.export_lists(out).map_err(failed)?;
        out.extend_from_slice(b"}}");
        Ok(())
    }

    fn settle(&mut self) -> Result<Option<u64>> {
        self.prepared("PRAGMA wal_checkpoint(RESTART)")?
            .query_row([], |_| Ok(()))
            .map_err(failed)?;
        Ok(None)
    }
}

fn entry(k: i64, l: Option<String>) -> Value {
    match l {
        Some(l) => json!({ "k": k, "l": l }),
        None => json!({ "k": k }),
    }
}
