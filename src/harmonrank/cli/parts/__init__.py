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
        format_setting,
        gathered,
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
    from harmonrank.cli.parts.verb import Verb, setting

__all__ = ["F", "Pages", "Show", "Tables", "Verb", "can_draw", "count_option", "figures_option"]
__all__ += ["format_option", "format_setting", "gathered", "kind_parts", "numbers", "output"]
__all__ += ["parse_names", "parse_pairs", "parse_settings", "path_option", "report_option"]
__all__ += [
    "seed_option",
    "seeds",
    "setting",
    "settings_option",
    "shown",
    "table_argument",
    "whole",
]

__getattr__ = lazy_names(__name__)
