"""The conformance suite: one table of cases, one set of checks, every check run on every case.

To put a source or an operator under all of the checks, add one entry to a table in `cases/`:

    Case("batch.drop_remainder", lambda: range_(5).batch(2, drop_remainder=True), [i64([0, 1]), i64([2, 3])])

`build` makes the dataset anew at every call, also in another process, so it may close over module-level
names only. Where the output is random and no list can be written down, give a `law` that the output has to
obey in place of `expected`; exact repetition is checked in any case. The options of `Case` say what is
special about the stream (endless, ends in an error, differs from epoch to epoch, unseeded, runs a thread).

| file | what it checks for every case |
|---|---|
| test_values.py | elements, structure, dtypes, epochs, cardinality, element_spec, terminal operations |
| test_resume.py | resume at every step, in chains, into used iterators, after the end; refusal |
| test_fresh_process.py | resume in another process |
| test_state.py | state is small, plain JSON, of constant form, a snapshot |
| test_plans.py | optimiser on = off, block boundaries anywhere, slices of the stream, states carried across |
| test_workers.py | on 1, 2 and 7 threads and processes, in order and not; states carried across |
| test_iterator.py | close, threads, two iterators at once, writing into what was received |
"""
