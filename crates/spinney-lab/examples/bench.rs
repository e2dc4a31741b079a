//! Runs the suite with the arguments of `spinney bench`.
//!
//! `bench [--claims | --datastore | --compat] [--data FILE,FILE] [--memory-sizes N,N] [--sizes N,N] [--backends A,B] [--peers A,B] [--rows A,B] [--tries N]
//! [--budget MS] [--durability A,B] [--records FILE] [--dir DIR] [--seed N] [--no-syncs] [--baseline NAME]`

use std::time::Duration;

use spinney_lab::system::Durability;
use spinney_lab::{Options, child, run, systems};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = child::serve(&arguments) {
        std::process::exit(code.into());
    }
    let options = options(&mut arguments.into_iter())?;
    let systems = systems::all(&options.backends, &options.peers)?;
    let report = run(&options, systems)?;
    match options.claims {
        true => anstream::print!("{}", report.render_claims()),
        false => report.print(),
    }
    std::process::exit(report.exit_code().into());
}

fn options(arguments: &mut dyn Iterator<Item = String>) -> Result<Options, Failed> {
    let mut arguments = arguments.peekable();
    let suites = ["--claims", "--datastore", "--compat"];
    let suite = arguments.next_if(|first| suites.contains(&&**first));
    let mut options = match suite.as_deref() {
        Some("--claims") => Options::claims(),
        Some("--datastore") => Options::datastore(),
        Some(_) => Options::compat(),
        None => Options::default(),
    };
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("`{name}` needs a value"));
        match &*name {
            "--no-syncs" => options.count_syncs = false,
            "--sizes" => options.sizes = list(&value()?, |size| Ok(size.parse()?))?,
            "--backends" => options.backends = list(&value()?, |name| Ok(name.to_owned()))?,
            "--peers" => options.peers = list(&value()?, |name| Ok(name.to_owned()))?,
            "--rows" => options.rows = list(&value()?, |name| Ok(name.to_owned()))?,
            "--data" => options.data = list(&value()?, |path| Ok(path.into()))?,
            "--memory-sizes" => options.memory_sizes = list(&value()?, |size| Ok(size.parse()?))?,
            "--baseline" => options.baseline = value()?,
            "--tries" => options.tries = Some(value()?.parse()?),
            "--budget" => options.budget = Some(Duration::from_millis(value()?.parse()?)),
            "--durability" => options.durability = list(&value()?, level)?,
            "--records" => options.records = Some(value()?.into()),
            "--dir" => options.dir = Some(value()?.into()),
            "--seed" => options.seed = Some(value()?.parse()?),
            _ => return Err(format!("`{name}` is no argument").into()),
        }
    }
    Ok(options)
}

fn list<T>(text: &str, parse: impl Fn(&str) -> Result<T, Failed>) -> Result<Vec<T>, Failed> {
    text.split(',').filter(|part| !part.is_empty()).map(parse).collect()
}

fn level(name: &str) -> Result<Durability, Failed> {
    Durability::of_name(name).ok_or_else(|| format!("`{name}` is no level of durability").into())
}
