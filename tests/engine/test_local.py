import subprocess
import sys

import pytest

from harmonrank.engine import LocalEngine, in_order, open_engine
from harmonrank.support import UsageError


def test_the_local_engine_is_this_process():
    with open_engine() as engine:
        assert isinstance(engine, LocalEngine)
        assert list(in_order(engine, pow, [2, 3], 3)) == [8, 27]
        assert engine.get(engine.keep(dict, {"a": 1}).call(dict.get, "a")) == 1


def test_workers_and_an_address_are_of_ray(run, folder):
    with pytest.raises(UsageError, match="Only Ray has workers and an address; add --engine ray"):
        next(open_engine(workers=2).gen)
    done = run("score", "m", folder / "test.parquet", "-o", folder / "x", "--workers", 2)
    assert done.code == 2
    assert "--workers, --address and --engine-log are about Ray; add --engine ray." in done.err


def test_an_engine_that_is_none_is_refused():
    with pytest.raises(UsageError, match="`engine` must be 'local' or 'ray'. Got 'spark'"):
        next(open_engine("spark").gen)


def test_ray_is_imported_for_the_engine_alone():
    code = "import sys, harmonrank.cli.main, harmonrank.engine"
    code += "; import harmonrank.fusion.scoring"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print('ray' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"


def test_without_the_extra_it_is_one_sentence(monkeypatch):
    import harmonrank.support.extras as extras
    from harmonrank.support import DependencyError

    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(
        DependencyError, match=r"^--engine ray needs the package 'ray'; install it with `pip"
    ):
        next(open_engine("ray").gen)
