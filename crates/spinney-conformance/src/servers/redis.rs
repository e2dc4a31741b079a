//! A `redis-server` of a test, or another server that takes its place.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Client, FromRedisValue};
use tempfile::TempDir;

use crate::folder;

/// The program that is started, unless [`PROGRAM_VARIABLE`] names another.
const PROGRAM: &str = "redis-server";

/// Names the program that is started, as Valkey's.
const PROGRAM_VARIABLE: &str = "SPINNEY_TEST_REDIS_SERVER";

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server of its own on a port of the kernel's choosing, which ends with it.
pub struct RedisServer {
    folder: TempDir,
    port: u16,
    settings: Vec<String>,
    process: Option<Child>,
}

impl RedisServer {
    /// Starts a server with settings as on its command line; without any it keeps nothing on disk.
    /// `None`, with a line that says so, where there is none to start, or none that was built with TLS
    /// where the settings ask for it.
    ///
    /// # Panics
    /// When a server that is there does not start.
    pub fn start(settings: &[&str]) -> Option<RedisServer> {
        let program = program();
        let asks_for_tls = settings.contains(&"--tls-port");
        let found = Command::new(&program).arg("--version").output();
        if found.is_err() {
            println!("skipped: {program} is missing; `scripts/prepare` installs it on Debian");
            return None;
        }
        if asks_for_tls && !has_tls(&program) {
            println!("skipped: {program} was built without TLS");
            return None;
        }
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let port = free_port();
        let mut server = RedisServer { folder: folder::temporary(), port, settings, process: None };
        server.resume();
        Some(server)
    }

    /// A server that syncs each write before it answers.
    pub fn start_durable() -> Option<RedisServer> {
        RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// Starts the server again, with what it kept.
    ///
    /// # Panics
    /// When it does not answer in time.
    pub fn resume(&mut self) {
        let program = program();
        let mut command = Command::new(&program);
        // A server must not outlive a test that was killed.
        if let Ok(found) = Command::new("setpriv").arg("--version").output()
            && found.status.success()
        {
            command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", &program]);
        }
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--unixsocket", &self.socket(), "--daemonize", "no"]);
        // On a machine that has much else to do a script may take long, which is no error of a test's questions.
        command.args(["--busy-reply-threshold", "0"]);
        command.arg("--dir").arg(self.folder.path()).args(&self.settings);
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        self.process = Some(command.spawn().expect("the server starts"));
        let since = Instant::now();
        while self.try_ask::<String>(&["PING"]).is_err_and(|error| error.code() != Some("NOAUTH")) {
            let log = || std::fs::read_to_string(self.folder.path().join("log"));
            assert!(since.elapsed() < PATIENCE, "{program} does not answer: {:?}", log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the server without a chance to clean up.
    ///
    /// # Panics
    /// When that fails.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("kill");
            process.wait().expect("wait");
        }
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path of its socket.
    pub fn socket(&self) -> String {
        self.folder.path().join("socket").display().to_string()
    }

    /// The URL of a store in its first database.
    pub fn url(&self, store: &str) -> String {
        format!("redis://127.0.0.1:{}/0?store={store}", self.port)
    }

    /// What it answers to a command.
    ///
    /// # Panics
    /// When it answers with an error.
    pub fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_ask(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    fn try_ask<T: FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let client = Client::open(format!("redis://127.0.0.1:{}", self.port))?;
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(1))?;
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut connection)
    }

    /// Where it keeps its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A fact among what `INFO` says.
    ///
    /// # Panics
    /// When there is none of that name.
    pub fn text(&self, section: &str, name: &str) -> String {
        let facts: String = self.ask(&["INFO", section]);
        let value = facts.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("no `{name}` in {facts}")).to_owned()
    }

    /// A number among what `INFO` says.
    ///
    /// # Panics
    /// When there is none of that name.
    pub fn info(&self, section: &str, name: &str) -> u64 {
        self.text(section, name).parse().expect("a number")
    }

    /// Hears of the commands that clients send from now on.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub fn monitor(&self) -> Monitor {
        let connect = || TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let (mut stream, marks) = (connect(), connect());
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(b"MONITOR\r\n").expect("it is sent");
        let mut lines = BufReader::new(stream);
        lines.read_until(b'\n', &mut Vec::new()).expect("an answer");
        Monitor { marks, lines }
    }

    /// How often a command was called since the server started.
    pub fn calls(&self, command: &str) -> u64 {
        let facts: String = self.ask(&["INFO", "commandstats"]);
        let name = format!("cmdstat_{command}:calls=");
        let calls = facts.lines().find_map(|line| line.strip_prefix(&name)?.split(',').next());
        calls.map_or(0, |calls| calls.parse().unwrap_or(0))
    }
}

/// Hears of the commands that clients send to a server.
pub struct Monitor {
    /// Where a question is marked among the commands.
    marks: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Monitor {
    /// The names of the commands since the last question, those that scripts run left out.
    ///
    /// # Panics
    /// When the server does not tell.
    pub fn commands(&mut self) -> Vec<String> {
        let mark = format!("{:016x}", fastrand::u64(..));
        self.marks.write_all(format!("ECHO {mark}\r\n").as_bytes()).expect("it is sent");
        let mut commands = Vec::new();
        loop {
            let mut line = Vec::new();
            assert!(self.lines.read_until(b'\n', &mut line).expect("a line") > 0, "it is gone");
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.contains(&mark) {
                return commands;
            }
            // `+TIME [DATABASE CLIENT] "NAME" "ARGUMENT"`, where `lua` is the client of a script.
            let mut parts = line.split('"');
            let is_of_client = parts.next().is_some_and(|client| !client.ends_with(" lua] "));
            commands.extend(parts.next().filter(|_| is_of_client).map(str::to_owned));
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn program() -> String {
    std::env::var(PROGRAM_VARIABLE).unwrap_or_else(|_| PROGRAM.to_owned())
}

/// Whether a server knows TLS: one that does complains of the certificate that it lacks.
fn has_tls(program: &str) -> bool {
    let refused = Command::new(program).args(["--port", "0", "--tls-port", "1"]).output();
    refused.is_ok_and(|refused| String::from_utf8_lossy(&refused.stdout).contains("tls-cert-file"))
}

/// A port that nobody listens on at the moment.
///
/// # Panics
/// When the system has none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
