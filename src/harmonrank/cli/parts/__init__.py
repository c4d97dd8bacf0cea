"""Options that verbs share, and how results are shown."""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.cli.parts.column_options import kind_parts
    from harmonrank.cli.parts.options import (
        F,
        count_option,
        figures_option,
        format_option,
        numbers,
        output,
        parse_names,
        parse_pairs,
        parse_settings,
        path_option,
        report_option,
        seed_option,
        seeds,
        settings_option,
        shown,
        whole,
    )
    from harmonrank.cli.parts.pages import Pages, can_draw
    from harmonrank.cli.parts.show import Show
    from harmonrank.cli.parts.table_options import Tables, table_argument

__all__ = [
    "F",
    "Pages",
    "Show",
    "Tables",
    "can_draw",
    "count_option",
    "figures_option",
    "format_option",
    "kind_parts",
    "numbers",
    "output",
    "parse_names",
    "parse_pairs",
    "parse_settings",
    "path_option",
    "report_option",
    "seed_option",
    "seeds",
    "settings_option",
    "shown",
    "table_argument",
    "whole",
]

_PLACES = {
    "F": "options",
    "Pages": "pages",
    "Show": "show",
    "Tables": "table_options",
    "can_draw": "pages",
    "count_option": "options",
    "figures_option": "options",
    "format_option": "options",
    "kind_parts": "column_options",
    "numbers": "options",
    "output": "options",
    "parse_names": "options",
    "parse_pairs": "options",
    "parse_settings": "options",
    "path_option": "options",
    "report_option": "options",
    "seed_option": "options",
    "seeds": "options",
    "settings_option": "options",
    "shown": "options",
    "table_argument": "table_options",
    "whole": "options",
}

__getattr__ = lazy_names(__name__, _PLACES)
