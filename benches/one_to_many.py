#!/usr/bin/env python3
"""(k, l)-diversity of 26,854 real patients by this program and by plain Python, in one run.

    cargo build --release && python3 benches/one_to_many.py [runs, default 5]

informs2005_1m from ../shared/data: month and year of birth, years of education, income and race; k = 10, l = 5; the even
hierarchy of diagnoses. The Python below is the printed algorithm, Partition and then Mondrian, with lists and
dictionaries: its main step, with everything in memory, is timed. Of this program two times are given: that of the whole
query, from a Parquet file to rows in a process of its own, and that of the same step, by the operator's own metrics.
Losses of all tables are measured by information_loss. No part of Python's table is tested for what can be confused
(docs/papers.md M1, M2), so that it does less than this program.
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


def ask(sql):
    """The rows of a result, without its header."""
    command = [PROGRAM, "sql", "-q", "--format", "csv", "-c", sql]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(csv.reader(printed.stdout.splitlines()))[1:]


# ---- plain Python ---------------------------------------------------------------------------------------------------


class Tree:
    """A hierarchy: the chain of labels above each value, itself first."""

    def __init__(self, path):
        self.chains, self.leaves = {}, collections.Counter()
        with open(path, encoding="utf-8") as rows:
            for row in csv.reader(rows, delimiter=";"):
                # A level that repeats the one below it is the same node.
                chain = [label for at, label in enumerate(row) if at == 0 or label != row[at - 1]]
                self.chains[chain[0]] = chain
                self.leaves.update(chain)
        self.root = next(iter(self.chains.values()))[-1]

    def child(self, leaf, node):
        """The child of a node towards a value below it; None if the value is not below it, or is it."""
        chain = self.chains[leaf]
        at = chain.index(node) if node in chain else 0
        return chain[at - 1] if at > 0 else None


def partition(fingerprints, tree, k):
    """He and Naughton's Partition: sets of labels that at least k individuals share, as a label set per individual."""
    published = {}
    groups = [({tree.root: True}, list(fingerprints))]
    while groups:
        nodes, members = groups.pop()
        open_nodes = [n for n, is_open in nodes.items() if is_open and tree.leaves[n] > 1]
        if not open_nodes:
            label = frozenset(nodes)
            published.update((member, label) for member in members)
            continue
        node = max(open_nodes, key=lambda n: tree.leaves[n])
        parts = collections.defaultdict(list)
        for member in members:
            below = (tree.child(leaf, node) for leaf in fingerprints[member])
            parts[frozenset(child for child in below if child is not None)].append(member)
        large = {children: part for children, part in parts.items() if len(part) >= k}
        left = [member for children, part in parts.items() if children not in large for member in part]
        while left and len(left) < k and large:
            largest = max(large, key=lambda children: len(large[children]))
            if len(large[largest]) > k:
                left.append(large[largest].pop())
            else:
                left += large.pop(min(large, key=lambda children: len(large[children])))
        others = {n: is_open for n, is_open in nodes.items() if n != node}
        for children, part in large.items():
            groups.append((others | {child: True for child in children}, part))
        if left:
            groups.append((nodes | {node: False}, left))
    return published


def allowed(members, published, l):
    """Whether at most one in l has the same fingerprint."""
    counts = collections.Counter(published[member] for member in members)
    return len(members) > 0 and max(counts.values()) * l <= len(members)


def mondrian(people, published, l):
    """Classes, cut at the median of the widest column whose parts are all allowed; names are cut into each of them."""
    columns = range(len(QI))
    whole = [len({person[c] for person in people.values()}) for c in columns]
    span = [max(p[c] for p in people.values()) - min(p[c] for p in people.values()) or 1 for c in columns[: len(NUMBERS)]]
    classes, todo = [], [list(people)]
    while todo:
        members = todo.pop()

        def width(c):
            values = [people[member][c] for member in members]
            return (max(values) - min(values)) / span[c] if c < len(NUMBERS) else (len(set(values)) - 1) / (whole[c] - 1)

        widths = {c: width(c) for c in columns}
        for c in sorted(columns, key=lambda c: -widths[c]):
            if widths[c] == 0:
                continue
            if c < len(NUMBERS):
                values = sorted(people[member][c] for member in members)
                median = values[(len(values) - 1) // 2]
                if median == values[-1]:
                    median = max(value for value in values if value < median)
                parts = [
                    [member for member in members if people[member][c] <= median],
                    [member for member in members if people[member][c] > median],
                ]
            else:
                by_name = collections.defaultdict(list)
                for member in members:
                    by_name[people[member][c]].append(member)
                parts = list(by_name.values())
            if all(allowed(part, published, l) for part in parts):
                todo += parts
                break
        else:
            classes.append(members)
    return classes


def plain_python(folder):
    """Seconds of the main step, individuals, and a file with what is published."""
    people, fingerprints = {}, collections.defaultdict(set)
    for person, value, *cells in ask(f"SELECT person_id, icd9, {', '.join(QI)} FROM '{TABLE}'"):
        people[person] = [float(cell) for cell in cells[: len(NUMBERS)]] + cells[len(NUMBERS) :]
        fingerprints[person].add(value)
    tree = Tree(LABELS)
    seconds = []
    for _ in range(min(RUNS, 3)):
        begin = time.monotonic()
        published = partition(fingerprints, tree, K)
        classes = mondrian(people, published, L)
        seconds.append(time.monotonic() - begin)
    if min(collections.Counter(published.values()).values()) < K:
        sys.exit("a fingerprint is shared by fewer than k")
    if not all(allowed(members, published, L) for members in classes):
        sys.exit("a class has too large a share of one fingerprint")
    target = f"{folder}/python.csv"
    with open(target, "w", encoding="utf-8", newline="") as output:
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
    return statistics.median(seconds), len(people), target


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
    sql = f"COPY ({release(algorithm)}) TO '{target}' STORED AS PARQUET"
    subprocess.run([PROGRAM, "sql", "-q", "-c", sql], stdout=subprocess.DEVNULL, check=True)
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


def show(name, individuals, seconds, python, losses_=None):
    rate = individuals / seconds
    line = f"{name:44} {seconds:8.3f} s {rate:12,.0f} individuals/s {python / seconds:8.1f} × Python"
    if losses_:
        line += "   QID-NCP {:.4f}  SA-NCP {:.4f}".format(*losses_)
    print(line, flush=True)


def main():
    folder = tempfile.mkdtemp(prefix="anonymize-bench-")
    try:
        python, individuals, table = plain_python(folder)
        print(f"informs2005_1m, {individuals:,} individuals, {len(QI)} quasi-identifiers, ({K}, {L})-diversity")
        show("plain Python, its main step", individuals, python, python, losses(table))
        for algorithm in ["best_cut", "optimized", "mondrian"]:
            runs = [whole_query(algorithm, folder) for _ in range(RUNS)]
            steps = [metrics(algorithm) for _ in range(RUNS)]
            whole = statistics.median(seconds for seconds, _ in runs)
            show(f"{algorithm}, whole query", individuals, whole, python, losses(runs[0][1]))
            for name in steps[0]:
                show(f"{algorithm}, {name}", individuals, statistics.median(s[name] for s in steps), python)
    finally:
        shutil.rmtree(folder)


main()
