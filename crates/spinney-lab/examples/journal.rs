//! Runs the suite `journal` and prints its claims.
//!
//! `journal [--rows A,B] [--items N] [--inserts N] [--dir DIR]`; a short run is
//! `journal --inserts 1000000`.

use spinney_lab::{journal, render_claims};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = journal::serve(&arguments) {
        std::process::exit(code.into());
    }
    let options = options(&mut arguments.into_iter())?;
    let found = journal::run(&options, |name, _| eprintln!("{name} is measured"))?;
    anstream::print!("{}", render_claims(&found.claims));
    found.facts.iter().for_each(|fact| println!("{fact}"));
    Ok(())
}

fn options(arguments: &mut dyn Iterator<Item = String>) -> Result<journal::Options, Failed> {
    let mut options = journal::Options::default();
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("`{name}` needs a value"))?;
        match &*name {
            "--rows" => options.rows = value.split(',').map(str::to_owned).collect(),
            "--items" => options.items = value.parse()?,
            "--inserts" => options.inserts = value.parse()?,
            "--dir" => options.dir = value.into(),
            _ => return Err(format!("`{name}` is no argument").into()),
        }
    }
    Ok(options)
}
