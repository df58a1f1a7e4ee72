"""Compares presets with the libraries whose rules they are: the waits before the first retries, with every draw pinned
to 0, 1/2 and 1, and the limits on attempts.

usage: real_waits.py PATH-TO-STORMWAKE [PRESET...]
"""

import json
import random
import subprocess
import sys
import types
from unittest import mock

RETRIES = 10
DRAWS = {"least_s": 0.0, "middle_s": 0.5, "most_s": 1.0}


def botocore_context(attempt):
    return types.SimpleNamespace(attempt_number=attempt, http_response=None)


def aws_legacy(check):
    from botocore import loaders, retryhandler

    default = loaders.Loader().load_data("_retry")["retry"]["__default__"]
    delay = default["delay"]
    wait = retryhandler.create_exponential_delay_function(delay["base"], delay["growth_factor"])
    check.waits(lambda n, draw: wait(attempts=n))
    check.attempts(default["max_attempts"])


def aws_standard(check):
    from botocore.retries import standard

    check.waits(lambda n, draw: standard.ExponentialBackoff(random=lambda: draw).delay_amount(botocore_context(n)))
    check.attempts(standard.DEFAULT_MAX_ATTEMPTS)
    quota(check, standard)


def aws_standard_2_1(check):
    from botocore.retries import standard

    aws_standard(check)
    throttled = types.SimpleNamespace(is_throttling_error_from_context=lambda context: True)
    backoff = lambda draw: standard.ExponentialBackoff(random=lambda: draw, throttling_detector=throttled)
    check.waits(lambda n, draw: backoff(draw).delay_amount(botocore_context(n)), outcome="429")
    check.equal("cost of a 429", check.at("on", "429", "cost"), str(standard.RetryQuotaChecker._THROTTLING_RETRY_COST))


def aws_standard_2_0(check):
    from botocore.retries import standard

    aws_standard(check)
    check.equal("cost of a timeout", check.at("on", "timeout", "cost"), str(standard.RetryQuotaChecker._TIMEOUT_RETRY_REQUEST))


def quota(check, standard):
    from botocore.retries.quota import RetryQuota

    check.equal("capacity", check.at("budget", "quota", "capacity"), str(RetryQuota.INITIAL_CAPACITY))
    check.equal("cost", check.at("budget", "quota", "cost"), str(standard.RetryQuotaChecker._RETRY_COST))


def azure_core(check):
    from azure.core.pipeline.policies import RetryPolicy

    policy = RetryPolicy()

    def wait(n, draw):
        settings = policy.configure_retries({})
        settings["history"] = [None] * n
        return policy.get_backoff_time(settings)

    check.waits(wait)
    check.attempts(1 + policy.configure_retries({})["status"])


def google_api_core(check):
    from google.api_core import retry
    from google.api_core.retry import retry_base

    default = retry.Retry()

    def wait(n, draw):
        waits = retry_base.exponential_sleep_generator(default._initial, default._maximum, default._multiplier)
        return [next(waits) for _ in range(n)][-1]

    check.waits(wait)
    check.equal("max_elapsed", check.at("max_elapsed"), "2m" if default._timeout == 120.0 else default._timeout)


def stripe(check):
    import stripe
    from stripe._http_client import HTTPClient

    client = object.__new__(HTTPClient)
    check.waits(lambda n, draw: client._sleep_time_seconds(n))
    check.attempts(1 + stripe.max_network_retries)


def tenacity(check):
    import tenacity

    wait = tenacity.wait_exponential_jitter(max=60)
    check.waits(lambda n, draw: wait(types.SimpleNamespace(attempt_number=n)))


def urllib3(check):
    from urllib3.util.retry import RequestHistory, Retry

    def wait(n, draw):
        failed = RequestHistory("GET", "/", None, 503, None)
        return Retry(total=99, backoff_factor=0.1, history=(failed,) * n).get_backoff_time()

    check.waits(wait)
    check.attempts(1 + Retry().total)
    check.equal("statuses", sorted(Retry.RETRY_AFTER_STATUS_CODES), [413, 429, 503])
    check.equal("cap of a hint", Retry.DEFAULT_RETRY_AFTER_MAX, 6 * 3600)


REAL = {
    "aws-legacy": aws_legacy,
    "aws-standard-2.1": aws_standard_2_1,
    "azure-core-python": azure_core,
    "google-api-core": google_api_core,
    "stripe": stripe,
    "tenacity-exponential-jitter": tenacity,
    "urllib3": urllib3,
}
# Asked of another version of a library, which the caller puts in the way.
OTHER = {"aws-standard-2.0": aws_standard_2_0}


class Check:
    """One preset against its library."""

    def __init__(self, stormwake, name):
        self.name = name
        self.compared = 0
        self.wrong = []
        said = subprocess.run([stormwake, "policies", "show", name, "--json"], check=True, capture_output=True, text=True)
        self.preset = json.loads(said.stdout)

    def waits(self, real, outcome=None):
        ours = self.preset["on"][outcome]["waits"] if outcome else self.preset["waits"]
        # A cap that comes late makes the rows more.
        self.equal(f"at least {RETRIES} waits", len(ours) >= RETRIES, True)
        for row in ours:
            for key, draw in DRAWS.items():
                uniform = lambda low, high: low + (high - low) * draw
                with mock.patch.object(random, "random", lambda: draw), mock.patch.object(random, "uniform", uniform):
                    wait = real(row["retry"], draw)
                near = abs(wait - row[key]) <= 1e-6
                self.equal(f"retry {row['retry']}, draw {draw}, {outcome or 'any'}", row[key] if not near else wait, wait)

    def at(self, *path):
        found = self.preset["policy"]
        for key in path:
            found = found.get(key, {}) if isinstance(found, dict) else {}
        return found

    def attempts(self, real):
        self.equal("attempts", self.at("attempts"), str(real))

    def equal(self, what, ours, real):
        self.compared += 1
        if ours != real:
            self.wrong.append(f"{self.name}: {what}: the preset says {ours}, the library {real}")


def main():
    stormwake, *names = sys.argv[1:]
    wrong = []
    for name in names or REAL:
        check = Check(stormwake, name)
        {**REAL, **OTHER}[name](check)
        wrong += check.wrong
        print(f"{name}: {check.compared} figures compared, {len(check.wrong)} wrong")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


main()
