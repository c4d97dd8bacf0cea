"""The main table: AUC-sum of three and of five objectives by each way to fuse."""

__all__ = ["Main"]

from harmonrank_lab.paper_tables._data import StudyCell
from harmonrank_lab.paper_tables._fit import FitCell
from harmonrank_lab.paper_tables._study import NAMES, Experiment, Results, Study, minus
from harmonrank_lab.paper_tables._table import MAIN, PaperTable, Row, Verdict, verdict

_METHODS = ("mbce", "label-aggregation", "reinforce", "harmonrank-paper", "harmonrank")
_RIVALS = _METHODS[:3]


def _fits(study: Study) -> dict[tuple[str, ...], dict[str, list[FitCell]]]:
    sets = [names for names in (study.data.three, study.data.objectives) if names is not None]
    return {
        names: {method: study.fits(method, objectives=names) for method in _METHODS}
        for names in sets
    }


def _verdicts(
    group: str, paper: dict[str, float], fits: dict[str, list[FitCell]], results: Results
) -> list[Verdict]:
    published = results.sums(fits["harmonrank-paper"])
    verdicts = [
        verdict(
            f"HarmonRank beats {NAMES[rival]}, {group}",
            minus(published, results.sums(fits[rival])),
            paper=paper["harmonrank-paper"] - paper[rival] if paper else None,
        )
        for rival in _RIVALS
    ]
    ours = minus(results.sums(fits["harmonrank"]), published)
    claim = f"our default harmonrank beats the paper's HarmonRank, {group}"
    return [*verdicts, verdict(claim, ours, source="ours")]


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
            paper = MAIN.get((study.data.paper or "", len(names)), {})
            rows += [results.row(group, NAMES[m], paper.get(m), fits[m]) for m in _METHODS]
            rows += results.ceiling(group, fits["harmonrank"])
            verdicts += _verdicts(group, paper, fits, results)
        three = study.data.three
        notes = [f"3 objectives: {', '.join(three)}."] if three else []
        notes.append(
            f"{len(study.data.objectives)} objectives: {', '.join(study.data.objectives)}."
        )
        whole = _fits(study)[study.data.objectives]
        done = {NAMES[m]: cells for m, cells in whole.items() if not results.error(cells)}
        areas = {name: results.areas(cells) for name, cells in done.items()}
        training = {name: results[cells[0]].get("history", ()) for name, cells in done.items()}
        return study.table(
            self.key,
            "AUC-sum by way to fuse",
            rows,
            verdicts,
            notes,
            areas=areas,
            training={name: epochs for name, epochs in training.items() if epochs},
        )
