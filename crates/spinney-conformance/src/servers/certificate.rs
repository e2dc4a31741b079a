//! A certificate of a test, which signs itself.

use std::process::Command;

use tempfile::TempDir;

use crate::folder;

/// A certificate of `localhost` and 127.0.0.1, good for two days, in files that go with it.
pub struct Certificate {
    /// The file of its key.
    pub key: String,
    /// The file of the certificate.
    pub certificate: String,
    _folder: TempDir,
}

impl Certificate {
    /// Has `openssl` make one; `None`, with a line that says so, where that cannot be.
    pub fn make() -> Option<Certificate> {
        let folder = folder::temporary();
        let [key, certificate] =
            ["key", "certificate"].map(|name| folder.path().join(name).display().to_string());
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        command.args(["-nodes", "-days", "2", "-subj", "/CN=localhost"]);
        command.args(["-keyout", &key, "-out", &certificate]);
        command.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
        command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        if !command.output().is_ok_and(|made| made.status.success()) {
            println!("skipped: openssl is missing or cannot make a certificate");
            return None;
        }
        Some(Certificate { key, certificate, _folder: folder })
    }
}
