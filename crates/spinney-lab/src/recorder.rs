//! The file of a run's records. It grows while the run lasts, so that what was measured outlives a killed
//! run, and it says what a resumed run need not measure again.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use spinney_core::{Error, Result};

use crate::options::Mode;
use crate::record::Context;
use crate::report::Report;

/// The end of the name of a file that will take the place of the records.
const NEW: &str = ".new";

/// A file of records that is being written.
pub struct Recorder {
    path: PathBuf,
    file: File,
}

impl Recorder {
    /// A file that holds `text` and nothing else.
    ///
    /// # Errors
    /// `Io` when it cannot be written.
    pub fn new(path: &Path, text: &str) -> Result<Recorder> {
        let file = replace(path, text).map_err(|error| failed(error, path))?;
        Ok(Recorder { path: path.to_owned(), file })
    }

    /// Adds lines.
    ///
    /// # Errors
    /// `Io` when they cannot be written.
    pub fn append(&mut self, lines: &str) -> Result<()> {
        self.file.write_all(lines.as_bytes()).map_err(|error| failed(error, &self.path))
    }

    /// Puts `text` in the place of all lines, whole or not at all.
    ///
    /// # Errors
    /// `Io` when it cannot be written.
    pub fn rewrite(&mut self, text: &str) -> Result<()> {
        self.file = replace(&self.path, text).map_err(|error| failed(error, &self.path))?;
        Ok(())
    }
}

/// A pipe or a device cannot be replaced and is written as it is.
fn replace(path: &Path, text: &str) -> std::io::Result<File> {
    let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file());
    let mut name = path.to_owned().into_os_string();
    if !is_special {
        name.push(NEW);
    }
    let mut file = File::create(&name)?;
    file.write_all(text.as_bytes())?;
    if !is_special {
        fs::rename(&name, path)?;
    }
    Ok(file)
}

/// What the run that wrote `path` has measured; `None` where there is nothing yet. A last line that a
/// killed run did not finish is passed over.
///
/// # Errors
/// `InvalidInput` when the records are of another machine, version, suite, procedure or baseline than
/// `present`, or of several runs.
pub fn resume(path: &Path, present: &Context, mode: Mode) -> Result<Option<Report>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let unread = Error::io(format!("cannot read `{}`", path.display()));
            return Err(unread.with_source(error));
        }
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    if whole.is_empty() {
        return Ok(None);
    }
    let at = |error: Error| error.at(format!("`{}`", path.display()));
    let mut reports = Report::read(whole).map_err(at)?;
    let Some(report) = reports.pop().filter(|_| reports.is_empty()) else {
        return Err(at(Error::invalid_input("it holds several runs; `--resume` continues one")));
    };
    match difference(&report, present, mode) {
        None => Ok(Some(report)),
        Some((what, then, now)) => Err(at(Error::invalid_input(format!(
            "its {what} is {then}, and here it is {now}; write new records without `--resume`, or to \
             another file"
        )))),
    }
}

/// What differs so that numbers do not belong together: its name, there and here.
fn difference(report: &Report, present: &Context, mode: Mode) -> Option<(String, String, String)> {
    let then = &report.context;
    let texts = [
        ("suite", then.suite.clone(), present.suite.clone()),
        ("procedure", report.mode.name().to_owned(), mode.name().to_owned()),
        ("baseline", then.baseline.clone(), present.baseline.clone()),
    ];
    let texts = texts.map(|(what, then, now)| (what.to_owned(), then, now)).into_iter();
    let machine = ["cpu", "cores", "ram", "os", "kernel", "fs", "disk", "governor"].map(|field| {
        let shown = |machine: &Value| machine[field].to_string();
        (format!("machine's `{field}`"), shown(&then.machine), shown(&present.machine))
    });
    let versions = then.versions.iter().filter_map(|(name, version)| {
        let now = present.versions.get(name)?;
        Some((format!("version of `{name}`"), version.to_string(), now.to_string()))
    });
    texts.chain(machine).chain(versions).find(|(_, then, now)| then != now)
}

fn failed(error: std::io::Error, path: &Path) -> Error {
    Error::io(format!("cannot write `{}`", path.display())).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;

    fn line(change: impl FnOnce(&mut Context)) -> String {
        let (record, mut context) = sample();
        change(&mut context);
        format!("{}\n", record.to_json(&context))
    }

    #[test]
    fn records_of_another_machine_or_version_are_refused_with_what_differs() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.jsonl");
        let (_, present) = sample();
        let refused = |text: String| {
            fs::write(&path, text).expect("writes");
            resume(&path, &present, Mode::Honest).expect_err("it differs").to_string()
        };
        let error = refused(line(|context| context.machine["cores"] = 64.into()));
        assert!(error.contains("its machine's `cores` is 64, and here it is 2;"), "{error}");
        let error = refused(line(|context| {
            context.versions.insert("spinney".to_owned(), "0".into());
        }));
        assert!(
            error.contains("its version of `spinney` is \"0\", and here it is \"1\""),
            "{error}"
        );
        let error = refused(line(|context| context.suite = "documents".to_owned()));
        assert!(error.contains("its suite is documents"), "{error}");
        let error = refused(line(|_| ()) + &line(|context| context.order_seed = 8));
        assert!(error.contains("several runs"), "{error}");
        assert!(refused("nonsense\n".to_owned()).contains("line 1"));
    }

    #[test]
    fn an_unfinished_line_is_as_if_it_were_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.jsonl");
        let (_, present) = sample();
        assert!(resume(&path, &present, Mode::Honest).expect("no file yet").is_none());
        let mut recorder = Recorder::new(&path, "").expect("a file");
        recorder.append(&line(|_| ())).expect("writes");
        recorder.append("{\"suite\":\"da").expect("writes");
        let report = resume(&path, &present, Mode::Honest).expect("one line").expect("one line");
        assert_eq!(report.records.len(), 1);
        recorder.rewrite("{").expect("writes");
        assert!(resume(&path, &present, Mode::Honest).expect("no line").is_none());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
