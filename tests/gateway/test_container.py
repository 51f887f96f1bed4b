"""The recipe for a container, built where Docker is and has the image of Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def docker(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.timeout(900)
def test_the_container_is_built_and_starts() -> None:
    """The image of ``examples/gateway/Dockerfile`` has the command, with its options."""
    if shutil.which("docker") is None or docker("info").returncode:
        pytest.skip("Docker does not run here")
    if docker("image", "inspect", "python:3.13-slim").returncode and docker("pull", "python:3.13-slim").returncode:
        pytest.skip("Docker cannot have the image python:3.13-slim")
    file = ROOT / "examples" / "gateway" / "Dockerfile"
    built = docker("build", "--tag", "compaction-gateway-test", "--file", str(file), str(ROOT))
    assert built.returncode == 0, built.stderr
    started = docker("run", "--rm", "compaction-gateway-test", "compaction", "serve", "--help")
    assert "--store" in started.stdout
