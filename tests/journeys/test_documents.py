"""The documents keep step with the project: dependencies, versions, commands, targets, links."""

import re
import runpy
import tomllib
from importlib.metadata import requires, version
from pathlib import Path

import pytest

import hatchway
from hatchway.cli.main import app

REPOSITORY = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]


def name_of(requirement: str) -> str:
    """Return the normalised name in a requirement: ``Faiss_CPU>=1.9`` is ``faiss-cpu``."""
    match = re.match(r"[\w.-]+", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def dependencies() -> set[str]:
    """Return every dependency that pyproject.toml names, optional ones included."""
    optional = [line for group in PROJECT["optional-dependencies"].values() for line in group]
    return {name_of(line) for line in [*PROJECT["dependencies"], *optional]}


def constraints() -> dict[str, str]:
    """Return the exact versions of constraints.txt."""
    lines = (REPOSITORY / "constraints.txt").read_text("utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {name_of(name): exact for name, exact in pairs}


def test_every_dependency_has_its_paragraph() -> None:
    """docs/decisions/dependencies.md has a paragraph for each dependency, and for nothing else."""
    text = (REPOSITORY / "docs" / "decisions" / "dependencies.md").read_text("utf-8")
    sections = re.findall(r"^## (\S+)\n\n(.*)", text, re.MULTILINE)
    assert {name for name, _ in sections} == dependencies()
    assert all(len(paragraph) > 30 for _, paragraph in sections)


def test_constraints_name_what_is_installed() -> None:
    """Everything that Hatchway needs, however indirectly, has an exact version, and it is the one being tested."""
    exact = constraints()
    seen: set[str] = set()
    waiting = set(dependencies())
    while waiting:
        name = waiting.pop()
        seen.add(name)
        assert name in exact, f"{name} has no exact version in constraints.txt"
        assert version(name).split("+")[0] == exact[name], f"{name} is installed in another version"
        for line in requires(name) or []:
            needed, _, condition = line.partition(";")
            if not condition and name_of(needed) not in seen:
                waiting.add(name_of(needed))
    assert len(seen) > len(dependencies())


def test_the_picture_is_fresh() -> None:
    """The picture of a training row is what its script draws, from the figures that the script computes."""
    pictures = REPOSITORY / "docs" / "pictures"
    drawn = runpy.run_path(str(pictures / "training_row.py"))["picture"]()
    assert (pictures / "training-row.svg").read_text("utf-8") == drawn
    assert ">ln n = −9.90<" in drawn


def test_versions_agree() -> None:
    """The package, its metadata and its front door have one version."""
    assert hatchway.__version__ == PROJECT["version"] == version("hatchway")


@pytest.mark.parametrize(
    "path", sorted(REPOSITORY.glob("*.md")) + sorted(REPOSITORY.glob("docs/**/*.md")), ids=lambda path: path.name
)
def test_links_and_commands_exist(path: Path) -> None:
    """A relative link leads to a file, ``make X`` to a target, ``hatchway X`` to a command."""
    text = path.read_text("utf-8")
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (path.parent / link).exists(), link
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)
    for target in re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE):
        assert target in targets, f"make {target}"
    commands = {command.name for command in app.registered_commands}
    for command in re.findall(r"(?:`|^|bin/)hatchway ([a-z]+)", text, re.MULTILINE):
        assert command in commands, f"hatchway {command}"


def test_documents_that_are_named_exist() -> None:
    """Wherever the package, a recipe or a document says ``docs/NAME.md``, there is such a document."""
    places = [REPOSITORY / name for name in ("src", "docs", "recipes", "experiments", "benchmarks")]
    files = [path for place in places for path in place.rglob("*") if path.suffix in {".py", ".md", ".toml"}]
    named = {name for path in files for name in re.findall(r"docs/[\w/-]+\.md", path.read_text("utf-8"))}
    assert named
    assert not sorted(name for name in named if not (REPOSITORY / name).exists())
