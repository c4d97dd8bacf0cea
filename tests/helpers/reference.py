"""Brute force: what the package computes fast, spelled out slowly."""

import itertools

import numpy as np


def mean_over_pairs(scores, labels, sample_weight, pair_loss):
    """Mean of pair_loss(s_i − s_j) over the positive-negative pairs of one objective; 0 if none.

    A row of label y is a positive of weight v·y and a negative of weight v·(1−y).
    """
    total = mass = 0.0
    for s_i, y_i, v_i in zip(scores, labels, sample_weight, strict=True):
        for s_j, y_j, v_j in zip(scores, labels, sample_weight, strict=True):
            pair = v_i * y_i * v_j * (1 - y_j)
            total += pair * pair_loss(s_i - s_j)
            mass += pair
    return total / mass if mass else 0.0


def mean_over_rows(scores, labels, sample_weight, row_loss):
    """Weighted mean of row_loss(s_i, y_i); 0 without any weight."""
    rows = zip(scores, labels, sample_weight, strict=True)
    total = sum(v * row_loss(s, y) for s, y, v in rows)
    return total / sum(sample_weight) if sum(sample_weight) else 0.0


def auc_by_pairs(scores, labels, weights=None):
    """Count every pair of one objective, ties one half; a fraction counts on both sides."""
    w = np.ones(len(scores)) if weights is None else np.asarray(weights, float)
    won = total = 0.0
    for i in range(len(scores)):
        for j in range(len(scores)):
            pair = w[i] * labels[i] * w[j] * (1.0 - labels[j])
            won += pair * ((scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]))
            total += pair
    return won / total if total > 0 else np.nan


def influence_by_pairs(parts, request):
    """Return the shares of the variance of the sum over pairs of one request, by a loop."""
    total = np.zeros(parts.shape[1])
    for each in np.unique(request):
        rows = np.flatnonzero(request == each)
        pairs = [parts[i] - parts[j] for i, j in itertools.combinations(rows, 2)]
        if pairs:
            total += len(rows) * np.mean([pair * pair.sum() for pair in pairs], axis=0)
    return total / total.sum()


def delong_variance(scores, labels):
    """DeLong's variance of one AUC on 0/1 labels, from its structural components."""
    positive, negative = scores[labels == 1], scores[labels == 0]
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    V10, V01 = wins.mean(axis=1), wins.mean(axis=0)
    return V10.var(ddof=1) / len(positive) + V01.var(ddof=1) / len(negative)


def top_k_by_enumeration(scores, labels, k, figure):
    """Average figure(labels of the first k) over every order that sorts one request's scores."""
    orders = [
        order
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    return np.mean([figure([labels[i] for i in order[:k]]) for order in orders])


def posterior_by_importance(o, mu, covariance, noise, hidden, effect, draws=900_000, seed=0):
    """E[σ(z + h) | o] and its standard error: prior draws of every hidden class, weighed.

    In class k, z ~ N(μ + chance_k, Σ) and o = z + score_k + N(0, noise_k² N).
    """
    rng = np.random.default_rng(seed)
    root, precision = np.linalg.cholesky(covariance), np.linalg.inv(noise)
    weights, chances, draws = [], [], draws // (1 + len(hidden.shares))
    classes = zip(hidden.shares, hidden.chance, hidden.score, hidden.noise, strict=True)
    for share, chance, score, factor in classes:
        z = mu + chance + rng.standard_normal((draws, len(mu))) @ root.T
        e = (o - z - score) / factor
        density = np.exp(-0.5 * np.einsum("ij,jk,ik->i", e, precision, e)) / factor ** len(mu)
        weights.append(share * density)
        chances.append(1 / (1 + np.exp(-(z + effect))))
    w, p = np.concatenate(weights), np.concatenate(chances)
    w /= w.sum()
    mean = w @ p
    return mean, np.sqrt(w**2 @ (p - mean) ** 2)


def soft_rank_by_minmax(z, kl=False):
    """Project ascending z: v_i = max over starts ≤ i, min over ends ≥ i, of the block value."""
    n = len(z)
    rho = np.arange(1.0, n + 1)

    def value(j, k):
        if kl:
            return np.logaddexp.reduce(z[j : k + 1]) - np.log(rho[j : k + 1].sum())
        return (z[j : k + 1] - rho[j : k + 1]).mean()

    v = [max(min(value(j, k) for k in range(i, n)) for j in range(i + 1)) for i in range(n)]
    return np.exp(z - v) if kl else z - v


def bootstrap_log_ratios(count, sums, treated, replicates, seed=0):
    """Return log(μ_t/μ_c) of one outcome for users drawn again with replacement in each arm."""
    rng = np.random.default_rng(seed)
    ratios = []
    for _ in range(replicates):
        means = []
        for arm in (True, False):
            users = np.flatnonzero(treated == arm)
            drawn = rng.choice(users, len(users))
            means.append(sums[drawn].sum() / count[drawn].sum())
        ratios.append(np.log(means[0] / means[1]))
    return np.array(ratios)


def join_by_hand(events, every, lateness, waits):
    """Join exposures and feedback one by one; return what is given out, and what is set aside.

    Events are (number, kind, key, time, objective); kind None is malformed. Given out are
    (interval, None, numbers) when one is complete, and with labels by number when it is closed.
    """
    longest, newest, shown, held, given, aside = max(waits.values()), None, {}, [], [], []

    def has_closed(time, watermark):
        return watermark is not None and (time // every + 1) * every + longest <= watermark

    def judge(exposure, number, time, what, before):
        end = exposure["time"] + waits[what]
        if not exposure["time"] <= time <= end or (before is not None and before >= end):
            aside.append((number, "late"))
        elif what in exposure["labels"]:
            aside.append((number, "duplicate"))
        else:
            exposure["labels"].add(what)

    for number, kind, key, time, what in events:
        before = None if newest is None else newest - lateness
        if kind is None:
            aside.append((number, "malformed"))
            continue
        if kind == "exposure" and has_closed(time, before):
            aside.append((number, "late"))
        elif kind == "exposure" and key in shown:
            aside.append((number, "duplicate"))
        elif kind == "exposure":
            shown[key] = {"number": number, "time": time, "labels": set()}
            for one in [one for one in held if one[1] == key]:
                judge(shown[key], one[0], *one[2:])
            held = [one for one in held if one[1] != key]
        elif key in shown:
            judge(shown[key], number, time, what, before)
        elif has_closed(time, before):
            aside.append((number, "late"))
        else:
            held.append((number, key, time, what, before))
        newest = time if newest is None else max(newest, time)
        for moment in range(-1 if before is None else before, newest - lateness):
            for interval in sorted({one["time"] // every for one in shown.values()}):
                if (interval + 1) * every == moment + 1:
                    rows = [one for one in shown.values() if one["time"] // every == interval]
                    given.append((interval, None, [one["number"] for one in rows]))
            interval = (moment + 1 - longest) // every - 1
            if (moment + 1 - longest) % every:
                continue
            rows = {key: one for key, one in shown.items() if one["time"] // every == interval}
            if rows:
                labels = {one["number"]: one["labels"] for one in rows.values()}
                given.append((interval, labels, list(labels)))
            shown = {key: one for key, one in shown.items() if key not in rows}
            aside += [(one[0], "unmatched") for one in held if one[2] // every == interval]
            held = [one for one in held if one[2] // every != interval]
    return given, aside


def em_examination(group, place, answered, rounds):
    """EM of the position-based model: relevance of each group, examination of each place.

    Feedback needs both; the first place has 1 in the end.
    """
    theta, rho = np.full(place.max() + 1, 0.5), np.full(group.max() + 1, 0.5)
    for _ in range(rounds):
        both = theta[place] * rho[group]
        seen = np.where(answered, 1, theta[place] * (1 - rho[group]) / (1 - both))
        wanted = np.where(answered, 1, rho[group] * (1 - theta[place]) / (1 - both))
        theta = np.bincount(place, seen) / np.bincount(place)
        rho = np.bincount(group, wanted) / np.bincount(group)
    return theta / theta[0], rho * theta[0]
