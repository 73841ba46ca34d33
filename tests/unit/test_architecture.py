"""The house as it was drawn: direction of imports, rooms with a purpose, small modules, and nothing unsafe.

Every check takes modules as a mapping of dotted name to source and returns its findings, so that each is also shown
to find a violation that is planted for it (and to leave alone what only looks like one).
"""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

Modules = dict[str, str]

SOURCE = Path(__file__).parents[2] / "src"

# Imports only ever point back up this list; "hatchway" is the package's own front door.
ORDER = re.findall(
    r"\w+",
    "errors randomness settings progress compiled artefacts data how_many frequency negatives screening losses towers "
    "index training evaluation simulation nightly explain compare report cost serving config job hatchway cli",
)

LINES = 400
CONSTRUCTOR_ARGUMENTS = 8


def package() -> Modules:
    """Read every module of the package."""
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
        for path in sorted((SOURCE / "hatchway").rglob("*.py"))
    }


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """Return every node of a module's syntax tree, the module first."""
    return tuple(ast.walk(ast.parse(source)))


def room(module: str) -> str:
    """Return the room of a module: the first name below the package."""
    return module.split(".")[1] if "." in module else module


def imported(module: str, modules: Modules) -> set[str]:
    """Return what of the package a module imports, anywhere in it; each name as deep as it is a module."""
    names: list[str] = []
    for node in nodes(modules[module]):
        if isinstance(node, ast.Import):
            names += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            here = module.split(".")[: len(module.split(".")) - node.level] if node.level else []
            origin = ".".join([*here, *([node.module] if node.module else [])])
            names += [f"{origin}.{name.name}" for name in node.names]
    found = set()
    for name in names:
        parts = name.split(".")
        if parts[0] == "hatchway":
            known = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
            found.add(next((candidate for candidate in known if candidate in modules), name))
    return found - {module}


def check_direction(modules: Modules) -> Iterator[str]:
    """Imports point up the list, and every room stands on it."""
    for module in modules:
        if room(module) not in ORDER:
            yield f"{module}: the room {room(module)!r} is not on the list of the architecture"
            continue
        for other in imported(module, modules):
            if room(other) not in ORDER or ORDER.index(room(other)) > ORDER.index(room(module)):
                yield f"{module} imports {other}, which comes after it"


def check_cycles(modules: Modules) -> Iterator[str]:
    """No module is imported, however indirectly, by what it imports."""
    graph = {module: imported(module, modules) & modules.keys() for module in modules}
    while leaves := {module for module, others in graph.items() if not others}:
        graph = {module: others - leaves for module, others in graph.items() if module not in leaves}
    if graph:
        yield f"import cycle among, or towards: {', '.join(sorted(graph))}"


def check_names(modules: Modules) -> Iterator[str]:
    """No room without a purpose."""
    for module in modules:
        for name in module.split(".")[1:]:
            words = [word.removesuffix("s") for word in name.split("_")]
            if re.search(r"util|helper|common|manager|factory|misc", name) or "base" in words:
                yield f"{module}: {name!r} says nothing about what is in it; put the code where its noun lives"


def check_length(modules: Modules) -> Iterator[str]:
    """No module above 400 lines."""
    for module, source in modules.items():
        if (lines := len(source.splitlines())) > LINES:
            yield f"{module} has {lines} lines; split it at a noun"


def functions(source: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the functions and methods of a module, but not functions inside functions, with their dotted names."""
    stack: list[tuple[str, ast.AST]] = [("", nodes(source)[0])]
    while stack:
        prefix, parent = stack.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + node.name, node
            elif isinstance(node, ast.ClassDef):
                stack.append((f"{prefix}{node.name}.", node))
            elif isinstance(node, ast.If | ast.Try | ast.With):
                stack.append((prefix, node))


def public(name: str) -> bool:
    """Tell whether a dotted name is public; ``__init__`` and its like are as public as their class."""
    return not any(part.startswith("_") and not part.endswith("__") for part in name.split("."))


def check_constructors(modules: Modules) -> Iterator[str]:
    """No constructor takes more than eight arguments; beyond that a settings object says what belongs together."""
    for module, source in modules.items():
        for name, node in functions(source):
            count = len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) - 1
            if name.endswith(".__init__") and count > CONSTRUCTOR_ARGUMENTS:
                yield f"{module}.{name} takes {count} arguments; pass a settings object"


def check_kwargs(modules: Modules) -> Iterator[str]:
    """No public signature swallows misspelt arguments."""
    for module, source in modules.items():
        for name, node in functions(source):
            if public(name) and node.args.kwarg is not None:
                yield f"{module}.{name} takes **{node.args.kwarg.arg}; name its arguments"


def check_documented(modules: Modules) -> Iterator[str]:
    """Every module, public class and public function says what it is."""
    for module, source in modules.items():
        tree = nodes(source)[0]
        assert isinstance(tree, ast.Module)
        if not ast.get_docstring(tree):
            yield f"{module} has no docstring"
        for name, function in functions(source):
            if public(name) and "__" not in name and not ast.get_docstring(function):
                yield f"{module}.{name} has no docstring"
        for node in nodes(source):
            if isinstance(node, ast.ClassDef) and public(node.name) and not ast.get_docstring(node):
                yield f"{module}.{node.name} has no docstring"


def dotted(node: ast.AST) -> str:
    """Write ``a.b.c`` for an expression of that form; what stands before it as a call or index becomes ``?``."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else "?"


def calls(source: str) -> Iterator[tuple[int, str, dict[str | None, ast.expr]]]:
    """Yield every call in a module: its line, the dotted name of what is called, its keyword arguments."""
    for node in nodes(source):
        if isinstance(node, ast.Call):
            yield node.lineno, dotted(node.func), {keyword.arg: keyword.value for keyword in node.keywords}


def libraries(source: str) -> set[str]:
    """Return the top-level names of everything that a module imports."""
    found = set()
    for node in nodes(source):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


DRAWS = re.compile(
    r"torch\.(rand|randn|randint|randperm|rand_like|randn_like|randint_like|multinomial|normal|bernoulli|poisson)"
    r"|.*\.(uniform_|normal_|random_|bernoulli_|exponential_|trunc_normal_|xavier_\w+|kaiming_\w+|orthogonal_)"
)
GLOBAL = re.compile(
    r"torch\.(manual_seed|seed|random\.\w+|cuda\.manual_seed(_all)?)|.*\.?(Dropout\w*|dropout|seed_everything)"
)


def forks(node: ast.AST) -> bool:
    """Tell whether a node is a ``with torch.random.fork_rng(...)``, after which the global state is as before."""
    items = node.items if isinstance(node, ast.With) else []
    return any(
        isinstance(i.context_expr, ast.Call) and dotted(i.context_expr.func) == "torch.random.fork_rng" for i in items
    )


def extent(node: ast.AST) -> tuple[int, int]:
    """Return the first line of a node and the line after its last."""
    assert isinstance(node, ast.stmt)
    return node.lineno, (node.end_lineno or node.lineno) + 1


def check_randomness(modules: Modules) -> Iterator[str]:
    """Only the named streams of ``randomness`` are drawn from; global random state is neither read nor set."""
    for module, source in modules.items():
        if module == "hatchway.randomness":
            continue
        if "random" in libraries(source):
            yield f"{module} imports random; draw from hatchway.randomness.stream"
        for node in nodes(source):
            if isinstance(node, ast.Attribute) and re.match(r"(np|numpy)\.random\.(?!Generator$)", dotted(node)):
                yield f"{module}:{node.lineno} uses {dotted(node)}; draw from hatchway.randomness.stream"
        forked = {line for node in nodes(source) if forks(node) for line in range(*extent(node))}
        for line, name, keywords in calls(source):
            if line in forked and name in {"torch.random.fork_rng", "torch.manual_seed"}:
                continue
            if room(module) == "towers" and ".init." in name:  # initial weights: see hatchway.towers.build
                continue
            if GLOBAL.fullmatch(name) or (DRAWS.fullmatch(name) and "generator" not in keywords):
                yield f"{module}:{line} {name} draws from the global stream; pass generator="


def check_unsafe(modules: Modules) -> Iterator[str]:
    """Nothing that lies on disk can run code when it is read."""
    for module, source in modules.items():
        for library in libraries(source) & {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}:
            yield f"{module} imports {library}; write safetensors, Parquet or JSON"
        for line, name, keywords in calls(source):
            true = {key for key, value in keywords.items() if isinstance(value, ast.Constant) and value.value is True}
            if name.endswith("torch.load") and "weights_only" not in true:
                yield f"{module}:{line} torch.load without weights_only=True"
            if "allow_pickle" in true:
                yield f"{module}:{line} {name} allows pickles"
            if name in {"eval", "exec"}:
                yield f"{module}:{line} calls {name}"


def check_silence(modules: Modules) -> Iterator[str]:
    """The library logs and never prints; only the command line writes to stdout."""
    for module, source in modules.items():
        if room(module) == "cli":
            continue
        for line, name, _ in calls(source):
            if name in {"print", "sys.stdout.write", "typer.echo"}:
                yield f"{module}:{line} prints; call hatchway.progress.note, or return what was found"


def check_settings_files(modules: Modules) -> Iterator[str]:
    """Settings files are read in one place."""
    for module, source in modules.items():
        if module != "hatchway.config" and "tomllib" in libraries(source):
            yield f"{module} reads settings files; only hatchway.config does"


def check_finished(modules: Modules) -> Iterator[str]:
    """Nothing is left for later in the code."""
    for module, source in modules.items():
        for number, line in enumerate(source.splitlines(), 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b|raise NotImplementedError", line):
                yield f"{module}:{number} is unfinished: {line.strip()}"


def check_exports(modules: Modules) -> Iterator[str]:
    """An ``__all__`` is a sorted literal without repeats."""
    for module, source in modules.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and any(dotted(target) == "__all__" for target in node.targets):
                names = list(ast.literal_eval(node.value))
                if names != sorted(set(names)):
                    yield f"{module}.__all__ is not sorted, or has repeats"


CHECKS = [value for name, value in list(globals().items()) if name.startswith("check_")]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_house_stands(check: Callable[[Modules], Iterator[str]]) -> None:
    """The package has no finding of any check."""
    assert list(check(package())) == []


def test_the_whole_package_is_looked_at() -> None:
    """The checks see every module, from the floor to the command line."""
    assert {"hatchway", "hatchway.errors", "hatchway.data.engagements", "hatchway.cli.main"} <= package().keys()


HEAD = '"""A module."""\n'
PLANTED = [
    (check_direction, {"hatchway.losses.softmax": "def f():\n    from hatchway.towers import pair"}, "hatchway.towers"),
    (
        check_direction,
        {"hatchway.training.loop": "from ..evaluation.ranking import rank"},
        "hatchway.evaluation.ranking",
    ),
    (check_direction, {"hatchway.negatives.mined": "import hatchway.index.exact as exact"}, "hatchway.index"),
    (check_direction, {"hatchway.attic.boxes": ""}, "'attic'"),
    (
        check_cycles,
        {
            "hatchway.data.a": "from hatchway.data.b import x",
            "hatchway.data.b": "from .c import x",
            "hatchway.data.c": "from hatchway.data import a",
            "hatchway.data.d": "",
        },
        "hatchway.data.a, hatchway.data.b, hatchway.data.c",
    ),
    (check_names, {"hatchway.data.text_utils": ""}, "'text_utils'"),
    (check_names, {"hatchway.common.things": ""}, "'common'"),
    (check_names, {"hatchway.index.base": ""}, "'base'"),
    (check_length, {"hatchway.errors": "x = 1\n" * 401}, "401 lines"),
    (
        check_constructors,
        {"hatchway.errors": "class A:\n    def __init__(self, a, b, c, d, e, f, g, *, h, i): ..."},
        "A.__init__ takes 9",
    ),
    (check_kwargs, {"hatchway.errors": "class A:\n    def __init__(self, **options): ..."}, "**options"),
    (check_kwargs, {"hatchway.errors": "async def get(url, **rest): ..."}, "get takes **rest"),
    (check_documented, {"hatchway.errors": "x = 1"}, "hatchway.errors has no docstring"),
    (check_documented, {"hatchway.errors": HEAD + "def f(): ..."}, "errors.f has no"),
    (check_documented, {"hatchway.errors": HEAD + "class A:\n    '''A.'''\n    def f(self): ..."}, "A.f has no"),
    (check_documented, {"hatchway.errors": HEAD + "class A: ..."}, "errors.A has no"),
    (check_randomness, {"hatchway.data.a": "import numpy as np\nnp.random.seed(3)"}, "np.random.seed"),
    (check_randomness, {"hatchway.data.a": "import numpy\nr = numpy.random.default_rng()"}, "default_rng"),
    (check_randomness, {"hatchway.data.a": "from random import choice"}, "imports random"),
    (check_randomness, {"hatchway.data.a": "x = torch.randint(0, 5, (3,))"}, "torch.randint"),
    (check_randomness, {"hatchway.data.a": "nn.init.normal_(table.weight, std=0.1)"}, "nn.init.normal_"),
    (check_randomness, {"hatchway.data.a": "torch.manual_seed(1)"}, "torch.manual_seed"),
    (check_randomness, {"hatchway.data.a": "with torch.random.fork_rng():\n    x = torch.rand(3)"}, "torch.rand"),
    (check_randomness, {"hatchway.data.a": "drop = nn.Dropout(0.1)"}, "nn.Dropout"),
    (check_unsafe, {"hatchway.data.a": "import pickle"}, "imports pickle"),
    (check_unsafe, {"hatchway.data.a": "state = torch.load(path)"}, "torch.load"),
    (check_unsafe, {"hatchway.data.a": "torch.load(path, weights_only=False)"}, "torch.load"),
    (check_unsafe, {"hatchway.data.a": "np.load(path, allow_pickle=True)"}, "np.load"),
    (check_unsafe, {"hatchway.data.a": "eval(text)"}, "calls eval"),
    (check_silence, {"hatchway.data.a": "print('done')"}, "hatchway.data.a:1 prints"),
    (check_settings_files, {"hatchway.training.loop": "def f():\n    import tomllib"}, "hatchway.training.loop"),
    (check_finished, {"hatchway.data.a": "def f():\n    raise NotImplementedError"}, "hatchway.data.a:2"),
    (check_exports, {"hatchway.data": "__all__ = ['b', 'a']"}, "__all__ is not sorted"),
    (check_exports, {"hatchway.data": "__all__ = ['a', 'a']"}, "repeats"),
]


@pytest.mark.parametrize(("check", "modules", "finding"), PLANTED)
def test_a_planted_violation_is_found(
    check: Callable[[Modules], Iterator[str]], modules: Modules, finding: str
) -> None:
    """Each check finds, once and by name, what was planted for it."""
    (found,) = check(modules)
    assert finding in found


def test_every_check_has_a_planted_violation() -> None:
    """A check without a violation that it finds could be a check that finds nothing."""
    assert {check.__name__ for check, _, _ in PLANTED} == {check.__name__ for check in CHECKS}


INNOCENT = {
    "hatchway": HEAD + "from hatchway.cost import f\n",
    "hatchway.randomness": HEAD + "import numpy as np\nx = np.random.Generator(np.random.PCG64(1))\n",
    "hatchway.cost": HEAD
    + '''
import numpy as np
import torch
from hatchway.evaluation.baselines import popularity

__all__ = ["f"]


def f(draw: np.random.Generator, *rest: int) -> None:
    """Draw."""

    def inner(**anything): ...

    torch.randint(0, 5, (3,), generator=torch.Generator())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
    torch.load("x", weights_only=True)
    np.load("x", allow_pickle=False)


class _Hidden:
    def __init__(self, a, b, c, d, e, f, g, h): ...

    def show(self, **anything): ...
''',
    "hatchway.evaluation.baselines": HEAD,
    "hatchway.cli.show": HEAD + "import hatchway\nfrom hatchway.cli import output\nprint(1)\n",
    "hatchway.cli.output": HEAD,
    "hatchway.config": HEAD + "import tomllib\n",
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_what_only_looks_like_a_violation_is_left_alone(check: Callable[[Modules], Iterator[str]]) -> None:
    """Near misses: private signatures, streams that are passed, ``baselines``, printing in a command."""
    assert list(check(INNOCENT)) == []
