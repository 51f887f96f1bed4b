"""The plugin's folder for Hermes Agent: installing and removing it, its status, and the errors without Hermes."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from compaction.cli.app import app
from compaction.errors import ConfigurationError, UnwritableFile
from compaction.integrations.hermes import plugin
from compaction.integrations.hermes.plugin import engine_class, hermes_status, install_plugin, register, uninstall_plugin

ACTIVE = "plugins: {enabled: [other, compaction]}\ncontext: {engine: compaction}\n"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["hermes", *(str(argument) for argument in arguments)])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_install_and_uninstall(home: Path) -> None:
    for _ in range(2):
        assert run("install").exit_code == 0
    folder = home / "plugins" / "compaction"
    assert sorted(file.name for file in folder.iterdir()) == ["__init__.py", "plugin.yaml"]
    assert "register" in (folder / "__init__.py").read_text()
    assert f"version: {version('compaction-toolkit')}\n" in (folder / "plugin.yaml").read_text()
    assert "removed" in run("uninstall").stdout
    assert not folder.exists()
    assert "not installed" in run("uninstall").stdout


def test_another_place(tmp_path: Path) -> None:
    """A path names another folder of plugins: Hermes' own needs no enabling, and one below a file cannot be written."""
    assert install_plugin(tmp_path / "engines") == tmp_path / "engines" / "compaction"
    missing = "is not there; compaction hermes install"
    assert [missing in "\n".join(hermes_status(path)[1]) for path in (tmp_path / "engines", None)] == [False, True]
    assert uninstall_plugin(tmp_path / "engines") == tmp_path / "engines" / "compaction"
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableFile, match="name a writable folder"):
        install_plugin(tmp_path / "file" / "plugins")
    assert "enabled: yes" in hermes_status(tmp_path / "plugins" / "context_engine")[1]
    assert "enabled: yes" not in hermes_status(tmp_path / "plugins")[1]


@pytest.mark.parametrize("kind", ["other", "another file", "file", "link"])
def test_what_is_not_ours_stays(kind: str, home: Path, tmp_path: Path) -> None:
    """Neither command changes another plugin, a file, or a link."""
    folder = home / "plugins" / "compaction"
    folder.parent.mkdir(parents=True)
    if kind == "other":
        folder.mkdir()
        (folder / "__init__.py").write_text("mine = 1\n")
    elif kind == "another file":
        folder.mkdir()
        (folder / "mine.py").write_text("mine = 1\n")
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


def test_a_folder_that_cannot_be_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = install_plugin()

    def denied(path: Path) -> None:
        raise PermissionError(13, "denied")

    monkeypatch.setattr("shutil.rmtree", denied)
    with pytest.raises(UnwritableFile, match=rf"{folder}.*denied.*make it writable"):
        uninstall_plugin()


@pytest.mark.parametrize("installed", [False, True])
def test_the_entry_point_is_enough(installed: bool, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an entry point, the plugin is active without a folder; the status needs a reader of YAML."""
    monkeypatch.setattr(plugin, "version", lambda name: "0.190.1")
    monkeypatch.setattr(plugin, "entry_points", lambda **which: [which] if installed else [])
    home.mkdir()
    (home / "config.yaml").write_text(ACTIVE)
    active, lines = hermes_status()
    assert (active, lines[2]) == (installed, f"entry point: {'yes' if installed else 'no'}")
    assert lines[0] == "Hermes Agent: 0.190.1 (tested with 0.19)"
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert "config.yaml cannot be read" in hermes_status()[1][3]


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
        (None, "no", "None"),
        (ACTIVE, "yes", "compaction"),
        ("plugins:\ncontext: 3\n", "no", "None"),
        ("context: {engine: lcm}", "no", "lcm"),
        ("plugins: [", "config.yaml cannot be read", "None"),
        ("- 1", "config.yaml cannot be read", "None"),
    ],
    ids=["none", "active", "empty", "another", "no yaml", "a list"],
)
def test_configuration(config: str | None, enabled: str, engine: str, home: Path) -> None:
    """The status reports whether the plugin is enabled and which engine is set, for any ``config.yaml``."""
    home.mkdir()
    if config is not None:
        (home / "config.yaml").write_text(config)
    active, lines = hermes_status()
    said = [line.split(": ", 1)[1].split(";")[0] for line in lines[3:5]]
    assert (said, active) == ([enabled, engine], False)


@pytest.mark.parametrize("release", ["0.19.0", "0.21.3"])
def test_what_is_left_to_do(release: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The status lists the missing steps, reports an untested Hermes version, and ends with whether the plugin is active."""
    monkeypatch.setattr(plugin, "version", lambda name: release)
    tested = "" if release == "0.19.0" else " (tested with 0.19)"
    home.mkdir()
    active, lines = hermes_status()
    assert (active, lines[0], lines[-1]) == (False, f"Hermes Agent: {release}{tested}", "not active")
    assert lines[3] == "enabled: no; add compaction to plugins.enabled in config.yaml"
    install_plugin()
    (home / "config.yaml").write_text(ACTIVE)
    active, lines = hermes_status()
    assert active
    assert lines[1:2] + lines[3:] == [
        f"plugin folder: {home / 'plugins' / 'compaction'}",
        "enabled: yes",
        "engine: compaction",
        "active",
    ]
