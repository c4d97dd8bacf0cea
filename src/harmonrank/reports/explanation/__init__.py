"""Why a model ranks as it does, for people."""

from harmonrank.reports.explanation._explain import Explanation, explain

__all__ = ["Explanation", "explain"]
