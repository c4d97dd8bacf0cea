"""A replaced upstream model: an alarm or a recalibrated version, never a silent change."""

import time

import numpy as np
import polars as pl
import pytest
from service import application, ask, rank_body, serving

import harmonrank as hr
from harmonrank.registry import Guardrails, Registry
from harmonrank.serving import Candidates
from harmonrank.serving.drift import DriftWatch
from harmonrank.support import OutputError
from logs import small_table


def moved(table):
    logit = (pl.col("p_buy") / (1 - pl.col("p_buy"))).log()
    return table.with_columns(p_buy=1 / (1 + (-(1.6 * logit + 1)).exp()))


@pytest.fixture(scope="module")
def correlated():
    """Return rows whose scores are correlated, so that other rows would move both."""
    rng = np.random.default_rng(0)
    rows = 40_000
    common = rng.normal(size=(rows, 1))
    p = 1 / (1 + np.exp(1 - 0.9 * common - 0.4 * rng.normal(size=(rows, 2))))
    labels = (rng.random(p.shape) < p).astype(np.uint8)
    base = small_table(rows).select("request_id", "hour", "age")
    return base.with_columns(
        p_buy=p[:, 0], p_like=p[:, 1], buy=pl.Series(labels[:, 0]), like=pl.Series(labels[:, 1])
    )


def watched(tmp_path, correlated, mode):
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"}, ["hour", "age"], "request_id")
    model = hr.ClosedForm().fit(correlated, schema)
    registry = Registry.create(tmp_path / "registry", Guardrails())
    assert registry.publish(model, correlated).refused is None
    settings = {"sample_rows": 25_000, "recalibrate": mode}
    app = application(registry.path, tmp_path / "state", **settings)
    watch = DriftWatch(
        app._service.config, tmp_path / "state", app.sample, lambda *e: app.events.append(e)
    )

    def feed(frame):
        for part in frame.iter_slices(30):
            own = {name: part[name] for name in ("hour", "age")}
            app.sample.add(0, Candidates(part.select("p_buy", "p_like").to_numpy(), {}, own))

    return app, watch, registry, feed


def test_a_replaced_upstream_model_raises_an_alarm_with_one_command(tmp_path, correlated, run):
    app, watch, registry, feed = watched(tmp_path, correlated, "ask")
    assert watch.look() is None
    feed(correlated)
    assert watch.look().replaced == ()
    feed(moved(correlated))
    assert watch.look().replaced == ("p_buy",)
    ((event, facts),) = app.events
    assert event == "upstream replaced"
    assert facts["scores"] == ["p_buy"]
    feed(moved(correlated.head(3000)))
    watch.look()
    assert len(app.events) == 1, "an alarm is raised once"
    assert registry.current() == 1, "nothing changes by itself"
    assert "upstream_replaced 1" in ask(app, "GET", "/metrics")[1].decode()
    done = run(*facts["command"].split()[1:])
    assert done.code == 0, done
    assert registry.current() == 2
    assert registry.version().recalibrated
    feed(moved(correlated.head(3000)))
    assert watch.look().replaced == ()


def test_an_alarm_whose_sample_found_no_room_is_raised_at_the_next_look(
    tmp_path, correlated, monkeypatch
):
    app, watch, _, feed = watched(tmp_path, correlated, "ask")

    def full(*_):
        raise pl.exceptions.ComputeError("No space left on device (os error 28)")

    feed(moved(correlated))
    with monkeypatch.context() as patch:
        patch.setattr(pl.DataFrame, "write_parquet", full)
        with pytest.raises(OutputError, match=r"sample.parquet' cannot be written: No space left"):
            watch.look()
    assert not app.events
    assert not watch.alarmed
    feed(moved(correlated.head(3000)))
    watch.look()
    assert [event for event, _ in app.events] == ["upstream replaced"]
    assert watch.alarmed


def test_auto_publishes_a_recalibrated_version_through_the_guardrails(tmp_path, correlated):
    app, watch, registry, feed = watched(tmp_path, correlated, "auto")
    feed(moved(correlated))
    watch.look()
    assert [event for event, _ in app.events] == ["upstream replaced", "recalibrated"]
    assert registry.version().recalibrated
    strict = Guardrails(require_labels=True)
    Registry.create(registry.path, strict, overwrite=True)
    feed(correlated)
    watch.look()
    assert [event for event, _ in app.events][2:] == ["upstream replaced", "recalibration refused"]
    assert registry.current() == 2


def test_off_keeps_no_sample_and_still_ranks(default_model, tmp_path, table):
    default_model.save(tmp_path / "m")
    app = application(tmp_path / "m", tmp_path / "s", recalibrate="off")
    assert ask(app, "POST", "/v1/rank", rank_body(table))[0] == 200
    assert app.sample is None
    assert not [path for path in (tmp_path / "s").iterdir() if "sample" in path.name]


def send(service, frame, rows=32):
    """Let a service score a table, a few rows at a time, so that it keeps all of them."""
    connection, versions = service.connect(), []
    for part in frame.iter_slices(rows):
        body = rank_body(part, rows=rows)
        status, answer = service.ask("POST", "/v1/rank", body, connection=connection)
        assert status == 200
        versions.append(answer["version"])
    connection.close()
    return versions


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "version"), [("auto", "2"), ("ask", "1"), ("off", "1")])
def test_a_running_service_acts_on_a_replaced_model_as_it_was_told(
    tmp_path, correlated, mode, version
):
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"}, ["hour", "age"], "request_id")
    registry = Registry.create(tmp_path / "registry", Guardrails())
    registry.publish(hr.ClosedForm().fit(correlated, schema), correlated)
    wanted = {"auto": "recalibrated", "ask": "upstream replaced"}.get(mode)
    with serving(registry.path, "--recalibrate", mode) as service:
        assert set(send(service, moved(correlated.head(25_000)))) == {"1"}
        end = time.monotonic() + 120
        while wanted and not any(e["event"] == wanted for e in service.events):
            assert time.monotonic() < end, service.lines
            time.sleep(0.1)
        while send(service, moved(correlated.head(32))) != [version]:
            assert time.monotonic() < end, "the recalibrated version is not served"
        metrics = service.ask("GET", "/metrics")[1].decode()
    assert str(registry.current()) == version
    assert ('harmonrank_drift_offset{score="p_buy"}' in metrics) == (mode != "off")
    kept = [version.recalibrated for version in registry.versions()]
    assert kept == ([False, True] if mode == "auto" else [False])
