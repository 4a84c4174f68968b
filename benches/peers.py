#!/usr/bin/env python3
"""The same work by this program and by peers from PyPI, in one run.

    cargo build --release && pip install anonypy anjana pycanon pandas pyarrow && python3 benches/peers.py [individuals ...]

Peers know neither individuals with several records nor files larger than memory, so the table has one record per
individual. anonypy forms classes by Mondrian, anjana generalizes whole columns by hierarchies, pycanon measures.
Times include starting a process, reading a Parquet file and writing one; peers get the data of their choice.
The loss of a cell is (width of the interval) / (width of the domain), or (values - 1) / (values of the domain - 1);
suppressed records have lost everything. It is computed from the files by the same code for all.
"""

import os
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ.get("ANONYMIZE", "target/release/anonymize")
SIZES = [int(n) for n in sys.argv[1:] if n.isdigit()] or [1_000, 10_000, 100_000]
NUMBERS = ["birth_year", "education_years"]
NAMES = ["sex", "race", "marital_status"]
QI = NUMBERS + NAMES
K = 10
# Peers that need longer are not asked for a larger table.
PATIENCE = 120


def sql(statement):
    subprocess.run([PROGRAM, "sql", "-q", "-c", statement], stdout=subprocess.DEVNULL, check=True)


def ours(table, target):
    sql(
        f"COPY (SELECT * FROM anonymize_ir('{table}', one_row_per_individual => true, qi => [{', '.join(QI)}], "
        f"sensitive => diagnosis, k => {K})) TO '{target}' STORED AS PARQUET"
    )


def audit(table, target):
    columns = ",".join(QI)
    command = [PROGRAM, "audit", table, "--one-row-per-individual", "--qi", columns, "--sensitive", "diagnosis"]
    with open(target, "w") as output:
        subprocess.run(command + ["--format", "json"], stdout=output, check=True)


def anonypy(table, target):
    import anonypy
    import pandas

    frame = pandas.read_parquet(table)[QI + ["diagnosis"]]
    for name in NAMES + ["diagnosis"]:
        frame[name] = frame[name].astype("category")
    rows = anonypy.Preserver(frame, QI, "diagnosis").anonymize_k_anonymity(k=K)
    pandas.DataFrame(rows).to_parquet(target)


def anjana(table, target):
    import pandas
    from anjana.anonymity import k_anonymity

    frame = pandas.read_parquet(table)[QI + ["diagnosis"]]
    hierarchies = {}
    for name in NAMES:
        hierarchies[name] = {0: frame[name].values, 1: ["*"] * len(frame)}
    for name, steps in zip(NUMBERS, ([5, 10, 20, 40], [2, 4, 8])):
        levels = {0: frame[name].values}
        for level, step in enumerate(steps, 1):
            levels[level] = [f"{v // step * step}-{v // step * step + step - 1}" for v in frame[name]]
        levels[len(steps) + 1] = ["*"] * len(frame)
        hierarchies[name] = levels
    k_anonymity(frame, [], QI, K, 5, hierarchies).to_parquet(target)


def pycanon(table, target):
    import pandas
    from pycanon import anonymity

    frame = pandas.read_parquet(table)
    with open(target, "w") as output:
        print(anonymity.k_anonymity(frame, QI), anonymity.l_diversity(frame, QI, ["diagnosis"]), file=output)


JOBS = {"anonymize_ir": ours, "anonypy": anonypy, "anjana": anjana, "anonymize audit": audit, "pycanon": pycanon}


def timed(job, table, target):
    """Seconds, CPU seconds and peak memory in MB of a process; None if it fails or takes too long."""
    begin = time.monotonic()
    child = subprocess.Popen([sys.executable, __file__, "--job", job, table, target], stderr=subprocess.PIPE)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        print(child.stderr.read().decode()[-500:], file=sys.stderr)
        return None
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def width(value, domain, number):
    """The loss of a published cell."""
    if value is None or (isinstance(value, str) and value == "*"):
        return 1.0
    if number:
        if isinstance(value, dict):
            ends = [value["lo"], value["hi"]]
        else:
            # anonypy publishes lists of one interval.
            parts = [value] if isinstance(value, str) or not hasattr(value, "__iter__") else value
            ends = [end for part in parts for end in str(part).split("-")]
        ends = [float(end) for end in ends]
        return (max(ends) - min(ends)) / (domain[1] - domain[0])
    parts = [value] if isinstance(value, str) else value
    values = {name for part in parts for name in str(part).split(",")}
    return (len(values) - 1) / (len(domain) - 1)


def loss(original, published):
    import pandas

    original = pandas.read_parquet(original)
    frame = pandas.read_parquet(published)
    weights = frame["count"] if "count" in frame else pandas.Series(1, index=frame.index)
    total = 0.0
    for name in QI:
        column = original[name]
        number = name in NUMBERS
        domain = (column.min(), column.max()) if number else sorted(set(column))
        total += sum(min(1.0, width(v, domain, number)) * w for v, w in zip(frame[name], weights))
    suppressed = len(original) - weights.sum()
    return (total + suppressed * len(QI)) / (len(original) * len(QI)), suppressed


def main():
    print(f"k = {K}, {len(QI)} quasi-identifiers, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print("| individuals | program | seconds | CPU s | peak MB | loss | suppressed |")
    print("|---|---|---|---|---|---|---|")
    slow = set()
    with tempfile.TemporaryDirectory(prefix="anonymize-peers-") as folder:
        for size in SIZES:
            table = f"{folder}/patients-{size}.parquet"
            columns = ", ".join(f"first_value({name}) AS {name}" for name in QI + ["diagnosis"])
            sql(f"COPY (SELECT {columns} FROM sample_patients({size}, 1) GROUP BY patient_id) TO '{table}'")
            for job in JOBS:
                if job in slow:
                    continue
                target = f"{folder}/{job.replace(' ', '-')}-{size}.parquet"
                result = timed(job, table, target)
                if result is None:
                    print(f"| {size} | {job} | failed | | | | |")
                    continue
                measured = ["", ""]
                if job in ("anonymize_ir", "anonypy", "anjana"):
                    lost, suppressed = loss(table, target)
                    measured = [f"{lost:.4f}", f"{suppressed:.0f}"]
                print(f"| {size} | {job} | {result[0]:.2f} | {result[1]:.2f} | {result[2]:.0f} | {measured[0]} | {measured[1]} |")
                if result[0] * 10 > PATIENCE:
                    slow.add(job)


if len(sys.argv) > 1 and sys.argv[1] == "--job":
    JOBS[sys.argv[2]](sys.argv[3], sys.argv[4])
else:
    main()
