#!/usr/bin/env python3
"""Checks releases of all five identity-reserved models, of the p-sensitive ones, of (k, l)-diversity, of SLPPA and of local
generalization and bucketization without any code of this project, from their CSV alone.

    cargo build --release && python3 benches/check_release.py

anonymizes ../shared/data/informs2005_1m.parquet (or sample_patients, where that is not there) by every algorithm under
every model at several parameters, and prints one line for each; with `sample` always sample_patients. To check a release
of your own:

    anonymize sql -q --format csv -c "SELECT * FROM anonymize_eir(…, notation => 'text')" > release.csv
    python3 benches/check_release.py release.csv QUASI_IDENTIFIERS eir_l 6

The columns are those of the function: the pseudonym, so many quasi-identifiers, the sensitive value. For (k, l)-diversity:

    python3 benches/check_release.py release.csv QUASI_IDENTIFIERS kl 10 5 hierarchy.csv [value_l]

p_sensitive, p_plus and p_alpha know the categories of Adult's random conditions below only.

For anatomize_slppa its four bounds (- for none), for anonymize_lgb in either form k and the rule of each column with buckets,
l or t (or t, ordered: the earth mover's distance):

    python3 benches/check_release.py release.csv QUASI_IDENTIFIERS slppa 0.5 0.05 0.005 0.05
    python3 benches/check_release.py release.csv QUASI_IDENTIFIERS lgb 5 age:l=5 sex:t=0.2 salary:l=5
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
ALGORITHMS = ["danonyir", "optimized", "geneir", "best_cut", "mondrian", "localpk"]
CONDITIONS = [["HIV", "Cancer"], ["Phthisis", "Hepatitis"], ["Obesity", "Asthma"], ["Flu", "Indigestion"]]
CATEGORY = {value: number for number, values in enumerate(CONDITIONS) for value in values}
ADULT = ["age", "workclass", "education", "native_country", "marital_status", "race", "sex"]


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


def p_sensitive(people, k, p):
    return len(people) >= max(int(k), int(p)) and len(set().union(*people.values())) >= int(p)


def p_plus(people, k, p):
    return p_sensitive(people, k, p) and len({CATEGORY[v] for values in people.values() for v in values}) >= int(p)


def p_alpha(people, k, p, alpha):
    """An individual weighs what its most sensitive value weighs."""
    weight = sum(Fraction(min(CATEGORY[v] for v in values), len(CONDITIONS) - 1) for values in people.values())
    return p_sensitive(people, k, p) and weight >= Fraction(alpha)


MODELS = {
    f.__name__: f
    for f in (ir_k, ir_kl, ir_alpha_beta, eir_l, eir_alpha_beta, p_sensitive, p_plus, p_alpha)
}

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


def chains(path):
    """Every label with all labels above it, from a file of rows leaf;level 1;...;*"""
    above = {}
    with open(path, newline="") as file:
        for row in csv.reader(file, delimiter=";"):
            row = [label.strip() for label in row if label.strip()]
            for at, label in enumerate(row):
                above[label] = set(row[at:])
    return above


def heaviest(candidates, weights, near):
    """The largest weight of candidates that are all near to each other."""
    best = 0
    for at, first in enumerate(candidates):
        later = [c for c in candidates[at + 1 :] if near(first, c)]
        best = max(best, weights[first] + heaviest(later, weights, near))
    return best


def check_kl(lines, quasi_identifiers, k, l, hierarchy, value_l=None):
    """As check, for (k, l)-diversity: violating are fingerprints that fewer than k have, and classes."""
    above = chains(hierarchy)
    related = lambda a, b: a in above[b] or b in above[a]
    covers = lambda a, b: all(any(related(x, y) for y in b) for x in a)
    alike = lambda a, b: covers(a, b) and covers(b, a)
    classes, shown, records = collections.defaultdict(lambda: collections.defaultdict(set)), {}, 0
    rows = csv.reader(lines)
    next(rows)
    for row in rows:
        records += 1
        values, label = tuple(row[1 : 1 + quasi_identifiers]), row[1 + quasi_identifiers]
        if label not in above or label in classes[values][row[0]]:
            sys.exit("a label is unknown or repeated")
        classes[values][row[0]].add(label)
        if shown.setdefault(row[0], values) != values:
            sys.exit("an individual shows two tuples")
    holders = collections.Counter(frozenset(s) for people in classes.values() for s in people.values())
    violating = sum(n < k for n in holders.values())
    for people in classes.values():
        sets = collections.Counter(frozenset(s) for s in people.values())
        most = heaviest(list(sets), sets, alike)
        labels = {label for labels in sets for label in labels if len(above[label]) > 1}
        common = max((sum(n for s, n in sets.items() if any(related(x, v) for x in s)) for v in labels), default=0)
        too_common = common * value_l > len(people) if value_l else common >= len(people)
        violating += most * l > len(people) or too_common
    return records, len(shown), len(classes), min(map(len, classes.values())), violating


def check_slppa(lines, quasi_identifiers, *bounds):
    """As check, for the (alpha, beta, gamma, delta) model, from the long form: violating are groups."""
    alpha, beta, gamma, delta = (None if bound == "-" else Fraction(bound) for bound in bounds)
    groups, whole, records = collections.defaultdict(lambda: collections.defaultdict(collections.Counter)), collections.Counter(), 0
    rows = csv.reader(lines)
    next(rows)
    for table, gid, *values, sensitive, count in rows:
        if len(values) != quasi_identifiers or (table == "sa") != (values == [""] * quasi_identifiers and sensitive != ""):
            sys.exit("a row has other columns than its table")
        records += 1
        groups[gid][table][sensitive if table == "sa" else tuple(values)] += int(count)
        if table == "sa":
            whole[sensitive] += int(count)
    everybody, violating, sizes = sum(whole.values()), 0, []
    tables = {table for group in groups.values() for table in group}
    for group in groups.values():
        members = sum(group["sa"].values())
        sizes.append(members)
        if set(group) != tables or any(sum(tuples.values()) != members for tuples in group.values()):
            sys.exit("the tables of a group have different members")
        shares = {table: Fraction(largest(tuples), members) for table, tuples in group.items()}
        product = Fraction(1)
        for share in shares.values():
            product *= share
        wrong = alpha is not None and any(share > alpha for table, share in shares.items() if table != "sa")
        wrong |= beta is not None and shares["sa"] > beta
        wrong |= gamma is not None and product > gamma
        if delta is not None:
            # A value that the group lacks is as far away as its share of the whole table.
            here = group["sa"]
            wrong |= any(abs(here[v] * everybody - n * members) > delta * members * everybody for v, n in whole.items())
        violating += wrong
    return records, everybody, len(groups), min(sizes), violating


def distance(bucket, whole, ordered):
    """Of the shares of a bucket's values from those of all, half the sum, or the mean of what lies below each border."""
    own, everything = sum(bucket.values()), sum(whole.values())
    differences = [Fraction(bucket[v], own) - Fraction(whole[v], everything) for v in sorted(whole, key=float if ordered else str)]
    if not ordered:
        return sum(map(abs, differences)) / 2
    below, total = Fraction(0), Fraction(0)
    for difference in differences:
        below += difference
        total += abs(below)
    return total / max(len(differences) - 1, 1)


def check_lgb(lines, quasi_identifiers, k, *rules):
    """As check, for local groups and buckets: violating are groups of fewer than k, and buckets that miss their rule."""
    rows = csv.DictReader(lines)
    names = rows.fieldnames
    rules = dict((column, rule.split("=")) for column, rule in (text.split(":") for text in rules))
    with_buckets = [name[:-4] for name in names if name.endswith("_bid")]
    if set(rules) != set(with_buckets):
        sys.exit(f"rules are needed for {', '.join(with_buckets)}")
    shown = [n for n in names if n not in ("individual", "gid", "individuals") and not n.endswith(("_bid", "_bucketized"))]
    if len(shown) != quasi_identifiers:
        sys.exit(f"the quasi-identifiers are {', '.join(shown)}")
    detached = "individuals" in names
    groups, people, records = collections.Counter(), set(), 0
    members = {column: collections.Counter() for column in with_buckets}
    buckets = {column: collections.defaultdict(collections.Counter) for column in with_buckets}
    for row in rows:
        records += 1
        somebody = row["individual"] != ""
        if somebody and row["individual"] in people:
            sys.exit("an individual has two records")
        if somebody:
            people.add(row["individual"])
            groups[tuple(row[n] for n in shown) + tuple(row[c + "_bid"] != "" for c in with_buckets)] += 1
        for column in with_buckets:
            bucket, value = row[column + "_bid"], row[column + "_bucketized"]
            if somebody and bucket:
                members[column][bucket] += 1
                if row.get(column):
                    sys.exit("a value is shown in two ways")
            if value and (not bucket or somebody == detached):
                sys.exit("a value stands where none belongs")
            if value:
                buckets[column][bucket][value] += int(row["individuals"]) if detached else 1
            if somebody and not bucket and column not in shown:
                sys.exit("a secret is in no bucket")
    violating = sum(size < int(k) for size in groups.values())
    for column, (rule, bound) in rules.items():
        whole = sum(buckets[column].values(), collections.Counter())
        for bucket, values in buckets[column].items():
            if sum(values.values()) != members[column][bucket]:
                sys.exit("a bucket has other values than members")
            if rule == "l":
                violating += largest(values) > 1 or len(values) < int(bound)
            else:
                far = distance(values, whole, rule == "t_ordered") > Fraction(bound)
                violating += far or len(values) < 2
        if set(members[column]) != set(buckets[column]):
            sys.exit("a bucket has no values")
    return records, len(people), len(groups), min(groups.values()), violating


def report(title, found):
    print("{:52} {} records, {} individuals, {} classes of at least {}, {} violating".format(title, *found), flush=True)
    return found[-1]


def matrix(real):
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
    return wrong + matrix_tables() + (matrix_kl() + matrix_p_sensitive() if real else 0)


def matrix_p_sensitive():
    """The p-sensitive models on Adult, with hierarchies and a random condition that is the same in every run."""
    listed = [value for values in CONDITIONS for value in values]
    health = f"{listed}[1 + CAST(row_id AS BIGINT) * 2654435761 / 1048576 % 8] AS health"
    known = "workclass IS NOT NULL AND occupation IS NOT NULL AND native_country IS NOT NULL"
    table = f"(SELECT row_id, {', '.join(ADULT)}, {health} FROM '{DATA}/adult.parquet' WHERE {known})"
    files = ", ".join(f"{c}: '{DATA}/hierarchies/adult_{c}.csv'" for c in ADULT)
    cases = [
        ("p_sensitive", "k => 3, p => 2", [3, 2]),
        ("p_plus", f"k => 3, p => 2, categories => {CONDITIONS}", [3, 2]),
        ("p_alpha", f"k => 4, p => 3, categories => {CONDITIONS}, alpha => 1.5", [4, 3, "1.5"]),
    ]
    wrong = 0
    for model, parameters, values in cases:
        for algorithm in ALGORITHMS + ["incognito"]:
            sql = f"SELECT * FROM anonymize_p_sensitive({table}, id => row_id, qi => [{', '.join(ADULT)}], sensitive => health, "
            sql += f"hierarchy => {{{files}}}, {parameters}, algorithm => '{algorithm}')"
            command = [PROGRAM, "sql", "-q", "--format", "csv", "-c", sql]
            release = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found = check(release.splitlines(), len(ADULT), model, values)
            wrong += report(f"anonymize_p_sensitive, {model} {values} {algorithm}", found)
    return wrong


def matrix_tables():
    """Sub-tables and buckets of a table with one record per individual."""
    table = "(SELECT patient_id, min(birth_year) AS birth_year, min(sex) AS sex, min(race) AS race, min(ward) AS ward, "
    number = "CAST(substr(min(patient_id), 2) AS BIGINT)"
    table += f"min(diagnosis) AS diagnosis, {number} % 5 = 0 AS hidden, {number} % 3 = 0 AS shy "
    table += "FROM sample_patients(20000, 1) GROUP BY patient_id)"
    roles = f"{table}, id => patient_id, qi => [birth_year, sex, race, ward]"
    wrong = 0
    for method, bounds in (
        ("slppa", ["0.9", "0.25", "0.2", "0.3"]),
        ("slppa_similar", ["0.9", "0.25", "0.2", "0.3"]),
        ("asn", ["-", "0.25", "0.2", "-"]),
        ("slicing", ["-", "0.25", "-", "-"]),
    ):
        named = zip(("alpha", "beta", "gamma", "delta"), bounds)
        named = ", ".join(f"{name} => {bound}" for name, bound in named if bound != "-")
        call = f"anatomize_slppa({roles}, sensitive => diagnosis, method => '{method}', {named})"
        wrong += report(f"anatomize_slppa(… {named}) {method}", check_slppa(published(call), 4, *bounds))
    for strategy in ("mdp", "ncp"):
        for output in ("rows", "detached"):
            call = f"anonymize_lgb({roles}, semi_sensitive => {{birth_year: hidden, sex: shy}}, sensitive => diagnosis, k => 5, "
            call += "l => {birth_year: 4, diagnosis: 3}, t => {sex: 0.2}, notation => 'text', "
            call += f"strategy => '{strategy}', output => '{output}')"
            found = check_lgb(published(call), 4, 5, "birth_year:l=4", "sex:t=0.2", "diagnosis:l=3")
            wrong += report(f"anonymize_lgb(… {strategy}, {output})", found)
    return wrong


def published(call):
    command = [PROGRAM, "sql", "-q", "--format", "csv", "-c", f"SELECT * FROM {call}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def matrix_kl():
    """(k, l)-diversity, with the hierarchy of diagnoses."""
    quasi_identifiers = ["birth_month", "birth_year", "education_years", "income", "race"]
    hierarchy, wrong = f"{DATA}/hierarchies/informs_icd9_even.csv", 0
    for k, l, value_l in ((10, 5, None), (10, 10, None), (50, 5, None), (10, 2, 2)):
        for algorithm in ALGORITHMS:
            more = f", value_l => {value_l}" if value_l else ""
            call = f"anonymize_kl(… k => {k}, l => {l}{more})"
            table = f"'{DATA}/informs2005_1m.parquet'"
            if value_l:
                # Everybody's last diagnosis: of all of them, half of the people and more have some of one branch.
                columns = f"person_id, {', '.join(quasi_identifiers)}"
                table = f"(SELECT {columns}, max(icd9) AS icd9 FROM {table} GROUP BY {columns})"
            arguments = f"{table}, id => person_id, qi => [{', '.join(quasi_identifiers)}], "
            arguments += f"sensitive => icd9, categorical => [race], hierarchy => {{icd9: '{hierarchy}'}}, "
            arguments += f"notation => 'text', algorithm => '{algorithm}',"
            command = [PROGRAM, "sql", "-q", "--format", "csv", "-c", "SELECT * FROM " + call.replace("…", arguments)]
            release = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found = check_kl(release.splitlines(), len(quasi_identifiers), k, l, hierarchy, value_l)
            wrong += report(f"{call} {algorithm}", found)
    return wrong


def main():
    if len(sys.argv) == 1:
        sys.exit(matrix(os.path.exists(f"{DATA}/informs2005_1m.parquet")) > 0)
    if sys.argv[1:] == ["sample"]:
        sys.exit(matrix(False) > 0)
    path, quasi_identifiers, model, *parameters = sys.argv[1:]
    with open(path, newline="") as file:
        if model == "kl":
            k, l, hierarchy = int(parameters[0]), int(parameters[1]), parameters[2]
            value_l = int(parameters[3]) if len(parameters) > 3 else None
            sys.exit(report(path, check_kl(file, int(quasi_identifiers), k, l, hierarchy, value_l)) > 0)
        if model in ("slppa", "lgb"):
            counted = check_slppa if model == "slppa" else check_lgb
            sys.exit(report(path, counted(file, int(quasi_identifiers), *parameters)) > 0)
        sys.exit(report(path, check(file, int(quasi_identifiers), model, parameters)) > 0)


main()
