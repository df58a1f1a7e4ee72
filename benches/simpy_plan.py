"""The plan of benches/simpy.yaml, written for SimPy as its documentation teaches it: processes that yield.

Usage: simpy_plan.py SEED SECONDS. Prints one line of JSON: seconds of processor time without the import, and what happened.
"""

import json
import random
import sys
import time

import simpy

CLIENTS = 200
RATE = 600.0  # operations a second, of all clients
SERVERS, SERVICE, QUEUE = 10, 0.010, 1000
HOP = 60e-6
FAILS = 0.2  # the share of attempts that the proxy answers with 503
ATTEMPTS, TIMEOUT, BASE, CAP = 4, 1.0, 0.1, 5.0


class Run:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.env = simpy.Environment()
        self.servers = simpy.Resource(self.env, SERVERS)
        self.operations = self.attempts = self.succeeded = 0
        self.latencies = []

    def client(self):
        """Offers operations at random; one attempt at a time is on its connection."""
        connection = simpy.Resource(self.env, 1)
        while True:
            yield self.env.timeout(self.random.expovariate(RATE / CLIENTS))
            self.operations += 1
            self.env.process(self.operation(connection))

    def operation(self, connection):
        began = self.env.now
        for attempt in range(1, ATTEMPTS + 1):
            with connection.request() as free:
                yield free
                self.attempts += 1
                work = self.env.process(self.attempt())
                ended = yield work | self.env.timeout(TIMEOUT)
            if work in ended and ended[work]:
                self.succeeded += 1
                self.latencies.append(self.env.now - began)
                return
            if attempt < ATTEMPTS:
                yield self.env.timeout(self.random.uniform(0, min(CAP, BASE * 2 ** (attempt - 1))))

    def attempt(self):
        yield self.env.timeout(HOP)
        if self.random.random() < FAILS:
            yield self.env.timeout(HOP)
            return False
        yield self.env.timeout(HOP)
        served = False
        if len(self.servers.queue) < QUEUE:
            with self.servers.request() as turn:
                yield turn
                yield self.env.timeout(self.random.expovariate(1 / SERVICE))
            served = True
        yield self.env.timeout(HOP)
        yield self.env.timeout(HOP)
        return served


def main():
    seed, seconds = int(sys.argv[1]), float(sys.argv[2])
    began = time.process_time()
    run = Run(seed)
    for _ in range(CLIENTS):
        run.env.process(run.client())
    run.env.run(until=seconds)
    took = time.process_time() - began
    mean = sum(run.latencies) / len(run.latencies)
    print(
        json.dumps(
            {
                "seconds": took,
                "operations": run.operations,
                "attempts": run.attempts,
                "succeeded": run.succeeded,
                "mean_latency": mean,
                "simpy": simpy.__version__,
            }
        )
    )


main()
