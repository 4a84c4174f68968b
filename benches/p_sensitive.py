#!/usr/bin/env python3
"""p-sensitive models from Parquet to Parquet with the release build, beside the floor: the same engine, the same columns,
sorted.

    cargo build --release && python3 benches/p_sensitive.py [most records, default 5000000]

Adult and Census-Income from ../shared/data, and the latter's people again and again, up to 5 million records. Prints medians
of five alternating runs of whole processes (three of large tables), their ratio to the floor, how time grows with records,
and a run of the largest table in a limited pool.
"""

import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ.get("ANONYMIZE", "target/release/anonymize")
DATA = os.environ.get("DATA", "../shared/data")
MOST = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
RUNS = 5

CONDITIONS = "['HIV', 'Cancer', 'Phthisis', 'Hepatitis', 'Obesity', 'Asthma', 'Flu', 'Indigestion']"
CATEGORIES = "[['HIV', 'Cancer'], ['Phthisis', 'Hepatitis'], ['Obesity', 'Asthma'], ['Flu', 'Indigestion']]"
# A random condition that is the same in every run.
HEALTH = (
    f"{CONDITIONS}[1 + CAST(row_id AS BIGINT) * 2654435761 / 1048576 % 8] AS health"
)
ADULT = ["age", "workclass", "education", "native_country", "marital_status", "race", "sex"]
CENSUS = [
    "age", "class_of_worker", "education", "marital_stat", "major_industry_code", "race", "sex",
]


def run(sql, *options):
    """Seconds and peak memory in MB of one process."""
    begin = time.monotonic()
    child = subprocess.Popen([PROGRAM, "sql", "-q", *options, "-c", sql], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"failed: {sql}")
    return time.monotonic() - begin, usage.ru_maxrss / 1024


def number(sql):
    """The only cell of a result."""
    printed = subprocess.run([PROGRAM, "sql", "-q", "--format", "csv", "-c", sql], capture_output=True, text=True, check=True)
    return float(printed.stdout.split()[-1])


def hierarchy(prefix, columns):
    files = (f"{c}: '{DATA}/hierarchies/{prefix}_{c}.csv'" for c in columns)
    return "{" + ", ".join(files) + "}"


def release(table, prefix, columns, more=""):
    return (
        f"SELECT * FROM anonymize_p_sensitive('{table}', id => row_id, qi => [{', '.join(columns)}], sensitive => health, "
        f"k => 3, p => 2, categories => {CATEGORIES}, hierarchy => {hierarchy(prefix, columns)}{more})"
    )


def compare(folder, table, jobs, runs=RUNS):
    """Medians of alternating runs; the first job is the floor. Returns records and the seconds of each job."""
    results = {name: [] for name in jobs}
    for i in range(runs):
        for number_, (name, query) in enumerate(jobs.items()):
            target = f"{folder}/out-{i}-{number_}.parquet"
            results[name].append(run(f"COPY ({query}) TO '{target}' STORED AS PARQUET"))
            os.remove(target)
    records = number(f"SELECT count(*) FROM '{table}'")
    floor, medians = None, []
    for name, all_runs in results.items():
        seconds = statistics.median(r[0] for r in all_runs)
        floor = floor or seconds
        medians.append(seconds)
        memory = max(r[1] for r in all_runs)
        print(
            f"  {name:34} {seconds:7.2f} s  {records / seconds:10,.0f} records/s  {seconds / floor:5.1f} × floor  "
            f"{memory:6.0f} MB at peak",
            flush=True,
        )
    return records, medians


def exponent(smaller, larger):
    """How time grows: 1 is with the records."""
    (n, (_, short)), (m, (_, long)) = smaller, larger
    return math.log(long / short) / math.log(m / n)


def in_a_pool(folder, table, megabytes):
    """The same rows from a limited pool, whose sorts spill."""
    query = release(table, "census_income", CENSUS, ", seed => 1")
    copy = lambda name: f"COPY ({query}) TO '{folder}/{name}.parquet' STORED AS PARQUET"
    run(copy("all"))
    seconds, memory = run(copy("limited"), "-m", f"{megabytes}m", "--mem-pool-type", "fair")
    both = [f"SELECT * FROM '{folder}/{name}.parquet'" for name in ("all", "limited")]
    different = number(f"SELECT count(*) FROM (({both[0]} EXCEPT {both[1]}) UNION ALL ({both[1]} EXCEPT {both[0]}))")
    print(f"  in a pool of {megabytes} MB: {seconds:.2f} s, {memory:.0f} MB at peak, {different:.0f} rows differ", flush=True)


def quality(folder, table, prefix, columns, more):
    """Classes and distortion ratio of one release."""
    target = f"{folder}/quality.parquet"
    run(f"COPY ({release(table, prefix, columns, more + ', seed => 1')}) TO '{target}' STORED AS PARQUET")
    qi = ", ".join(columns)
    classes = number(f"SELECT count(*) FROM (SELECT DISTINCT {qi} FROM '{target}')")
    distortion = number(
        f"SELECT value FROM information_loss('{table}', '{target}', id => individual, original_id => row_id, "
        f"qi => [{qi}], hierarchy => {hierarchy(prefix, columns)}) WHERE measure = 'distortion_ratio' AND \"column\" IS NULL"
    )
    os.remove(target)
    print(f"  {more.strip(', ') or 'default':34} {classes:,.0f} classes, distortion ratio {distortion:.4f}", flush=True)


def main():
    folder = tempfile.mkdtemp(prefix="anonymize-bench-")
    try:
        adult = f"{folder}/adult.parquet"
        known = "workclass IS NOT NULL AND occupation IS NOT NULL AND native_country IS NOT NULL"
        run(f"COPY (SELECT row_id, {', '.join(ADULT)}, {HEALTH} FROM '{DATA}/adult.parquet' WHERE {known}) TO '{adult}'")
        floor = {"floor: COPY … ORDER BY row_id": f"SELECT * FROM '{adult}' ORDER BY row_id"}
        print("Adult, 7 quasi-identifiers, 2⁺-sensitive 3-anonymity")
        options = ["", ", block => 'all'", ", widest_first => 1", ", algorithm => 'optimized'"]
        for more in options[:3] + [", widest_first => 1, whole_children => 1, block => 'all'"]:
            quality(folder, adult, "adult", ADULT, more)
        compare(folder, adult, floor | {more.strip(", ") or "default": release(adult, "adult", ADULT, more) for more in options})

        census = f"{folder}/census.parquet"
        columns = ", ".join(CENSUS)
        run(f"COPY (SELECT row_id, {columns}, {HEALTH} FROM '{DATA}/census_income_kdd.parquet') TO '{census}'")
        print("Census-Income, 7 quasi-identifiers, 2⁺-sensitive 3-anonymity")
        quality(folder, census, "census_income", CENSUS, "")
        measured = []
        for records in [None, 1_000_000, 2_500_000, 5_000_000]:
            if records is not None and records > MOST:
                break
            table = census
            if records is not None:
                # The same people again and again, with other ids and conditions.
                copies = -(-records // 299_285)
                table = f"{folder}/census-{records}.parquet"
                run(
                    f"COPY (SELECT * FROM (SELECT row_id + value * 1000000 AS row_id, {columns}, "
                    f"{HEALTH.replace('row_id', 'row_id + value * 1000000')} "
                    f"FROM '{census}', range(0, {copies})) LIMIT {records}) TO '{table}'"
                )
                print(f"{records:,} records")
            jobs = {
                "floor: COPY … ORDER BY row_id": f"SELECT * FROM '{table}' ORDER BY row_id",
                "anonymize_p_sensitive": release(table, "census_income", CENSUS),
            }
            measured.append(compare(folder, table, jobs, RUNS if records is None else 3))
            if len(measured) > 1:
                print(f"  growth exponent of time: {exponent(measured[-2], measured[-1]):.2f} since the last size, "
                      f"{exponent(measured[0], measured[-1]):.2f} since the first")
        in_a_pool(folder, table, 256)
    finally:
        shutil.rmtree(folder)


main()
