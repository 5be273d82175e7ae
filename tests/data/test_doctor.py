"""The doctor: every problem is found, with its number and its lines, and a healthy file has none."""

import gzip
import json
from pathlib import Path

import pytest

from fathomer.config import Recipe
from fathomer.data.doctor import diagnose, suggest
from fathomer.data.examples import Example, Examples
from fathomer.data.survey import Reading, guess_encoding, survey_examples, survey_file
from fathomer.errors import DataError

RECIPE = Recipe().updated({"text": {"max_words": 50}})
HEALTHY = [(f"text number {n} is {w}", w) for n in range(60) for w in ("good", "bad")]


@pytest.fixture(autouse=True)
def _inside(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def write(name, rows, *, header="text,label", encoding="utf-8", separator=","):
    lines = [header, *(separator.join(f'"{cell}"' for cell in row) for row in rows)]
    content = "".join(f"{line}\n" for line in lines if line).encode(encoding)
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return survey_file(Path(name), Reading())


def found_in(survey, *others):
    return {finding.problem: finding for finding in diagnose(survey, others, recipe=RECIPE)}


def only(survey, *others):
    [finding] = diagnose(survey, others, recipe=RECIPE)
    return finding


def test_a_healthy_file_has_no_findings():
    assert found_in(write("a.csv", HEALTHY)) == {}


def test_several_labels_of_a_text_are_counted_one_by_one():
    rows = [(f"text number {n}", "warm|cheap" if n % 2 else "") for n in range(120)]
    rows += [("text number 1", "cheap|warm"), ("text number 3", "cheap"), ("a nan", "warm|nan")]
    write("a.csv", rows)
    write("b.csv", [("another text", "cheap|bold")])
    first, second = (survey_file(Path(n), Reading(multi_label=True)) for n in ("a.csv", "b.csv"))
    assert first.label_counts == {"cheap": 62, "warm": 62, "nan": 1}
    found = found_in(first, second)
    assert found["unlabelled"].count == 60
    assert found["duplicates"].lines == (122,)
    assert found["conflicts"].lines == (5, 123)
    assert found["missing_labels"].message.endswith("a label like 'nan', which may mean none")
    assert found["imbalance"].message.endswith("as frequent as 'nan'; watch macro F1")
    assert found["unknown_labels"].message.endswith("occur in a.csv: 'bold' (1)")
    assert "one_label" not in found
    write("c.csv", [("a text", ""), ("another", "")])
    assert "no_labels" in found_in(survey_file(Path("c.csv"), Reading(multi_label=True)))


def test_findings_say_how_many_and_where():
    rows = [*HEALTHY, *[HEALTHY[0]] * 7]
    finding = only(write("a.csv", rows))
    assert (finding.level, finding.problem, finding.count) == ("note", "duplicates", 7)
    assert finding.lines == (122, 123, 124, 125, 126)
    assert finding.message == "a.csv: 7 rows with text and label of an earlier one"


@pytest.mark.parametrize(
    ("row", "problem", "level"),
    [
        (("", "good"), "empty_text", "warning"),
        (("a text", ""), "empty_label", "warning"),
        (("text number 3 is good", "bad"), "conflicts", "warning"),
        (("12,5", "good"), "number_texts", "note"),
        (("a cafÃ© there", "good"), "mangled_texts", "warning"),
        (("what a \N{REPLACEMENT CHARACTER}", "good"), "mangled_texts", "warning"),
        (("word " * 51, "good"), "long_texts", "note"),
        (("a text", "Good "), "similar_labels", "warning"),
        (("a text", "ugly"), "rare_labels", "warning"),
        (("a text", "NaN"), "missing_labels", "warning"),
    ],
)
def test_one_odd_row_is_found_in_its_line(row, problem, level):
    finding = found_in(write("a.csv", [*HEALTHY, row]))[problem]
    assert finding.level == level
    assert finding.lines[-1] == 122
    assert finding.message.startswith("a.csv: ")


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([("one", "a"), ("two", "a")], "one_label"),
        ([("", "a"), ("two", "")], "no_texts"),
        ([(f"text {n}", f"id{n}") for n in range(20)], "unique_labels"),
        ([("good", f"a long text with number {n % 90}") for n in range(100)], "swapped"),
    ],
)
def test_what_makes_training_meaningless_is_an_error(rows, problem):
    findings = diagnose(write("a.csv", rows), [], recipe=RECIPE)
    assert (findings[0].level, findings[0].problem) == ("error", problem)
    assert [f.problem for f in findings if f.level == "error"] == [problem]


def test_rare_labels_few_texts_and_imbalance_are_warned_of():
    rows = [(f"text {n}", "ham") for n in range(60)] + [("buy now", "spam")] * 3
    found = found_in(write("a.csv", rows))
    assert found["few_texts"].count == 63
    assert "'spam' (3)" in found["rare_labels"].message
    assert found["rare_labels"].lines == (62,)
    assert "'ham' is 20 times as frequent as 'spam'" in found["imbalance"].message
    assert "95.2%" in found["imbalance"].message


def test_labels_that_differ_in_more_than_dress_are_not_alike():
    pairs = ["C", "C++", "1", "-1", "10", "very good", "not good"]
    rows = [(f"text {n} {label}", label) for n in range(20) for label in pairs]
    assert found_in(write("a.csv", rows)) == {}
    for one, other in (("very good", "Very_Good"), ("1", "1.0"), ("Café", "Cafe\u0301")):
        rows = [(f"text {n} {label}", label) for n in range(60) for label in (one, other)]
        assert only(write("a.csv", rows)).problem == "similar_labels", (one, other)


def test_many_labels_may_be_the_wrong_column():
    rows = [(f"some text number {n}", f"id{n % 70}") for n in range(100)]
    assert found_in(write("a.csv", rows))["many_labels"].count == 70


def test_texts_of_another_file_leak():
    train = write("a.csv", HEALTHY)
    other = write("b.csv", [*HEALTHY[:3], ("a new text", "good")])
    finding = only(train, other)
    assert (finding.problem, finding.count, finding.lines) == ("leakage", 3, (2, 3, 4))
    assert finding.message == "b.csv: 3 texts (75.0%) found in a.csv too"


def test_a_label_that_training_lacks_is_an_error_in_another_file():
    train = write("a.csv", HEALTHY)
    finding = only(train, write("b.csv", [("a new text", "good"), ("another", "ugly")]))
    assert (finding.level, finding.problem, finding.lines) == ("error", "unknown_labels", (3,))


def test_another_encoding_is_recognised_and_suggested():
    for encoding, byte in (("cp1252", "€"), ("utf-16", "é")):
        survey = write("a.csv", [*HEALTHY, (f"a caf{byte}", "good")], encoding=encoding)
        finding = only(survey)
        assert (finding.level, finding.problem) == ("warning", "encoding")
        assert f"--encoding {encoding}" in finding.message
        assert suggest(survey, {}, recipe=RECIPE, recipe_name=None)[-2:] == ["--encoding", encoding]


def test_encodings_are_guessed_from_all_bytes():
    for content, expected in (
        (b"plain", "utf-8"),
        ("é".encode() * 700_000, "utf-8"),
        (b"x" * 3_000_000 + b"\xe9", "cp1252"),
        (b"\xe9\x81", "latin-1"),
        ("é".encode("utf-16"), "utf-16"),
    ):
        Path("f.txt").write_bytes(content)
        assert guess_encoding(Path("f.txt")) == expected


def test_compressed_files_are_read_too():
    assert only(write("a.csv.gz", [*HEALTHY, ("a café", "good")], encoding="cp1252")).problem == (
        "encoding"
    )
    Path("bad.csv.gz").write_bytes(b"\x1f\x8b no")
    assert only(survey_file(Path("bad.csv.gz"), Reading())).problem == "unreadable"


def test_other_columns_are_found_and_suggested():
    rows = [(n, label, text, n / 7) for n, (text, label) in enumerate(HEALTHY)]
    survey = write("a.csv", rows, header="id,Sentiment,The review,score")
    finding = only(survey)
    assert (finding.level, finding.problem) == ("warning", "columns")
    command = suggest(survey, {}, recipe=RECIPE, recipe_name=None)
    assert command[5:] == ["--text-column", "The review", "--label-column", "Sentiment"]


def test_a_column_of_different_values_is_not_taken_for_labels():
    rows = [(n, text) for n, (text, _) in enumerate(HEALTHY)]
    finding = only(write("a.csv", rows, header="id,review"))
    assert (finding.level, finding.problem) == ("error", "unreadable")
    assert "no column 'label' in the header ('id', 'review')" in finding.message


def test_only_the_missing_column_is_guessed():
    rows = [(text, label, "a") for text, label in HEALTHY]
    survey = write("a.csv", rows, header="Text,class,constant")
    assert survey.used == Reading("text", "class")
    assert "no column 'label' in 'Text', 'class', 'constant'" in only(survey).message


def test_keys_of_json_are_found_as_columns_are():
    records = [{"n": n, "body": t, "stars": 1 + n % 2} for n, (t, _) in enumerate(HEALTHY)]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    survey = survey_file(Path("a.jsonl"), Reading())
    assert survey.used == Reading("body", "stars")
    assert survey.label_counts == {"1": 60, "2": 60}


@pytest.mark.parametrize(
    ("name", "separator", "problem", "words"),
    [
        ("a.csv", ";", "separator", "separated by semicolons"),
        ("a.csv", "\t", "separator", "rename the file to .tsv"),
        ("a.tsv", ",", "separator", "rename the file to .csv"),
    ],
)
def test_a_wrong_separator_is_recognised(name, separator, problem, words):
    survey = write(name, HEALTHY, header=f"text{separator}label", separator=separator)
    assert only(survey).level == "error"
    assert only(survey).problem == problem
    assert words in only(survey).message


def test_a_file_without_a_header_is_recognised():
    finding = only(write("a.csv", HEALTHY, header=""))
    assert (finding.level, finding.problem) == ("error", "no_header")


def test_whatever_the_reader_refuses_is_an_error_with_its_line():
    finding = only(write("a.csv", [*HEALTHY, ("one", "two", "three")]))
    assert (finding.level, finding.problem) == ("error", "unreadable")
    assert finding.message.startswith("a.csv, line 122: 3 columns where the header has 2")
    Path("empty.csv").write_bytes(b"")
    assert only(survey_file(Path("empty.csv"), Reading())).message == (
        "empty.csv: the file is empty"
    )


def test_files_that_must_be_read_differently_do_not_go_together():
    train = write("a.csv", HEALTHY)
    other = write("b.csv", [("a café", "good")], encoding="cp1252")
    assert found_in(train, other)["unlike_files"].level == "error"


def test_an_encoding_that_is_none_is_the_users_mistake():
    Path("a.csv").write_bytes(b"text,label\n")
    with pytest.raises(DataError, match="unknown encoding 'klingon'"):
        survey_file(Path("a.csv"), Reading(encoding="klingon"))


def test_fasttext_lines_have_no_columns():
    lines = [f"__label__{label} {text}\n" for text, label in HEALTHY]
    Path("a.txt").write_text("".join(lines), encoding="utf-8")
    survey = survey_file(Path("a.txt"), Reading())
    assert (survey.columns, found_in(survey)) == ((), {})


def test_texts_of_a_corpus_are_counted_not_its_lines():
    examples = Examples([Example(*row) for row in [*HEALTHY, HEALTHY[0]]])
    finding = only(survey_examples("corpus", examples))
    assert (finding.problem, finding.unit, finding.lines) == ("duplicates", "text", (121,))


def test_small_data_gets_more_steps_and_more_texts_held_out():
    small = suggest(write("a.csv", HEALTHY), {}, recipe=RECIPE, recipe_name="small")
    assert small[:7] == ["fathomer", "train", "a.csv", "--out", "model", "--recipe", "small"]
    settings = dict(pair.split("=") for pair in small[8::2])
    assert settings == {
        "train.batch_words": "100",
        "train.epochs": "30",
        "train.held_out": "0.2",
    }
    files = {"--test": "t.csv", "--held-out": "h.csv"}
    given = suggest(write("a.csv", HEALTHY), files, recipe=RECIPE, recipe_name="small")
    assert given[7:11] == ["--test", "t.csv", "--held-out", "h.csv"]
    assert "train.held_out=0.2" not in given
    middle = write("b.csv", [("word " * 50, label) for _, label in HEALTHY * 4])
    settings = suggest(middle, {}, recipe=RECIPE, recipe_name="small")[8::2]
    assert settings == ["train.batch_words=200", "train.epochs=13"]  # 24,000 words
    many = write("b.csv", [("word " * 50, "good")] * 8000)
    large = suggest(many, {}, recipe=RECIPE, recipe_name="small")
    assert large[7:] == []
    huge = write("b.csv", [*HEALTHY, ("word " * 400_000, "good")])  # cut like any other
    assert "train.epochs=30" in suggest(huge, {}, recipe=RECIPE, recipe_name="small")


@pytest.mark.parametrize(
    ("separator", "advice"),
    [
        ("|", "pass --multi-label"),
        (", ", "write fast|kind and pass --multi-label"),
        (";", "write fast|kind and pass --multi-label"),
    ],
)
def test_labels_that_are_lists_of_others_are_recognised(separator, advice):
    both, labels = separator.join(("fast", "kind")), ("fast", "kind")
    rows = [(f"text number {n}", both if n % 3 == 2 else labels[n % 3]) for n in range(120)]
    finding = only(write("a.csv", rows))
    assert (finding.level, finding.problem, finding.count) == ("warning", "joined_labels", 40)
    assert finding.lines == (4, 7, 10, 13, 16)
    assert finding.message == f"a.csv: labels that look like several: {both!r} (40); {advice}"


def test_labels_with_commas_that_share_nothing_are_labels():
    labels = ("Korea, South", "Korea, North", "Peru")
    rows = [(f"text number {n}", labels[n % 3]) for n in range(120)]
    assert found_in(write("a.csv", rows)) == {}


@pytest.mark.parametrize(
    "text", ["这家餐厅的服务非常好", "とても楽しい映画でした", "ร้านอาหารนี้อร่อยมาก"]
)
def test_texts_without_spaces_are_warned_of(text):
    finding = only(write("a.csv", [*HEALTHY, (text, "good")]))
    assert (finding.level, finding.problem) == ("warning", "unspaced_texts")
    assert "split them first" in finding.message
    assert found_in(write("a.csv", [*HEALTHY, (" ".join(text), "good")])) == {}


def test_cp1252_that_was_read_as_latin_1_is_mangled():
    path = Path("a.csv")
    path.write_bytes(
        b"text,label\n" + b"".join(f"“{n}” – yes,{n % 2}\n".encode("cp1252") for n in range(120))
    )
    finding = only(survey_file(path, Reading(encoding="latin-1")))
    assert (finding.problem, finding.count) == ("mangled_texts", 120)
