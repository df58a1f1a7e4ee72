"""Runs plans, one with hostile names among them, and reads junit.xml and summary.md with foreign readers. usage: reports.py STORMWAKE ROOT"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options
from junitparser import Error, Failure, JUnitXml

STORMWAKE, ROOT = sys.argv[1], Path(sys.argv[2])
HOSTILE = "<script>alert(1)</script><img src=x>|`a``b` **x** ](http://evil.example) www.evil.example a@b.example @team #1 \u05d6\u05d4 \U0001f329 \\| ]]> & " + "x" * 300
GATES = ["success: '>= 99.99%'", "p99: '<= 1ms'", "retry_share: '<= 100%'"]


def plan(name, gates):
    text = (ROOT / "plans/quickstart-budget.yaml").read_text()
    text = text.replace("name: quickstart-budget", f"name: {name}")
    return text + "\ngates:\n" + "".join(f"  - {{ {gate} }}\n" for gate in gates)


def run(out, *args):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
    done = subprocess.run([STORMWAKE, *args, "--quiet", "--out", out], capture_output=True, text=True, env=environment)
    junit = sorted(Path(out).rglob("junit.xml"), key=lambda path: len(path.parts))
    assert junit, f"{args}: code {done.returncode}: {done.stderr}"
    return done.returncode, junit[0].parent


def kinds(case):
    return [type(result) for result in case.result]


def read(folder, code):
    xml = JUnitXml.fromfile(str(folder / "junit.xml"))
    suites = list(xml)
    cases = [case for suite in suites for case in suite]
    failures = sum(Failure in kinds(case) for case in cases)
    errors = sum(Error in kinds(case) for case in cases)
    assert (xml.tests, xml.failures, xml.errors) == (len(cases), failures, errors), (xml.tests, xml.failures, xml.errors)
    assert {0: failures + errors == 0, 1: failures > 0, 3: errors > 0}[code], (code, failures, errors)
    for suite in suites:
        properties = {each.name: each.value for each in suite.properties()}
        assert properties["exit_code"] == str(code) and len(properties["plan_sha256"]) == 64 and properties["engine"] == "sim", properties
        assert len({case.name for case in suite}) == len(list(suite)), "names are their own"
    for case in cases:
        for result in case.result:
            assert isinstance(result, (Failure, Error)) and result.message and result.type and result.text, case
    harmless((folder / "summary.md").read_text())
    return suites, cases


def harmless(summary):
    html = cmarkgfm.github_flavored_markdown_to_html(summary, options=Options.CMARK_OPT_UNSAFE)
    found = re.findall(r"<(?:script|img|a|iframe|li><h)\b[^>]*>", html)
    assert not found, (found, summary)
    assert html.count("<h3>") == 1 and "<h1>" not in html and "<h2>" not in html, html
    for table in re.findall(r"<table>.*?</table>", html, flags=re.S):
        rows = re.findall(r"<tr>(.*?)</tr>", table, flags=re.S)
        widths = {len(re.findall(r"<t[hd]\b", row)) for row in rows}
        assert len(widths) == 1, table
    # As many tables as there are rules of tables: none was broken off.
    assert html.count("<table>") == len(re.findall(r"^\| ---", summary, flags=re.M)), html


def line_of(path, text):
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def one_run():
    path = Path("failing.yaml")
    path.write_text(plan("failing", GATES))
    code, folder = run("one", "simulate", str(path), "--seed", "1")
    (suite,), cases = read(folder, code)
    result = json.loads((folder / "result.json").read_text())
    names = [case.name for case in cases]
    assert suite.name.startswith("failing (") and names[1:-1] == [finding["gate"] for finding in result["findings"]], names
    failed = [case.name for case in cases if case.result]
    assert failed == [finding["gate"] for finding in result["findings"] if finding["status"] == "fail"] and len(failed) == 2, failed
    assert f"failing.yaml:{line_of(path, 'p99:')}" in cases[2].result[0].text, cases[2].result[0].text
    assert abs(suite.time - result["duration_ms"] / 1e3) < 1e-3 and abs(sum(case.time or 0 for case in cases) - suite.time) < 1e-3
    _, second = run("again", "simulate", str(path), "--seed", "1")
    for name in ["junit.xml", "summary.md"]:
        assert (folder / name).read_bytes() == (second / name).read_bytes(), f"{name} differs on repeat"


def poisoned(value, key=""):
    """A document whose every free text is hostile. A plan cannot have such names, but a document may be anybody's."""
    if isinstance(value, dict):
        return {key: poisoned(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [poisoned(each, key) for each in value]
    free = {"gate", "wanted", "observed", "sentence", "name", "path", "policy", "reasons", "detail", "fault", "fleet", "fleets", "faults", "last_clause", "limit", "operator", "note"}
    return HOSTILE if isinstance(value, str) and key in free else value


def again(folder, name, change):
    """Makes the reports of a changed document, and says where."""
    document = json.loads((folder / name).read_text())
    changed = Path("poisoned") / name.split(".")[0]
    changed.mkdir(parents=True, exist_ok=True)
    (changed / name).write_text(json.dumps(change(document)))
    done = subprocess.run([STORMWAKE, "report", str(changed)], capture_output=True, text=True)
    assert done.returncode == 0 and "junit.xml" in done.stdout, done
    assert done.stdout.count(str(changed)) == len(done.stdout.splitlines()), done.stdout
    return changed


def hostile():
    path = Path("failing.yaml")
    path.write_text(plan("failing", GATES * 170))
    code, folder = run("hostile", "simulate", str(path), "--seed", "1")
    _, cases = read(folder, code)
    assert len(cases) == 512
    changed = again(folder, "result.json", lambda result: poisoned({**result, "operator": "x", "note": "x", "reasons": ["x"] * 40}))
    _, cases = read(changed, code)
    assert len(cases) == 512 and (changed / "summary.md").stat().st_size < 256 * 1024
    same = again(folder, "result.json", lambda result: result)
    for name in ["junit.xml", "summary.md", "windows.csv"]:
        assert (folder / name).read_bytes() == (same / name).read_bytes(), f"{name} is made differently from its document"
    code, folder = run("hostile-many", "simulate", str(path), "--seeds", "3")
    read(again(folder, "seeds.json", poisoned), code)
    code, folder = run("hostile-compare", "compare", str(ROOT / "plans/compare-policies.yaml"), "--seeds", "3")
    read(again(folder, "compare.json", poisoned), code)


def many():
    code, folder = run("many", "simulate", str(ROOT / "plans/quickstart.yaml"), "--seeds", "3")
    _, cases = read(folder, code)
    assert code == 0 and cases[0].name == "recovery is STUCK in every seed"
    code, folder = run("compare", "compare", str(ROOT / "plans/compare-policies.yaml"), "--seeds", "3")
    suites, _ = read(folder, code)
    result = json.loads((folder / "compare.json").read_text())
    assert [suite.name.endswith(f"({policy['name']})") for suite, policy in zip(suites, result["policies"], strict=True)]


one_run()
hostile()
many()
print("junit.xml and summary.md are read by junitparser and cmark-gfm")
