"""Several runs as one."""
import math
from typing import Dict, List, Mapping, Optional, Sequence

from ._library import UsageError, whole

Run = Mapping[str, Mapping[str, float]]


def _ranked(scores: Mapping[str, float], k: float) -> Dict[str, float]:
    order = sorted(scores, key=lambda doc: -scores[doc])  # equal ones stay as they stand
    return {doc: 1 / (k + rank) for rank, doc in enumerate(order, 1)}


def _normalized(scores: Mapping[str, float], norm: str) -> Mapping[str, float]:
    values = [float(v) for v in scores.values()]
    if not all(map(math.isfinite, values)):
        raise UsageError("scores are finite numbers")
    if norm == "none" or not values:
        return scores
    least, most = min(values), max(values)
    if least == most:
        return dict.fromkeys(scores, 0.0)
    if norm == "minmax":
        return {doc: (v - least) / (most - least) for doc, v in scores.items()}
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) * (v - mean) for v in values) / len(values))
    return {doc: (v - mean) / deviation for doc, v in scores.items()}


def fuse(runs: Sequence[Run], *, method: str = "rrf", norm: str = "minmax", weights: Optional[Sequence[float]] = None,
         k: float = 60, most: int = 1000) -> Dict[str, Dict[str, float]]:
    """Fuse runs, each {qid: {document: score}}, into one: a document's score is the sum over the runs that have it of

        method "rrf"   w / (k + rank), rank 1 the best: by falling score, equal ones as they stand
        method "sum"   w * the score, under norm "minmax", (s - least) / (greatest - least), "zscore", (s - mean) /
                       standard deviation, both 0 where all of a query's scores are equal, or "none"

    w is the run's weight, 1 without weights. Of each query the `most` best documents are kept, by falling score, equal
    ones by id in the order of their UTF-8 bytes. `gpuidx fuse` does the same to files. UsageError."""
    if method not in ("rrf", "sum"):
        raise UsageError("method is rrf or sum, not %r" % (method,))
    if norm not in ("none", "minmax", "zscore"):
        raise UsageError("norm is none, minmax or zscore, not %r" % (norm,))
    if not (math.isfinite(k) and k >= 0):
        raise UsageError("k is a finite number of at least 0, not %r" % (k,))
    if weights is not None and (len(weights) != len(runs) or not all(map(math.isfinite, weights))):
        raise UsageError("weights are finite numbers, one for each of %d runs" % len(runs))
    whole(most, "most", 1)
    fused: Dict[str, Dict[str, float]] = {}
    for i, run in enumerate(runs):
        for qid, scores in run.items():
            sums = fused.setdefault(qid, {})
            added = _ranked(scores, k) if method == "rrf" else _normalized(scores, norm)
            for doc, value in added.items():
                sums[doc] = sums.get(doc, 0.0) + value * (1 if weights is None else weights[i])
    best: Dict[str, Dict[str, float]] = {}
    for qid in sorted(fused, key=lambda q: q.encode("utf-8")):
        order: List[str] = sorted(fused[qid], key=lambda doc: (-fused[qid][doc], doc.encode("utf-8")))
        best[qid] = {doc: fused[qid][doc] for doc in order[:most]}
    return best
