//! What the compliance suite does not ask: budgets, depth, other trees than JSON, exact numbers.

use spinney_core::{ErrorKind, Number, Value};
use spinney_query::{Access, Budget, Deadline, Query};

fn number(text: &str) -> Value {
    Value::Number(Number::parse(text).expect(text))
}

fn list(elements: impl IntoIterator<Item = i64>) -> Value {
    Value::from(elements.into_iter().map(Value::from).collect::<Vec<_>>())
}

fn query(text: &str) -> Query {
    Query::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn found(text: &str, root: &Value) -> Vec<Value> {
    let mut matches = query(text).run(root, Budget::default());
    let mut found = Vec::new();
    while let Some(node) = matches.next().expect("it reads") {
        found.push(node.clone());
    }
    found
}

fn count(text: &str, root: &Value) -> usize {
    let mut matches = query(text).run(root, Budget::default());
    std::iter::from_fn(|| matches.next().expect("it reads")).count()
}

#[test]
fn each_budget_is_named_when_it_is_used_up() {
    let root = list(0..10_000);
    let run_on = |root: &Value, text: &str, budget: Budget| {
        let mut matches = query(text).run(root, budget);
        let mut results = 0;
        loop {
            match matches.next() {
                Ok(Some(_)) => results += 1,
                Ok(None) => return Ok(results),
                Err(error) => return Err((results, error)),
            }
        }
    };
    let run = |text: &str, budget: Budget| run_on(&root, text, budget);
    let steps = |steps_max| Budget { steps_max: Some(steps_max), ..Budget::default() };
    assert_eq!(run("$[*]", steps(10_001)).expect("within the budget"), 10_000);
    let (results, error) = run("$[*]", steps(10_000)).expect_err("one too many");
    assert_eq!((results, error.kind()), (9_999, ErrorKind::LimitExceeded));
    assert!(error.to_string().contains("visits more than 10000 nodes"), "{error}");
    assert!(error.to_string().contains("`--steps-max`"), "{error}");
    // What filters visit counts, too.
    let wide = Value::from((0..100).map(|_| list(0..100)).collect::<Vec<_>>());
    let (_, error) =
        run_on(&wide, "$[?count(@[?@ >= 0]) > 100]", steps(10_000)).expect_err("too many");
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    // What begins at the root is followed once and not for each child, or this were a hundred million.
    assert_eq!(run("$[?count($[?@ != count($[*])]) < @]", steps(50_000)).expect("in time"), 0);

    let results_max = Budget { results_max: Some(7), ..Budget::default() };
    let (results, error) = run("$[*]", results_max).expect_err("too many");
    assert_eq!((results, error.kind()), (7, ErrorKind::LimitExceeded));
    assert!(error.to_string().contains("`results_max` (`--results-max`)"), "{error}");

    let asked = std::sync::atomic::AtomicUsize::new(0);
    let asked = std::sync::Arc::new(asked);
    let clock = std::sync::Arc::clone(&asked);
    let is_over = move || clock.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 3;
    let deadline = Some(Deadline::new(is_over, "2 s"));
    let (results, error) = run("$[*]", Budget { deadline, ..Budget::default() }).expect_err("late");
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.to_string().contains("takes longer than 2 s"), "{error}");
    assert!(results < 5_000, "{results} nodes before the clock was looked at 4 times");
}

#[test]
fn depth_is_no_recursion() {
    let deep = || {
        (0..100_000).fold(Value::from(1), |deep, level| match level % 2 {
            0 => Value::from(vec![deep]),
            _ => Value::Map([("a", deep)].into_iter().collect()),
        })
    };
    let root = Value::from(vec![deep(), deep()]);
    assert_eq!(count("$..*", &root), 200_002);
    assert_eq!(count("$[?@ == $[0]]", &root), 2);
    assert_eq!(count("$[?count(@..a) == 50000]", &root), 2);
    let mut matches = query("$..[?@ == 1]").run(&root, Budget::default());
    matches.next().expect("it reads").expect("there is one");
    assert_eq!(matches.location().expect("it reads").0.len(), 100_001);
    // Filters within filters, as deep as a query may be.
    let nested = format!("$[?{}@[0]{}]", "@[?".repeat(200), "]".repeat(200));
    assert_eq!(count(&nested, &root), 0);
}

#[test]
fn numbers_are_equal_by_value_and_exact() {
    let root = Value::from(
        ["1", "1.0", "10e-1", "9007199254740993", "9007199254740992", "1e400", "-0", "0.1"]
            .map(number)
            .to_vec(),
    );
    assert_eq!(count("$[?@ == 1]", &root), 3);
    assert_eq!(found("$[?@ == 9007199254740993]", &root), [number("9007199254740993")]);
    assert_eq!(found("$[?@ > 9007199254740992]", &root).len(), 2);
    assert_eq!(found("$[?@ > 1e399]", &root), [number("1e400")]);
    assert_eq!(found("$[?@ == 0]", &root), [number("-0")]);
    assert_eq!(found("$[?@ == 0.10]", &root), [number("0.1")]);
    assert_eq!(found("$[?@ < 0.1000000000000000001 && @ > 0]", &root), [number("0.1")]);
}

#[test]
fn bytes_are_equal_to_the_same_bytes_only() {
    let root = Value::from(vec![
        Value::Bytes(vec![1, 2]),
        Value::Bytes(vec![1, 2]),
        Value::from("AQI="),
        Value::Bytes(vec![1, 3]),
    ]);
    assert_eq!(count("$[?@ == $[0]]", &root), 2);
    assert_eq!(count("$[?@ <= $[0]]", &root), 2);
    assert_eq!(count("$[?@ < $[3]]", &root), 0);
    assert_eq!(count("$[?length(@) == 2]", &root), 3);
    assert_eq!(count("$[?search(@, 'A')]", &root), 1);
    assert_eq!(count("$[0].*", &root), 0);
}

#[test]
fn strings_are_compared_and_measured_by_characters() {
    // In UTF-16 the second would come first.
    let root = Value::from(vec![Value::from("\u{ff5e}"), Value::from("\u{1f600}")]);
    assert_eq!(found("$[?@ > $[0]]", &root), [Value::from("\u{1f600}")]);
    assert_eq!(count("$[?length(@) == 1]", &root), 2);
}

#[test]
fn slices_of_long_lists_give_each_element_once() {
    let root = list(0..1_000);
    for (text, expected) in [
        ("$[::-1]", (0..1_000).rev().collect::<Vec<_>>()),
        ("$[::-7]", (0..1_000).rev().step_by(7).collect()),
        ("$[900:10:-63]", (11..=900).rev().step_by(63).collect()),
        ("$[::-200]", (0..1_000).rev().step_by(200).collect()),
        ("$[3::64]", (3..1_000).step_by(64).collect()),
        ("$[3::65]", (3..1_000).step_by(65).collect()),
        ("$[:-900:2]", (0..100).step_by(2).collect()),
        ("$[::0]", Vec::new()),
        ("$[-1:-1]", Vec::new()),
    ] {
        let mut matches = query(text).run(&root, Budget::default());
        for expected in expected {
            let node = matches.next().expect("it reads");
            assert_eq!(node, Some(&Value::from(expected)), "{text}");
            let location = matches.location().expect("it reads").to_string();
            assert_eq!(location, format!("$[{expected}]"), "{text}");
        }
        assert_eq!(matches.next().expect("it reads"), None, "{text}");
    }
}

#[test]
fn places_are_normalized_paths_and_pointers() {
    let keys = ["a'b\\", "\u{8}\u{c}\n\r\t\u{b}", "~/", "10", "\u{2028}"];
    let members = keys.map(|key| (key, Value::from(vec![Value::from(1)])));
    let root = Value::Map(members.into_iter().collect());
    let mut matches = query("$.*[-1]").run(&root, Budget::default());
    let mut places = Vec::new();
    while matches.next().expect("it reads").is_some() {
        let location = matches.location().expect("it reads");
        assert_eq!(root.pointer(&location.pointer()), Some(&Value::from(1)));
        assert_eq!(found(&location.to_string(), &root), [Value::from(1)]);
        places.push(location.to_string());
    }
    let expected = [
        "$['10'][0]",
        r"$['\b\f\n\r\t\u000b'][0]",
        r"$['a\'b\\'][0]",
        "$['~/'][0]",
        "$['\u{2028}'][0]",
    ];
    assert_eq!(places, expected);
}

#[test]
fn plans_tell_what_is_sought_and_what_is_walked() {
    let root = Value::Map([("list", list(0..10))].into_iter().collect());
    let text = "$.list[?@.a == $.b && @.e > 1 && match(@.c, value(@..d))]..x['y', 1]";
    let plan = query(text).explain(&&root).expect("it reads");
    let access: Vec<_> = plan.iter().map(|line| line.access).collect();
    assert_eq!(access, [Access::Seek, Access::Walk, Access::Descend, Access::Seek]);
    let lines: Vec<_> = plan.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            ".list: seek",
            "[?@.a == $.b && @.e > 1 && match(@.c, value(@..d))]: walk, 10 children; the filter of each \
             child: 3 seeks, 1 walk",
            "..x: descend, all below each node",
            "['y', 1]: seek, in each node",
        ]
    );
}

#[test]
fn patterns_take_linear_time() {
    let root = Value::from(vec![Value::from("a".repeat(100_000)), Value::from("(a*)*(a*)*b")]);
    assert_eq!(count("$[?match(@, '(a|a)*(a|aa)*b')]", &root), 0);
    assert_eq!(count("$[?match(@, $[1])]", &root), 0);
}
