//! `completions` and `man`: the definition of the command in other forms.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man as Page;
use spinney::{Error, Result};

use crate::Cli;
use crate::output::{cannot_write, stdout};

/// `spinney completions`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spinney completions bash > ~/.local/share/bash-completion/completions/spinney
  spinney completions zsh > ~/.zfunc/_spinney
  spinney completions fish > ~/.config/fish/completions/spinney.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub fn run(self) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "spinney", &mut script);
        print(&script)
    }
}

/// `spinney man`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  spinney man | man -l -
  spinney man --dir /usr/local/share/man/man1")]
pub struct Man {
    /// Write the page, and one for each verb, to files in this folder
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Man {
    pub fn run(self) -> Result<()> {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        let Some(dir) = self.dir else { return print(&render(command, "spinney")?) };
        write(&dir, render(command.clone(), "spinney")?, "spinney")?;
        command.get_subcommands().try_for_each(|verb| {
            let name = format!("spinney-{}", verb.get_name());
            write(&dir, render(verb.clone(), &name)?, &name)
        })
    }
}

fn render(command: Command, title: &str) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let title = title.to_owned();
    Page::new(command.display_name(title.clone()))
        .title(title)
        .render(&mut page)
        .map_err(cannot_write)?;
    Ok(page)
}

fn write(dir: &Path, page: Vec<u8>, name: &str) -> Result<()> {
    let path = dir.join(format!("{name}.1"));
    fs::write(&path, page)
        .map_err(|error| Error::io(format!("cannot write `{}`", path.display())).with_source(error))
}

fn print(bytes: &[u8]) -> Result<()> {
    let mut out = stdout();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(cannot_write)
}
