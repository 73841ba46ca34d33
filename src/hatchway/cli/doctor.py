"""``hatchway doctor``: what is installed and works here, what is missing, and how to get it."""

import importlib
import importlib.metadata
import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import hatchway
from hatchway.cli.output import JsonOption, QuietOption, begin, emit, size, table
from hatchway.errors import MissingExtraError


@dataclass(frozen=True)
class Part:
    """One part that Hatchway uses: is it there, does it load, and how to get it where it is not.

    Attributes:
        name: its name.
        version: what is installed, or None.
        needed: False where Hatchway runs without it.
        remark: what it is for and how to get it where it is missing, why it does not load where it is broken.
        works: True where it is installed and loads.
    """

    name: str
    version: str | None
    needed: bool
    works: bool
    remark: str


# Distribution, module to load, and for an optional one what it brings and how to get it.
_NEEDED = (
    ("torch", "torch"),
    ("numpy", "numpy"),
    ("polars", "polars"),
    ("pydantic", "pydantic"),
    ("safetensors", "safetensors"),
    ("faiss-cpu", "faiss"),
    ("fastapi", "fastapi"),
    ("uvicorn", "uvicorn"),
    ("jinja2", "jinja2"),
    ("matplotlib", "matplotlib"),
    ("tensorboard", "tensorboard"),
)
_OPTIONAL = (
    ("numba", "numba", "makes training steps quicker, with the same results; pip install 'hatchway[speed]'"),
    ("playwright", "playwright", "drives the browser tests only; pip install 'hatchway[dev]'"),
)
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def _part(distribution: str, module: str, needed: bool, remedy: str) -> Part:
    """Look for one Python package and load it."""
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return Part(distribution, None, needed, works=False, remark=remedy)
    try:
        importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - a broken installation fails in any way it likes; say how
        return Part(distribution, version, needed, works=False, remark=f"does not load: {error}")
    return Part(distribution, version, needed, works=True, remark="")


def _browser() -> Part:
    """Look for a Chromium, which only the browser tests use."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    remedy = "used by the browser tests only; on Debian and Ubuntu: apt-get install chromium"
    return Part("chromium", found, needed=False, works=found is not None, remark="" if found else remedy)


def parts() -> list[Part]:
    """Look for everything that Hatchway uses, the needed parts first."""
    needed = [
        _part(distribution, module, needed=True, remedy=f"needed; pip install {distribution}")
        for distribution, module in _NEEDED
    ]
    optional = [_part(distribution, module, needed=False, remedy=remedy) for distribution, module, remedy in _OPTIONAL]
    return [*needed, *optional, _browser()]


def _threads() -> dict[str, int | str | None]:
    """Say how many threads the numerical libraries take, and why."""
    import polars as pl
    import torch

    return {
        "cpus": os.cpu_count(),
        "torch": torch.get_num_threads(),
        "polars": pl.thread_pool_size(),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
    }


def _devices() -> list[str]:
    """Name the accelerators that PyTorch sees."""
    import torch

    return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]


def _memory() -> dict[str, int]:
    """Return the bytes of memory: all of it, and what is free now (0 where the system does not say)."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return {"total": page * os.sysconf("SC_PHYS_PAGES"), "free": page * os.sysconf("SC_AVPHYS_PAGES")}
    except (ValueError, OSError):
        return {"total": 0, "free": 0}


def _data_folder() -> tuple[str | None, list[str]]:
    """Return the value of HATCHWAY_DATA and the folders found there."""
    value = os.environ.get("HATCHWAY_DATA")
    folder = Path(value) if value else None
    if folder is None or not folder.is_dir():
        return value, []
    return value, sorted(entry.name for entry in folder.iterdir() if entry.is_dir())


def run(json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Check what is installed here.

    Says what works, which optional parts are missing and how to get them, and what this machine offers. Exits with 3
    if a part that Hatchway needs is missing or does not load.
    """
    begin(quiet)
    found = parts()
    broken = [part.name for part in found if part.needed and not part.works]
    sound = {part.name for part in found if part.works}
    threads = _threads() if {"torch", "polars"} <= sound else {}
    devices = _devices() if "torch" in sound else []
    memory, disk = _memory(), shutil.disk_usage(Path.cwd())
    variable, sets = _data_folder()

    states = {True: "works", False: "missing"}
    lines = [
        [
            part.name,
            part.version or "–",
            states[part.works] if part.version is None or part.works else "broken",
            part.remark,
        ]
        for part in found
    ]
    data = f"{variable} holds {', '.join(sets)}" if sets else f"{variable} is no folder of data sets"
    facts = [
        ["threads", ", ".join(f"{name} {value}" for name, value in threads.items() if value is not None)],
        ["accelerators", ", ".join(devices) or "none; everything runs on the CPU"],
        ["memory", f"{size(memory['free'])} free of {size(memory['total'])}"],
        ["disk here", f"{size(disk.free)} free of {size(disk.total)}"],
        ["HATCHWAY_DATA", data if variable else "not set; only tests and experiments on public data sets use it"],
    ]
    python = f"Python {platform.python_version()}"
    text = "\n".join(
        [
            f"hatchway {hatchway.__version__} on {python}, {platform.system()} {platform.machine()}",
            "",
            table(lines, ["part", "version", "state", ""]),
            "",
            table(facts, ["machine", ""]),
            "",
            f"not sound: {', '.join(broken)}" if broken else "everything that is needed works",
        ]
    )
    payload = {
        "hatchway": hatchway.__version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "parts": [asdict(part) for part in found],
        "threads": threads,
        "accelerators": devices,
        "memory_bytes": memory,
        "disk_bytes": {"total": disk.total, "free": disk.free},
        "data_folder": variable,
        "data_sets": sets,
        "sound": not broken,
    }
    emit(payload, text, json)
    if broken:
        raise MissingExtraError(f"{', '.join(broken)} missing or broken; pip install --force-reinstall hatchway")
