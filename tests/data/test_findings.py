"""Every problem is found, with its count and its lines, and a healthy file has none."""

from pathlib import Path

import pytest

from fathomer.config import TextConfig
from fathomer.data.check import suggest_command
from fathomer.data.examples import Example, Examples
from fathomer.data.findings import find_problems
from fathomer.data.reading import ReadOptions
from fathomer.data.survey import survey_examples, survey_file
from tests.data.small import HEALTHY, write_table

CONFIG = TextConfig(max_words=50)


@pytest.fixture(autouse=True)
def _in_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def write(name, rows, **options):
    return survey_file(write_table(name, rows, **options), ReadOptions())


def found_in(survey, *others):
    return {finding.problem: finding for finding in find_problems(survey, others, config=CONFIG)}


def only(survey, *others):
    [finding] = find_problems(survey, others, config=CONFIG)
    return finding


def test_a_healthy_file_has_no_findings():
    assert found_in(write("a.csv", HEALTHY)) == {}


def test_several_labels_of_a_text_are_counted_one_by_one():
    rows = [(f"text number {n}", "warm|cheap" if n % 2 else "") for n in range(120)]
    rows += [("text number 1", "cheap|warm"), ("text number 3", "cheap"), ("a nan", "warm|nan")]
    write("a.csv", rows)
    write("b.csv", [("another text", "cheap|bold")])
    first, second = (
        survey_file(Path(n), ReadOptions(multi_label=True)) for n in ("a.csv", "b.csv")
    )
    assert first.label_counts == {"cheap": 62, "warm": 62, "nan": 1}
    found = found_in(first, second)
    assert found["unlabelled"].count == 60
    assert found["duplicates"].lines == (122,)
    assert found["conflicts"].lines == (5, 123)
    assert found["missing_labels"].message.endswith("a label like 'nan', which may mean no label")
    assert found["imbalance"].message.endswith("as frequent as 'nan'; watch the macro F1")
    assert found["unknown_labels"].message.endswith("occur in a.csv: 'bold' (1)")
    assert "one_label" not in found
    write("c.csv", [("a text", ""), ("another", "")])
    assert "no_labels" in found_in(survey_file(Path("c.csv"), ReadOptions(multi_label=True)))


def test_findings_have_a_count_and_the_first_lines():
    rows = [*HEALTHY, *[HEALTHY[0]] * 7]
    finding = only(write("a.csv", rows))
    assert (finding.level, finding.problem, finding.count) == ("note", "duplicates", 7)
    assert finding.lines == (122, 123, 124, 125, 126)
    assert finding.message == "a.csv: 7 rows with the text and label of an earlier row"


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
        (("a text", "NaN"), "missing_label", "warning"),
        (("a text", "n/a"), "missing_labels", "warning"),
        (("a text", "None"), "missing_labels", "warning"),
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
    findings = find_problems(write("a.csv", rows), [], config=CONFIG)
    assert (findings[0].level, findings[0].problem) == ("error", problem)
    assert [f.problem for f in findings if f.level == "error"] == [problem]


def test_rare_labels_few_texts_and_imbalance_are_warnings():
    rows = [(f"text {n}", "ham") for n in range(60)] + [("buy now", "spam")] * 3
    found = found_in(write("a.csv", rows))
    assert found["few_texts"].count == 63
    assert "'spam' (3)" in found["rare_labels"].message
    assert found["rare_labels"].lines == (62,)
    assert "'ham' is 20 times as frequent as 'spam'" in found["imbalance"].message
    assert "95.2%" in found["imbalance"].message


def test_labels_are_similar_only_if_they_differ_in_spelling():
    pairs = ["C", "C++", "1", "-1", "10", "very good", "not good"]
    rows = [(f"text {n} {label}", label) for n in range(20) for label in pairs]
    assert found_in(write("a.csv", rows)) == {}
    for one, other in (("very good", "Very_Good"), ("1", "1.0"), ("Café", "Cafe\u0301")):
        rows = [(f"text {n} {label}", label) for n in range(60) for label in (one, other)]
        assert only(write("a.csv", rows)).problem == "similar_labels", (one, other)


def test_many_labels_may_be_the_wrong_column():
    rows = [(f"some text number {n}", f"id{n % 70}") for n in range(100)]
    assert found_in(write("a.csv", rows))["many_labels"].count == 70


def test_test_texts_that_are_in_the_training_data_are_leaked():
    train = write("a.csv", HEALTHY)
    other = write("b.csv", [*HEALTHY[:3], ("a new text", "good")])
    finding = only(train, other)
    assert (finding.problem, finding.count, finding.lines) == ("leakage", 3, (2, 3, 4))
    assert finding.message == "b.csv: 3 texts (75.0%) also in a.csv"


def test_a_test_label_that_the_training_data_lacks_is_an_error():
    train = write("a.csv", HEALTHY)
    unknown = ("another", "ugly")
    finding = only(train, write("b.csv", [unknown, ("a new text", "good"), unknown]))
    assert (finding.level, finding.problem, finding.lines) == ("error", "unknown_labels", (2, 4))
    finding = only(train, write("b.csv", [("a new text", "good"), unknown]))
    assert (finding.level, finding.problem, finding.lines) == ("warning", "unknown_labels", (3,))
    assert finding.message.endswith("'ugly' (1); 1 row left out")


def test_another_encoding_is_recognised_and_suggested():
    for encoding, byte in (("cp1252", "€"), ("utf-16", "é")):
        survey = write("a.csv", [*HEALTHY, (f"a caf{byte}", "good")], encoding=encoding)
        finding = only(survey)
        assert (finding.level, finding.problem) == ("warning", "encoding")
        assert f"--encoding {encoding}" in finding.message
        assert suggest_command(survey, {})[-2:] == ["--encoding", encoding]


def test_compressed_files_are_checked_too():
    assert only(write("a.csv.gz", [*HEALTHY, ("a café", "good")], encoding="cp1252")).problem == (
        "encoding"
    )
    Path("bad.csv.gz").write_bytes(b"\x1f\x8b no")
    assert only(survey_file(Path("bad.csv.gz"), ReadOptions())).problem == "unreadable"


def test_other_columns_are_found_and_suggested():
    rows = [(n, label, text, n / 7) for n, (text, label) in enumerate(HEALTHY)]
    survey = write("a.csv", rows, header="id,Sentiment,The review,score")
    finding = only(survey)
    assert (finding.level, finding.problem) == ("warning", "columns")
    command = suggest_command(survey, {})
    assert command[5:] == ["--text-column", "The review", "--label-column", "Sentiment"]


def test_a_column_of_different_values_is_not_taken_for_labels():
    rows = [(n, text) for n, (text, _) in enumerate(HEALTHY)]
    finding = only(write("a.csv", rows, header="id,review"))
    assert (finding.level, finding.problem) == ("error", "unreadable")
    assert "no column 'label' in the header ('id', 'review')" in finding.message


@pytest.mark.parametrize(
    ("name", "separator", "words"),
    [
        ("a.csv", ";", "semicolons"),
        ("a.csv", "\t", "tabs"),
        ("a.tsv", ",", "commas"),
    ],
)
def test_another_separator_is_a_note(name, separator, words):
    survey = write(name, HEALTHY, header=f"text{separator}label", separator=separator)
    finding = only(survey)
    assert (finding.level, finding.problem) == ("note", "separator")
    assert finding.message == f"{name}: columns separated by {words}"
    assert len(survey.examples) == len(HEALTHY)


def test_a_file_without_a_header_is_recognised():
    finding = only(write("a.csv", HEALTHY, header=""))
    assert (finding.level, finding.problem) == ("error", "no_header")


def test_a_file_that_cannot_be_read_is_an_error_with_its_line():
    finding = only(write("a.csv", [*HEALTHY, ("one", "two", "three")]))
    assert (finding.level, finding.problem) == ("error", "unreadable")
    assert finding.message.startswith("a.csv, line 122: 3 columns, but the header has 2")
    Path("empty.csv").write_bytes(b"")
    assert only(survey_file(Path("empty.csv"), ReadOptions())).message == (
        "empty.csv: the file is empty"
    )


def test_files_that_need_different_options_are_an_error():
    train = write("a.csv", HEALTHY)
    other = write("b.csv", [("a café", "good")], encoding="cp1252")
    assert found_in(train, other)["unlike_files"].level == "error"


def test_findings_in_a_corpus_count_texts_instead_of_lines():
    examples = Examples([Example(*row) for row in [*HEALTHY, HEALTHY[0]]])
    finding = only(survey_examples("corpus", examples))
    assert (finding.problem, finding.unit, finding.lines) == ("duplicates", "text", (121,))


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


def test_labels_with_commas_that_share_nothing_are_not_lists():
    labels = ("Korea, South", "Korea, North", "Peru")
    rows = [(f"text number {n}", labels[n % 3]) for n in range(120)]
    assert found_in(write("a.csv", rows)) == {}


@pytest.mark.parametrize(
    "text", ["这家餐厅的服务非常好", "とても楽しい映画でした", "ร้านอาหารนี้อร่อยมาก"]
)
def test_texts_without_spaces_are_a_warning(text):
    finding = only(write("a.csv", [*HEALTHY, (text, "good")]))
    assert (finding.level, finding.problem) == ("warning", "unspaced_texts")
    assert "split the words first" in finding.message
    assert found_in(write("a.csv", [*HEALTHY, (" ".join(text), "good")])) == {}


def test_cp1252_read_as_latin_1_is_mangled():
    path = Path("a.csv")
    path.write_bytes(
        b"text,label\n" + b"".join(f"“{n}” – yes,{n % 2}\n".encode("cp1252") for n in range(120))
    )
    finding = only(survey_file(path, ReadOptions(encoding="latin-1")))
    assert (finding.problem, finding.count) == ("mangled_texts", 120)
