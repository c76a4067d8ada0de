"""Open tables: names of our own imported at first use, names of others registered or found through entry points."""

import sys
from pathlib import Path

import pytest

from poise import registry
from poise.errors import InvalidValueError, UnknownNameError
from poise.formats import FORMATS, Format, extensions, register_format
from poise.registry import Registry

TABLES = (
    'from poise.errors import PoiseError\nimport plugin_table\nplugin_table.TABLE.register("{name}", 7)\n'
)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a plugin is installed that adds to `plugin_table.TABLE`, as pip would leave it."""
    info = tmp_path / "plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[poise.plugins]\nmine = plugin_of_mine\n")
    (tmp_path / "plugin_table.py").write_text(
        'from poise.registry import Registry\nTABLE = Registry("number", {"pi": "math:pi"})\n'
    )
    (tmp_path / "plugin_of_mine.py").write_text(TABLES.format(name="seven"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_loaded", [])
    for module in ("plugin_table", "plugin_of_mine"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


def table() -> Registry[float]:
    from plugin_table import TABLE  # type: ignore[import-not-found]

    return TABLE  # type: ignore[no-any-return]


@pytest.mark.usefixtures("plugin")
def test_entries_of_our_own_are_imported_at_first_use_and_load_no_plugin() -> None:
    assert table().named("pi") == pytest.approx(3.14159, abs=1e-4)
    assert table().first(lambda number: number > 3) == table()["pi"]
    assert "plugin_of_mine" not in sys.modules


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    "ask", [lambda t: t.named("seven"), lambda t: "seven" in t, lambda t: len(list(t)) == 2]
)
def test_plugins_are_loaded_when_a_name_is_unknown_or_names_are_listed(ask) -> None:  # type: ignore[no-untyped-def]
    assert ask(table())
    assert table().first(lambda number: number == 7) == 7


def test_a_plugin_that_fails_is_left_out_with_a_warning(plugin: Path) -> None:
    (plugin / "plugin_of_mine.py").write_text("import nothing_of_this_name\n")
    with pytest.warns(UserWarning, match=r"plugin_of_mine was skipped: .*nothing_of_this_name"):
        assert list(table()) == ["pi"]
    with pytest.raises(UnknownNameError, match="no number 'seven'; valid: pi"):
        table().named("seven")


def test_names_are_taken_once() -> None:
    numbers: Registry[int] = Registry("number", {"one": 1})
    numbers.register("two", 2)
    numbers.register("two", 2)
    with pytest.raises(InvalidValueError, match="the number 'two' already exists"):
        numbers.register("two", 3)
    with pytest.raises(InvalidValueError, match="needs a name"):
        numbers.register("", 3)
    with pytest.raises(UnknownNameError, match="did you mean two"):
        numbers.named("too")


@pytest.mark.parametrize(
    ("format", "message"),
    [
        (Format("mine", ("mine",)), r"lower case with a dot, like \.bvh"),
        (Format("mine", (".MINE",)), "lower case"),
        (Format("mine", (".glb",)), r"\.glb already belongs to gltf files"),
        (Format("bvh", (".bvh",)), "the file format 'bvh' already exists"),
    ],
)
def test_a_format_keeps_off_the_names_and_extensions_of_others(format: Format, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        register_format(format)
    assert FORMATS["bvh"].function("write") is not None


def test_extensions_are_told_apart_by_what_files_hold() -> None:
    assert extensions(markers=True) == (".c3d", ".trc")
    assert {*extensions(markers=False)} & {*extensions(markers=True)} == set()
    assert {*extensions()} > {".bvh", ".c3d"}
