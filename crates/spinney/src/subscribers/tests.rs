//! What is said between processes, and processes that say something else.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use spinney_core::backend::Backend;
use spinney_core::history::{Entry, Note};
use spinney_core::overlay::Overlay;
use spinney_core::{ErrorKind, Path, Value};

use super::mailbox::Said;
use super::parties::Terms;
use super::registry::{Registration, Registry};
use super::wire::{self, FRAME_LEN_MAX, Question, read_frame, write_frame};
use super::{Answer, Edit, Ended, Proposal, SubscriberOptions};
use crate::backends::lmdb::{Lmdb, Options};
use crate::store::Store;

fn open(dir: &FilePath) -> Store {
    crate::open(&dir.display().to_string()).expect("opens")
}

fn registry(dir: &FilePath) -> Arc<Registry> {
    Registry::new(dir, Lmdb::open(dir, Options::EXISTING).expect("opens"))
}

fn terms(timeout: Duration) -> Terms {
    let options = SubscriberOptions::new("other").timeout(timeout).required(true);
    Terms::new("", Path::parse("/a").expect("a path"), options, None)
}

/// Registers something that answers each question with `answer`.
fn answering(
    registry: &Arc<Registry>,
    timeout: Duration,
    answer: impl Fn(UnixStream) + Send + 'static,
) -> Registration {
    let registration = registry.register(&terms(timeout)).expect("registers");
    let listener = registration.listener().expect("a listener");
    thread::spawn(move || {
        while let Some(stream) = Registration::accept(&listener) {
            answer(stream);
        }
    });
    registration
}

fn names(dir: &FilePath) -> usize {
    std::fs::read_dir(dir.join("subscribers")).expect("a directory").count()
}

#[test]
fn messages_read_back_and_damaged_ones_do_not() {
    let said = [
        Said::Answer(Answer::Pass),
        Said::Answer(Answer::Veto("because".to_owned())),
        Said::Answer(Answer::Amend(vec![
            Edit::Set("/a".to_owned(), crate::formats::parse(r#"{"x": [1e400, null]}"#).unwrap()),
            Edit::Insert("/l/0".to_owned(), Value::Bytes(vec![0, 255])),
            Edit::Remove("/b".to_owned()),
        ])),
        Said::Failed("broken".to_owned()),
        Said::Nothing,
        Said::Gone,
    ];
    for said in said {
        let encoded = wire::encode_said(&said);
        let again = wire::decode_said(&encoded).expect("reads");
        assert_eq!(wire::encode_said(&again), encoded);
        if let (Said::Answer(answer), Said::Answer(again)) = (&said, &again) {
            assert_eq!(again, answer);
        }
    }
    for ended in [Ended::Committed(7), Ended::GivenUp("because".to_owned())] {
        let encoded = wire::encode_ended(&ended);
        assert_eq!(wire::decode_ended(&encoded), Some(ended));
    }
    let entry =
        Entry { note: Note { author: "ann".to_owned(), ..Note::default() }, ..Entry::default() };
    let mut staged = Overlay::default();
    staged.stage((*b"key").into(), Some((*b"record").into()));
    staged.stage((*b"gone").into(), None);
    let encoded = Question::encode(9, &Entry::encode(&entry.note, &entry.diff), &staged);
    let encoded = encoded.expect("small");
    let question = Question::decode(&encoded).expect("reads");
    assert_eq!((question.base, question.entry), (9, entry));
    assert!(question.staged.iter().eq(staged.iter()));
    let mut random = fastrand::Rng::with_seed(4);
    for _ in 0..20_000 {
        let mut damaged = encoded.clone();
        damaged.truncate(random.usize(..=damaged.len()));
        for _ in 0..random.usize(..4) {
            if let Some(byte) = damaged.get_mut(random.usize(..encoded.len())) {
                *byte = random.u8(..);
            }
        }
        // Whatever it reads, it does not panic.
        let _ = Question::decode(&damaged);
        let garbage: Vec<u8> = std::iter::repeat_with(|| random.u8(..8)).take(9).collect();
        let _ = (wire::decode_said(&garbage), wire::decode_ended(&garbage));
    }
}

#[test]
fn a_question_that_is_too_big_is_refused() {
    let mut staged = Overlay::default();
    let record: Arc<[u8]> = vec![0; 1 << 20].into();
    for n in 0..70_u8 {
        staged.stage([n].into(), Some(Arc::clone(&record)));
    }
    let refused = Question::encode(1, &[], &staged).expect_err("70 MiB");
    assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
}

#[test]
fn garbage_instead_of_an_answer_refuses_the_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("store");
    let store = open(&dir);
    store.write(|tx| tx.set("/a", &0.into())).expect("sets");
    type Misbehave = fn(UnixStream);
    let cases: [(&str, Misbehave); 6] = [
        ("no answer that reads", |stream| {
            let _ = read_frame(&stream).and_then(|_| write_frame(&stream, &[9, 9, 9]));
        }),
        ("is too long; at most", |mut stream| {
            let _ = read_frame(&stream);
            let _ = stream.write_all(&(FRAME_LEN_MAX as u32 + 1).to_le_bytes());
        }),
        ("did not answer", |_hangs_up_at_once| {}),
        ("did not answer", |mut stream| {
            let _ = read_frame(&stream);
            let _ = stream.write_all(&[200, 0, 0, 0, 1, 2]);
        }),
        // A byte now and then must not keep the commit waiting.
        ("did not answer", |mut stream| {
            let _ = read_frame(&stream);
            let _ = stream.write_all(&100_u32.to_le_bytes());
            while stream.write_all(&[0]).is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        }),
        ("did not answer", |mut stream| {
            // It never reads the question.
            let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(&[4]));
            thread::sleep(Duration::from_millis(600));
            let _ = stream.read(&mut [0]);
        }),
    ];
    for (part, misbehave) in cases {
        let registration = answering(&registry(&dir), Duration::from_millis(200), misbehave);
        let begun = Instant::now();
        let refused = store.write(|tx| tx.set("/a", &1.into())).expect_err(part);
        assert_eq!(refused.kind(), ErrorKind::Busy, "{refused}");
        let process = std::process::id();
        let named = format!("the subscriber `other` of `/a` in process {process}");
        let said = refused.to_string();
        assert!(said.contains(&named) && said.contains(part), "{said}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{part}: it waited too long");
        store.write(|tx| tx.set("/b", &fastrand::u64(..).into())).expect("elsewhere");
        drop(registration);
        assert_eq!(names(&dir), 0, "nothing is left of a registration");
    }
    assert_eq!(store.read().and_then(|state| state.get("/a")).expect("reads"), Some(0.into()));
    store.write(|tx| tx.set("/a", &1.into())).expect("nobody is asked any more");
}

#[test]
fn garbage_instead_of_a_question_is_not_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("store");
    let store = open(&dir);
    let (asks, asked) = std::sync::mpsc::channel();
    let options = SubscriberOptions::new("own").required(true);
    let _subscription = store
        .before_commit("/a", options, move |proposal: &Proposal| {
            let _ = asks.send(proposal.number);
            Answer::Pass
        })
        .expect("subscribes");
    let other = registry(&dir);
    let backend = Lmdb::open(&dir, Options::EXISTING).expect("opens");
    let guard = backend.write_guard(0).expect("a guard");
    let registered = other.read_if_changed().expect("reads").expect("it is new");
    drop(guard);
    assert_eq!(registered.len(), 1);
    for garbage in [&b""[..], b"\x01\x00", b"\xff\xff\xff\xff", b"\x03\x00\x00\x00abc"] {
        let mut stream = registered[0].connect().expect("connects");
        stream.write_all(garbage).expect("sends");
        stream.shutdown(std::net::Shutdown::Write).expect("ends");
        assert_eq!(stream.read(&mut [0]).expect("hangs up"), 0);
    }
    // A question about a state that is not the newest has nobody waiting for its answer.
    let entry = Entry::encode(&Note::default(), &Default::default());
    let question = Question::encode(77, &entry, &Overlay::default()).expect("small");
    let stream = registered[0].connect().expect("connects");
    write_frame(&stream, &question).expect("sends");
    assert!(read_frame(&stream).is_err(), "it hangs up");
    store.write(|tx| tx.set("/a", &1.into())).expect("sets");
    assert_eq!(asked.recv().expect("asked"), 1, "it was not asked before");
}

#[test]
fn another_handle_of_the_process_asks_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("store");
    let (store, other) = (open(&dir), open(&dir));
    let count = |seen: &Arc<std::sync::atomic::AtomicUsize>| {
        let seen = Arc::clone(seen);
        move |_: &Proposal| {
            seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Answer::Pass
        }
    };
    let (own, required) = (Arc::default(), Arc::default());
    let _own = store.before_commit("", SubscriberOptions::new("own"), count(&own)).expect("yes");
    let options = SubscriberOptions::new("required").required(true);
    let subscription = store.before_commit("", options, count(&required)).expect("subscribes");
    let seen = || [&own, &required].map(|seen| seen.load(std::sync::atomic::Ordering::SeqCst));
    other.write(|tx| tx.set("/a", &1.into())).expect("sets");
    assert_eq!(seen(), [0, 1]);
    store.write(|tx| tx.set("/a", &2.into())).expect("sets");
    assert_eq!(seen(), [1, 2], "once each");
    drop(subscription);
    other.write(|tx| tx.set("/a", &3.into())).expect("sets");
    assert_eq!(seen(), [1, 2]);
}

#[test]
fn what_a_dead_process_has_left_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("store");
    drop(open(&dir));
    let left = dir.join("subscribers");
    std::fs::create_dir(&left).expect("a directory");
    for name in ["0123456789abcdef", "0123456789abcdef.s", "fedcba9876543210.s"] {
        std::fs::write(left.join(name), b"whatever").expect("a file");
    }
    let store = open(&dir);
    store.write(|tx| tx.set("/a", &1.into())).expect("nobody is asked");
    assert_eq!(names(&dir), 0);
}

#[test]
fn a_registration_that_does_not_read_is_an_error_while_its_process_lives() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("store");
    drop(open(&dir));
    std::fs::create_dir(dir.join("subscribers")).expect("a directory");
    let path = dir.join("subscribers/0123456789abcdef");
    let file = std::fs::File::create(&path).expect("a file");
    file.lock().expect("locks");
    let store = open(&dir);
    for _ in 0..2 {
        let refused = store.write(|tx| tx.set("/a", &1.into())).expect_err("nobody can be asked");
        assert_eq!(refused.kind(), ErrorKind::Busy);
        assert!(refused.to_string().contains("0123456789abcdef"), "{refused}");
    }
    drop(file);
    store.write(|tx| tx.set("/a", &1.into())).expect("it is dead");
}

#[test]
fn where_required_subscribers_cannot_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("store");
    let pass = |_: &Proposal| Answer::Pass;
    let options = || SubscriberOptions::new("required").required(true);
    let file = format!("json:{}", folder.path().join("file.json").display());
    for alone in ["memory:", &file] {
        let store = crate::open(alone).expect("opens");
        drop(store.before_commit("/a", options(), pass).expect("there is no other process"));
    }
    let backend = {
        drop(open(&dir));
        Lmdb::open(&dir, Options::EXISTING).expect("opens")
    };
    let store = crate::OpenOptions::new().over(backend, None);
    let refused = store.before_commit("/a", options(), pass).err().expect("refused");
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    drop(store);
    let read_only = crate::OpenOptions::new().read_only(true);
    let store = read_only.open(&dir.display().to_string()).expect("opens");
    let refused = store.before_commit("/a", options(), pass).err().expect("refused");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused}");
}

#[test]
fn paths_of_a_json_file_begin_at_its_root() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("json:{}", folder.path().join("file.json").display());
    let store = crate::open(&url).expect("opens");
    let (asks, asked) = std::sync::mpsc::channel();
    let _subscription = store
        .before_commit("/a", SubscriberOptions::new("own"), move |proposal: &Proposal| {
            let pointers = proposal.diff.ops.iter().map(|op| op.pointer().to_string());
            let pointers: Vec<String> = pointers.collect();
            let after = proposal.after.get("/a/n").expect("reads");
            let _ = asks.send((pointers, after));
            match proposal.after.get("/a/n").expect("reads") == Some(2.into()) {
                true => Answer::Amend(vec![Edit::Set("/a/n".to_owned(), 3.into())]),
                false => Answer::Pass,
            }
        })
        .expect("subscribes");
    store.write(|tx| tx.set("/b", &1.into())).expect("sets");
    store.write(|tx| tx.set("/a/n", &1.into())).expect("sets");
    assert_eq!(asked.recv().expect("asked"), (vec!["`/a`".to_owned()], Some(1.into())));
    store.write(|tx| tx.set("/a/n", &2.into())).expect("sets");
    assert_eq!(asked.recv().expect("asked"), (vec!["`/a/n`".to_owned()], Some(2.into())));
    assert_eq!(store.read().and_then(|state| state.get("/a/n")).expect("reads"), Some(3.into()));
}
