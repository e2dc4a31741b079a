//! Measures the peers alone, at the sizes given as arguments.

use spinney_lab::{Options, run, systems};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes: Vec<usize> =
        std::env::args().skip(1).map(|size| size.parse()).collect::<Result<_, _>>()?;
    let mut options = Options { backends: Vec::new(), ..Options::default() };
    if !sizes.is_empty() {
        options.sizes = sizes;
    }
    let report = run(&options, systems::peers())?;
    report.print();
    std::process::exit(report.exit_code().into());
}
