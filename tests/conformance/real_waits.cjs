// Compares presets with the libraries of npm whose rules they are, with every draw pinned to 0, 1/2 and 1.
// usage: node real_waits.cjs PATH-TO-STORMWAKE
const { execFileSync } = require("node:child_process");
const path = require("node:path");

const DRAWS = { least_s: 0, middle_s: 0.5, most_s: 1 };
const wrong = [];

/** A module of a package that the package does not export. */
function inner(name, file) {
  const home = process.env.NODE_PATH.split(path.delimiter).map((folder) => path.join(folder, name));
  return require(path.join(home[0], file));
}

function preset(name) {
  return JSON.parse(execFileSync(process.argv[2], ["policies", "show", name, "--json"], { encoding: "utf8" }));
}

function pinned(draw, ask) {
  const random = Math.random;
  Math.random = () => draw;
  try {
    return ask();
  } finally {
    Math.random = random;
  }
}

/** `real(draw)` gives a function from the number of a retry, asked in order, to its wait in seconds. */
function compare(name, real, keys = Object.keys(DRAWS)) {
  let compared = 0;
  let differ = 0;
  for (const key of keys) {
    const draw = DRAWS[key];
    const wait = real(draw);
    for (const row of preset(name).waits) {
      const theirs = pinned(draw, () => wait(row.retry));
      compared += 1;
      if (Math.abs(theirs - row[key]) > 1e-6) {
        differ += 1;
        wrong.push(`${name}: retry ${row.retry}, draw ${draw}: the preset says ${row[key]}, the library ${theirs}`);
      }
    }
  }
  console.log(`${name}: ${compared} figures compared, ${differ} wrong`);
}

const { RetryingCall } = inner("@grpc/grpc-js", "build/src/retrying-call.js");
compare("grpc-retry", () => {
  const retryPolicy = { initialBackoff: "0.1s", maxBackoff: "1s", backoffMultiplier: 2 };
  const call = Object.create(RetryingCall.prototype);
  Object.assign(call, { nextRetryBackoffSec: 0.1, callConfig: { methodConfig: { retryPolicy } } });
  return () => call.getNextRetryBackoffMs() / 1000;
});

// grpc-js gives its first wait no jitter, and lets a wait grow from the jittered one before it: the middle draw is the same.
const { BackoffTimeout } = inner("@grpc/grpc-js", "build/src/backoff-timeout.js");
compare(
  "grpc-connection-backoff",
  () => {
    const backoff = new BackoffTimeout(() => {});
    const waits = [];
    backoff.runTimer = (delay) => waits.push(delay);
    return (retry) => {
      backoff.runOnce();
      return waits[retry - 1] / 1000;
    };
  },
  ["middle_s"],
);

const Stripe = require("stripe");
const sender = new (Stripe.Stripe ?? Stripe.default ?? Stripe)("sk_test_none")._requestSender;
compare("stripe", () => (retry) => sender._getSleepTimeInMS(retry) / 1000);

if (wrong.length > 0) {
  console.error(wrong.join("\n"));
  process.exit(1);
}
