//! Engines without a maintained crate for what Debian has: RocksDB, Kyoto Cabinet and tkrzw, each in a small
//! program of its own behind a pipe (`peers/*.cc`), which `scripts/prepare-peers` compiles.
//!
//! All edits of a commit are one message, and so are the records of a scan up to 256 KiB; but each read of one
//! record is two wake-ups of a process, which takes longer than the read. So these peers are labelled `pipe`:
//! they are not to be ranked beside what runs in this process.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use spinney_core::{Error, Result};

use crate::engine::{Each, Engine, EngineFactory, Reader, Records};
use crate::server;
use crate::system::{Durability, Transport};

/// An engine behind a pipe.
pub struct Piped {
    /// Its name, and that of its program.
    pub name: &'static str,
    /// What it is called at its home.
    pub software: &'static str,
    pub design: &'static str,
    /// What Debian calls it.
    pub package: &'static str,
    pub settings: fn(Durability) -> &'static str,
    pub found: OnceLock<Option<(PathBuf, String)>>,
}

/// Every engine behind a pipe.
pub fn all() -> [Piped; 3] {
    [
        Piped {
            name: "rocksdb",
            software: "RocksDB",
            design: "RocksDB in a process of its own behind a pipe: a byte for the table in front of \
                each key, a write batch a commit",
            package: "librocksdb-dev",
            settings: |durability| match durability {
                Durability::Durable => "log synced with each batch; options of its tuning page",
                Durability::Process => "log written with each batch; options of its tuning page",
                Durability::None => "no log; options of its tuning page",
            },
            found: OnceLock::new(),
        },
        Piped {
            name: "kyoto",
            software: "Kyoto Cabinet",
            design: "Kyoto Cabinet's TreeDB in a process of its own behind a pipe: a byte for the table in \
                front of each key, a transaction a commit",
            package: "libkyotocabinet-dev",
            settings: |durability| match durability {
                Durability::Durable => "hard transactions, all else the defaults",
                Durability::Process => "transactions, all else the defaults",
                Durability::None => "no transactions, the defaults",
            },
            found: OnceLock::new(),
        },
        Piped {
            name: "tkrzw",
            software: "tkrzw",
            design: "tkrzw's TreeDBM in a process of its own behind a pipe: a byte for the table in front of \
                each key; it has no transactions, so that a power failure may leave half a commit",
            package: "libtkrzw-dev",
            settings: |durability| match durability {
                Durability::Durable => "Synchronize(hard) after each commit, all else the defaults",
                Durability::Process => "Synchronize(soft) after each commit, all else the defaults",
                Durability::None => "the defaults",
            },
            found: OnceLock::new(),
        },
    ]
}

impl Piped {
    /// Its program, below the folder of this one's, and its version.
    fn program(&self) -> Option<&(PathBuf, String)> {
        let find = || {
            let own = std::env::current_exe().ok()?;
            let places = own.ancestors().map(|folder| folder.join("peers").join(self.name));
            let program = places.into_iter().find(|place| place.is_file())?;
            let version = server::version(&program)?.trim().to_owned();
            Some((program, version))
        };
        self.found.get_or_init(find).as_ref()
    }
}

impl EngineFactory for Piped {
    fn name(&self) -> &'static str {
        self.name
    }

    fn transport(&self) -> Transport {
        Transport::Pipe
    }

    fn design(&self) -> &'static str {
        self.design
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        vec![("settings".into(), (self.settings)(durability).into())]
    }

    fn versions(&self) -> Vec<(String, String)> {
        let version = self.program().map(|(_, version)| (self.name.to_owned(), version.clone()));
        version.into_iter().collect()
    }

    fn lacks(&self, _durability: Durability) -> Option<String> {
        self.program().is_none().then(|| {
            format!(
                "not installed; `scripts/prepare-peers` builds it with Debian's `{}`",
                self.package
            )
        })
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Engine>> {
        let (program, _) = self.program().ok_or_else(|| Error::unsupported("not installed"))?;
        let failed =
            |error| Error::io(format!("cannot start `{}`", program.display())).with_source(error);
        let mut child = Command::new(program)
            .arg(folder)
            .arg(durability.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (requests, answers) = pipes.expect("both are pipes");
        let link = Link { name: self.software, requests: Some(requests), answers, child };
        Ok(Box::new(Store { process: link.child.id(), link: Mutex::new(link) }))
    }
}

struct Store {
    process: u32,
    link: Mutex<Link>,
}

impl Engine for Store {
    fn write(&self, work: &mut dyn FnMut(&mut dyn Records) -> Result<()>) -> Result<()> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writing = Writing { reading: Reading::new(&mut link), edits: vec![b'W'] };
        work(&mut writing)?;
        let edits = writing.edits;
        link.ask(&edits).map(drop)
    }

    fn read(&self, work: &mut dyn FnMut(&dyn Reader) -> Result<()>) -> Result<()> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        work(&Reading::new(&mut link))
    }

    fn settle(&self) -> Result<()> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).ask(b"F").map(drop)
    }

    fn processes(&self) -> Vec<u32> {
        vec![self.process]
    }
}

/// The program at the other end of two pipes.
struct Link {
    name: &'static str,
    /// `None` at the end, which ends the program.
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    child: Child,
}

impl Link {
    fn ask(&mut self, request: &[u8]) -> Result<Vec<u8>> {
        let answer = self.exchange(request).map_err(|error| {
            Error::io(format!("the program of the peer {} ended", self.name)).with_source(error)
        })?;
        match answer.split_first() {
            Some((0, _)) => Ok(answer),
            Some((_, why)) => {
                let why = String::from_utf8_lossy(why.get(4..).unwrap_or_default()).into_owned();
                Err(Error::io(format!("{} failed: {why}", self.name)))
            }
            None => Err(cut_off()),
        }
    }

    fn exchange(&mut self, request: &[u8]) -> std::io::Result<Vec<u8>> {
        let requests = self.requests.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        let len = u32::try_from(request.len()).map_err(|_| std::io::ErrorKind::InvalidInput)?;
        // In one write where it is short: two would wake the program twice.
        if request.len() < 4096 {
            requests.write_all(&[&len.to_le_bytes(), request].concat())?;
        } else {
            requests.write_all(&len.to_le_bytes())?;
            requests.write_all(request)?;
        }
        let mut len = [0; 4];
        self.answers.read_exact(&mut len)?;
        let mut answer = vec![0; u32::from_le_bytes(len) as usize];
        self.answers.read_exact(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.requests = None;
        // It fails only when it is gone already.
        let _ = self.child.wait();
    }
}

struct Reading<'a> {
    link: std::cell::RefCell<&'a mut Link>,
}

impl<'a> Reading<'a> {
    fn new(link: &'a mut Link) -> Reading<'a> {
        Reading { link: std::cell::RefCell::new(link) }
    }

    fn ask(&self, request: &[u8]) -> Result<Vec<u8>> {
        self.link.borrow_mut().ask(request)
    }
}

impl Reader for Reading<'_> {
    fn get(&self, table: usize, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let mut request = vec![b'G'];
        push_key(table, key, &mut request);
        found(&self.ask(&request)?, value)
    }

    fn scan(&self, table: usize, from: &[u8], each: Each<'_>) -> Result<()> {
        let mut from = from.to_vec();
        loop {
            let mut request = vec![b'S'];
            push_key(table, &from, &mut request);
            let answer = self.ask(&request)?;
            let (&is_full, mut rest) =
                answer.get(1..).and_then(<[u8]>::split_first).ok_or_else(cut_off)?;
            while !rest.is_empty() {
                let (key, value);
                (key, rest) = text(rest)?;
                (value, rest) = text(rest)?;
                if !each(key, value)? {
                    return Ok(());
                }
                if rest.is_empty() {
                    from.clear();
                    from.extend_from_slice(key);
                    from.push(0);
                }
            }
            if is_full == 0 {
                return Ok(());
            }
        }
    }

    fn last(&self, table: usize, key: &mut Vec<u8>) -> Result<bool> {
        found(&self.ask(&[b'L', table as u8])?, key)
    }
}

struct Writing<'a> {
    reading: Reading<'a>,
    edits: Vec<u8>,
}

impl Writing<'_> {
    fn edit(&mut self, kind: u8, table: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.edits.push(kind);
        push_key(table, key, &mut self.edits);
        push_len(value.len(), &mut self.edits);
        self.edits.extend_from_slice(value);
        Ok(())
    }
}

impl Reader for Writing<'_> {
    fn get(&self, table: usize, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.reading.get(table, key, value)
    }

    fn scan(&self, table: usize, from: &[u8], each: Each<'_>) -> Result<()> {
        self.reading.scan(table, from, each)
    }

    fn last(&self, table: usize, key: &mut Vec<u8>) -> Result<bool> {
        self.reading.last(table, key)
    }
}

impl Records for Writing<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.edit(b'P', table, key, value)
    }

    fn delete(&mut self, table: usize, key: &[u8]) -> Result<()> {
        self.edit(b'D', table, key, b"")
    }

    fn clear(&mut self, table: usize) -> Result<()> {
        self.edit(b'C', table, b"", b"")
    }
}

fn push_key(table: usize, key: &[u8], out: &mut Vec<u8>) {
    push_len(key.len() + 1, out);
    out.push(table as u8);
    out.extend_from_slice(key);
}

fn push_len(len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(len as u32).to_le_bytes());
}

/// Whether an answer has a text, which goes into `out`.
fn found(answer: &[u8], out: &mut Vec<u8>) -> Result<bool> {
    let (&is_found, rest) = answer.get(1..).and_then(<[u8]>::split_first).ok_or_else(cut_off)?;
    out.clear();
    out.extend_from_slice(text(rest)?.0);
    Ok(is_found == 1)
}

fn text(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk().ok_or_else(cut_off)?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(cut_off)
}

#[cold]
fn cut_off() -> Error {
    Error::corrupted("the program of a peer has sent an answer that is cut off")
}
