//! How a run was made, in sentences.

use super::Report;
use crate::amount::{in_rate, in_unit};
use crate::options::{Mode, Rules};
use crate::record::Record;
use crate::system::Transport;

impl Report {
    /// What holds for all of its numbers.
    pub(crate) fn method(&self) -> Vec<String> {
        let folder = self.folder.as_ref().map(|folder| format!(" in {}", folder.display()));
        let mut lines =
            vec![format!("stores stood{} on {}", folder.unwrap_or_default(), self.file_system)];
        let is_datastore = self.context.suite == "datastore";
        if self.mode == Mode::Compat && is_datastore {
            lines.push(
                "as published: ten tries; in rows marked † nothing is put back, so nine of them change \
                 nothing; the figure is the mean: it shows the same work and is no measure of ours"
                    .to_owned(),
            );
        }
        if self.rules == Rules::Model {
            lines.push(
                "each commit of configuration is judged by the model, and one subscriber counts its \
                 nodes; twelve do in `many oper change_subs`, and what all were given is checked"
                    .to_owned(),
            );
        }
        if is_datastore {
            lines.push("`cached` rows may keep a decoded tree; all others may not".to_owned());
        }
        let lines_of_all = [
            match self.syncs_counted {
                true => "syncs of commits below 20 ms were counted with `strace`, without a clock",
                false => "syncs were not counted: `strace` is missing or may not attach",
            },
            "peak memory is that of the process, with all systems open",
        ];
        lines.extend(lines_of_all.map(str::to_owned));
        lines.push(format!("order seed: {}", self.context.order_seed));
        lines
    }

    /// The figure of a row as its suite has it: a time, or operations a second.
    pub(crate) fn shown_figure(&self, record: &Record) -> Option<String> {
        match self.context.suite == "datastore" || record.unit != "us" {
            true => record.figure().map(|figure| in_unit(figure, record.unit)),
            false => record.rate().map(in_rate),
        }
    }

    /// A system's name with what sets it apart.
    pub(crate) fn shown_name(&self, system: &str) -> String {
        match self.transport(system) {
            _ if system == self.context.baseline => format!("{system} (baseline)"),
            Transport::Embedded => system.to_owned(),
            apart => format!("{system} ({})", apart.name()),
        }
    }

    pub(crate) fn transport(&self, system: &str) -> Transport {
        let setting = self.settings.iter().find(|setting| setting.system == system);
        setting.map_or(Transport::Embedded, |setting| setting.transport)
    }
}
