"""A small experiment and its jobs."""

from pathlib import Path

from experiments.job import Job
from experiments.plan import Plan
from tests.tiny import TINY, tiny_examples, write_csv

ROOT = Path(__file__).parents[2]


def write_experiment(folder: Path) -> Path:
    """Write an experiment of five runs on a small file, with folds and variants."""
    data = write_csv(folder / "opinions.csv", tiny_examples())
    path = folder / "small.toml"
    path.write_text(
        f"[experiment]\n{_settings()}\n[variants]\n"
        "full = { model = { depth = 'full' } }\nsame = {}\n"
        f"[[runs]]\ncorpora = ['{data}']\nmodels = ['fathomer', 'tfidf']\nfolds = [1, 2]\nof = 3\n"
        "forced_depths = [1, 4, 9]\n"
        f"[[runs]]\ncorpora = ['{data}']\nfolds = [1]\nof = 3\nvariants = ['full', 'same']\n",
        encoding="utf-8",
    )
    return path


def _settings() -> str:
    """Return the settings of the tiny model as sections of an experiment."""
    lines = TINY.updated({"train": {"epochs": 2}}).to_toml().splitlines()
    return "\n".join(f"[settings.{line[1:]}" if line[:1] == "[" else line for line in lines)


def new_job(plan: Plan, folder: Path) -> Job:
    """Return a job whose files are below a folder."""
    return Job(plan=plan, results=folder / "results", work=folder / "work")
