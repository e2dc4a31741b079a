//! Subscribers that are asked before commits, and told how they ended.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use spinney::ErrorKind::{Busy, Denied, InvalidInput, LimitExceeded};
use spinney::subscribers::AMENDMENTS_MAX;
use spinney::{Answer, Edit, Ended, Proposal, Subscriber, SubscriberOptions, Subscription, Value};

use super::Case;
use crate::subject::{Subject, text};

pub(super) const CASES: &[Case] = &[
    ("subscribers are asked about their path", asked_about_their_path),
    ("subscribers see the state before and after", states),
    ("subscribers are asked in the order of their priority", order),
    ("subscribers of one priority are asked at the same time", equals),
    ("a subscriber that refuses", veto),
    ("a subscriber that amends", amend),
    ("amendments of several subscribers", amend_together),
    ("a subscriber that never stops to amend", amend_for_ever),
    ("an amendment that cannot be made", impossible_amendment),
    ("a subscriber that does not answer", silence),
    ("subscribers that take long to be told", slowly_told),
    ("a subscriber that panics", panic),
    ("a write that fails, or panics, tells whom it has asked", failures_are_told),
    ("a subscriber that unsubscribes while it is asked", unsubscribed_in_between),
    ("a subscriber that writes", writing),
    ("many writers and subscribers", together),
    ("options of subscribers that make no sense", options),
];

/// What a subscriber saw, in order.
#[derive(Debug, PartialEq)]
enum Seen {
    Asked(u64),
    Told(u64, Ended),
}

/// Passes what `answer` says, and what it sees, on.
struct Witness<A> {
    seen: Sender<Seen>,
    answer: A,
}

impl<A: FnMut(&Proposal) -> Answer + Send> Subscriber for Witness<A> {
    fn asked(&mut self, proposal: &Proposal) -> Answer {
        // The case may have ended.
        let _ = self.seen.send(Seen::Asked(proposal.number));
        (self.answer)(proposal)
    }

    fn told(&mut self, number: u64, ended: &Ended) {
        let _ = self.seen.send(Seen::Told(number, ended.clone()));
    }
}

fn named(name: &str) -> SubscriberOptions {
    SubscriberOptions::new(name).timeout(Duration::from_secs(60))
}

fn witness(
    s: &Subject,
    path: &str,
    options: SubscriberOptions,
    answer: impl FnMut(&Proposal) -> Answer + Send + 'static,
) -> (Subscription, Receiver<Seen>) {
    let (seen, sees) = channel();
    let subscription = s.store.before_commit(path, options, Witness { seen, answer });
    (subscription.expect("subscribes"), sees)
}

fn next(sees: &Receiver<Seen>) -> Seen {
    sees.recv_timeout(Duration::from_secs(60)).expect("the subscriber sees something")
}

fn assert_given_up(sees: &Receiver<Seen>, number: u64, part: &str) {
    match next(sees) {
        Seen::Told(told, Ended::GivenUp(reason)) if told == number && reason.contains(part) => {}
        other => panic!("{number} should be given up because of `{part}`: {other:?}"),
    }
}

fn assert_committed(sees: &Receiver<Seen>, number: u64, revision: u64) {
    assert_eq!(next(sees), Seen::Told(number, Ended::Committed(revision)));
}

fn asked_about_their_path(s: &Subject) {
    s.set("/a", r#"{"x": {"y": 1}, "z": 2}"#);
    let (paths, asked) = channel();
    let (subscription, sees) = witness(s, "/a/x", named("own"), move |proposal| {
        let ops: Vec<String> =
            proposal.diff.ops.iter().map(|op| op.pointer().to_string()).collect();
        let _ = paths.send((proposal.base, proposal.note.author.clone(), ops));
        Answer::Pass
    });
    s.write(|tx| tx.set("/a/z", &3.into()));
    s.write(|tx| tx.set("/b", &3.into()));
    s.write(|tx| tx.set("/a/x", &tx.get("/a/x")?.expect("a map")));
    s.write(|tx| {
        tx.set_author("ann")?;
        tx.set("/a/x/y", &2.into())?;
        tx.set("/a/z", &4.into())
    });
    assert_eq!(asked.recv().expect("asked"), (3, "ann".to_owned(), vec!["`/a/x/y`".to_owned()]));
    assert_eq!(next(&sees), Seen::Asked(1));
    assert_committed(&sees, 1, 4);
    s.write(|tx| tx.remove("/a"));
    assert_eq!(asked.recv().expect("asked").2, ["`/a`"]);
    s.write(|tx| tx.set("/a", &Value::map()));
    assert!(asked.try_recv().is_err(), "there was and is nothing at its path");
    drop(subscription);
    s.set("/a/x", "1");
    assert!(asked.try_recv().is_err(), "it has unsubscribed");
}

fn states(s: &Subject) {
    s.set("/a", r#"{"n": 1}"#);
    let (values, seen) = channel();
    let (_subscription, _) = witness(s, "/a", named("reader"), move |proposal| {
        let read = |path: &str| {
            let at = |state: &spinney::Snapshot| {
                state.count(path).expect("counts").or(state.get(path).expect("reads").map(|_| 0))
            };
            (at(&proposal.before), at(&proposal.after))
        };
        let _ = values.send((read("/a/n"), read("/a/big"), read("/b/other")));
        Answer::Pass
    });
    // More than is written ahead, and pages of several trees.
    let big: Vec<Value> =
        (0..120_u64).map(|n| format!("{n} {}", "x".repeat(90_000)).into()).collect();
    s.write(|tx| {
        tx.set("/a/big", &big.clone().into())?;
        tx.set("/b/other", &vec![Value::from(7); 3_000].into())?;
        tx.set("/a/n", &2.into())
    });
    let (n, len, other) = seen.recv().expect("asked");
    assert_eq!((n, len, other), ((Some(0), Some(0)), (None, Some(120)), (None, Some(3_000))));
    s.write(|tx| tx.remove("/a/big/60").and_then(|_| tx.remove("/b/other")));
    let (n, len, other) = seen.recv().expect("asked");
    assert_eq!((n, len, other), ((Some(0), Some(0)), (Some(120), Some(119)), (Some(3_000), None)));
}

fn order(s: &Subject) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let subscribe = |name: &'static str, path: &str, priority: i32| {
        let asked = Arc::clone(&asked);
        let note = move |_: &Proposal| {
            asked.lock().expect("a lock").push(name);
            Answer::Pass
        };
        s.store.before_commit(path, named(name).priority(priority), note).expect("subscribes")
    };
    let _low = subscribe("low", "/a", -3);
    let _first = subscribe("first of equals", "/a/x", 2);
    let _second = subscribe("second of equals", "", 2);
    let high = subscribe("high", "/a", 9);
    s.write(|tx| tx.set("/a/x", &1.into()));
    // Equals are asked at the same time.
    let sorted = || {
        let mut asked = std::mem::take(&mut *asked.lock().expect("a lock"));
        let equals = asked.len() - 3..asked.len() - 1;
        asked[equals].sort_unstable();
        asked
    };
    let all = ["high", "first of equals", "second of equals", "low"];
    assert_eq!(sorted(), all);
    drop(high);
    s.write(|tx| tx.set("/a/x", &2.into()));
    assert_eq!(sorted(), all[1..]);
}

fn equals(s: &Subject) {
    // Each waits until the other one is asked, too.
    let both = Arc::new(std::sync::Barrier::new(2));
    let subscribe = |name: &'static str, answer: Answer| {
        let both = Arc::clone(&both);
        let wait = move |proposal: &Proposal| {
            both.wait();
            match proposal.after.get("/a").expect("reads") == Some(1.into()) {
                true => Answer::Pass,
                false => answer.clone(),
            }
        };
        witness(s, "", named(name), wait)
    };
    let (_one, one) = subscribe("one", Answer::Veto("because of one".to_owned()));
    let (_two, two) = subscribe("two", Answer::Veto("because of two".to_owned()));
    s.set("/a", "1");
    for sees in [&one, &two] {
        assert_eq!(next(sees), Seen::Asked(1));
        assert_committed(sees, 1, 1);
    }
    s.refused(Denied, "the subscriber `one`", |tx| tx.set("/a", &2.into()));
    for sees in [&one, &two] {
        assert_eq!(next(sees), Seen::Asked(2));
        assert_given_up(sees, 2, "because of one");
    }
}

fn veto(s: &Subject) {
    s.set("/a", r#"{"n": 1, "l": [1, 2]}"#);
    let (_first, first) = witness(s, "/a", named("first").priority(1), |_| Answer::Pass);
    let (_guard, guard) = witness(s, "/a/n", named("guard"), |proposal| {
        match proposal.after.get("/a/n").expect("reads") {
            Some(Value::Number(n)) if n.as_u64().is_some_and(|n| n < 10) => Answer::Pass,
            other => Answer::Veto(format!("{other:?} is not below 10")),
        }
    });
    let (_last, last) = witness(s, "/a", named("last").priority(-1), |_| Answer::Pass);
    for text in ["the subscriber `guard` of `/a/n`", "is not below 10"] {
        s.refused(Denied, text, |tx| tx.set("/a/n", &10.into()).and_then(|()| tx.remove("/a/l/0")));
    }
    s.write(|tx| tx.set("/a/n", &9.into()));
    for number in [1, 2] {
        for sees in [&first, &guard] {
            assert_eq!(next(sees), Seen::Asked(number));
            assert_given_up(sees, number, "is not below 10");
        }
    }
    for sees in [&first, &guard] {
        assert_eq!(next(sees), Seen::Asked(3));
        assert_committed(sees, 3, 2);
    }
    assert_eq!(next(&last), Seen::Asked(1), "who comes after a veto is not asked");
    assert_committed(&last, 1, 2);
}

fn amend(s: &Subject) {
    s.set("/a", r#"{"hosts": {}, "count": 0, "log": []}"#);
    let (_counter, counter) = witness(s, "/a/hosts", named("counter"), |proposal| {
        let count = Value::from(proposal.after.count("/a/hosts").expect("counts").expect("a map"));
        match proposal.after.get("/a/count").expect("reads") == Some(count.clone()) {
            true => Answer::Pass,
            false => Answer::Amend(vec![
                Edit::Set("/a/count".to_owned(), count),
                Edit::Insert("/a/log/0".to_owned(), "counted".into()),
                Edit::Remove("/a/draft".to_owned()),
                Edit::Remove("/a/none".to_owned()),
            ]),
        }
    });
    let (_first, first) = witness(s, "/a", named("first").priority(1), |_| Answer::Pass);
    let mut runs = 0;
    let committed = s.write(|tx| {
        runs += 1;
        tx.set("/a/draft", &true.into())?;
        tx.set("/a/hosts/one", &1.into())
    });
    assert_eq!((runs, committed.revision), (2, 2), "the closure runs again for the amendments");
    assert_eq!(s.text("/a"), r#"{"count":1,"hosts":{"one":1},"log":["counted"]}"#);
    for sees in [&first, &counter] {
        assert_eq!(next(sees), Seen::Asked(1));
        assert_given_up(sees, 1, "amended");
        assert_eq!(next(sees), Seen::Asked(2));
        assert_committed(sees, 2, 2);
    }
}

fn amend_together(s: &Subject) {
    s.set("/a", r#"{"x": 0, "y": 0, "z": 0}"#);
    // Each follows the one before it.
    let follow = |from: &'static str, to: &'static str| {
        let follow = move |proposal: &Proposal| {
            let wanted = proposal.after.get(from).expect("reads").expect("a number");
            match proposal.after.get(to).expect("reads") == Some(wanted.clone()) {
                true => Answer::Pass,
                false => Answer::Amend(vec![Edit::Set(to.to_owned(), wanted)]),
            }
        };
        s.store.before_commit("/a", named(to), follow).expect("subscribes")
    };
    let _last = follow("/a/y", "/a/z");
    let _first = follow("/a/x", "/a/y");
    assert_eq!(s.set("/a/x", "5").diff.ops.len(), 3);
    assert_eq!(s.text("/a"), r#"{"x":5,"y":5,"z":5}"#);
}

fn amend_for_ever(s: &Subject) {
    s.set("/a/n", "0");
    let mut n = 0;
    let (_subscription, sees) = witness(s, "/a", named("restless"), move |_| {
        n += 1;
        Answer::Amend(vec![Edit::Set("/a/n".to_owned(), n.into())])
    });
    s.refused(LimitExceeded, "the subscriber `restless` of `/a`", |tx| tx.set("/a/x", &1.into()));
    let asked = AMENDMENTS_MAX as u64 + 1;
    for number in 1..=asked {
        assert_eq!(next(&sees), Seen::Asked(number));
        assert_given_up(&sees, number, if number < asked { "asked again" } else { "mend or end" });
    }
}

fn impossible_amendment(s: &Subject) {
    s.set("/a", r#"{"n": 0, "l": [0]}"#);
    for edit in [
        Edit::Set("/a/n/below".to_owned(), 1.into()),
        Edit::Insert("/a/l/7".to_owned(), 1.into()),
        Edit::Set("no path".to_owned(), 1.into()),
    ] {
        let (_subscription, sees) =
            witness(s, "/a", named("clumsy"), move |_| Answer::Amend(vec![edit.clone()]));
        let mut runs = 0;
        s.refused(InvalidInput, "an amendment by the subscriber `clumsy` of `/a`", |tx| {
            runs += 1;
            tx.set("/a/n", &1.into())
        });
        assert_eq!(runs, 2);
        assert_eq!(next(&sees), Seen::Asked(1));
        assert_given_up(&sees, 1, "amended");
    }
}

fn silence(s: &Subject) {
    s.set("/a", "0");
    let (go, gone) = channel::<()>();
    let options = named("slow").timeout(Duration::from_millis(500));
    let (_subscription, sees) = witness(s, "/a", options, move |_| {
        // Nobody sends: it ends when the case says so.
        let _ = gone.recv();
        Answer::Veto("too late".to_owned())
    });
    let busy = "the subscriber `slow` of `/a` did not answer within 500ms";
    s.refused(Busy, busy, |tx| tx.set("/a", &1.into()));
    assert_eq!(next(&sees), Seen::Asked(1));
    // It is still at the first question, so the second one is withdrawn.
    s.refused(Busy, busy, |tx| tx.set("/a", &2.into()));
    s.write(|tx| tx.set("/b", &1.into()));
    assert!(sees.try_recv().is_err(), "it is told when it is idle");
    drop(go);
    assert_given_up(&sees, 1, "did not answer");
    // The late answer to the first is no answer to this one.
    let (later, later_sees) = (s.store.clone(), sees);
    let refused = thread::spawn(move || later.write(|tx| tx.set("/a", &3.into())));
    let refused = refused.join().expect("writes").expect_err("a veto");
    assert_eq!(refused.kind(), Denied, "{refused}");
    assert_eq!(next(&later_sees), Seen::Asked(3), "the second was never asked");
    assert_given_up(&later_sees, 3, "too late");
}

fn slowly_told(s: &Subject) {
    struct Slow(Receiver<()>);
    impl Subscriber for Slow {
        fn asked(&mut self, _: &Proposal) -> Answer {
            Answer::Pass
        }

        fn told(&mut self, _: u64, _: &Ended) {
            // Nobody sends: it ends when the case says so.
            let _ = self.0.recv();
        }
    }
    s.set("/a", "0");
    let slow = |number| {
        let (go, gone) = channel();
        let options = named(&format!("slow {number}"));
        (go, s.store.before_commit("/a", options, Slow(gone)).expect("subscribes"))
    };
    let slow: Vec<_> = (0..3).map(slow).collect();
    let (_quick, quick) = witness(s, "", named("quick"), |_| Answer::Pass);
    s.write(|tx| tx.set("/a", &1.into()));
    assert_eq!(next(&quick), Seen::Asked(1));
    assert_committed(&quick, 1, 2);
    s.write(|tx| tx.set("/b", &1.into()));
    assert_eq!(next(&quick), Seen::Asked(2));
    assert_committed(&quick, 2, 3);
    drop(slow);
    s.write(|tx| tx.set("/a", &2.into()));
    assert_eq!(next(&quick), Seen::Asked(3));
    assert_committed(&quick, 3, 4);
}

fn panic(s: &Subject) {
    s.set("/a", "0");
    let mut is_well = false;
    let (_subscription, sees) = witness(s, "/a", named("shaky"), move |_| {
        assert!(std::mem::replace(&mut is_well, true), "an expected panic of a test");
        Answer::Pass
    });
    s.refused(Busy, "the subscriber `shaky` of `/a` failed", |tx| tx.set("/a", &1.into()));
    assert_eq!(next(&sees), Seen::Asked(1));
    assert_given_up(&sees, 1, "an expected panic of a test");
    s.set("/a", "2");
    assert_eq!(next(&sees), Seen::Asked(2), "it stays subscribed");
    assert_committed(&sees, 2, 2);
}

fn failures_are_told(s: &Subject) {
    s.set("/a", r#"{"n": 0}"#);
    let (_subscription, sees) = witness(s, "/a", named("amender"), |_| {
        Answer::Amend(vec![Edit::Set("/a/amended".to_owned(), true.into())])
    });
    // The closure fails when it runs again.
    let fail = |panics: bool| {
        let mut runs = 0;
        let store = s.store.clone();
        let write = thread::spawn(move || {
            store.write(|tx| {
                runs += 1;
                assert!(!panics || runs == 1, "an expected panic of a test");
                tx.set(if runs == 1 { "/a/n" } else { "/a/n/m" }, &1.into())
            })
        });
        write.join()
    };
    let before = text(&s.store);
    assert_eq!(fail(false).expect("no panic").expect_err("through a scalar").kind(), InvalidInput);
    fail(true).expect_err("a panic");
    for number in [1, 2] {
        assert_eq!(next(&sees), Seen::Asked(number));
        assert_given_up(&sees, number, "amended");
    }
    assert_eq!(text(&s.store), before);
}

fn unsubscribed_in_between(s: &Subject) {
    s.set("/a", "0");
    let (go, gone) = channel::<()>();
    let (subscription, sees) = witness(s, "/a", named("leaving"), move |_| {
        let _ = gone.recv();
        Answer::Veto("nobody listens".to_owned())
    });
    let store = s.store.clone();
    let write = thread::spawn(move || store.write(|tx| tx.set("/a", &1.into())));
    assert_eq!(next(&sees), Seen::Asked(1));
    drop(subscription);
    let committed = write.join().expect("writes").expect("commits without it");
    drop(go);
    assert_committed(&sees, 1, committed.revision);
    assert!(sees.recv_timeout(Duration::from_secs(60)).is_err(), "and that is the last of it");
}

fn writing(s: &Subject) {
    s.set("/a", "0");
    struct Writer(spinney::Store, Sender<spinney::ErrorKind>);
    impl Writer {
        fn write(&self) {
            let refused = self.0.write(|tx| tx.set("/a", &7.into())).expect_err("it is its own");
            let _ = self.1.send(refused.kind());
        }
    }
    impl Subscriber for Writer {
        fn asked(&mut self, _: &Proposal) -> Answer {
            self.write();
            Answer::Pass
        }

        fn told(&mut self, _: u64, _: &Ended) {
            self.write();
        }
    }
    let (kinds, refused) = channel();
    let options = named("writer").timeout(Duration::from_millis(30));
    let writer = Writer(s.store.clone(), kinds);
    let subscription = s.store.before_commit("/a", options, writer).expect("subscribes");
    s.refused(Busy, "the subscriber `writer`", |tx| tx.set("/a", &1.into()));
    for _ in 0..2 {
        let kind = refused.recv_timeout(Duration::from_secs(60)).expect("it has tried");
        assert_eq!(kind, InvalidInput);
    }
    drop(subscription);
}

fn together(s: &Subject) {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 25;
    s.set("/n", "0");
    let (_all, all) = witness(s, "", named("all"), |_| Answer::Pass);
    let (_odd, odd) =
        witness(s, "/n", named("even only").priority(-1), |proposal| {
            match proposal.after.get("/n").expect("reads") {
                Some(Value::Number(n)) if n.as_u64().is_some_and(|n| n % 2 == 0) => Answer::Pass,
                _ => Answer::Veto("odd".to_owned()),
            }
        });
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for step in (0..ROUNDS).map(|round| 1 + round % 2) {
                    let written = s.store.write(|tx| {
                        let Some(Value::Number(n)) = tx.get("/n")? else { panic!("a number") };
                        tx.set("/n", &(n.as_u64().expect("small") + step).into())
                    });
                    assert_eq!(
                        written.err().map(|error| error.kind()),
                        (step == 1).then_some(Denied)
                    );
                }
            });
        }
    });
    let committed = THREADS * (ROUNDS / 2);
    assert_eq!(s.get("/n"), Some((2 * committed).into()));
    for sees in [&all, &odd] {
        let (mut asked, mut told, mut revision) = (0, 0, 1);
        while told < THREADS * ROUNDS {
            match next(sees) {
                Seen::Asked(number) => {
                    asked += 1;
                    assert_eq!(number, asked, "no question twice");
                }
                Seen::Told(number, ended) => {
                    told += 1;
                    assert!(number == told && told <= asked, "each in its turn");
                    match ended {
                        Ended::Committed(next) => {
                            revision += 1;
                            assert_eq!(next, revision);
                        }
                        Ended::GivenUp(reason) => assert!(reason.ends_with("odd"), "{reason}"),
                    }
                }
            }
        }
        assert_eq!((asked, revision), (THREADS * ROUNDS, committed + 1));
        assert!(sees.try_recv().is_err(), "nothing else");
    }
}

fn options(s: &Subject) {
    let refused = |path: &str, options: SubscriberOptions, part: &str| {
        let pass = |_: &Proposal| Answer::Pass;
        let Err(error) = s.store.before_commit(path, options, pass) else { panic!("no: {part}") };
        assert!(error.kind() == InvalidInput && error.to_string().contains(part), "{error}");
    };
    refused("a", named("x"), "does not start with `/`");
    refused("/a", named(""), "the subscriber's name");
    refused("/a", named("a\nb"), "the subscriber's name");
    refused("/a", named(&"x".repeat(256)), "the subscriber's name");
    refused("/a", named("x").timeout(Duration::ZERO), "the subscriber `x` has a timeout of 0ns");
    refused("/a", named("x").timeout(Duration::MAX), "at most 600s");
}
