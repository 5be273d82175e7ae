"""The corpora of the paper's Table 1, one small entry each; Amazon-16 has a file of its own.

An entry tells what its source publishes: files, format, encoding, labels, terms and checksums.
``published`` holds the figures of Table 1, ``sizes`` what the published files really hold; the two
differ in places, and ``fathomer data check`` says so. Checksums of files are those of the published
files; those of archives are the ones that other projects verify their downloads with.
"""

from fathomer.data.corpus import Archive, Corpus, File, Lengths, Published
from fathomer.data.layouts import csv_layout, plain_lines, question_lines, whole_text

_NEGATIVE_POSITIVE = {"neg": "negative", "pos": "positive"}
_CORNELL = "https://www.cs.cornell.edu/people/pabo/movie-review-data/"
_CORNELL_TERMS = 'no licence stated; distributed "for use in sentiment-analysis experiments"'
_ZHANG = "https://drive.google.com/drive/folders/0Bz8a_Dbh9Qhbfll6bVpmNUtUcFdjYmF2SEpmZUxUcVNiMUw1TWN6RDV3a0JHT3kxLVhVR2M"
# A mirror of Zhang's archives, since the original ones on Google Drive answer browsers only.
_MIRROR = "https://s3.amazonaws.com/fast-ai-nlp/"
_YELP_TERMS = (
    "none stated in the archive; the reviews come from the Yelp Dataset Challenge 2015, "
    "see https://www.yelp.com/dataset for Yelp's terms"
)
_QUESTIONS = "https://cogcomp.seas.upenn.edu/Data/QA/QC/"


def _csv_archive(stem: str, sha256: str) -> Archive:
    return Archive((f"{stem}.tgz", f"{stem}.tar.gz"), f"{_MIRROR}{stem}.tgz", sha256)


def _csv_files() -> tuple[File, ...]:
    return File(name="train.csv"), File(name="test.csv", split="test")


TREC = Corpus(
    name="trec",
    kind="question",
    labels={
        "ABBR": "abbreviation",
        "DESC": "description",
        "ENTY": "entity",
        "HUM": "human",
        "LOC": "location",
        "NUM": "number",
    },
    layout=question_lines,
    files=(
        File(
            name="train_5500.label",
            encoding="cp1252",
            sha256="9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
            url=f"{_QUESTIONS}train_5500.label",
        ),
        File(
            name="TREC_10.label",
            split="test",
            encoding="cp1252",
            sha256="033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
            url=f"{_QUESTIONS}TREC_10.label",
        ),
    ),
    page=_QUESTIONS,
    terms="not stated",
    sizes=(5_452, 500),
    published=Published(Lengths(12, 39), 5_952, 500),
    words=Lengths(10.3, 37),
)

MR = Corpus(
    name="mr",
    kind="sentiment",
    labels=_NEGATIVE_POSITIVE,
    layout=plain_lines,
    files=(
        File(
            name="rt-polarity.pos",
            label="pos",
            encoding="cp1252",
            sha256="2da124ec187a9d5a29c9f04e91c540e02baed5af8868f550a26bd6fd4dbf8bf0",
        ),
        File(
            name="rt-polarity.neg",
            label="neg",
            encoding="cp1252",
            sha256="4ace77d558c3714723843f1d65b60c01e3417b208180f0728808d76ad0eeeaca",
        ),
    ),
    archive=Archive(("rt-polaritydata.tar.gz",), f"{_CORNELL}rt-polaritydata.tar.gz"),
    page=_CORNELL,
    terms=_CORNELL_TERMS,
    sizes=(10_662, 0),
    published=Published(Lengths(23, 61), 10_622, None),
    words=Lengths(21.7, 63),
    folds=10,
)

SUBJ = Corpus(
    name="subj",
    kind="sentiment",
    labels={"plot": "objective", "quote": "subjective"},
    layout=plain_lines,
    files=(
        File(
            name="plot.tok.gt9.5000",
            label="plot",
            encoding="cp1252",
            sha256="5ddc9b44dc60d64d651347fcd7bdd489b0c70661e3f768215c16eea36f51204a",
        ),
        File(
            name="quote.tok.gt9.5000",
            label="quote",
            encoding="cp1252",
            sha256="73a2dcf8dc3cbcc7f068a70ef9f021c86b2a8e4dac81566b7fd015b3e938f2c5",
        ),
    ),
    archive=Archive(("rotten_imdb.tar.gz",), f"{_CORNELL}rotten_imdb.tar.gz"),
    page=_CORNELL,
    terms=_CORNELL_TERMS,
    sizes=(10_000, 0),
    published=Published(Lengths(26, 122), 10_000, None),
    words=Lengths(24.7, 122),
    folds=10,
)

IMDB = Corpus(
    name="imdb",
    kind="sentiment",
    labels=_NEGATIVE_POSITIVE,
    layout=whole_text,
    files=tuple(
        File(name=f"aclImdb/{split}/{label}/", split=split, label=label)
        for split in ("train", "test")
        for label in ("neg", "pos")
    ),
    archive=Archive(
        ("aclImdb_v1.tar.gz",),
        "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
        "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
    ),
    page="https://ai.stanford.edu/~amaas/data/sentiment/",
    terms="no licence stated; asks to cite Maas et al. (ACL 2011)",
    sizes=(25_000, 25_000),
    published=Published(Lengths(230, 2_472), 25_000, 25_000),
    words=Lengths(265.9, 2_743),
)

AG_NEWS = Corpus(
    name="ag_news",
    kind="topic",
    labels={"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"},
    # A newline of the articles is a lone backslash here, and a dollar sign is escaped by one.
    layout=csv_layout(columns=3, escapes={"\\$": "$", "\\": " "}),
    files=(
        File(
            name="train.csv",
            sha256="76a0a2d2f92b286371fe4d4044640910a04a803fdd2538e0f3f29a5c6f6b672e",
            partial="train_partial_25k.csv",
        ),
        File(
            name="test.csv",
            split="test",
            sha256="521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699",
        ),
    ),
    archive=_csv_archive(
        "ag_news_csv", "9a8c300eabb45750237fcc669f61cb8a3448f3ef6f6098e1ce340e444f6872be"
    ),
    page=_ZHANG,
    terms='"for research purposes ... and any other non-commercial activity" (its readme.txt)',
    sizes=(120_000, 7_600),
    published=Published(Lengths(44, 221), 120_000, 7_600),
)

DBPEDIA = Corpus(
    name="dbpedia",
    kind="topic",
    labels={
        "1": "Company",
        "2": "EducationalInstitution",
        "3": "Artist",
        "4": "Athlete",
        "5": "OfficeHolder",
        "6": "MeanOfTransportation",
        "7": "Building",
        "8": "NaturalPlace",
        "9": "Village",
        "10": "Animal",
        "11": "Plant",
        "12": "Album",
        "13": "Film",
        "14": "WrittenWork",
    },
    layout=csv_layout(columns=3, escapes={}),
    files=_csv_files(),
    archive=_csv_archive(
        "dbpedia_csv", "42db5221ddedddb673a4cabcc5f3a7d869714c878bcfe4ba94b29d14aa38e417"
    ),
    page=_ZHANG,
    terms="CC BY-SA 3.0 and the GNU Free Documentation License",
    sizes=(560_000, 70_000),
    published=Published(Lengths(67, 3_841), 560_000, 70_000),
)

_YELP_LAYOUT = csv_layout(columns=2, escapes={"\\n": "\n", '\\"': '"'})

YELP_POLARITY = Corpus(
    name="yelp_polarity",
    kind="sentiment",
    labels={"1": "negative", "2": "positive"},
    layout=_YELP_LAYOUT,
    files=_csv_files(),
    archive=_csv_archive(
        "yelp_review_polarity_csv",
        "528f22e286cad085948acbc3bea7e58188416546b0e364d0ae4ca0ce666abe35",
    ),
    page=_ZHANG,
    terms=_YELP_TERMS,
    sizes=(560_000, 38_000),
    published=Published(Lengths(177, 2_066), 560_000, 38_000),
)

YELP_FULL = Corpus(
    name="yelp_full",
    kind="sentiment",
    labels={"1": "1 star", **{str(n): f"{n} stars" for n in range(2, 6)}},
    layout=_YELP_LAYOUT,
    files=_csv_files(),
    archive=_csv_archive(
        "yelp_review_full_csv", "56006b0a17a370f1e366504b1f2c3e3754e4a3dda17d3e718a885c552869a559"
    ),
    page=_ZHANG,
    terms=_YELP_TERMS,
    sizes=(650_000, 50_000),
    published=Published(Lengths(179, 2_342), 650_000, 50_000),
)
