"""The plugin's folder for Hermes Agent: installing and removing it, its status, and the errors without Hermes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from compaction.cli.app import app
from compaction.errors import ConfigurationError, UnwritableFile
from compaction.integrations.hermes.installer import HermesStatus, hermes_status, install_plugin, uninstall_plugin
from compaction.integrations.hermes.plugin import engine_class, register

ACTIVE = "plugins: {enabled: [other, compaction]}\ncontext: {engine: compaction}\n"


def run(*arguments: str | Path) -> Result:
    """Return the result of a command, run in this process."""
    return CliRunner().invoke(app, ["hermes", *(str(argument) for argument in arguments)])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_install_and_uninstall(home: Path) -> None:
    """``install`` and ``uninstall`` write and remove the whole folder, and can be repeated."""
    for _ in range(2):
        assert run("install").exit_code == 0
    folder = home / "plugins" / "compaction"
    assert sorted(file.name for file in folder.iterdir()) == ["__init__.py", "plugin.yaml"]
    assert "register" in (folder / "__init__.py").read_text()
    assert "removed" in run("uninstall").stdout
    assert not folder.exists()
    assert "not installed" in run("uninstall").stdout


def test_another_place(tmp_path: Path) -> None:
    """A path names another folder of plugins."""
    assert install_plugin(tmp_path / "engines") == tmp_path / "engines" / "compaction"
    assert hermes_status(tmp_path / "engines").installed
    assert not hermes_status().installed
    assert uninstall_plugin(tmp_path / "engines") == tmp_path / "engines" / "compaction"


@pytest.mark.parametrize("kind", ["other", "file", "link"])
def test_what_is_not_ours_stays(kind: str, home: Path, tmp_path: Path) -> None:
    """Neither command changes another plugin, a file, or a link."""
    folder = home / "plugins" / "compaction"
    folder.parent.mkdir(parents=True)
    if kind == "other":
        folder.mkdir()
        (folder / "__init__.py").write_text("mine = 1\n")
    elif kind == "file":
        folder.write_text("mine")
    else:
        install_plugin(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere" / "compaction")
    for change in (install_plugin, uninstall_plugin):
        with pytest.raises(ConfigurationError, match="move it away"):
            change()
    assert folder.exists()
    assert run("install").exit_code == 2


def test_a_place_below_a_file(tmp_path: Path) -> None:
    """A path below a file raises ``UnwritableFile``."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableFile, match="name a writable folder"):
        install_plugin(tmp_path / "file" / "plugins")


def test_hermes_is_not_here() -> None:
    """Without Hermes, the status says where to install, and loading the plugin raises a ``ConfigurationError``."""
    done = run("status")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "not active")
    assert "install compaction-toolkit where hermes-agent is" in done.stdout
    with pytest.raises(ConfigurationError, match="Hermes Agent is not in this environment"):
        engine_class()
    with pytest.raises(ConfigurationError, match="Hermes Agent is not in this environment"):
        register(None)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("", "too old for context engines"),
        (
            "import abc\nclass ContextEngine(abc.ABC):\n    @abc.abstractmethod\n    def foresee(self): ...\n",
            "requires foresee, which this engine lacks",
        ),
    ],
    ids=["older", "newer"],
)
def test_another_version_of_hermes(source: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Hermes release without context engines, or with more requirements, raises a ``ConfigurationError``."""
    (tmp_path / "site" / "agent").mkdir(parents=True)
    (tmp_path / "site" / "agent" / "__init__.py").write_text("")
    (tmp_path / "site" / "agent" / "context_engine.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    for name in ("agent", "agent.context_engine"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    try:
        with pytest.raises(ConfigurationError, match=told):
            engine_class()
    finally:
        for name in ("agent", "agent.context_engine"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("config", "enabled", "engine"),
    [
        (None, False, None),
        (ACTIVE, True, "compaction"),
        ("plugins:\ncontext: 3\n", False, None),
        ("context: {engine: lcm}", False, "lcm"),
        ("plugins: [", None, None),
        ("- 1", None, None),
    ],
    ids=["none", "active", "empty", "another", "no yaml", "a list"],
)
def test_configuration(config: str | None, enabled: bool | None, engine: str | None, home: Path) -> None:
    """The status reports whether the plugin is enabled and which engine is set, for any ``config.yaml``."""
    home.mkdir()
    if config is not None:
        (home / "config.yaml").write_text(config)
    status = hermes_status()
    assert (status.enabled, status.engine, status.active) == (enabled, engine, False)


def test_hermes_own_folder_needs_no_enabling(home: Path, tmp_path: Path) -> None:
    """A plugin in Hermes' own folder of context engines does not need to be enabled."""
    assert hermes_status(tmp_path / "plugins" / "context_engine").enabled is True
    assert hermes_status(tmp_path / "plugins").enabled is False


def test_what_is_left_to_do(tmp_path: Path) -> None:
    """The status lists the missing steps, reports an untested Hermes version, and ends with whether the plugin is active."""
    ready = HermesStatus(hermes="0.19.0", folder=tmp_path, installed=True, entry_point=False, enabled=True, engine="compaction")
    assert ready.active
    assert ready.lines() == [
        "Hermes Agent: 0.19.0",
        f"plugin folder: {tmp_path}",
        "entry point: no",
        "enabled: yes",
        "engine: compaction",
        "active",
    ]
    other = HermesStatus(hermes="0.21.3", folder=tmp_path, installed=False, entry_point=False, enabled=False, engine="lcm")
    assert [
        line for line in other.lines() if "tested with 0.19" in line or "compaction hermes install" in line or "add" in line
    ]
    assert other.lines()[-1] == "not active"
