import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

import harmonrank as hr

HEAVY = ("torch", "numba", "polars", "numpy", "pandas", "pyarrow", "safetensors", "scipy")
PUBLIC = [
    *("ClosedForm", "Comparison", "Cut", "HarmonRank", "HarmonRankError"),
    *("HarmonRankPaper", "Network", "NetworkConfig", "Schema", "__version__", "align", "auc"),
    *("compare", "evaluate", "explain", "frontier", "guess_schema", "load", "offline", "rank"),
    *("rank_auc_loss", "soft_rank", "split", "world", "write_figures", "write_report"),
]


ROOT = Path(__file__).parents[2]


def loaded_by(code):
    """Return which heavy packages a fresh process has loaded after running some code."""
    tell = f"import sys; print(*[name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\n{tell}"], capture_output=True, text=True, check=True
    )
    return result.stdout.splitlines()[-1].split() if result.stdout.strip() else []


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import harmonrank; harmonrank.__version__; dir(harmonrank)") == []


@pytest.mark.parametrize("line", ["--help", "--version", "fit --help", "lab pipeline -h", "--hepl"])
def test_help_loads_nothing_heavy(line):
    code = f"""
import sys
sys.argv = ["harmonrank", *{line.split()!r}]
from harmonrank.cli import main
try:
    main()
except SystemExit:
    pass
"""
    assert loaded_by(code) == []


def test_every_public_name_is_there_and_is_what_it_is_called():
    assert hr.__all__ == dir(hr) == PUBLIC
    for name in PUBLIC:
        value = getattr(hr, name)
        assert getattr(value, "__name__", name) == name
    # What a type checker imports is what a running program does when a name is used.
    imported = set()
    for node in ast.walk(ast.parse(Path(hr.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("harmonrank."):
            imported |= {alias.name for alias in node.names}
    assert imported - {"lazy_names"} == {*PUBLIC} - {"__version__"}


def test_one_class_name_is_one_class():
    files_of = defaultdict(list)
    root = Path(hr.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files_of[node.name].append(path.relative_to(root).as_posix())
    assert {name: files for name, files in files_of.items() if len(files) > 1} == {}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'harmonrank' has no attribute 'harmony'"):
        hr.harmony  # noqa: B018


def test_every_error_is_ours_and_a_builtin():
    from harmonrank.support import errors

    kinds = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
    for kind in kinds:
        assert issubclass(kind, hr.HarmonRankError)
        builtins = [base for base in kind.__mro__ if base.__module__ == "builtins"]
        assert kind is hr.HarmonRankError or builtins[0] is not Exception


def test_python_m_runs_the_command_line():
    command = [sys.executable, "-m", "harmonrank", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"harmonrank, version {hr.__version__}"


def test_types_are_published():
    assert (Path(hr.__file__).parent / "py.typed").exists()


def test_the_oldest_versions_that_are_tested_are_the_bounds_that_are_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [part for name, part in project["optional-dependencies"].items() if name != "dev"]
    wanted = [line for part in (project["dependencies"], *extras) for line in part]
    bounds = dict(re.findall(r"^([\w-]+)(?:\[.*\])?>=([\d.]+)", "\n".join(wanted), re.MULTILINE))
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    # Its oldest releases bring gigabytes of CUDA, so the one of constraints.txt is tested.
    assert tested.pop("torch") in (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert bounds.pop("torch")
    assert {name: re.sub(r"(\.0)+$", "", version) for name, version in tested.items()} == {
        name: re.sub(r"(\.0)+$", "", version) for name, version in bounds.items()
    }


def test_a_kernel_has_a_dozen_arguments_at_most():
    kinds = ("kernel", "simd_function")
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                decorators = [getattr(name, "id", "") for name in node.decorator_list]
                if any(name.endswith(kinds) for name in decorators):
                    assert len(node.args.args) <= 12, f"{path.name}: {node.name}"


MOST_DEEP_MODULES = 154


def imported_by(path):
    """Yield the modules of the product that a file of tests imports from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in names if name and name.startswith("harmonrank."))


def test_tests_go_through_the_names_of_rooms():
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "lab" / "tests").rglob("*.py")]
    deep = {name for path in files for name in imported_by(path) if name.count(".") > 1}
    assert len(deep) <= MOST_DEEP_MODULES, "import from the room, where it offers the name"
