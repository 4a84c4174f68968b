"""(k, l)-diversity by 1:M-generalization in plain Python: lists, sets and dictionaries, everything in memory.

Partition, then Mondrian or best cut, as one would write them down to try them out. What `benches/one_to_many.py` compares
this program with.
"""

import collections
import csv

SAMPLE, TRIES = 512, 64


class Tree:
    """A hierarchy: the chain of labels above each value, itself first."""

    def __init__(self, path):
        self.chains, self.leaves = {}, collections.Counter()
        self.above, self.below = {}, collections.defaultdict(set)
        with open(path, encoding="utf-8") as rows:
            for row in csv.reader(rows, delimiter=";"):
                # A level that repeats the one below it is the same node.
                chain = [label for at, label in enumerate(row) if at == 0 or label != row[at - 1]]
                self.chains[chain[0]] = chain
                self.leaves.update(chain)
                for at, node in enumerate(chain):
                    self.above[node] = set(chain[at:])
                    self.below[node].update(chain[: at + 1])
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


class Printed:
    """The printed condition: at most one in l has the same fingerprint."""

    def __init__(self, published, tree, l):
        self.published, self.l = published, l

    def allows(self, members):
        counts = collections.Counter(self.published[member] for member in members)
        return len(members) > 0 and max(counts.values()) * self.l <= len(members)


class Corrected:
    """What this program tests: fingerprints that can describe the same set are counted together, and no published value is
    had by all, or may be (docs/theory/papers.md M1, M2)."""

    def __init__(self, published, tree, l):
        self.published, self.l, self.root = published, l, tree.root
        labels = set(published.values())
        self.related = {}
        holders = collections.defaultdict(set)
        for label in labels:
            self.related[label] = set().union(*(tree.above[n] | tree.below[n] for n in label)) - {tree.root}
            for node in label:
                holders[node].add(label)
        leaves = {label: sum(tree.leaves[node] for node in label) for label in labels}
        self.wider = {label: [] for label in labels}
        for label in labels:
            # All that are compatible have a node related to each of its nodes; few have to the rarest.
            near = ([holders[n] for n in tree.above[node] | tree.below[node] if n in holders] for node in label)
            candidates = set().union(*min(near, key=lambda sets: sum(map(len, sets))))
            for other in candidates - {label}:
                is_compatible = label - {tree.root} <= self.related[other] and other - {tree.root} <= self.related[label]
                if is_compatible and leaves[other] >= leaves[label]:
                    self.wider[label].append(other)

    def allows(self, members):
        counts = collections.Counter(self.published[member] for member in members)
        if len(members) == 0 or max(counts.values()) * self.l > len(members):
            return False
        for label in counts:
            if (counts[label] + sum(counts[other] for other in self.wider[label])) * self.l > len(members):
                return False
        common = None
        for label in counts:
            common = self.related[label] if common is None else common & self.related[label]
            if not common:
                return True
        return not any(value in common for label in counts for value in label)


def mondrian(people, numbers, model):
    """Classes, cut at the median of the widest column whose parts are all allowed; names are cut into each of them.

    The first `numbers` cells of a person are numbers, the others names."""
    columns = range(len(next(iter(people.values()))))
    whole = [len({person[c] for person in people.values()}) for c in columns]
    span = [max(p[c] for p in people.values()) - min(p[c] for p in people.values()) or 1 for c in columns[:numbers]]
    classes, todo = [], [list(people)]
    while todo:
        members = todo.pop()

        def width(c):
            values = [people[member][c] for member in members]
            return (max(values) - min(values)) / span[c] if c < numbers else (len(set(values)) - 1) / (whole[c] - 1)

        widths = {c: width(c) for c in columns}
        for c in sorted(columns, key=lambda c: -widths[c]):
            if widths[c] == 0:
                continue
            if c < numbers:
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
            if all(model.allows(part) for part in parts):
                todo += parts
                break
        else:
            classes.append(members)
    return classes


def best_cut(people, numbers, model):
    """Classes, cut in two where the loss left over is smallest of all allowed cuts of all columns."""
    columns = range(len(next(iter(people.values()))))
    whole = [len({person[c] for person in people.values()}) for c in columns]
    whole[:numbers] = [max(p[c] for p in people.values()) - min(p[c] for p in people.values()) + 1 for c in columns[:numbers]]

    def running(order, differing):
        """What each member loses if those up to a place publish the same."""
        losses = [0.0] * len(order)
        for c in differing:
            if c < numbers:
                low = high = people[order[0]][c]
                for at, member in enumerate(order):
                    value = people[member][c]
                    low, high = min(low, value), max(high, value)
                    losses[at] += (high - low + 1) / whole[c] if high > low else 0
            else:
                names = set()
                for at, member in enumerate(order):
                    names.add(people[member][c])
                    losses[at] += len(names) / whole[c] if len(names) > 1 else 0
        return losses

    classes, todo = [], [list(people)]
    while todo:
        members = todo.pop()
        differing = [c for c in columns if len({people[member][c] for member in members}) > 1]
        cuts, orders = [], {}
        for c in differing if len(members) >= 2 * model.l else []:
            if c < numbers:
                key = lambda member: people[member][c]
            else:
                names = collections.Counter(people[member][c] for member in members)
                key = lambda member: (-names[people[member][c]], people[member][c])
            orders[c] = order = sorted(members, key=key)
            stride = -(-len(order) // SAMPLE)
            sample = order[::stride]
            before, after = running(sample, differing), running(sample[::-1], differing)[::-1]
            for at in range(1, len(sample)):
                if key(sample[at - 1]) == key(sample[at]):
                    continue
                left = next(i for i in range((at - 1) * stride + 1, at * stride + 1) if key(order[i]) == key(sample[at]))
                if model.l <= left <= len(order) - model.l:
                    cuts.append((at * before[at - 1] + (len(sample) - at) * after[at], c, left))
        for _, c, left in sorted(cuts)[:TRIES]:
            if model.allows(orders[c][:left]) and model.allows(orders[c][left:]):
                todo += [orders[c][:left], orders[c][left:]]
                break
        else:
            classes.append(members)
    return classes
