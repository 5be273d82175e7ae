"""Translations of texts, from files and of the demo corpus."""

import pytest

from experiments.rivals.translations import FILE, translations_of
from fathomer.data.demo import demo_corpus
from fathomer.errors import DataError, MissingFileError


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text,label,de,fr\na  film,x,ein Film,un film\nbad,y,,mauvais\n"),
        (
            "a.jsonl",
            '{"text": "a film", "de": "ein Film", "fr": "un film"}\n'
            '{"fr": "mauvais", "text": "bad"}\n',
        ),
    ],
)
def test_a_file_has_a_column_per_language(name, content, tmp_path, monkeypatch):
    (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.setenv(FILE, str(tmp_path / name))
    assert translations_of("a film") == ("ein Film", "un film")
    assert translations_of("bad") == ("", "mauvais")
    assert translations_of("good") == ()


def test_without_a_file_only_the_demo_corpus_is_translated(monkeypatch):
    monkeypatch.delenv(FILE, raising=False)
    first = next(iter(demo_corpus()[1])).text
    [translated] = translations_of(first)
    assert translated.split()[-1] == first.split()[0][::-1] + "o"
    assert translations_of("a good film") == ()


def test_a_file_that_cannot_be_used_is_one_line(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    monkeypatch.setenv(FILE, str(path))
    with pytest.raises(MissingFileError, match=r"FATHOMER_TRANSLATIONS=.*a\.csv: no such file"):
        translations_of("a film")
    path.write_text("text,label\na film,x\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column of translations; set FATHOMER_TRANSLATIONS"):
        translations_of("a film")
