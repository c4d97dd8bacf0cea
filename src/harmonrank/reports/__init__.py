"""Results that people read.

Pages of other packages are made of `Section` and `Card`, and of the rooms `plots` and `figures`.
"""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.reports.facts import Facts, MethodFacts, Run, collect, run_of
    from harmonrank.reports.html import DOCTYPE, Card, page, write_page
    from harmonrank.reports.pictures import write_page_pictures, write_pictures
    from harmonrank.reports.sections import Section, html_page, write_html
    from harmonrank.reports.tables import prediction_table
    from harmonrank.reports.written import check_report

__all__ = ["DOCTYPE", "Card", "Facts", "MethodFacts", "Run", "Section", "check_report", "collect"]
__all__ += ["html_page", "page", "prediction_table", "run_of", "write_html", "write_page"]
__all__ += ["write_page_pictures", "write_pictures"]

__getattr__ = lazy_names(__name__)
