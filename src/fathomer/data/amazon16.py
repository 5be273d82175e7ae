"""The sixteen domains of Amazon-16 (Liu et al., 2017): reviews of products, and of films.

Table 1 of the paper gives lengths for all domains together, and its text 1,600 training texts for
each; five domains really have fewer. The paper gave up a development part for these small corpora.
"""

from fathomer.data.corpus import Archive, Corpus, File, Lengths, Published
from fathomer.data.layouts import tabbed_lines

ARCHIVE = Archive(
    ("fudan-mtl-dataset.tar.gz", "mtl-dataset.tar.gz"),
    # The authors' page, http://nlp.fudan.edu.cn/data/, is named in their paper; this copy answers.
    "https://github.com/FrankWork/fudan_mtl_reviews/raw/master/data/fudan-mtl-dataset.tar.gz",
)


def _amazon(
    domain: str, *, stem: str, train: int, words: Lengths, sha256: tuple[str, str]
) -> Corpus:
    encoding = "cp1252" if domain == "mr" else "utf-8"
    first, second = sha256
    return Corpus(
        name=f"amazon16/{domain}",
        kind="sentiment",
        labels={"0": "negative", "1": "positive"},
        layout=tabbed_lines,
        files=(
            File(name=f"{stem}.task.train", encoding=encoding, sha256=first),
            File(name=f"{stem}.task.test", split="test", encoding=encoding, sha256=second),
        ),
        archive=ARCHIVE,
        page="http://nlp.fudan.edu.cn/data/",
        terms="not stated",
        sizes=(train, 400),
        published=Published(Lengths(133, 5_942), 1_600, 400),
        words=words,
    )


DOMAINS = (
    _amazon(
        "apparel",
        stem="apparel",
        train=1_600,
        words=Lengths(68.4, 1_213),
        sha256=(
            "589702d71eded8ca23907acf6e434f203c8c6feb09737106f77f03707641ffc3",
            "8e591ec14fa0e3d26837b9a40c99d3a93b49f47e7a3fbe4d0afe1b4e1dd45439",
        ),
    ),
    _amazon(
        "baby",
        stem="baby",
        train=1_500,
        words=Lengths(120.4, 862),
        sha256=(
            "0d884186f3aef0e12dafac0a875887fe631de0df992b15158ab177763882bf57",
            "8763bb4b8bbf83b93b6aab03706719fc742fb7d89830a6bd95ea1c2490ea58f7",
        ),
    ),
    _amazon(
        "books",
        stem="books",
        train=1_600,
        words=Lengths(185.7, 6_118),
        sha256=(
            "40c4c5971165b9e0a509a60472c3bf06c8e1430d4944833141eb3c34d986b65e",
            "b451ac03e48b599bf35dd1a450158389e1ac9018950e95c631053ac14a5b10ad",
        ),
    ),
    _amazon(
        "camera",
        stem="camera_photo",
        train=1_597,
        words=Lengths(139.7, 2_681),
        sha256=(
            "425bf93c303b2f38d2f53649508ea9e55d0114679ecb00fda5c2c15ebbe9e708",
            "3fdea0837d6c41f04720dce8d2e690bbdeb5019ecac749f8f38472ac1dcfa439",
        ),
    ),
    _amazon(
        "dvd",
        stem="dvd",
        train=1_600,
        words=Lengths(203.1, 5_452),
        sha256=(
            "47334240d9cef76ac5f15a10f9082c3d2c6e7f9a9bb0478a3800ede2a0300771",
            "762e6e030892375eda4f211be58624a3bb6a07c966901c79b803837d21fca4b5",
        ),
    ),
    _amazon(
        "electronics",
        stem="electronics",
        train=1_598,
        words=Lengths(119.0, 2_103),
        sha256=(
            "bb2f28c4a20e3d075dd71ff049970bd445f4d47bcc8404a68eb03850413a8da7",
            "a4d2e7d2a5b8b501a6611e45e1b241aa0d601388b79265cfc94c203cb52f8b8c",
        ),
    ),
    _amazon(
        "health",
        stem="health_personal_care",
        train=1_600,
        words=Lengths(95.4, 1_215),
        sha256=(
            "384f1ec3d76a2f755844cac4bd7725b86bc79910dae60fc33f133e380f827b4a",
            "07f289177da7ebe71f1ac2ee3d5a25f190913e2a11116f0fb55862e01b60a331",
        ),
    ),
    _amazon(
        "imdb",
        stem="imdb",
        train=1_600,
        words=Lengths(270.0, 1_184),
        sha256=(
            "16dd91ee7aebde130cfeb4d1c58bfe221ad87f1862fdb8ae694693eec3432caa",
            "dc708b7338157a6be56a1ded26abd97f82284d0e736876a6b833ad59e8a2cd53",
        ),
    ),
    _amazon(
        "kitchen",
        stem="kitchen_housewares",
        train=1_600,
        words=Lengths(100.3, 1_421),
        sha256=(
            "df5c9e8473b084a6b252dfbb5e074adcaacb9638a882fee3f20d62d747f45d6f",
            "86bcc015f7cfa773880951830ac6161dc2b8717e8a69773ca11a5bd6529b2020",
        ),
    ),
    _amazon(
        "magazines",
        stem="magazines",
        train=1_570,
        words=Lengths(131.5, 2_713),
        sha256=(
            "d4805a9f094c1c7befa64bc42ea846261b1290a2fd120c46f45c9e89faf782ae",
            "620ecd0ccd7b7f73483b8cdcef5ca07dff92e2d57c9cf4b6e9f7d669a681f6c3",
        ),
    ),
    _amazon(
        "mr",
        stem="MR",
        train=1_600,
        words=Lengths(21.9, 63),
        sha256=(
            "a6f222085a50061dd560c3beafc968679abae74683e3d18a66b619c5e2d178dc",
            "82ec2a6d570978d173240dfd655c25e151761d7d0ace365725745a361e6fabea",
        ),
    ),
    _amazon(
        "music",
        stem="music",
        train=1_600,
        words=Lengths(154.0, 1_713),
        sha256=(
            "f0b41243475c16391a02e91d87710ed87d68927d4d77f526a3d2369a98ac572e",
            "54a157c56930b9e587b6b955fe4b2e3258d2f70d0d58ccbbf40a4bfd846ee204",
        ),
    ),
    _amazon(
        "software",
        stem="software",
        train=1_515,
        words=Lengths(150.0, 4_900),
        sha256=(
            "a050cb3ea22b94b21ce70acff3a23eabd1f39307bd862d6c0cc23170eb4830f4",
            "3b92617a5b3ad618b7aaab98546d49c2a69f46dedbceb4ec14dee1cbb4ff02d3",
        ),
    ),
    _amazon(
        "sports",
        stem="sports_outdoors",
        train=1_600,
        words=Lengths(109.9, 1_243),
        sha256=(
            "062ac0e2fb04a81c1f06f15b219634810a323a2ee187750e2f479030ebad0326",
            "77394d7c91fbc69cc16bfaf79f1f945999fe2d8e0fc536f1f79d17089e611f49",
        ),
    ),
    _amazon(
        "toys",
        stem="toys_games",
        train=1_600,
        words=Lengths(104.4, 1_141),
        sha256=(
            "bb8404d3b48ab02bca2a75bb1e245297aac36b8143a81549f6485b4c2d24dd10",
            "6ee304a53f25697ee96bcb60fe07cc36d282ef343c3e0f8ae09df669ec39b116",
        ),
    ),
    _amazon(
        "video",
        stem="video",
        train=1_600,
        words=Lengths(168.7, 1_597),
        sha256=(
            "2867b3e5fffc44132aa61ff49dd608eeacc503b2c9c2133680f0cb4a7a258f3e",
            "8de7a49ee3001409c9049b1f52949d78c7875cb92e031b43f5cef681dfd341e4",
        ),
    ),
)
