// Prints what npm's hdr-histogram-js makes of each interval of a log, as JSON: the tag, the percentile text in milliseconds, and the values.
// usage: hdr_read.cjs LOG
const fs = require("fs");
const { HistogramLogReader, listTags } = require("hdr-histogram-js");

const log = fs.readFileSync(process.argv[2], "utf8");
const reader = new HistogramLogReader(log);
const intervals = [];
for (let histogram; (histogram = reader.nextIntervalHistogram()) !== null; ) {
  intervals.push({
    tag: histogram.tag,
    from_ms: histogram.startTimeStampMsec,
    to_ms: histogram.endTimeStampMsec,
    count: histogram.totalCount,
    max: histogram.maxValue,
    text: histogram.outputPercentileDistribution(5, 1000),
  });
}
console.log(JSON.stringify({ tags: listTags(log), intervals }));
