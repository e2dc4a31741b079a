//! Processes that are killed, that share a store, and that run out of space.
//!
//! Other processes are this binary again, which runs `child` with a role from the environment.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use spinney::{Durability, ErrorKind, Result, Store, Transaction, Value};
use spinney_conformance::child::{self, ROLE, STORE, child_command, said, say, start};
use spinney_conformance::subject::number;
use spinney_conformance::subject::text;
use spinney_conformance::{folder, timed};

const MEMBER: &str = "SPINNEY_TEST_MEMBER";
const KILLS: u64 = 200;
const LEVELS: [Durability; 3] = [Durability::Durable, Durability::Process, Durability::None];

fn open(dir: &Path) -> Store {
    spinney::open(&format!("lmdb:{}", dir.display())).expect("the store opens")
}

fn open_json(file: &Path) -> Store {
    spinney::open(&format!("json:{}", file.display())).expect("the file opens")
}

/// Waits for the process that had it before, which is being killed.
fn open_fjall(dir: &Path) -> Store {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match spinney::open(&format!("fjall:{}", dir.display())) {
            Err(error) if error.kind() == ErrorKind::Busy && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            opened => return opened.expect("the store opens"),
        }
    }
}

/// Folds the journal again and again, so that a kill meets that, too.
fn fold_for_ever(store: &Store) {
    loop {
        store.checkpoint().expect("folds");
        thread::sleep(Duration::from_micros(fastrand::u64(..100_000)));
    }
}

#[test]
fn child() {
    let Some((role, dir)) = child::role() else { return };
    match role.as_str() {
        "write" => write_for_ever(&open(&dir)),
        "write json" => write_and_fold_for_ever(&open_json(&dir)),
        "write fjall" => write_and_fold_for_ever(&open_fjall(&dir)),
        "read" => read_for_ever(&open(&dir)),
        "count durable" => count(&open(&dir), Durability::Durable),
        "count none" => count(&open(&dir), Durability::None),
        "one of four" => one_of_four(&open(&dir)),
        "increment" => increment(&open(&dir)),
        "compare" => compare(&open(&dir)),
        "fill the disk" => fill_the_disk(&open(&dir)),
        other => panic!("no role `{other}`"),
    }
}

fn write_and_fold_for_ever(store: &Store) {
    let other = store.clone();
    thread::spawn(move || fold_for_ever(&other));
    write_for_ever(store)
}

fn number_at(store: &Store, path: &str) -> u64 {
    number(store.read().and_then(|snapshot| snapshot.get(path)).expect("it reads"))
}

/// The numbered changes: what the store holds follows from how many were made.
fn change(tx: &mut Transaction<'_>, n: u64) -> Result<()> {
    tx.set("/count/n", &n.into())?;
    if n == 1 {
        tx.set("/list", &Value::list())?;
    }
    let len = tx.count("/list")?.expect("a list");
    tx.insert(&format!("/list/{}", n * 7_919 % (len + 1)), &n.into())?;
    match n % 8 {
        1 => tx.set(&format!("/imports/{}", n % 5), &vec![Value::from(n); 900].into())?,
        2 => tx.set(&format!("/tree{}/text", n % 7), &format!("{n} ").repeat(9_000).into())?,
        3 => drop(tx.remove(&format!("/imports/{}", (n + 1) % 5))?),
        4 => tx.mv(&format!("/list/{}", len / 2), "/list/0")?,
        5 => drop(tx.remove(&format!("/tree{}", n % 7))?),
        6 if len > 60 => (0..30).try_for_each(|_| tx.remove("/list/20").map(drop))?,
        _ => tx.set(&format!("/imports/m/{}", n % 400), &n.into())?,
    }
    match n % 60 {
        // More than is written ahead at once.
        20 => {
            tx.set("/big", &vec![Value::from(format!("{n} {}", "x".repeat(86_000))); 100].into())?
        }
        40 => drop(tx.remove("/big")?),
        _ => {}
    }
    tx.set("/twin/n", &n.into())
}

/// Commits change after change and says each one that survives its end.
fn write_for_ever(store: &Store) {
    say("0 0");
    loop {
        let mut n = 0;
        let next = |tx: &mut Transaction<'_>| {
            n = number(tx.get("/count/n")?) + 1;
            change(tx, n)
        };
        let durability = fastrand::choice(LEVELS).expect("three levels");
        let revision = store.write_with(durability, next).expect("commits").revision;
        if durability != Durability::None {
            say(format_args!("{n} {revision}"));
        }
    }
}

/// Each snapshot is one state, and none is older than the one before.
fn read_for_ever(store: &Store) {
    let mut last = 0;
    say("reads");
    loop {
        let snapshot = store.read().expect("a snapshot");
        let revision = snapshot.revision().expect("a revision");
        let left = number(snapshot.get("/count/n").expect("it reads"));
        let right = number(snapshot.get("/twin/n").expect("it reads"));
        if left != right || revision < last {
            say(format_args!("broken: {left} {right} at {revision} after {last}"));
        }
        last = revision;
        if fastrand::u8(..) == 0 {
            let report = snapshot.check().expect("it reads");
            if !report.damaged.is_empty() {
                say(format_args!("broken: {:?}", report.damaged));
            }
        }
    }
}

#[test]
fn killed_writers_lose_nothing_that_was_answered() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    drop(open(&dir));
    let mut reader = start("read", &dir);
    let mut words = said(&mut reader);
    assert_eq!(words.next().as_deref(), Some("reads"));
    let model = spinney::open("memory:").expect("a model");
    timed("kills", || {
        for kill in 0..KILLS {
            kill_once("write", open, &dir, &model, kill);
        }
    });
    reader.kill().expect("kill");
    reader.wait().expect("wait");
    assert_eq!(words.next(), None, "the reader has seen a broken state");
    let changes = number_at(&model, "/count/n");
    println!("{KILLS} kills, {changes} changes");
    assert!(changes > KILLS / 4, "the writers hardly wrote");
}

#[test]
fn a_killed_writer_on_fjall_loses_nothing_that_was_answered() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    drop(open_fjall(&dir));
    let model = spinney::open("memory:").expect("a model");
    timed("kills of a writer on fjall", || {
        for kill in 0..KILLS {
            kill_once("write fjall", open_fjall, &dir, &model, kill);
        }
    });
    let changes = number_at(&model, "/count/n");
    println!("{KILLS} kills, {changes} changes");
    assert!(changes > KILLS / 4, "the writer hardly wrote");
}

fn kill_once(role: &str, open: fn(&Path) -> Store, dir: &Path, model: &Store, kill: u64) {
    let mut writer = start(role, dir);
    let mut words = said(&mut writer);
    assert_eq!(words.next().as_deref(), Some("0 0"));
    let heard = thread::spawn(move || words.last());
    // Long enough, now and then, for the largest change.
    let least = if kill.is_multiple_of(8) { 400_000 } else { 1_000 };
    thread::sleep(Duration::from_micros(least + kill * 7_919 % 40_000));
    writer.kill().expect("kill");
    writer.wait().expect("wait");
    let last = heard.join().expect("the listener");
    let acknowledged = last.map_or((0, 0), |words| {
        let (n, revision) = words.split_once(' ').expect("two numbers");
        (n.parse().expect("a number"), revision.parse().expect("a revision"))
    });
    let store = open(dir);
    let n = number_at(&store, "/count/n");
    let revision = store.read().and_then(|snapshot| snapshot.revision()).expect("a revision");
    assert!((n, revision) >= acknowledged, "{acknowledged:?} was answered, {n} is left");
    for n in number_at(model, "/count/n") + 1..=n {
        model.write(|tx| change(tx, n)).expect("the model follows");
    }
    assert_eq!(number_at(model, "/count/n"), n, "the store went back");
    assert!(text(&store) == text(model), "kill {kill}: the store differs after change {n}");
    if kill.is_multiple_of(2) {
        // What a killed writer had written ahead is given back by the next writer.
        store.write(|tx| tx.set("/probe", &kill.into())).expect("writes");
        store.write(|tx| tx.remove("/probe")).expect("removes");
        store.forget_before(u64::MAX).expect("forgets");
        store.reclaim().expect("reclaims");
        let report = store.read().and_then(|snapshot| snapshot.check()).expect("checks");
        assert!(report.is_sound() && report.queued == 0, "kill {kill}: {report:?}");
    }
}

// A group of processes of which any is killed at any time.

const GROUP: usize = 4;
const GROUP_KILLS: usize = 500;

/// Commits to a member of its own, and says each commit that survives its end; checks that others'
/// answered commits are seen.
fn one_of_four(store: &Store) {
    let name = std::env::var(MEMBER).expect("a member");
    let own = format!("/members/{name}");
    let mut n = number_at(store, &own);
    say(n);
    loop {
        n += 1;
        let durability = fastrand::choice(LEVELS).expect("three levels");
        let next = |tx: &mut Transaction<'_>| {
            assert_eq!(number(tx.get(&own)?), n - 1, "an own commit is lost or not seen");
            let sum = number(tx.get("/sum")?);
            tx.set("/sum", &(sum + 1).into())?;
            tx.set(
                &format!("/log/{}", sum % 3_000),
                &format!("{name} {n} {}", "x".repeat(300)).into(),
            )?;
            tx.set(&own, &n.into())
        };
        store.write_with(durability, next).expect("commits");
        if durability != Durability::None {
            say(n);
        }
        if fastrand::u8(..) == 0 {
            store.checkpoint().expect("folds");
        }
    }
}

struct Member {
    child: Child,
    heard: thread::JoinHandle<u64>,
}

impl Member {
    fn start(number: usize, dir: &Path) -> Member {
        let mut command = child_command("one of four", dir);
        let mut child = command.env(MEMBER, number.to_string()).spawn().expect("a child");
        let words = said(&mut child);
        let numbers = words.map(|word| word.parse().expect("a number"));
        Member { child, heard: thread::spawn(move || numbers.last().unwrap_or(0)) }
    }

    /// Kills it; returns its last answered commit.
    fn kill(mut self) -> u64 {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
        self.heard.join().expect("the listener")
    }
}

#[test]
fn killed_members_of_a_group_lose_nothing_that_was_answered() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    drop(open(&dir));
    let mut answered = [0; GROUP];
    let (mut kills, mut last_sum) = (0, 0);
    timed("a group of four", || {
        while kills < GROUP_KILLS {
            let mut members: Vec<Option<Member>> =
                (0..GROUP).map(|number| Some(Member::start(number, &dir))).collect();
            // Some are killed beside living ones, then all at about the same time.
            for _ in 0..fastrand::usize(4..40) {
                thread::sleep(Duration::from_micros(fastrand::u64(500..30_000)));
                let number = fastrand::usize(..GROUP);
                let member = members[number].take().expect("a member");
                answered[number] = member.kill().max(answered[number]);
                members[number] = Some(Member::start(number, &dir));
                kills += 1;
            }
            for (number, member) in members.iter_mut().enumerate() {
                let member = member.take().expect("a member");
                answered[number] = member.kill().max(answered[number]);
                kills += 1;
            }
            let store = open(&dir);
            let left = [0, 1, 2, 3].map(|number| number_at(&store, &format!("/members/{number}")));
            let sum = number_at(&store, "/sum");
            assert!(
                (0..GROUP).all(|i| left[i] >= answered[i]),
                "{answered:?} answered, {left:?} left"
            );
            assert_eq!(sum, left.iter().sum::<u64>(), "a lost update");
            assert!(sum >= last_sum, "the store went back");
            last_sum = sum;
            let report = store.read().and_then(|snapshot| snapshot.check()).expect("checks");
            assert!(report.damaged.is_empty(), "{report:?}");
        }
    });
    println!("{kills} kills, {last_sum} commits");
    assert!(last_sum > kills as u64 / 4, "the members hardly wrote");
}

/// Opening to write replaces the file and takes the journal away, so most kills are only looked at:
/// then the next writer goes on with the journal as the kill has left it.
#[test]
fn a_killed_writer_of_a_json_file_loses_nothing_that_was_answered() {
    let folder = folder::temporary();
    let file = folder.path().join("store.json");
    drop(open_json(&file));
    let model = spinney::open("memory:").expect("a model");
    timed("kills of the writer of a JSON file", || {
        for kill in 0..KILLS {
            let mut writer = start("write json", &file);
            let mut words = said(&mut writer);
            assert_eq!(words.next().as_deref(), Some("0 0"));
            let (said, heard) = std::sync::mpsc::channel();
            let listener = thread::spawn(move || words.for_each(|words| drop(said.send(words))));
            // Now and then long enough for the largest change, however slow this machine is.
            let first =
                kill.is_multiple_of(16).then(|| heard.recv_timeout(Duration::from_secs(20)));
            thread::sleep(Duration::from_micros(20_000 + kill * 7_919 % 60_000));
            writer.kill().expect("kill");
            writer.wait().expect("wait");
            listener.join().expect("the listener");
            let last = heard.iter().last().or(first.and_then(Result::ok));
            let answered: u64 = last.map_or(0, |words| {
                words.split(' ').next().and_then(|n| n.parse().ok()).expect("a number")
            });
            spinney::formats::parse(&std::fs::read_to_string(&file).expect("it reads"))
                .expect("the file is whole");
            let store = match kill % 8 {
                0 => open_json(&file),
                _ => spinney::OpenOptions::new()
                    .read_only(true)
                    .open(&format!("json:{}", file.display()))
                    .expect("the file opens"),
            };
            let n = number_at(&store, "/count/n");
            assert!(n >= answered, "kill {kill}: {answered} was answered, {n} is left");
            for n in number_at(&model, "/count/n") + 1..=n {
                model.write(|tx| change(tx, n)).expect("the model follows");
            }
            assert_eq!(number_at(&model, "/count/n"), n, "kill {kill}: the store went back");
            assert!(text(&store) == text(&model), "kill {kill}: differs after change {n}");
            assert!(store.read().and_then(|snapshot| snapshot.check()).expect("checks").is_sound());
        }
    });
    let changes = number_at(&model, "/count/n");
    println!("{KILLS} kills, {changes} changes");
    assert!(changes > KILLS / 4, "the writer hardly wrote");
}

// Sharing between processes.

const COUNT: u64 = 400;

fn count(store: &Store, durability: Durability) {
    for _ in 0..COUNT {
        count_one(store, durability);
    }
    store.sync().expect("syncs");
}

fn count_one(store: &Store, durability: Durability) {
    let one_more = |tx: &mut Transaction<'_>| {
        let n = number(tx.get("/n")?);
        tx.set("/n", &(n + 1).into())?;
        tx.insert("/list/0", &n.into())
    };
    store.write_with(durability, one_more).expect("commits");
}

/// Who has counted to `n` in turns with others has lost nothing.
fn assert_counted(store: &Store, n: u64) {
    assert_eq!(number_at(store, "/n"), n);
    let list: Vec<Value> = (0..n).rev().map(Value::from).collect();
    assert_eq!(
        store.read().and_then(|snapshot| snapshot.get("/list")).expect("reads"),
        Some(list.into())
    );
    assert!(store.read().and_then(|snapshot| snapshot.check()).expect("checks").is_sound());
}

/// While it is alone a process keeps the writer's lock for a moment, and writes past the cache.
#[test]
fn processes_that_come_and_go_beside_an_idle_one_lose_nothing() {
    const LEVELS: [Durability; 5] = [
        Durability::Process,
        Durability::Durable,
        Durability::Durable,
        Durability::None,
        Durability::Durable,
    ];
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = open(&dir);
    store.write(|tx| tx.set("/list", &Value::list())).expect("sets");
    let mut counted = 0;
    timed("come and go", || {
        for role in ["count durable", "count none", "count durable", "count none"] {
            for level in LEVELS {
                count_one(&store, level);
            }
            assert!(start(role, &dir).wait().expect("wait").success());
            counted += LEVELS.len() as u64 + COUNT;
            assert_eq!(number_at(&store, "/n"), counted);
        }
        count_one(&store, Durability::Durable);
    });
    drop(store);
    assert_counted(&open(&dir), counted + 1);
}

#[test]
fn a_durable_writer_beside_one_that_is_not() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    open(&dir).write(|tx| tx.set("/list", &Value::list())).expect("sets");
    timed("durable beside none", || {
        let roles = ["count durable", "count none", "count durable", "count none"];
        let mut children: Vec<Child> = roles.map(|role| start(role, &dir)).into();
        for child in &mut children {
            assert!(child.wait().expect("wait").success());
        }
    });
    assert_counted(&open(&dir), 4 * COUNT);
}

fn seconds() -> Duration {
    let seconds = std::env::var("SPINNEY_TEST_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(10))
}

fn increment(store: &Store) {
    let (began, mut done) = (Instant::now(), 0_u64);
    while began.elapsed() < seconds() {
        let one_more = |tx: &mut Transaction<'_>| {
            let n = number(tx.get("/counter")?) + 1;
            tx.set("/counter", &n.into())?;
            tx.set("/left/deep/leaf", &n.into())?;
            tx.set(&format!("/right/list/{}", n % 2_000), &n.into())?;
            tx.set("/right/leaf", &n.into())
        };
        store.write(one_more).expect("commits");
        done += 1;
    }
    say(done);
}

fn compare(store: &Store) {
    let (began, mut reads, mut last) = (Instant::now(), 0_u64, 0);
    while began.elapsed() < seconds() {
        let snapshot = store.read().expect("a snapshot");
        let at = |path: &str| number(snapshot.get(path).expect("it reads"));
        let n = at("/counter");
        let element = at(&format!("/right/list/{}", n % 2_000));
        assert_eq!((at("/left/deep/leaf"), at("/right/leaf"), element), (n, n, n), "a torn read");
        assert!(n >= last, "an old state: {n} after {last}");
        last = n;
        reads += 1;
    }
    say(reads);
}

#[test]
fn two_writers_and_four_readers() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = open(&dir);
    store
        .write(|tx| {
            tx.set("/counter", &0.into())?;
            tx.set("/left/deep/leaf", &0.into())?;
            tx.set("/right/leaf", &0.into())?;
            tx.set("/right/list", &vec![Value::from(0); 2_000].into())
        })
        .expect("sets");
    drop(store);
    timed("two writers and four readers", || {
        let roles = ["increment", "increment", "compare", "compare", "compare", "compare"];
        let mut children: Vec<Child> = roles.map(|role| start(role, &dir)).into();
        let totals: Vec<u64> = children
            .iter_mut()
            .map(|child| {
                let last = said(child).last();
                assert!(child.wait().expect("wait").success(), "a child has failed");
                last.expect("a total").parse().expect("a number")
            })
            .collect();
        println!("writes {:?}, reads {:?}", &totals[..2], &totals[2..]);
        assert_eq!(number_at(&open(&dir), "/counter"), totals[0] + totals[1], "a lost update");
        assert!(totals.iter().all(|&total| total > 0), "one was kept waiting: {totals:?}");
    });
    assert!(open(&dir).read().and_then(|snapshot| snapshot.check()).expect("checks").is_sound());
}

// Full disks.

/// Under a limit of the file's size: writes until one fails, which has not happened then.
fn fill_the_disk(store: &Store) {
    let mut synced = 0;
    let failed = loop {
        let next = synced + 1;
        let more = |tx: &mut Transaction<'_>| {
            tx.set(&format!("/a/{next}"), &vec![Value::from("x".repeat(900)); 40].into())?;
            tx.set("/n", &next.into())
        };
        match store.write(more) {
            Ok(_) => synced = next,
            Err(error) => break error,
        }
    };
    assert!(matches!(failed.kind(), ErrorKind::Io | ErrorKind::Closed), "{failed}");
    assert_eq!(number_at(store, "/n"), synced, "reads stay at what was answered");
    say(synced);
}

#[test]
fn a_full_disk_leaves_an_acknowledged_revision() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    drop(open(&dir));
    for round in 1..=2_u64 {
        // The limit's signal must be ignored before the process starts; a shell can do that.
        let child = child_command("fill the disk", &dir);
        let mut shell = Command::new("sh");
        let script = format!("trap '' XFSZ; ulimit -f {} && exec \"$0\" \"$@\"", round * 6_000);
        shell.args(["-c", &script]).arg(child.get_program()).args(child.get_args());
        shell.env(ROLE, "fill the disk").env(STORE, &dir).stdout(Stdio::piped());
        let mut child = match shell.spawn() {
            Ok(child) => child,
            Err(error) => return println!("skipped: no shell to limit the file's size: {error}"),
        };
        let words: Vec<String> = said(&mut child).collect();
        assert!(child.wait().expect("wait").success(), "the child's checks: {words:?}");
        let synced: u64 = words.first().expect("words").parse().expect("a number");
        let store = open(&dir);
        assert!(synced > 3);
        assert_eq!(number_at(&store, "/n"), synced);
        store.write(|tx| tx.remove("/a").and_then(|_| tx.set("/n", &0.into()))).expect("writes");
        store.forget_before(u64::MAX).expect("forgets");
        store.reclaim().expect("reclaims");
        let report = store.read().and_then(|snapshot| snapshot.check()).expect("checks");
        assert!(report.is_sound() && report.queued == 0, "{report:?}");
        println!("full disk: {synced} commits, then refused");
    }
}
