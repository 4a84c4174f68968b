#!/usr/bin/env python3
"""Checks a release for EIR l-diversity without any code of this project: for each class, a search for l - 1 sensitive
values that hit every individual.

    anonymize sql -q --format csv -c "SELECT * FROM anonymize_eir(…, notation => 'text')" > release.csv
    python3 benches/check_eir.py release.csv L QUASI_IDENTIFIERS

The columns are those of the function: the pseudonym, so many quasi-identifiers, the sensitive value.
"""

import collections
import csv
import sys


def hit(sets, values):
    """Whether so many values hit all sets."""
    if not sets:
        return True
    if values == 0:
        return False
    smallest = min(sets, key=len)
    return any(hit([s for s in sets if v not in s], values - 1) for v in smallest)


def main():
    path, l, quasi_identifiers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    classes = collections.defaultdict(lambda: collections.defaultdict(set))
    shown, records = {}, 0
    with open(path, newline="") as file:
        rows = csv.reader(file)
        next(rows)
        for row in rows:
            records += 1
            tuple_ = tuple(row[1 : 1 + quasi_identifiers])
            classes[tuple_][row[0]].add(row[1 + quasi_identifiers])
            if shown.setdefault(row[0], tuple_) != tuple_:
                sys.exit("an individual shows two tuples")
    violating = sum(hit([*map(frozenset, people.values())], l - 1) for people in classes.values())
    smallest = min(map(len, classes.values()))
    print(f"{records} records, {len(shown)} individuals, {len(classes)} classes of at least {smallest}, {violating} violating")
    sys.exit(violating > 0)


main()
