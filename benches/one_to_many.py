#!/usr/bin/env python3
"""(k, l)-diversity of 26,854 real patients by this program and by plain Python, in one run.

    cargo build --release && python3 benches/one_to_many.py [runs, default 5]

informs2005_1m from ../shared/data: month and year of birth, years of education, income and race; k = 10, l = 5; the even
hierarchy of diagnoses. `plain_kl.py` has the algorithms with lists, sets and dictionaries: their main step, with everything
in memory, is timed. Mondrian and best cut test what this program tests; one more has the printed condition only, which
does not see what can be confused (docs/theory/papers.md M1, M2). Of this program two times are given: that of the same step, by
the operator's own metrics, and that of the whole query, from Parquet to Parquet in a process of its own. Losses of all
tables are measured by information_loss.
"""

import collections
import csv
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import plain_kl

PROGRAM = os.environ.get("ANONYMIZE", "target/release/anonymize")
DATA = os.environ.get("DATA", "../shared/data")
RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
TABLE = f"{DATA}/informs2005_1m.parquet"
LABELS = f"{DATA}/hierarchies/informs_icd9_even.csv"
NUMBERS = ["birth_month", "birth_year", "education_years", "income"]
NAMES = ["race"]
QI = NUMBERS + NAMES
K, L = 10, 5
UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def run(sql):
    subprocess.run([PROGRAM, "sql", "-q", "-c", sql], stdout=subprocess.DEVNULL, check=True)


def ask(sql):
    """The rows of a result, without its header."""
    command = [PROGRAM, "sql", "-q", "--format", "csv", "-c", sql]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(csv.reader(printed.stdout.splitlines()))[1:]


# ---- plain Python ---------------------------------------------------------------------------------------------------


def plain_python(form, condition, people, fingerprints, folder):
    """Seconds of the main step, and a file with what is published."""
    tree = plain_kl.Tree(LABELS)
    seconds = []
    for _ in range(min(RUNS, 3)):
        begin = time.monotonic()
        published = plain_kl.partition(fingerprints, tree, K)
        model = condition(published, tree, L)
        classes = form(people, len(NUMBERS), model)
        seconds.append(time.monotonic() - begin)
    if min(collections.Counter(published.values()).values()) < K:
        sys.exit("a fingerprint is shared by fewer than k")
    if not all(model.allows(members) for members in classes):
        sys.exit("a class is not allowed")
    written = f"{folder}/python.csv"
    with open(written, "w", encoding="utf-8", newline="") as output:
        rows = csv.writer(output)
        rows.writerow(["individual"] + QI + ["icd9"])
        for members in classes:
            cells = []
            for c in range(len(NUMBERS)):
                values = [people[member][c] for member in members]
                cells.append(f"[{min(values):g}, {max(values):g}]" if min(values) < max(values) else f"{min(values):.0f}")
            for c in range(len(NUMBERS), len(QI)):
                names = sorted({people[member][c] for member in members})
                cells.append("{" + ", ".join(names) + "}" if len(names) > 1 else names[0])
            for member in members:
                rows.writerows([member] + cells + [label] for label in sorted(published[member]))
    # The types of a CSV file would be guessed by its first rows, which may have numbers where later ones have ranges.
    target = f"{folder}/python.parquet"
    columns = " VARCHAR, ".join(["individual"] + QI + ["icd9"])
    make = f"CREATE EXTERNAL TABLE written ({columns} VARCHAR) STORED AS CSV LOCATION '{written}' OPTIONS ('format.has_header' 'true')"
    run(f"{make}; COPY written TO '{target}' STORED AS PARQUET")
    return statistics.median(seconds), target


# ---- this program ---------------------------------------------------------------------------------------------------


def release(algorithm):
    return (
        f"SELECT * FROM anonymize_kl('{TABLE}', id => person_id, qi => [{', '.join(QI)}], categorical => [{', '.join(NAMES)}], "
        f"sensitive => icd9, k => {K}, l => {L}, hierarchy => {{icd9: '{LABELS}'}}, algorithm => '{algorithm}', seed => 1)"
    )


def whole_query(algorithm, folder):
    """Seconds of a process that reads Parquet and writes Parquet."""
    target = f"{folder}/{algorithm}.parquet"
    if os.path.exists(target):
        os.remove(target)
    begin = time.monotonic()
    run(f"COPY ({release(algorithm)}) TO '{target}' STORED AS PARQUET")
    return time.monotonic() - begin, target


def metrics(algorithm):
    """The longest time of each kind that AnonymizeExec names, over its partitions, in seconds."""
    command = [PROGRAM, "sql", "-q", "-c", f"EXPLAIN ANALYZE {release(algorithm)}"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # The table breaks no line of a plan; an operator is one line.
    line = next(line for line in printed.splitlines() if "AnonymizeExec" in line)
    found = {}
    for name, value, unit in re.findall(r"(time_\w+|elapsed_compute)=([\d.]+)\s?(ns|µs|ms|s|m)", line):
        found[name] = max(found.get(name, 0.0), float(value) * UNITS[unit])
    return found


def losses(published):
    """QID-NCP and SA-NCP, each individual counted once for the former."""
    qi = ", ".join(QI)
    named = f"categorical => [{', '.join(NAMES)}]"
    [[qid]] = ask(
        f"SELECT value FROM information_loss((SELECT DISTINCT person_id, {qi} FROM '{TABLE}'), "
        f"(SELECT DISTINCT individual, {qi} FROM '{published}'), id => individual, original_id => person_id, "
        f"qi => [{qi}], {named}) WHERE measure = 'ncp_count' AND \"column\" IS NULL"
    )
    [[sensitive]] = ask(
        f"SELECT value FROM information_loss('{TABLE}', (SELECT individual, {qi}, CAST(icd9 AS VARCHAR) AS icd9 "
        f"FROM '{published}'), id => individual, original_id => person_id, qi => [{qi}], {named}, sensitive => icd9, "
        f"hierarchy => {{icd9: '{LABELS}'}}) WHERE measure = 'sa_ncp'"
    )
    return float(qid), float(sensitive)


def show(name, individuals, seconds, python=None, losses_=None):
    line = f"{name:52} {seconds:8.3f} s {individuals / seconds:12,.0f} individuals/s"
    if python:
        line += f" {python / seconds:8.1f} × Python"
    if losses_:
        line += "   QID-NCP {:.4f}  SA-NCP {:.4f}".format(*losses_)
    print(line, flush=True)


def main():
    people, fingerprints = {}, collections.defaultdict(set)
    for person, value, *cells in ask(f"SELECT person_id, icd9, {', '.join(QI)} FROM '{TABLE}'"):
        people[person] = [float(cell) for cell in cells[: len(NUMBERS)]] + cells[len(NUMBERS) :]
        fingerprints[person].add(value)
    individuals = len(people)
    print(f"informs2005_1m, {individuals:,} individuals, {len(QI)} quasi-identifiers, ({K}, {L})-diversity")
    folder = tempfile.mkdtemp(prefix="anonymize-bench-")
    try:
        python = {}
        for name, form, condition in [
            ("as printed: Mondrian, the printed condition", plain_kl.mondrian, plain_kl.Printed),
            ("Mondrian", plain_kl.mondrian, plain_kl.Corrected),
            ("best cut", plain_kl.best_cut, plain_kl.Corrected),
        ]:
            python[form.__name__], table = plain_python(form, condition, people, fingerprints, folder)
            show(f"plain Python, {name}", individuals, python[form.__name__], losses_=losses(table))
        # What is printed comes first, so that like is compared with like; and the optimizer begins with the best cuts.
        python["optimized"] = python["best_cut"]
        for algorithm in ["mondrian", "best_cut", "optimized"]:
            runs = [whole_query(algorithm, folder) for _ in range(RUNS)]
            steps = [metrics(algorithm) for _ in range(RUNS)]
            for name in steps[0]:
                show(f"{algorithm}, {name}", individuals, statistics.median(s[name] for s in steps), python[algorithm])
            whole = statistics.median(seconds for seconds, _ in runs)
            show(f"{algorithm}, whole query", individuals, whole, python[algorithm], losses(runs[0][1]))
    finally:
        shutil.rmtree(folder)


main()
