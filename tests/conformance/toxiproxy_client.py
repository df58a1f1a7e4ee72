"""Every call of PyPI's toxiproxy-python, unchanged, against a running `stormwake proxy`.

usage: toxiproxy_client.py API_HOST API_PORT
"""

import http.client
import http.server
import socket
import sys
import threading
import time

from toxiproxy import Toxiproxy
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "127.0.0.1:%d" % server.server_port


def get(listen):
    """The body, and the seconds that it took."""
    host, port = listen.split(":")
    start = time.monotonic()
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request("GET", "/")
    body = connection.getresponse().read()
    connection.close()
    return body, time.monotonic() - start


def refuses(listen):
    host, port = listen.split(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) != 0


def raises(error, act):
    try:
        act()
    except error as caught:
        return str(caught)
    raise AssertionError("no %s" % error.__name__)


def main(host, port):
    server = Toxiproxy()
    server.update_api_consumer(host, port)
    upstream = serve()
    assert server.running()
    assert server.version() == b'{"version": "2.12.0"}\n', server.version()
    server.destroy_all()
    assert server.proxies() == {}

    proxy = server.create(upstream=upstream, name="py")
    assert (proxy.name, proxy.upstream, proxy.enabled) == ("py", upstream, True), vars(proxy)
    assert proxy.listen.startswith("127.0.0.1:") and not proxy.listen.endswith(":0")
    assert get(proxy.listen)[0] == b"ok"
    raises(ProxyExists, lambda: server.create(upstream=upstream, name="py"))
    assert list(server.proxies()) == ["py"] and server.get_proxy("none") is None
    assert server.get_proxy("py").listen == proxy.listen

    proxy.disable()
    assert not proxy.enabled and not server.get_proxy("py").enabled and refuses(proxy.listen)
    proxy.enable()
    assert get(proxy.listen)[0] == b"ok"
    with proxy.down():
        assert refuses(proxy.listen)
    assert get(proxy.listen)[0] == b"ok"

    attributes = {
        "latency": {"latency": 5, "jitter": 1},
        "bandwidth": {"rate": 1000},
        "slow_close": {"delay": 1},
        "timeout": {"timeout": 9000},
        "reset_peer": {"timeout": 9000},
        "slicer": {"average_size": 64, "size_variation": 32, "delay": 10},
        "limit_data": {"bytes": 1000000},
        "noop": {},
    }
    for kind, values in attributes.items():
        proxy.add_toxic(type=kind, stream="upstream", toxicity=0.5, attributes=values)
        toxic = proxy.get_toxic(kind + "_upstream")
        assert (toxic.type, toxic.stream, toxic.toxicity, toxic.attributes) == (kind, "upstream", 0.5, values), vars(toxic)
    assert sorted(proxy.toxics()) == sorted(kind + "_upstream" for kind in attributes)
    assert proxy.get_toxic("none") is None
    raises(ProxyExists, lambda: proxy.add_toxic(type="noop", stream="upstream"))
    raises(InvalidToxic, lambda: proxy.add_toxic(type="nope"))
    raises(InvalidToxic, lambda: proxy.add_toxic(type="latency", name="x", stream="sideways"))
    raises(InvalidToxic, lambda: proxy.add_toxic(type="slicer"))
    assert proxy.destroy_toxic("noop_upstream") and proxy.get_toxic("noop_upstream") is None
    raises(NotFound, lambda: proxy.destroy_toxic("noop_upstream"))

    assert server.reset() and proxy.toxics() == {}
    proxy.add_toxic(type="latency", attributes={"latency": 300})
    body, took = get(proxy.listen)
    assert body == b"ok" and took >= 0.3, "a latency of 300 ms delays an answer: %.3f s" % took
    assert proxy.destroy_toxic("latency_downstream")
    body, took = get(proxy.listen)
    assert body == b"ok" and took < 0.3, "%.3f s" % took

    made = server.populate([{"name": "a", "listen": "127.0.0.1:0", "upstream": upstream}, {"name": "b", "upstream": upstream}])
    assert [one.name for one in made] == ["a", "b"] and all(get(one.listen)[0] == b"ok" for one in made)
    assert server.destroy(made[0]) and refuses(made[0].listen) and not server.destroy("a")
    raises(NotFound, made[0].destroy)
    server.destroy_all()
    assert server.proxies() == {}


main(sys.argv[1], int(sys.argv[2]))
print("toxiproxy-python: every call as it should be")
