"""Errors say what is wrong and where, and a missing extra names its pip install command."""

import pickle
import sys
import types
from pathlib import Path

import pytest

from awatt.errors import AwattError, DataError, MissingExtraError, plural, require


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        (None, None, "a.csv: no."),
        (7, None, "a.csv, line 7: no."),
        (7, "text", "a.csv, line 7, column 'text': no."),
        (None, "text", "a.csv, column 'text': no."),
    ],
)
def test_an_error_in_a_file_begins_with_its_place(line: int | None, column: str | None, message: str) -> None:
    error = DataError("no.", Path("a.csv"), line, column)
    assert str(error) == message
    assert (error.file, error.line, error.column) == ("a.csv", line, column)
    assert isinstance(error, AwattError)


def test_an_error_comes_from_another_process_as_it_is() -> None:
    given = DataError("bad", "f.csv", 3, "text")
    found = pickle.loads(pickle.dumps(given))
    assert (str(found), found.file, found.line, found.column) == (str(given), "f.csv", 3, "text")


def test_an_installed_module_is_returned() -> None:
    assert require("json.decoder", "train") is sys.modules["json.decoder"]


@pytest.mark.parametrize(
    ("module", "extra", "package"),
    [("torch", "train", "torch"), ("torch.nn", "train", "torch"), ("transformers", "transformers", "transformers")],
)
def test_a_missing_extra_names_its_pip_install(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError) as caught:
        require(module, extra)
    sentence = f"this needs the package '{package}', which is not installed. Run: pip install 'awatt[{extra}]'"
    assert str(caught.value) == sentence
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, AwattError)


def test_a_module_that_does_not_exist_names_its_pip_install() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'awatt\[serve\]'"):
        require("no_such_package_of_ours", "serve")


def test_a_present_package_with_a_missing_dependency_is_not_called_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "half_installed.py").write_text("import its_own_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="its_own_dependency") as caught:
        require("half_installed", "train")
    assert not isinstance(caught.value, MissingExtraError)


def test_a_package_that_fails_on_import_keeps_its_own_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text("raise OSError('libcuda.so is missing')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OSError, match="libcuda"):
        require("faulty", "train")


def test_require_returns_a_module() -> None:
    assert isinstance(require("math", "train"), types.ModuleType)


def test_a_count_has_the_right_plural() -> None:
    assert [plural(count, "row") for count in (0, 1, 2, 1200)] == ["0 rows", "1 row", "2 rows", "1,200 rows"]
    assert [plural(count, "query", "queries") for count in (1, 2)] == ["1 query", "2 queries"]
