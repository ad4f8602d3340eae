#!/usr/bin/env python3
"""Do rules that are learned predict what queries cost better than the fixed ones of the cost model?

    tests/witness/cost_rules.py COSTS.tsv      (of `gpuidx calibrate INDEX LOG --costs=COSTS.tsv`); needs numpy

Ding et al. (WWW 2009) predict by M5Rules: rules that choose a linear model. A model tree after Quinlan's M5 is grown
here on the queries that the model of gpuidx was fitted to, with the features that it has and with the paper's four
(shortest list, second shortest, sum of all, number of terms): the split that lowers the deviation of log(ns) most,
leaves of 64 queries at the least, in each a linear model with weights 1 / ns^2, the tree pruned where a node's own
model is as good on a fifth of the queries that was set aside. Printed are mean and median relative errors on the
held-out queries, beside those of gpuidx's model.
"""
import sys

import numpy as np

LEAST = 64


def fit(x, y):
    """Weights of a linear model whose relative errors are small."""
    rows = np.column_stack([np.ones(len(x)), x]) / y[:, None]
    scale = np.sqrt((rows * rows).mean(axis=0)) + 1e-30
    r = rows / scale
    return np.linalg.solve(r.T @ r + 1e-4 * len(x) * np.eye(r.shape[1]), r.T @ np.ones(len(x))) / scale


def predict(w, x, low, high):
    return np.clip(w[0] + x @ w[1:], low, high)


def errors(p, y):
    e = np.abs(p / y - 1)
    return e.mean(), np.median(e)


class Node:
    def __init__(self, x, y, depth):
        self.low, self.high = y.min() / 2, y.max() * 2
        self.w, self.split = fit(x, y), None
        if len(y) < 2 * LEAST or depth == 10:
            return
        z, best = np.log(y), None
        for f in range(x.shape[1]):
            order = np.argsort(x[:, f], kind="stable")
            v, s = x[order, f], z[order]
            n = np.arange(1, len(s))
            left, left2 = np.cumsum(s)[:-1], np.cumsum(s * s)[:-1]
            sse = left2 - left ** 2 / n + (s @ s - left2) - (s.sum() - left) ** 2 / (len(s) - n)
            sse[(v[1:] == v[:-1]) | (n < LEAST) | (len(s) - n < LEAST)] = np.inf
            i = int(np.argmin(sse))
            if np.isfinite(sse[i]) and (best is None or sse[i] < best[0]):
                best = sse[i], f, (v[i] + v[i + 1]) / 2
        if best:
            self.split = best[1:]
            side = x[:, best[1]] <= best[2]
            self.kids = Node(x[side], y[side], depth + 1), Node(x[~side], y[~side], depth + 1)

    def predict(self, x):
        if not self.split:
            return predict(self.w, x, self.low, self.high)
        out, side = np.empty(len(x)), x[:, self.split[0]] <= self.split[1]
        out[side], out[~side] = self.kids[0].predict(x[side]), self.kids[1].predict(x[~side])
        return out

    def prune(self, x, y):
        if not self.split:
            return
        side = x[:, self.split[0]] <= self.split[1]
        self.kids[0].prune(x[side], y[side])
        self.kids[1].prune(x[~side], y[~side])
        if not len(y) or errors(predict(self.w, x, self.low, self.high), y)[0] <= errors(self.predict(x), y)[0]:
            self.split = None

    def leaves(self):
        return 1 if not self.split else self.kids[0].leaves() + self.kids[1].leaves()


def main():
    with open(sys.argv[1]) as f:
        names = f.readline().rstrip("\n").split("\t")
        rows = [line.rstrip("\n").split("\t") for line in f]
    kinds = np.array([r[0] for r in rows])
    v = np.array([[float(c) for c in r[1:]] for r in rows])
    column = {name: i for i, name in enumerate(names[1:])}
    operators = [v[:, column["op"]] == o for o in range(3)]
    all_features = np.column_stack([v[:, column["k"]], *operators, v[:, column["constant"] + 1:]])
    paper = np.column_stack([v[:, column["k"]], *operators] + [v[:, column[n]]
                                                               for n in ("shortest", "second", "sum", "terms")])
    rng = np.random.default_rng(1)
    print("%-10s %8s  %-34s %6s %8s %8s" % ("kind", "held out", "model", "rules", "mean", "median"))
    for kind in dict.fromkeys(kinds):
        y, held = v[:, column["ns"]], v[:, column["held_out"]] == 1
        of_kind = kinds == kind
        train, test = np.flatnonzero(of_kind & ~held), of_kind & held
        train = rng.permutation(train)
        grow, aside = train[len(train) // 5:], train[:len(train) // 5]
        line = "%-10s %8d  %%-34s %%6s %%7.1f%%%% %%7.1f%%%%" % (kind, test.sum())
        e = errors(v[test, column["predicted"]], y[test])
        print(line % ("gpuidx, fixed leaves", "", 100 * e[0], 100 * e[1]))
        for title, x in (("M5-like, the same features", all_features), ("M5-like, the paper's four", paper)):
            x = x[:, x[train].std(axis=0) > 0]
            tree = Node(x[grow], y[grow], 0)
            tree.prune(x[aside], y[aside])
            e = errors(tree.predict(x[test]), y[test])
            print(line % (title, tree.leaves(), 100 * e[0], 100 * e[1]))


if __name__ == "__main__":
    sys.exit(main())
