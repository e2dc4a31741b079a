//! What a run knows before it measures: room, versions, settings, the bar that shows how far it is.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value};

use crate::SERDE_JSON_VERSION;
use crate::options::Options;
use crate::report::Setting;
use crate::suite::Suite;
use crate::system::{Durability, Factory};

pub(super) fn disk_bytes<S: Suite>(suite: &S, factories: &[&dyn Factory]) -> u64 {
    let is_here = |factory: &&&dyn Factory| {
        let is_kept =
            |level: &Durability| *level != Durability::None && factory.lacks(*level).is_none();
        // Rather too much: a server that was named has a disk of its own.
        is_kept(&Durability::Durable) || is_kept(&Durability::Process)
    };
    let systems = factories.iter().filter(is_here).count() as u64;
    let largest = suite.sizes().into_iter().map(|size| suite.disk_bytes(size)).max().unwrap_or(0);
    largest.saturating_mul(systems)
}

pub(super) fn versions(factories: &[&dyn Factory]) -> Map<String, Value> {
    let mut versions: Map<String, Value> = [
        ("spinney", env!("CARGO_PKG_VERSION")),
        ("rustc", env!("LAB_RUSTC")),
        ("opt-level", env!("LAB_OPT_LEVEL")),
        ("rustflags", env!("LAB_RUSTFLAGS")),
        ("allocator", "system"),
        ("serde_json", SERDE_JSON_VERSION),
    ]
    .into_iter()
    .map(|(name, version)| (name.to_owned(), version.into()))
    .collect();
    for factory in factories {
        versions.extend(factory.versions().into_iter().map(|(name, text)| (name, text.into())));
    }
    versions
}

pub(super) fn settings(factories: &[&dyn Factory], suite: &str, options: &Options) -> Vec<Setting> {
    let mut settings = Vec::new();
    for factory in factories {
        let levels = options.durability.iter().filter(|&&level| factory.lacks(level).is_none());
        settings.push(Setting {
            system: factory.name().to_owned(),
            transport: factory.transport(),
            kind: factory.kind(),
            design: factory.design_in(suite).to_owned(),
            levels: levels.map(|&level| (level, factory.settings(level))).collect(),
        });
    }
    settings
}

pub(super) fn progress(options: &Options, sizes: usize, rows: usize) -> ProgressBar {
    // Indicatif draws nothing where stderr is no terminal.
    let target = match options.progress {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed}, {eta} left  {msg}");
    let steps = sizes * options.durability.len() * rows;
    ProgressBar::with_draw_target(Some(steps as u64), target)
        .with_style(style.expect("the template is valid"))
}
