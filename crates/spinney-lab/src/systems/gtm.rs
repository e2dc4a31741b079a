//! The peer `gtm`: GT.M globals through native M, in the suite `documents`.
//!
//! Design: document k is the tree below `^doc(k)`, a node per leaf, whose value is the leaf as JSON. The
//! routine `peers/gtm.m` does a whole row in the process of the database, for which it is told once; only where
//! documents are compared do they leave it. Leaf by leaf and nested are generic recursion with indirection,
//! as a program does it that does not know its documents; a whole document is a `MERGE`; the cursor is
//! `$QUERY`. At `none` there is no journal, and a commit of one document is no transaction; `durable` is
//! before-image journaling and a transaction a commit.

use std::io::{BufRead, BufReader, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Map, Value};
use spinney_core::{Error, Result};

use crate::answer::Answer;
use crate::documents::collection::{By, Collection, Each, Found, Reading};
use crate::documents::rows::{Batch, Operation};
use crate::documents::set::{Set, parsed};
use crate::system::{Durability, Factory, Kind, System, Transport};

/// Where Debian has its versions.
const FOLDERS: [&str; 2] = ["/usr/lib/x86_64-linux-gnu/fis-gtm", "/usr/lib/fis-gtm"];

const ROUTINE: &str = include_str!("../../peers/gtm.m");

const DESIGN: &str = "globals through native M, a node per leaf below ^doc(k), its value the leaf as JSON; a \
    row runs as a whole in the process of the database; generic recursion for leaves and nested iteration, \
    MERGE for whole documents, $QUERY for the cursor";

/// Makes databases.
pub struct Gtm;

impl Factory for Gtm {
    fn name(&self) -> &str {
        "gtm"
    }

    fn kind(&self) -> Kind {
        Kind::Peer
    }

    fn transport(&self) -> Transport {
        Transport::Pipe
    }

    fn design(&self) -> &str {
        DESIGN
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        let journal = match durability {
            Durability::Durable => "before-image; a transaction a commit",
            Durability::Process | Durability::None => {
                "off; no transaction where a commit is one document"
            }
        };
        [("journal", journal), ("access", "BG"), ("global buffers", "16384 of 4 KiB")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    }

    fn versions(&self) -> Vec<(String, String)> {
        let name = installed().and_then(|folder| folder.file_name()?.to_str());
        name.map(|name| ("gtm".to_owned(), name.to_owned())).into_iter().collect()
    }

    fn lacks(&self, durability: Durability) -> Option<String> {
        match durability {
            _ if installed().is_none() => Some(
                "not installed; `scripts/prepare-peers` installs Debian's `fis-gtm`".to_owned(),
            ),
            Durability::Process => Some(
                "what a killed process leaves is shared memory, which has to be run down".into(),
            ),
            _ => None,
        }
    }

    fn open(&self, _folder: &Path, _durability: Durability) -> Result<Box<dyn System>> {
        Err(Error::unsupported("it takes no part in this suite"))
    }

    fn collection(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Collection>> {
        let distribution = installed().ok_or_else(|| Error::unsupported("not installed"))?;
        Ok(Box::new(Documents::open(distribution, folder, durability)?))
    }
}

/// The folder of a version.
fn installed() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let folders = FOLDERS.iter().filter_map(|folder| std::fs::read_dir(folder).ok());
        let versions = folders.flatten().flatten().map(|entry| entry.path());
        versions.filter(|version| version.join("mumps").is_file()).max()
    };
    FOLDER.get_or_init(find).as_deref()
}

/// A running routine and its database.
struct Documents {
    /// `None` at the end, which ends the routine.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    process: Child,
    durability: Durability,
    /// The text of the document that the routine knows.
    known: String,
}

impl Documents {
    fn open(distribution: &Path, folder: &Path, durability: Durability) -> Result<Documents> {
        let io = |error| Error::io("cannot make a database of `gtm`").with_source(error);
        std::fs::write(folder.join("gtm.m"), ROUTINE).map_err(io)?;
        let command = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(distribution.join(program));
            let shown = distribution.display();
            let routines = format!("{} {shown}/libgtmutil.so {shown}", folder.display());
            command.args(arguments).current_dir(folder).env("gtm_dist", distribution);
            command.env("gtmroutines", routines).env("gtmgbldir", folder.join("store.gld"));
            command.env("gtm_tmp", folder).env("gtm_log", folder);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            command
        };
        let run = |program: &str, arguments: &[&str], input: &str| -> Result<()> {
            let mut child = command(program, arguments).spawn().map_err(io)?;
            let mut stdin = child.stdin.take().expect("it is a pipe");
            stdin.write_all(input.as_bytes()).map_err(io)?;
            drop(stdin);
            let output = child.wait_with_output().map_err(io)?;
            match output.status.success() {
                true => Ok(()),
                false => Err(Error::io(format!(
                    "`{program}` of the peer `gtm` failed: {}{}",
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr)
                ))),
            }
        };
        let layout = "change -segment DEFAULT -file=store.dat -access_method=BG -block_size=4096 \
             -global_buffer_count=16384 -allocation=20000 -extension_count=20000\n\
             change -region DEFAULT -key_size=255 -record_size=16384\nexit\n";
        run("mumps", &["-run", "GDE"], layout)?;
        run("mupip", &["create"], "")?;
        if durability == Durability::Durable {
            let journal = "-journal=enable,on,before,file=store.mjl";
            run("mupip", &["set", journal, "-region", "DEFAULT"], "")?;
        }
        let mut process =
            command("mumps", &["-run", "gtm"]).stderr(Stdio::null()).spawn().map_err(io)?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (requests, answers) = pipes.expect("both are pipes");
        let answers = BufReader::new(answers);
        let (requests, known) = (Some(requests), String::new());
        Ok(Documents { requests, answers, process, durability, known })
    }

    /// The lines of an answer, given to `each` as their words, and the count at its end.
    fn ask(
        &mut self,
        words: &[&str],
        each: &mut dyn FnMut(&[&str]) -> Result<()>,
    ) -> Result<usize> {
        let ended = || Error::io("the routine of the peer `gtm` ended");
        let failed = |error| ended().with_source(error);
        let requests = self.requests.as_mut().ok_or_else(ended)?;
        requests.write_all(format!("{}\n", words.join("\t")).as_bytes()).map_err(failed)?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.answers.read_line(&mut line).map_err(failed)? == 0 {
                return Err(ended());
            }
            let words: Vec<&str> = line.trim_end_matches('\n').split('\t').collect();
            match words[..] {
                ["ok", count] => return count.parse().map_err(|_| ended()),
                ["error", why] => return Err(Error::io(format!("GT.M failed: {why}"))),
                _ => each(&words)?,
            }
        }
    }

    fn tell(&mut self, words: &[&str]) -> Result<usize> {
        self.ask(words, &mut |_| Err(Error::corrupted("GT.M has answered a request without lines")))
    }

    /// Makes the document of a set the one that the routine puts.
    fn learn(&mut self, set: &Set) -> Result<()> {
        let copy = set.copy(1);
        if self.known == copy.text {
            return Ok(());
        }
        if set.len() > 1 && set.copy(2).text != copy.text {
            return Err(Error::unsupported("the routine puts copies that are equal"));
        }
        self.tell(&["new"])?;
        for step in &copy.steps {
            let value = Answer::Tree(step.value.clone()).to_json()?;
            let value = String::from_utf8_lossy(&value).into_owned();
            if !step.is_leaf || value == "{}" || value == "[]" {
                return Err(Error::unsupported("globals have neither lists nor empty containers"));
            }
            let mut words = vec!["leaf", &*value];
            words.extend(subscripts(&step.path));
            self.tell(&words)?;
        }
        self.known.clone_from(&copy.text);
        Ok(())
    }

    /// Documents are set by commits of `step`; without transactions where `step` is 0.
    fn put(&mut self, by: By, numbers: &RangeInclusive<usize>, step: usize) -> Result<usize> {
        let how = if by == By::Document { "whole" } else { "leaves" };
        let [first, last, step] =
            [*numbers.start(), *numbers.end(), step].map(|number| number.to_string());
        match &*step {
            "0" => self.tell(&["plain", &first, &last, how]),
            _ => self.tell(&["set", &first, &last, &step, how]),
        }
    }

    fn read(&mut self, words: &[&str], each: Each<'_>) -> Result<usize> {
        let mut present: Option<(usize, Value)> = None;
        let count = self.ask(words, &mut |words| {
            let [number, value, subscripts @ ..] = words else { return Err(damaged()) };
            let number = number.parse().map_err(|_| damaged())?;
            if present.as_ref().is_none_or(|(present, _)| *present != number)
                && let Some((number, document)) = present.replace((number, Value::Null))
            {
                each(number, Answer::Json(document))?;
            }
            let (_, document) = present.as_mut().expect("it was made above");
            *subscripts.iter().fold(document, |node, key| {
                if node.is_null() {
                    *node = Value::Object(Map::new());
                }
                &mut node[*key]
            }) = parsed(value.as_bytes())?;
            Ok(())
        })?;
        if let Some((number, document)) = present {
            each(number, Answer::Json(document))?;
        }
        Ok(count)
    }
}

impl Collection for Documents {
    fn lacks(&self, operation: Operation) -> Option<String> {
        matches!(operation, Operation::Scan(_) | Operation::Replace(_) | Operation::Find)
            .then(|| "its rows are those that were published of it".to_owned())
    }

    fn perform(&mut self, operation: Operation, set: &Set, len: usize) -> Result<Option<usize>> {
        let step = |batch: Batch| match (batch, self.durability) {
            (Batch::One, Durability::None) => 0,
            _ => batch.len(len),
        };
        let first = 1..=len;
        let len = len.to_string();
        let count = match operation {
            Operation::Set(by, batch) => {
                let step = step(batch);
                self.learn(set)?;
                self.put(by, &first, step)?
            }
            Operation::SetLeaf(batch) => {
                let value = set.leaf_json(1, true).to_string();
                let step = step(batch).to_string();
                let mut words = vec!["change", &*len, &*step, &*value];
                words.extend(subscripts(set.leaf()));
                self.tell(&words)?
            }
            Operation::Get(reading) => self.tell(&[verb(reading), &len, "0"])?,
            Operation::GetLeaf => {
                let mut words = vec!["read", &*len, "0"];
                words.extend(subscripts(set.leaf()));
                self.tell(&words)?
            }
            Operation::Scan(_) | Operation::Replace(_) | Operation::Find => return Ok(None),
        };
        Ok(Some(count))
    }

    fn set(&mut self, by: By, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        self.learn(set)?;
        self.put(by, &numbers, set.len().max(1)).map(drop)
    }

    fn clear(&mut self) -> Result<()> {
        self.tell(&["clear"]).map(drop)
    }

    fn get(&mut self, reading: Reading, set: &Set, each: Each<'_>) -> Result<()> {
        self.read(&[verb(reading), &set.len().to_string(), "1"], each).map(drop)
    }

    fn scan(&mut self, _by: By, set: &Set, each: Each<'_>) -> Result<()> {
        self.read(&["merge", &set.len().to_string(), "1"], each).map(drop)
    }

    fn get_leaves(&mut self, set: &Set, each: Each<'_>) -> Result<()> {
        let len = set.len().to_string();
        let mut words = vec!["read", &*len, "1"];
        words.extend(subscripts(set.leaf()));
        self.read(&words, each).map(drop)
    }

    fn replace(&mut self, _set: &Set, _numbers: RangeInclusive<usize>) -> Result<()> {
        Err(Error::unsupported("its rows are those that were published of it"))
    }

    fn find(&mut self, _set: &Set, _each: Found<'_>) -> Result<()> {
        Err(Error::unsupported("its rows are those that were published of it"))
    }

    fn set_leaves(&mut self, _set: &Set, _numbers: RangeInclusive<usize>) -> Result<()> {
        Err(Error::unsupported("a row changes the leaves of all documents"))
    }

    fn processes(&self) -> Vec<u32> {
        vec![self.process.id()]
    }
}

impl Drop for Documents {
    fn drop(&mut self) {
        self.requests = None;
        // It fails only when it is gone already.
        let _ = self.process.wait();
    }
}

fn verb(reading: Reading) -> &'static str {
    match reading {
        Reading::Whole => "merge",
        Reading::Nested => "nested",
        Reading::Cursor => "cursor",
    }
}

/// The segments of a path; those of the published documents have no signs that a path escapes.
fn subscripts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').skip(1)
}

fn damaged() -> Error {
    Error::corrupted("GT.M has answered with what is no leaf")
}
