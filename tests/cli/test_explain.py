"""The command explain."""

import json


def test_each_word_is_shown_above_its_depth(run, model, tmp_path):
    code, out, _ = run("explain", model, "The film was lovely.", "--html", "page.html")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("positive  ")
    assert lines[2].split() == ["The", "film", "was", "lovely", "."]
    assert len(lines[3].split()) == len(lines[4].split()) == 5
    assert lines[4].split()[3].startswith("+")
    assert "\x1b" not in out
    assert "lovely" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_bytes_that_are_not_utf_8_can_be_explained(run, model):
    code, out, _ = run("explain", model, "caf\udce9 good", "--json", "--html", "page.html")
    assert code == 0
    last = json.loads(out)["words"][-1]
    assert last["text"] == "good"
    assert list(last) == ["text", "start", "end", "depth", "contribution"]
