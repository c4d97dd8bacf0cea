"""Real logs as a benchmark: upstream scores by time, and all methods judged by users kept whole."""

from harmonrank_lab.real._judge import judged, within_requests
from harmonrank_lab.real._log import LOGS, RealLog, real_log
from harmonrank_lab.real._run import RESULT, choose_logs, run_real
from harmonrank_lab.real._table import differences_table, tally_table
from harmonrank_lab.real._upstream import LEAST_POSITIVES, Prepared, prepare

__all__ = [
    "LEAST_POSITIVES",
    "LOGS",
    "RESULT",
    "Prepared",
    "RealLog",
    "choose_logs",
    "differences_table",
    "judged",
    "prepare",
    "real_log",
    "run_real",
    "tally_table",
    "within_requests",
]
