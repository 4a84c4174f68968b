#!/usr/bin/env python3
"""From Parquet to Parquet with the release build, beside the floor: the same engine, the same columns, sorted by id.

    cargo build --release && python3 benches/end_to_end.py [individuals] [l]

Prints the median of five alternating runs, the ratio, and the peak memory of each process.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = os.environ.get("ANONYMIZE", "target/release/anonymize")
INDIVIDUALS = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
L = int(sys.argv[2]) if len(sys.argv) > 2 else 6
QI = "birth_month, birth_year, sex, race, education_years, marital_status, poverty, hispanic"
RUNS = 5


def run(sql):
    """Seconds and peak memory in MB of one process."""
    begin = time.monotonic()
    child = subprocess.Popen([PROGRAM, "sql", "-q", "-c", sql], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"failed: {sql}")
    return time.monotonic() - begin, usage.ru_maxrss / 1024


def main():
    folder = tempfile.mkdtemp(prefix="anonymize-bench-")
    try:
        table = f"{folder}/patients.parquet"
        run(f"COPY (SELECT * FROM sample_patients({INDIVIDUALS}, 1)) TO '{table}'")
        jobs = {
            "floor: COPY … ORDER BY patient_id": f"SELECT * FROM '{table}' ORDER BY patient_id",
            f"anonymize_eir l={L}": f"SELECT * FROM anonymize_eir('{table}', id => patient_id, qi => [{QI}], "
            f"sensitive => diagnosis, l => {L})",
            f"anonymize_eir l={L}, keep": f"SELECT * FROM anonymize_eir('{table}', id => patient_id, qi => [{QI}], "
            f"sensitive => diagnosis, keep => [ward, visit_date], l => {L})",
        }
        results = {name: [] for name in jobs}
        for i in range(RUNS):
            for number, (name, query) in enumerate(jobs.items()):
                target = f"{folder}/out-{i}-{number}.parquet"
                results[name].append(run(f"COPY ({query}) TO '{target}' STORED AS PARQUET"))
        floor = None
        print(f"{INDIVIDUALS} individuals, {os.path.getsize(table) / 2**20:.1f} MB of Parquet, {os.cpu_count()} cores")
        for name, runs in results.items():
            seconds = statistics.median(r[0] for r in runs)
            floor = floor or seconds
            memory = max(r[1] for r in runs)
            print(f"{name:36} {seconds:7.2f} s  {seconds / floor:5.1f} × floor  {memory:6.0f} MB at peak")
    finally:
        shutil.rmtree(folder)


main()
