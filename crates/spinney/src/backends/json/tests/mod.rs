//! A document on a simulated disk.

mod damage;
mod power;

use std::sync::Arc;

use spinney_core::view::View;
use spinney_core::{Path, Result};

use super::DOCUMENT;
use super::files::Files;
use super::store::Store;
use crate::formats::{Fidelity, JsonWriter, Layout};
use crate::journal::Sizes;
use crate::journal::simulated::Disk;
use spinney_core::backend::Backend;

/// The name of the document.
const FILE: &str = "a.json";

/// Small files, so that they grow within a short history.
const SIZES: Sizes = Sizes { first: 4_096, step_max: 8_192 };

fn base_path() -> Path {
    Path::parse(DOCUMENT).expect("a path")
}

fn files<M: Clone + Send + 'static>(disk: &Disk<M>) -> Files {
    Files::new(Arc::new(disk.clone()), FILE, SIZES)
}

fn open<M: Clone + Send + 'static>(disk: &Disk<M>) -> Result<Arc<Store>> {
    Store::open(files(disk), base_path(), None)
}

/// All that a store holds, metadata, bytes and ids of elements included.
fn whole(store: &Store) -> String {
    let snapshot = store.snapshot().expect("a snapshot");
    let view = View { snapshot: &*snapshot, key_len_max: store.key_len_max() };
    let mut writer = JsonWriter::new(Vec::new(), Layout::Compact, Fidelity::Tagged);
    store.place.visit(&view, &mut writer).expect("a document");
    let text = String::from_utf8(writer.finish().expect("prints")).expect("UTF-8");
    let side = store.place.side(&*snapshot, store.key_len_max(), text.len());
    let side = side.and_then(|side| side.print()).expect("gathers");
    text + &String::from_utf8(side).expect("UTF-8")
}
