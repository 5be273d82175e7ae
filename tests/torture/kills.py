"""SIGKILL of training and prediction: at random moments, and before every file operation."""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.forked import CONTEXT
from tests.tiny import TINY, tiny_artifact, tiny_examples, write_csv

OPERATIONS = (
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.truncate",
    "os.chmod",
)

FILE_OPERATIONS = 62
"""About as many as a small training has; a kill at a later one is no kill."""


def run(arguments, folder, *, kill_at=None, kill_after=None):
    """Run a command; kill it before its n-th file operation or after some seconds.

    Return its exit code; -9 if it was killed.
    """
    process = CONTEXT.Process(target=_main, args=(list(map(str, arguments)), str(folder), kill_at))
    process.start()
    if kill_after is not None:
        process.join(kill_after)
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
    process.join()
    return process.exitcode


def _main(arguments, folder, kill_at):
    from fathomer.cli import main

    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(os.open(str(Path(folder, "errors.txt")), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.chdir(folder)
    sys.argv = ["fathomer", *arguments]
    seen = 0

    def watch(event, found):
        nonlocal seen
        writes = event == "open" and found and isinstance(found[1], str) and found[1][:1] in "xaw+r"
        writes = writes and found[1] not in ("r", "rb")
        exchanges = event == "ctypes.dlsym" and found[1] == "renameat2"
        if event in OPERATIONS or writes or exchanges:
            seen += 1
            if seen == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    if kill_at is not None:
        sys.addaudithook(watch)
    main()


def settings():
    """Return the options of a training that takes a second."""
    changed = TINY.updated({"train": {"epochs": 3, "calibrate": False}}).changed_values()
    return [part for name, value in changed.items() for part in ("--set", f"{name}={_toml(value)}")]


def _toml(value):
    return str(value).lower() if isinstance(value, bool) else value


def train_kills(count, *, seed=0, limit=480):
    """Kill trainings; resume or restart them, and compare the models.

    Return the number of trials, at most ``count`` and what ``limit`` seconds allow, and the failures.
    """
    failures = []
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        write_csv(base / "data.csv", tiny_examples())
        command = ["train", "data.csv", "--recipe", "demo", "--no-baseline", *settings(), "--out"]
        began = time.monotonic()
        if run([*command, "whole"], base):
            return 1, [(base / "errors.txt").read_text()[:500]]
        seconds = time.monotonic() - began
        wanted = (base / "whole" / "model.safetensors").read_bytes()
        for number in range(count):
            if time.monotonic() - began > limit:
                return number, failures
            random, out = Random(seed + number), base / f"out{number}"
            if number % 2:
                code = run([*command, out.name], base, kill_after=random.uniform(0, seconds))
            else:
                code = run([*command, out.name], base, kill_at=1 + number // 2 % FILE_OPERATIONS)
            if code not in (0, -9):
                failures.append(f"kill {number}: {(base / 'errors.txt').read_text()[:300]}")
                continue
            stopped = (out / "checkpoint.safetensors").exists()
            if code == -9 and (stopped or not (out / "model.safetensors").exists()):
                again = [*command, out.name, *(["--resume"] if stopped else [])]
                if run(again, base):
                    failures.append(
                        f"kill {number}, again: {(base / 'errors.txt').read_text()[:300]}"
                    )
                    continue
            if (out / "model.safetensors").read_bytes() != wanted:
                failures.append(f"kill {number}: another model")
    return count, failures


def predict_kills(count, *, seed=0, limit=240):
    """Kill ``predict --out``, resume it, and compare the answers; return trials and failures."""
    failures = []
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        tiny_artifact().save(base / "model")
        lines = [f'{n},"The film number {n} was good."\n' for n in range(4000)]
        (base / "in.csv").write_text("id,text\n" + "".join(lines), encoding="utf-8")
        command = ["predict", "model", "in.csv", "--out"]
        began = time.monotonic()
        if run([*command, "whole.csv"], base):
            return 1, [(base / "errors.txt").read_text()[:500]]
        seconds = time.monotonic() - began
        for number in range(count):
            if time.monotonic() - began > limit:
                return number, failures
            out = base / f"out{number}.csv"
            if number % 2:
                code = run(
                    [*command, out.name], base, kill_after=Random(seed + number).uniform(0, seconds)
                )
            else:
                code = run([*command, out.name], base, kill_at=1 + number // 2 % FILE_OPERATIONS)
            partial = out.with_name(f"{out.name}.partial").exists()
            if code == -9 and not out.exists():
                code = run([*command, out.name, *(["--resume"] if partial else [])], base)
            if code not in (0, -9):
                failures.append(f"kill {number}: {(base / 'errors.txt').read_text()[:300]}")
            elif out.read_bytes() != (base / "whole.csv").read_bytes():
                failures.append(f"kill {number}: other answers")
    return count, failures
