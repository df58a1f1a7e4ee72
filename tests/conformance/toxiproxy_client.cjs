// Every call of npm's toxiproxy-node-client, unchanged, against a running `stormwake proxy`.
// usage: toxiproxy_client.cjs http://HOST:PORT
"use strict";
const assert = require("node:assert/strict");
const http = require("node:http");
const net = require("node:net");
const { Toxiproxy } = require("toxiproxy-node-client");

function serve() {
  const server = http.createServer((_, response) => response.end("ok"));
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

function get(listen) {
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const request = http.get({ host: listen.split(":")[0], port: listen.split(":")[1], agent: false }, (response) => {
      let body = "";
      response.on("data", (data) => (body += data));
      response.on("end", () => resolve([body, performance.now() - start]));
    });
    request.on("error", reject);
  });
}

function refuses(listen) {
  return new Promise((resolve) => {
    const socket = net.connect(listen.split(":")[1], listen.split(":")[0]);
    socket.on("connect", () => (socket.destroy(), resolve(false)));
    socket.on("error", () => resolve(true));
  });
}

const kinds = {
  latency: { latency: 5, jitter: 1 },
  bandwidth: { rate: 1000 },
  slow_close: { delay: 1 },
  timeout: { timeout: 9000 },
  reset_peer: { timeout: 9000 },
  slicer: { average_size: 64, size_variation: 32, delay: 10 },
  limit_data: { bytes: 1000000 },
};

async function toxics(proxy) {
  for (const [type, attributes] of Object.entries(kinds)) {
    const body = { name: `my-${type}`, type, stream: "upstream", toxicity: 0.5, attributes };
    const toxic = await proxy.addToxic(body);
    assert.deepEqual(toxic.toJson(), body);
    assert.deepEqual((await proxy.getToxic(toxic.name)).toJson(), body);
    const [first] = Object.keys(attributes);
    const updated = await toxic.update({ toxicity: 1, attributes: { [first]: attributes[first] + 1 } });
    assert.deepEqual(updated.toJson(), { ...body, toxicity: 1, attributes: { ...attributes, [first]: attributes[first] + 1 } });
    await toxic.remove();
    await assert.rejects(proxy.getToxic(toxic.name), /404|not found/i);
  }
  await assert.rejects(proxy.addToxic({ name: "x", type: "nope", stream: "upstream", toxicity: 1, attributes: {} }), /400|invalid/i);
  await assert.rejects(
    proxy.addToxic({ name: "x", type: "slicer", stream: "upstream", toxicity: 1, attributes: {} }),
    /400|average_size/i,
  );
}

async function main(url) {
  const client = new Toxiproxy(url);
  const service = await serve();
  const upstream = `127.0.0.1:${service.address().port}`;
  const version = await client.getVersion();
  assert.match(typeof version === "string" ? version : JSON.stringify(version), /2\.12\.0/);
  for (const proxy of Object.values(await client.getAll())) await proxy.remove();

  const proxy = await client.createProxy({ name: "node", listen: "localhost:0", upstream });
  assert.equal(proxy.name, "node");
  assert.match(proxy.listen, /^127\.0\.0\.1:[1-9]/);
  assert.deepEqual(proxy.toJson(), { enabled: true, listen: proxy.listen, name: "node", upstream });
  assert.equal((await get(proxy.listen))[0], "ok");
  await assert.rejects(client.createProxy({ name: "node", listen: "localhost:0", upstream }), /409|already exists/i);
  assert.deepEqual((await client.get("node")).toJson(), proxy.toJson());
  await assert.rejects(client.get("none"), /404|not found/i);
  assert.deepEqual(Object.keys(await client.getAll()), ["node"]);

  const off = await proxy.update({ enabled: false, listen: proxy.listen, upstream });
  assert.equal(off.enabled, false);
  assert.ok(await refuses(proxy.listen));
  assert.equal((await proxy.update({ enabled: true, listen: proxy.listen, upstream })).enabled, true);
  assert.equal((await get(proxy.listen))[0], "ok");
  await toxics(proxy);

  const latency = { name: "slow", type: "latency", stream: "downstream", toxicity: 1, attributes: { latency: 300, jitter: 0 } };
  await proxy.addToxic(latency);
  const [body, took] = await get(proxy.listen);
  assert.ok(body === "ok" && took >= 300, `a latency of 300 ms delays an answer: ${took} ms`);
  await client.reset();
  assert.ok((await get(proxy.listen))[1] < 300);

  const made = await client.populate([
    { name: "a", listen: "127.0.0.1:0", upstream },
    { name: "b", listen: "127.0.0.1:0", upstream, enabled: false },
  ]);
  assert.deepEqual(Object.keys(made), ["a", "b"]);
  assert.equal((await get(made.a.listen))[0], "ok");
  assert.ok(!made.b.enabled && (await refuses(made.b.listen)));
  for (const one of Object.values(await client.getAll())) await one.remove();
  assert.deepEqual(await client.getAll(), {});
  service.close();
}

main(process.argv[2]).then(
  () => console.log("toxiproxy-node-client: every call as it should be"),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
