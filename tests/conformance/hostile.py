"""Makes every text of a report's documents hostile: markup, 300 characters, right to left, emoji, ends of what a page puts around them.

A plan's own names are letters and digits, but a document may be anybody's: `stormwake report` makes pages of it.
usage: hostile.py FOLDER
"""

import itertools
import json
import pathlib
import sys

NAMES = itertools.cycle([
    "<script>window.struck = 1</script><img src=x onerror='window.struck = 1'>",
    "n" * 300,
    "\u202egnp.exe\u202c عبد العزيز 📱 \"'><svg onload=\"window.struck=1\">",
    "]]>--></title></style></script></template><script>window.struck = 1</script>",
    "| a | b |\n# `@everyone` [x](javascript:window.struck=1) {{7*7}} %0A::error::x",
    "=HYPERLINK(\"http://127.0.0.1:1/\")",
    "\u0000\u001b[31m\u0008\u2028\ud7ff\ufeff",
])
# What a document says in words of its own; all else is a figure or one of a few words.
FREE = {"name", "path", "policy", "gate", "observed", "wanted", "sentence", "detail", "text", "operator", "note", "limit", "fault", "fleet", "kind"}
LISTS = {"reasons", "faults"}


def hostile(value, key=None):
    if isinstance(value, dict):
        return {k: hostile(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [next(NAMES) if isinstance(v, str) and key in LISTS else hostile(v, key) for v in value]
    return next(NAMES) + value[:20] if isinstance(value, str) and key in FREE else value


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in ["result.json", "seeds.json", "compare.json"]:
        file = folder / name
        if file.exists():
            document = hostile(json.loads(file.read_text()))
            for key in ["operator", "note"]:
                document[key] = next(NAMES)
            if name == "result.json":
                document["notes"] = [{"t_ms": 1000 * n, "text": next(NAMES)} for n in range(8)]
            file.write_text(json.dumps(document))
    plan = folder / "effective.yaml"
    plan.write_text(plan.read_text() + "".join(f"# {next(NAMES)}\n" for _ in range(8)))


main()
