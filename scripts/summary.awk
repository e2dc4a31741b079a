# Reads what `cargo test -- --show-output` prints: a line for each suite, the whole output of those
# that fail, every `skipped:` line, and in the end `N passed, N failed, N skipped`.

# A test that printed `skipped:` is counted as skipped and no longer as passed.

function begin(name) {
    finish_unfinished()
    label = name where
    text = ""
    section = ""
    test = ""
    skipped_tests = 0
    timed = ""
    is_open = 1
}

# A test program that died has printed no result.
function finish_unfinished() {
    if (!is_open) return
    is_open = 0
    failed++
    printf "%-52s died\n%s", label, text
}

/^again on / { where = " on " $3; crate = $4 }

/^ +Running / {
    source = $2 == "unittests" ? $3 : $2
    program = $NF
    sub(/^.*\//, "", program)
    sub(/-[0-9a-f]+(\.exe)?\)$/, "", program)
    if ($2 == "unittests") crate = program
    gsub(/_/, "-", crate)
    begin(crate " " source)
    next
}

/^ +Doc-tests / {
    crate = $2
    gsub(/_/, "-", crate)
    begin(crate " documentation")
    next
}

{ text = text $0 "\n" }

/^successes:$/ || /^failures:$/ { section = $1; test = "" }

/^---- .* ----$/ { test = $2 }

/^timed: / { timed = timed "    " substr($0, 8) "\n" }

/^skipped:/ {
    skips[++skipped] = $0 " (" label (test == "" ? "" : ", " test) ")"
    if (section == "successes:" && !((label, test) in seen)) skipped_tests++
    seen[label, test] = 1
}

/^test result: / {
    # test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
    suite_passed = $4 - skipped_tests
    passed += suite_passed
    failed += $6
    if ($8 > 0) skips[++skipped] = "skipped: " $8 " tests are marked `ignore` (" label ")"
    for (i = 1; i < $8; i++) skips[++skipped] = ""
    seconds = $NF
    sub(/s$/, "", seconds)
    if ($4 + $6 + $8 > 0) printf "%-52s %5d passed %4d failed %8.2f s\n", label, suite_passed, $6, seconds
    printf "%s", timed
    if ($6 > 0 || $3 != "ok.") printf "%s", text
    fflush()
    is_open = 0
    next
}

# What cargo itself has to say, such as a documentation test that does not compile.
/^error/ {
    errors = 1
    if (!/^error: (test failed|doctest failed|[0-9]+ targets? failed)/) print
}

END {
    finish_unfinished()
    for (i = 1; i <= skipped; i++) if (skips[i] != "") print skips[i]
    if (errors && failed == 0) failed = 1
    if (failed) print "the whole output is in target/test.log"
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
}
