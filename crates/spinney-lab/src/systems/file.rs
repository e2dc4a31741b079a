//! The peer `file`: one JSON file, changed by reading, parsing, editing, printing and replacing it.
//!
//! Design: compact JSON in `store.json`, parsed by serde_json to its `Value`. The user-ordered list
//! is an array, the keyed list an object. A commit writes `store.json.new`, syncs it, renames it
//! over the old file and syncs the folder, so that a crash leaves the old or the new document;
//! below `durable` it leaves both syncs out. Import parses the text as a check and stores it as it
//! came; export copies the file. In `cached` rows the parsed tree stays in memory, and a commit
//! prints and writes only. Where the configuration is judged, each commit walks the whole document
//! once, and who subscribed is called with what was removed and put there. What survives the process does
//! so at each level: `none` is `process`.

mod array;
mod documents;
mod model;
mod rows;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use spinney_core::{Error, Result};

use crate::documents::Collection;
use crate::system::{Delivery, Durability, Effect, Factory, Kind, System, Told};

use crate::throughput::Array;
use documents::Documents;
use model::judge;

const DESIGN: &str = "one JSON file: read, parse with serde_json, change, print compact, write a \
    temporary file, fsync, rename, fsync the folder; below `durable` without the two syncs";

/// Makes stores that are one JSON file.
pub struct File;

impl Factory for File {
    fn name(&self) -> &str {
        "file"
    }

    fn kind(&self) -> Kind {
        Kind::Peer
    }

    fn design(&self) -> &str {
        DESIGN
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        let syncs = match durability {
            Durability::Durable => "file and folder",
            Durability::Process | Durability::None => "none; a commit survives the process",
        };
        vec![("syncs".into(), syncs.into())]
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![("serde_json".into(), crate::SERDE_JSON_VERSION.into())]
    }

    fn lacks(&self, _durability: Durability) -> Option<String> {
        None
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn System>> {
        let store = Store {
            file: Place::new(folder, durability)?,
            keeps: false,
            kept: None,
            is_judged: false,
            told: Told::default(),
        };
        store.file.write(b"{}")?;
        Ok(Box::new(store))
    }

    fn design_in(&self, suite: &str) -> &str {
        match suite {
            "documents" => documents::DESIGN,
            "throughput" => array::DESIGN,
            _ => DESIGN,
        }
    }

    fn array(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Array>> {
        Ok(Box::new(array::Array::new(Place::new(folder, durability)?)?))
    }

    fn collection(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Collection>> {
        Ok(Box::new(Documents::new(Place::new(folder, durability)?)?))
    }
}

/// Where the file is, and how it is replaced.
struct Place {
    path: PathBuf,
    temporary: PathBuf,
    folder: fs::File,
    durability: Durability,
}

impl Place {
    fn new(folder: &Path, durability: Durability) -> Result<Place> {
        Ok(Place {
            path: folder.join("store.json"),
            temporary: folder.join("store.json.new"),
            folder: fs::File::open(folder).map_err(|error| io(error, "open the folder"))?,
            durability,
        })
    }

    fn read(&self) -> Result<Value> {
        let text = fs::read(&self.path).map_err(|error| io(error, "read the file"))?;
        parse(&text)
    }

    fn write(&self, text: &[u8]) -> Result<()> {
        let syncs = self.durability == Durability::Durable;
        let written = fs::File::create(&self.temporary).and_then(|mut file| {
            file.write_all(text)?;
            if syncs { file.sync_all() } else { Ok(()) }
        });
        written.map_err(|error| io(error, "write the temporary file"))?;
        fs::rename(&self.temporary, &self.path).map_err(|error| io(error, "rename the file"))?;
        if syncs {
            self.folder.sync_all().map_err(|error| io(error, "sync the folder"))?;
        }
        Ok(())
    }
}

struct Store {
    file: Place,
    keeps: bool,
    kept: Option<Value>,
    is_judged: bool,
    /// What its subscriber was given.
    told: Told,
}

impl Store {
    fn look<T>(&self, answer: impl Fn(&Value) -> Option<T>) -> Result<T> {
        let answer = match &self.kept {
            Some(root) => answer(root),
            None => answer(&self.file.read()?),
        };
        answer.ok_or_else(missing)
    }

    /// One commit of an edit, which says what it has changed.
    fn change(&mut self, edit: impl FnOnce(&mut Value) -> Result<Delivery>) -> Result<Effect> {
        let mut root = match self.kept.take() {
            Some(root) => root,
            None => self.file.read()?,
        };
        let edited = edit(&mut root)?;
        let effect = Effect::from(!edited.is_empty());
        if effect == Effect::Changed {
            if self.is_judged {
                judge(&root)?;
            }
            let text = serde_json::to_vec(&root).expect("a `Value` prints");
            self.file.write(&text)?;
            let _: Effect = self.told.tell(edited);
        }
        if self.keeps {
            self.kept = Some(root);
        }
        Ok(effect)
    }
}

fn parse(text: &[u8]) -> Result<Value> {
    serde_json::from_slice(text)
        .map_err(|error| Error::invalid_input("the text is not JSON").with_source(error))
}

fn missing() -> Error {
    Error::not_found("the file does not hold the node; load the document first")
}

fn io(error: std::io::Error, action: &str) -> Error {
    Error::io(format!("peer `file` could not {action}")).with_source(error)
}
