#!/usr/bin/env python3
"""anonymize_lgb from Parquet to Parquet with the release build, beside the floor: the same engine, the same columns, sorted by id.

    cargo build --release && python3 benches/lgb.py [copies] [runs]

Census-Income (299,285 individuals, or so many copies of it) with 20 % secret values at random in three semi-sensitive
columns, k = l = 5; without ../shared/data as many made-up individuals. Prints the median of alternating runs, the ratio to
the floor, and the peak memory of each process; then how the loss depends on the size of blocks.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ.get("ANONYMIZE", "target/release/anonymize")
COPIES = int(sys.argv[1]) if len(sys.argv) > 1 else 1
RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
BLOCKS = [25_000, 50_000, 100_000, 250_000, 1_000_000, "'all'"]
DATA = os.path.join(os.path.dirname(__file__), "../../shared/data/census_income_kdd.parquet")
DATA = os.environ.get("CENSUS", DATA)
QI = "age, education, marital_stat, race, sex, weeks, country, household"


def run(sql):
    """Seconds, peak memory in MB, and what one process prints."""
    begin = time.monotonic()
    child = subprocess.Popen([PROGRAM, "sql", "-q", "-c", sql], stdout=subprocess.PIPE, text=True)
    printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"failed: {sql}")
    return time.monotonic() - begin, usage.ru_maxrss / 1024, printed


def table(target):
    if os.path.exists(DATA):
        columns = (
            "age, education, marital_stat, race, sex, weeks_worked_in_year AS weeks, country_of_birth_self AS country, "
            "detailed_household_summary AS household, CAST(round(instance_weight) AS BIGINT) AS weight"
        )
        source = f"(SELECT row_id, {columns} FROM '{DATA}')"
    else:
        source = (
            "(SELECT value AS row_id, value % 91 AS age, value * 7 % 17 AS education, value * 31 % 7 AS marital_stat, "
            "value % 5 AS race, value % 2 AS sex, value * 13 % 53 AS weeks, value * 3 % 41 AS country, value % 8 AS household, "
            "value * 7919 % 99800 AS weight FROM generate_series(1, 299285))"
        )
    flags = ", ".join(f"random() < 0.2 AS {c}_secret" for c in ("age", "weeks", "education"))
    copies = f"(SELECT value AS copy FROM generate_series(1, {COPIES}))"
    run(
        f"COPY (SELECT (row_id * {COPIES} + copy) AS id, t.* EXCLUDE (row_id), {flags} FROM {source} t "
        f"CROSS JOIN {copies}) TO '{target}' STORED AS PARQUET"
    )


def call(source, strategy, more=""):
    return (
        f"SELECT * FROM anonymize_lgb('{source}', id => id, qi => [{QI}], "
        "semi_sensitive => {age: age_secret, weeks: weeks_secret, education: education_secret}, sensitive => weight, "
        "k => 5, l => {age: 5, weeks: 2, education: 3, weight: 5}, "
        f"strategy => '{strategy}'{more})"
    )


def main():
    folder = tempfile.mkdtemp(prefix="anonymize-bench-")
    try:
        source = f"{folder}/people.parquet"
        table(source)
        jobs = {
            "floor: COPY … ORDER BY id": f"SELECT * FROM '{source}' ORDER BY id",
            "anonymize_lgb, mdp": call(source, "mdp"),
            "anonymize_lgb, ncp": call(source, "ncp"),
        }
        results = {name: [] for name in jobs}
        for i in range(RUNS):
            for number, (name, query) in enumerate(jobs.items()):
                target = f"{folder}/out-{number}.parquet"
                if os.path.exists(target):
                    os.remove(target)
                results[name].append(run(f"COPY ({query}) TO '{target}' STORED AS PARQUET"))
        people = 299_285 * COPIES
        print(f"{people} individuals, {os.path.getsize(source) / 2**20:.1f} MB of Parquet, {os.cpu_count()} cores", flush=True)
        floor = None
        for name, runs in results.items():
            seconds = statistics.median(r[0] for r in runs)
            floor = floor or seconds
            memory = max(r[1] for r in runs)
            print(f"{name:28} {seconds:7.2f} s  {seconds / floor:5.2f} × floor  {memory:6.0f} MB at peak", flush=True)
        if COPIES > 1:
            return
        print("block: loss (mdp, ncp), individuals left out", flush=True)
        for block in BLOCKS:
            losses = []
            for strategy in ("mdp", "ncp"):
                more = f", block => {block}, seed => 1"
                plan = run("EXPLAIN ANALYZE " + call(source, strategy, more))[2]
                line = next(l for l in plan.splitlines() if "AnonymizeExec" in l)
                metric = lambda name: line.split(name + "=")[1].split(",")[0].split("]")[0]
                losses.append(metric("information_loss"))
                dropped = metric("suppressed_individuals")
            print(f"{block}: {losses[0]}, {losses[1]}; {dropped}", flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
