"""Compares what three ports of HdrHistogram read from a run's `latency.hlog`, and what its `.hgrm` files say.

usage: hdr_read.py HDRHISTOGRAM_JAR HDR_READ_CJS REPORT_FOLDER
"""

import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader


def by_java(jar, log, tag, folder):
    """The percentile text that HdrHistogram's tool makes of all intervals of a tag, without the line that names their time."""
    out = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "out"
    tool = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jar, "org.HdrHistogram.HistogramLogProcessor"]
    subprocess.run([*tool, "-i", str(log), "-tag", tag, "-outputValueUnitRatio", "1000", "-o", str(out)], check=True)
    first, _, rest = pathlib.Path(f"{out}.hgrm").read_text().partition("\n")
    assert first.startswith("#["), first
    return rest


def by_python(log):
    """Each interval of the log, in order."""
    reader, found = HistogramLogReader(str(log), HdrHistogram(1, 3_600_000_000, 3)), []
    while (histogram := reader.get_next_interval_histogram()) is not None:
        found.append(histogram)
    return found


def lines(text):
    """(value in microseconds, percentile, how many are no larger) of each line of a percentile text."""
    rows = [line.split() for line in text.splitlines()[1:] if line.strip() and not line.startswith("#")]
    return [(round(float(row[0]) * 1000), float(row[1]) * 100, int(row[2])) for row in rows]


def at_percentile(histogram, percentile):
    """The line of a percentile, from the values of the histogram. Its own `get_value_at_percentile` rounds the rank to the nearest, where Java's
    tool takes the first value that reaches the percentile: between two values that may be another."""
    count, total = 0, histogram.get_total_count()
    for recorded in histogram.get_recorded_iterator():
        count += recorded.count_at_value_iterated_to
        if 100 * count / total >= percentile - 1e-10:
            return (histogram.get_highest_equivalent_value(recorded.value_iterated_to), percentile, count)


def same(what, got, wanted):
    if got != wanted:
        differ = [pair for pair in zip(got.splitlines(), wanted.splitlines()) if pair[0] != pair[1]] if isinstance(got, str) else (got, wanted)
        sys.exit(f"{what}: {differ[:4]}")


def retagged(log, folder, name, wanted):
    """A log of the intervals whose tag and moment are wanted, all under one tag: so the Java tool adds them up."""
    out = [line for line in log.read_text().splitlines() if not line.startswith("Tag=")]
    for line in log.read_text().splitlines():
        if line.startswith("Tag="):
            tag, start, rest = line[4:].split(",", 2)
            if wanted(tag, round(float(start) * 1000)):
                out.append(f"Tag=all,{start},{rest}")
    path = pathlib.Path(folder) / f"{name}.hlog"
    path.write_text("\n".join(out) + "\n")
    return path


def main():
    jar, cjs, report = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    log = report / "latency.hlog"
    result = json.loads((report / "result.json").read_text())
    npm = json.loads(subprocess.run(["node", cjs, str(log)], check=True, capture_output=True, text=True).stdout)
    python = by_python(log)
    same("tags in order", [h.get_tag() for h in python], [interval["tag"] for interval in npm["intervals"]])
    tags = list(dict.fromkeys(interval["tag"] for interval in npm["intervals"]))
    same("list of tags", npm["tags"], tags)

    fleets, phases = {fleet["name"] for fleet in result["fleets"]}, {phase["name"] for phase in result["phases"]}
    for tag in tags:
        phase, fleet, _ = map(urllib.parse.unquote, tag.split("/"))
        assert fleet in fleets and phase in phases, tag

    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        java = dict(zip(tags, pool.map(lambda tag: by_java(jar, log, tag, folder), tags)))
        compared = 0
        for tag in tags:
            of_npm = [interval for interval in npm["intervals"] if interval["tag"] == tag]
            of_python = [histogram for histogram in python if histogram.get_tag() == tag]
            if len(of_npm) == 1:
                same(f"{tag}: npm's text and Java's", of_npm[0]["text"].rstrip(), java[tag].rstrip())
            whole = HdrHistogram(1, 3_600_000_000, 3)
            for histogram in of_python:
                whole.add(histogram)
            same(f"{tag}: count", whole.get_total_count(), sum(interval["count"] for interval in of_npm))
            same(f"{tag}: max", whole.get_max_value(), max(interval["max"] for interval in of_npm))
            for row in lines(java[tag]):
                same(f"{tag}: {row[1]}% by PyPI and by Java", at_percentile(whole, row[1]), row)
                compared += 1

        succeeded = lambda tag: tag.endswith("/operation.succeeded")
        files = {"latency": (0, float("inf"))}
        files |= {f"latency-{stretch['name']}": (stretch["from_ms"], stretch["to_ms"]) for stretch in result["stretches"]}
        for name, (begin, end) in files.items():
            hgrm, together = report / f"{name}.hgrm", retagged(log, folder, name, lambda tag, at: succeeded(tag) and begin <= at < end)
            if "Tag=" not in together.read_text():
                assert not hgrm.exists(), f"{hgrm} of nothing"
                continue
            same(f"{name}.hgrm and Java's text", hgrm.read_text(), by_java(jar, together, "all", folder))
        counted = {stretch["name"]: stretch["latency"]["count"] for stretch in result["stretches"] if stretch["latency"]["count"]}
        left = sorted(path.name for path in report.glob("*.hgrm"))
        same("files", left, sorted(["latency.hgrm"] + [f"latency-{name}.hgrm" for name in counted]))
    print(f"{result['plan']['name']}: {len(tags)} tags, {compared} percentiles, {len(left)} .hgrm files, equal in all")


main()
