#!/usr/bin/env python3
"""Checks releases of all five identity-reserved models without any code of this project, from their CSV alone.

    cargo build --release && python3 benches/check_release.py

anonymizes ../shared/data/informs2005_1m.parquet (or sample_patients, where that is not there) by every algorithm under
every model at several parameters, and prints one line for each. To check a release of your own:

    anonymize sql -q --format csv -c "SELECT * FROM anonymize_eir(…, notation => 'text')" > release.csv
    python3 benches/check_release.py release.csv QUASI_IDENTIFIERS eir_l 6

The columns are those of the function: the pseudonym, so many quasi-identifiers, the sensitive value.
"""

import collections
import csv
import os
import subprocess
import sys
from fractions import Fraction

PROGRAM = os.environ.get("ANONYMIZE", "target/release/anonymize")
DATA = "../shared/data"
QI = ["birth_month", "birth_year", "sex", "race", "education_years", "marital_status", "poverty_category", "hispanic"]
CATEGORICAL = ["sex", "race", "marital_status", "hispanic"]
ALGORITHMS = ["danonyir", "optimized", "geneir", "mondrian"]


def hit(sets, values):
    """Whether so many values hit all sets."""
    if not sets:
        return True
    if values == 0:
        return False
    smallest = min(sets, key=len)
    return any(hit([s for s in sets if v not in s], values - 1) for v in smallest)


def largest(counts):
    return max(counts.values())


def ir_k(people, k):
    return len(people) >= int(k)


def ir_kl(people, k, l):
    return ir_k(people, k) and len(set().union(*people.values())) >= int(l)


def ir_alpha_beta(people, alpha, beta):
    records = sum(sum(values.values()) for values in people.values())
    shares = collections.Counter()
    for values in people.values():
        shares.update(values)
    of_one = max(sum(values.values()) for values in people.values())
    return of_one <= Fraction(alpha) * records and largest(shares) <= Fraction(beta) * records


def eir_l(people, l):
    return not hit([frozenset(values) for values in people.values()], int(l) - 1)


def eir_alpha_beta(people, alpha, beta):
    records = sum(sum(values.values()) for values in people.values())
    holders = collections.Counter(value for values in people.values() for value in values)
    of_one = max(sum(values.values()) for values in people.values())
    return of_one <= Fraction(alpha) * records and largest(holders) <= Fraction(beta) * len(people)


MODELS = {f.__name__: f for f in (ir_k, ir_kl, ir_alpha_beta, eir_l, eir_alpha_beta)}

# Model, its call, its parameters.
CASES = [
    *(("ir_k", f"anonymize_ir(… k => {k})", [k]) for k in (2, 10)),
    *(("ir_kl", f"anonymize_ir(… k => {k}, l => {l})", [k, l]) for k, l in ((6, 6), (5, 10))),
    *(("ir_alpha_beta", f"anonymize_ir(… alpha => {a}, beta => {b})", [a, b]) for a, b in (("0.4", "0.6"), ("0.6", "0.4"))),
    *(("eir_l", f"anonymize_eir(… l => {l})", [l]) for l in (3, 6)),
    *(("eir_alpha_beta", f"anonymize_eir(… alpha => {a}, beta => {b})", [a, b]) for a, b in (("0.4", "0.6"), ("0.6", "0.4"))),
]


def check(lines, quasi_identifiers, model, parameters):
    """Records, individuals, classes, the smallest class, and how many classes violate the model."""
    classes = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    shown, records = {}, 0
    rows = csv.reader(lines)
    next(rows)
    for row in rows:
        records += 1
        values = tuple(row[1 : 1 + quasi_identifiers])
        classes[values][row[0]][row[1 + quasi_identifiers]] += 1
        if shown.setdefault(row[0], values) != values:
            sys.exit("an individual shows two tuples")
    violating = sum(not MODELS[model](people, *parameters) for people in classes.values())
    smallest = min(map(len, classes.values()))
    return records, len(shown), len(classes), smallest, violating


def report(title, found):
    print("{:52} {} records, {} individuals, {} classes of at least {}, {} violating".format(title, *found), flush=True)
    return found[-1]


def matrix():
    real = os.path.exists(f"{DATA}/informs2005_1m.parquet")
    table = f"'{DATA}/informs2005_1m.parquet'" if real else "sample_patients(5000, 1)"
    names = ("person_id", "icd9") if real else ("patient_id", "diagnosis")
    quasi_identifiers = QI if real else [c for c in QI if c != "poverty_category"]
    wrong = 0
    for model, call, parameters in CASES:
        for algorithm in ALGORITHMS:
            arguments = f"{table}, id => {names[0]}, qi => [{', '.join(quasi_identifiers)}], sensitive => {names[1]}, "
            arguments += f"categorical => [{', '.join(CATEGORICAL)}], notation => 'text', algorithm => '{algorithm}',"
            sql = "SELECT * FROM " + call.replace("…", arguments)
            command = [PROGRAM, "sql", "-q", "--format", "csv", "-c", sql]
            release = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found = check(release.splitlines(), len(quasi_identifiers), model, parameters)
            wrong += report(f"{call} {algorithm}", found)
    return wrong


def main():
    if len(sys.argv) == 1:
        sys.exit(matrix() > 0)
    path, quasi_identifiers, model, *parameters = sys.argv[1:]
    with open(path, newline="") as file:
        sys.exit(report(path, check(file, int(quasi_identifiers), model, parameters)) > 0)


main()
