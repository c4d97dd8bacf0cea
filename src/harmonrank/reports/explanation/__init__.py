"""Why a model ranks as it does, for people."""

from harmonrank.reports.explanation._explain import Explanation, explain
from harmonrank.reports.explanation._model import ModelExplanation, explain_model
from harmonrank.reports.explanation._page import explanation_page
from harmonrank.reports.explanation._row import Counterfactual, RowExplanation, explain_row
from harmonrank.reports.explanation._text import (
    context_pull_table,
    pull_table,
    row_table,
)

__all__ = [
    "Counterfactual",
    "Explanation",
    "ModelExplanation",
    "RowExplanation",
    "context_pull_table",
    "explain",
    "explain_model",
    "explain_row",
    "explanation_page",
    "pull_table",
    "row_table",
]
