"""A service at half load for an hour: no error, no growth. Run once, on purpose."""

import os
import time
from pathlib import Path

import pytest
from service import rank_body, serving

MINUTES = float(os.environ.get("HARMONRANK_SOAK_MINUTES", "2"))
RATE = 100


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.slow
def test_memory_stays_flat_and_nothing_fails(default_model, tmp_path, table):
    """`HARMONRANK_SOAK_MINUTES=60` makes it the hour; two minutes are the default."""
    default_model.save(tmp_path / "m")
    with serving(tmp_path / "m") as service:
        connection, body = service.connect(), rank_body(table, rows=600, k=10)
        started = [e for e in service.events if e["event"] == "worker started"]
        worker, seen, asked = started[0]["process"], [], 0
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < 60 * MINUTES:
            assert service.ask("POST", "/v1/rank", body, connection=connection)[0] == 200
            asked += 1
            if asked % 200 == 0:
                seen.append(resident(worker))
            time.sleep(max(0.0, asked / RATE - passed))
        connection.close()
        quarter = max(len(seen) // 4, 1)
        assert sum(seen[-quarter:]) / quarter < sum(seen[quarter : 2 * quarter]) / quarter + 20
        assert [e for e in service.events if e["level"] != "info"] == []
