//! Progress of long work: a line on stderr when that is a terminal, otherwise nothing.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work below this time shows nothing.
const TICK: Duration = Duration::from_millis(100);

/// A bar that counts bytes up to `len`, or without an end.
pub fn bytes(what: &str, len: Option<u64>, quiet: bool) -> ProgressBar {
    let template = match len {
        Some(_) => {
            "{msg} {bar:30} {percent:>3} %  {decimal_bytes}  {decimal_bytes_per_sec}, {eta} left"
        }
        None => "{msg} {spinner} {decimal_bytes}  {decimal_bytes_per_sec}",
    };
    new(what, len, template, quiet)
}

/// A sign of life for work whose length is not known.
pub fn activity(what: &str, quiet: bool) -> ProgressBar {
    new(what, None, "{msg} {spinner} {elapsed}", quiet)
}

fn new(what: &str, len: Option<u64>, template: &str, quiet: bool) -> ProgressBar {
    if quiet || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(len, ProgressDrawTarget::stderr_with_hz(10));
    bar.set_style(ProgressStyle::with_template(template).expect("the template is well-formed"));
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(TICK);
    bar
}
