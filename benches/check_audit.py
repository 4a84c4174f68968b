#!/usr/bin/env python3
"""Compares audits with pycanon (PyPI), which knows rows only: k, distinct l, entropy l, alpha and t of random tables.

    pip install pycanon
    cargo build --bin anonymize
    python3 benches/check_audit.py target/debug/anonymize [TABLES]
"""

import json
import math
import random
import subprocess
import sys
import tempfile

import pandas
from pycanon import anonymity

QI = ["age", "sex", "postcode"]


def table(seed):
    """A table as another tool would publish it: one row per individual, plain and masked values."""
    rng = random.Random(seed)
    ages, codes, values = rng.randint(1, 3), rng.randint(1, 2), rng.randint(2, 8)
    rows = []
    for _ in range(rng.randint(5, 300)):
        decade = 20 + 10 * rng.randrange(ages)
        skew = min(rng.randrange(values), rng.randrange(values))
        rows.append((f"[{decade}, {decade + 9}]", rng.choice("FM"), f"10{rng.randrange(codes)}**", f"v{skew}", skew * skew))
    return pandas.DataFrame(rows, columns=[*QI, "disease", "cost"])


def audit(program, path, sensitive):
    command = [program, "audit", path, "--one-row-per-individual", "--qi", ",".join(QI), "--sensitive", sensitive, "--format", "json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return {row["measure"]: row["value"] for row in rows}


def main():
    program, tables = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    compared = 0
    for seed in range(tables):
        data = table(seed)
        with tempfile.NamedTemporaryFile(suffix=".csv") as file:
            data.to_csv(file.name, index=False)
            for sensitive, distance in [("disease", "t_equal"), ("cost", "t_ordered")]:
                ours = audit(program, file.name, sensitive)
                alpha, _ = anonymity.alpha_k_anonymity(data, QI, [sensitive])
                theirs = {
                    "k": anonymity.k_anonymity(data, QI),
                    "distinct_l": anonymity.l_diversity(data, QI, [sensitive]),
                    "eir_beta": alpha,
                    distance: anonymity.t_closeness(data, QI, [sensitive]),
                }
                for measure, value in theirs.items():
                    compared += 1
                    if abs(ours[measure] - value) > 1e-9:
                        sys.exit(f"table {seed}, {sensitive}: {measure} is {ours[measure]}, pycanon says {value}")
                # pycanon cuts entropy l to a whole number, after rounding that may fall just short of it.
                entropy = anonymity.entropy_l_diversity(data, QI, [sensitive])
                compared += 1
                if entropy not in (math.floor(ours["entropy_l"]), math.floor(ours["entropy_l"] - 1e-9)):
                    sys.exit(f"table {seed}, {sensitive}: entropy_l is {ours['entropy_l']}, pycanon says {entropy}")
    print(f"{compared} values of {tables} tables agree")


main()
