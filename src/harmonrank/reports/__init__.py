"""Results that people read.

Pages of other packages are made of its rooms: `facts` · `plots` and `figures` · `sections` ·
`html` · `pictures` · `tables`.
"""

from harmonrank.reports.facts import Facts, MethodFacts, Run, collect, run_of
from harmonrank.reports.pictures import write_pictures
from harmonrank.reports.sections import html_page, write_html

__all__ = [
    "Facts",
    "MethodFacts",
    "Run",
    "collect",
    "html_page",
    "run_of",
    "write_html",
    "write_pictures",
]
