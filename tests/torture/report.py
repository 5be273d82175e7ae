"""Put the results of ``make torture`` into docs/reliability.md: python -m tests.torture.report"""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE, RESULTS = ROOT / "docs" / "reliability.md", ROOT / "build" / "torture"
START, END = "<!-- results -->\n", "<!-- end of results -->\n"


def table() -> str:
    """Return the results as a table."""
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]
    lines = ["| attack | tried | failed | seconds | commit |", "|---|---:|---:|---:|---|"]
    lines += [
        f"| {row['name']} | {row['tried']:,} | {len(row['failures'])} | {row['seconds']} "
        f"| `{row['commit']}` |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(before + START + table() + END + rest.partition(END)[2], encoding="utf-8")
    print(table(), end="")
