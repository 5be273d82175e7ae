import sys

import pytest


@pytest.fixture
def bench(monkeypatch, capsys, tmp_path):
    """Run ``python -m benchmarks`` in an empty folder; return the exit code, stdout and stderr."""
    from benchmarks.__main__ import app
    from fathomer.cli.runner import run_app

    monkeypatch.chdir(tmp_path)

    def bench(*arguments):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        with pytest.raises(SystemExit) as caught:
            run_app(app, "python -m benchmarks")
        return caught.value.code, *capsys.readouterr()

    return bench
