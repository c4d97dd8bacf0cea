from dataclasses import replace

from harmonrank.evaluation import Entry


def rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]


def test_every_method_is_a_row_of_as_many_cells_as_the_head(board):
    lines = rows(board[0].to_table().to_markdown())
    assert len({line.count("|") for line in lines}) == 1
    assert len(lines) == 2 + 1 + 3 + 1
    assert lines[-1].startswith("| own score |  |")
    assert lines[2].startswith("| ceiling |")
    best = board[0].entries[0]
    assert lines[3].startswith(f"| {best.name} | {best.quality.exact_auc_sum:.4f} |")


def test_without_a_ceiling_the_distance_to_the_first_is_shown(board):
    entries = tuple(
        replace(e, quality=replace(e.quality, exact_auc=None, exact_auc_sum=None, ceiling=None))
        for e in board[0].entries
    )
    text = replace(board[0], ceiling=None, entries=entries).to_table().to_markdown()
    assert "| behind |" in text
    assert "regret" not in text
    assert f"| {entries[1].behind.estimate:.4f} |" in text


def test_a_failed_method_says_why_in_one_line(board):
    failed = Entry("aucm", 0.1, error="a | b\nc")
    text = replace(board[0], entries=(*board[0].entries, failed)).to_table().to_markdown()
    assert "**aucm: a \\| b c**" in text
    assert "| **aucm** | **failed** |" in text


def test_a_quality_is_a_row_per_objective_and_their_sum(board):
    quality = board[0].entries[0].quality
    text = quality.to_table().to_markdown()
    assert len(rows(text)) == 2 + 5 + 1
    assert f"**{quality.auc_sum.estimate:.4f}**" in text
    assert f"regret {quality.regret:.4f}" in text
