"""What `scripts/gpu_check` finds on a machine: libtorch, CPUs, GPUs and what their driver says of them."""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "2.11.0"
NVIDIA_SMI = "there is no nvidia-smi here: driver, clocks, power, PCIe and device memory are unknown"

# What is asked of the driver once, and every two seconds while a step runs.
ABOUT = [
    "index", "name", "uuid", "driver_version", "pci.bus_id", "memory.total", "memory.used", "clocks.max.sm", "clocks.max.mem",
    "power.limit", "power.draw", "temperature.gpu", "pcie.link.gen.max", "pcie.link.gen.current", "pcie.link.width.max",
    "pcie.link.width.current", "mig.mode.current", "compute_mode", "persistence_mode",
]
SAMPLED = ["index", "utilization.gpu", "memory.used", "clocks.sm", "power.draw", "temperature.gpu", "pcie.link.gen.current"]


class Missing(Exception):
    """Something without which nothing can be measured; its text says what to do."""


def checkout():
    return Path(__file__).resolve().parent.parent


def find_torch(with_cuda):
    """The folder of a torch of the version that the programs are linked against: this Python's, or the checkout's."""
    libraries = ["libtorch_cpu.so"] + (["libtorch_cuda.so"] if with_cuda else [])
    spec = importlib.util.find_spec("torch")
    folders = list(spec.submodule_search_locations or []) if spec else []
    link = checkout() / ".libtorch"
    folders += [link] if link.exists() else []
    found = []
    for folder in map(Path, folders):
        version_file = folder / "version.py"
        text = version_file.read_text() if version_file.exists() else ""
        match = re.search(r"""__version__ = ['"]([^'"]*)""", text)
        build_version = folder / "build-version"
        plain = build_version.read_text().strip() if build_version.exists() else "unknown"
        version = match.group(1) if match else plain
        missing = [name for name in libraries if not (folder / "lib" / name).exists()]
        if version.split("+")[0] == VERSION and not missing:
            return folder.resolve(), version
        without = f" without {', '.join(missing)}" if missing else ""
        found.append(f"{folder} (version {version}{without})")
    advice = "run scripts/setup --cuda" if with_cuda else "run scripts/setup"
    raise Missing(f"no torch {VERSION} for {sys.executable}; found: {', '.join(found) or 'none'}; {advice}")


def environment(torch_folder, cache):
    """The variables that the programs and Python need to find that torch, with the programs' cache in a folder of its own."""
    libraries = [torch_folder / "lib", *sorted(torch_folder.parent.glob("nvidia/*/lib"))]
    changed = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    for variable, folders in [("LD_LIBRARY_PATH", libraries), ("PYTHONPATH", [torch_folder.parent])]:
        before = os.environ.get(variable)
        if variable == "PYTHONPATH" and importlib.util.find_spec("torch"):
            continue
        # An empty part would stand for the current folder.
        changed[variable] = ":".join([*map(str, folders), *([before] if before else [])])
    return changed


def cores():
    """How many threads the programs use by themselves: what the affinity and the control group allow."""
    allowed = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return allowed if quota == "max" else max(1, min(allowed, int(quota) // int(period)))
    except (OSError, ValueError):
        return allowed


def describe():
    """What is known without the programs. `gpus` has an object for each GPU that the driver tells of."""
    described = {
        "system": platform.platform(), "python": platform.python_version(), "cores": cores(), "processor": processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load": os.getloadavg()[0],
        "variables": {name: os.environ.get(name) for name in ["CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "LD_PRELOAD"]},
    }
    described |= {key: value for key, value in os.environ.items() if key.startswith("NULLGPU_")}
    if not shutil.which("nvidia-smi"):
        return described | {"nvidia_smi": NVIDIA_SMI, "gpus": []}
    listed = nvidia_smi("-L")
    rows = nvidia_smi(f"--query-gpu={','.join(ABOUT)}", "--format=csv,noheader")
    gpus = [dict(zip(ABOUT, map(str.strip, line.split(",")))) for line in rows.splitlines() if line.count(",") >= len(ABOUT) - 1]
    return described | {"nvidia_smi": listed if gpus else f"{listed}\n{rows}", "gpus": gpus}


def processor():
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found.group(1) if found else platform.machine()


def nvidia_smi(*arguments):
    """What nvidia-smi says, or why it doesn't."""
    try:
        ended = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=60)
        return (ended.stdout + ended.stderr).strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"nvidia-smi: {error}"


class Sampler:
    """What the GPUs do while a step runs, in a file; nothing where there is no nvidia-smi."""

    def __init__(self, path):
        self.path, self.process = path, None

    def __enter__(self):
        if shutil.which("nvidia-smi"):
            query = ["nvidia-smi", f"--query-gpu={','.join(SAMPLED)}", "--format=csv,noheader,nounits", "-l", "2"]
            with self.path.open("w") as file:
                self.process = subprocess.Popen(
                    query, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()

    def rows(self):
        """Objects, in the order of time; what a GPU doesn't say is missing."""
        found = []
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            cells = dict(zip(SAMPLED, map(str.strip, line.split(","))))
            found.append({key: float(cell) for key, cell in cells.items() if re.fullmatch(r"-?\d+(\.\d+)?", cell)})
        return [row for row in found if "index" in row]

    def summary(self):
        """For each GPU the mean and the largest of what was sampled, and device memory at the beginning and at the end."""
        gpus = {}
        for row in self.rows():
            gpus.setdefault(int(row["index"]), []).append(row)
        result = []
        for index, rows in sorted(gpus.items()):
            one = {"index": index}
            for key in SAMPLED[1:]:
                numbers = [row[key] for row in rows if key in row]
                if numbers:
                    one[key] = {"mean": round(sum(numbers) / len(numbers), 1), "max": max(numbers), "first": numbers[0], "last": numbers[-1]}
            result.append(one)
        return result
