"""What the name of a column tells: its words, and the event that it is about."""

__all__ = ["SCORE_WORDS", "alias", "events", "words"]

import re

# Words that say what kind of column it is, not what it is about.
SCORE_WORDS = frozenset(
    ("p", "s", "pred", "predicted", "prediction", "prob", "probability", "proba", "score", "model")
) | {"logit", "pct", "percent", "percentage", "est", "estimate", "hat", "raw", "upstream"}
_LABEL_WORDS = frozenset(["is", "has", "did", "y", "label", "target", "flag", "true", "truth"])
_ALIASES = {
    "ctr": "click",
    "cvr": "buy",
    "conversion": "buy",
    "convert": "buy",
    "purchase": "buy",
    "order": "buy",
    "pay": "buy",
    "ltr": "like",
    "wtr": "follow",
    "cmtr": "comment",
    "ftr": "forward",
    "lvtr": "longview",
    "vtr": "view",
}
_ENDINGS = ("ing", "ed", "es", "s", "e")


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name.

    >>> words("pLongView"), words("is_click"), words("like_score2")
    (('p', 'long', 'view'), ('is', 'click'), ('like', 'score', '2'))
    """
    return tuple(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name))


def events(name: str) -> list[str]:
    """Return what a column may be about, the likeliest first.

    >>> events("p_like"), events("is_liked"), events("pctr")
    (['lik'], ['lik'], ['pctr', 'ctr'])
    """
    all_words = words(name)
    told = [w for w in all_words if w not in SCORE_WORDS | _LABEL_WORDS] or list(all_words)
    found = _stem("".join(told))
    # A prefix may be written together with the word, as in pctr.
    glued = found[0] == "p" and len(found) > 3 if found else False
    return [found, found[1:]] if glued else [found]


def alias(event: str) -> str:
    """Return the common name of an event, such as click for ctr."""
    return _STEMMED.get(event, event)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


_STEMMED = {_stem(word): _stem(common) for word, common in _ALIASES.items()}
