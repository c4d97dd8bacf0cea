"""The main table: AUC-sum of three and of five objectives by each way to fuse."""

__all__ = ["Main"]

from harmonrank_lab.paper_tables._data import StudyCell
from harmonrank_lab.paper_tables._fit import FitCell
from harmonrank_lab.paper_tables._study import (
    NAMES,
    PUBLISHED_METHOD,
    Experiment,
    Results,
    Study,
    minus,
)
from harmonrank_lab.paper_tables._table import FIGURES, PaperTable, Row, Verdict

_RIVALS = ("mbce", "label-aggregation", "reinforce")
_METHODS = (*_RIVALS, PUBLISHED_METHOD, "harmonrank")


def _fits(study: Study) -> dict[tuple[str, ...], dict[str, list[FitCell]]]:
    sets = [names for names in (study.data.three, study.data.objectives) if names is not None]
    return {
        names: {method: study.fits(method, objectives=names) for method in _METHODS}
        for names in sets
    }


class Main(Experiment):
    """Every method on three and on all objectives."""

    key = "main"
    worlds = ("elive", "qkvideo")

    def cells(self, study: Study) -> list[StudyCell]:
        """Return every method on both sets of objectives."""
        return [cell for fits in _fits(study).values() for each in fits.values() for cell in each]

    def table(self, study: Study, results: Results) -> PaperTable:
        """Return the table of one data set."""
        rows: list[Row] = []
        verdicts: list[Verdict] = []
        for names, fits in _fits(study).items():
            group = f"{len(names)} objectives"
            paper = FIGURES["main"].get(f"{study.data.paper}-{len(names)}", {})
            published, ours = fits[PUBLISHED_METHOD], fits["harmonrank"]
            rows += [results.row(group, NAMES[m], paper.get(m), fits[m]) for m in _METHODS]
            rows += results.ceiling(group, ours)
            for rival in _RIVALS:
                gap = minus(paper.get(PUBLISHED_METHOD), paper.get(rival))
                claim = f"HarmonRank beats {NAMES[rival]}, {group}"
                verdicts.append(results.verdict(claim, published, fits[rival], paper=gap))
            claim = f"our default harmonrank beats the paper's HarmonRank, {group}"
            verdicts.append(results.verdict(claim, ours, published, source="ours"))
        sets = (study.data.three, study.data.objectives)
        notes = [f"{len(names)} objectives: {', '.join(names)}." for names in sets if names]
        whole = _fits(study)[study.data.objectives]
        done = {NAMES[m]: cells for m, cells in whole.items() if not results.error(cells)}
        areas = {name: results.areas(cells) for name, cells in done.items()}
        training = {name: results[cells[0]].get("history", ()) for name, cells in done.items()}
        training = {name: epochs for name, epochs in training.items() if epochs}
        title = "AUC-sum by way to fuse"
        return study.table(self.key, title, rows, verdicts, notes, areas=areas, training=training)
