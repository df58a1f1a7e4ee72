//! Messages as they should be, of which the others are made.

/// Heads, bodies and framing of requests; what is no HTTP at all.
pub const REQUESTS: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\nhost: t\r\n\r\n",
    b"GET /a/b?c=d HTTP/1.1\r\nhost: t\r\naccept: */*\r\nconnection: keep-alive\r\n\r\nGET /next HTTP/1.1\r\nhost: t\r\n\r\n",
    b"POST /pay HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\nidempotency-key: 0a1b\r\n\r\nhello",
    b"POST /pay HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\nA\r\n0123456789\r\n0\r\ntrailer: x\r\n\r\n",
    b"PUT /up HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\nabc",
    b"HEAD / HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n",
    b"CONNECT t:443 HTTP/1.1\r\nhost: t:443\r\n\r\n\x16\x03\x01",
    b"OPTIONS * HTTP/1.0\r\n\r\n",
    b"GET http://t/absolute HTTP/1.1\r\nhost: t\r\nx-forwarded-for: 10.0.0.1\r\n\r\n",
    b"GET /chat HTTP/1.1\r\nhost: t\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n\x81\x05hello",
    b"GET / HTTP/1.1\r\nhost: t\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nconnection: upgrade, http2-settings\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 18446744073709551615\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\nffffffffffffffff\r\n",
    // A TLS client's first words, and an SSH client's.
    b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x00\x00\x02\x13\x01\x01\x00",
    b"SSH-2.0-OpenSSH_9.2\r\n",
];

/// What an upstream may say.
pub const RESPONSES: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\nuntil it closes",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\ncontent-length: 100\r\n\r\n",
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 120\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n\x81\x02hi",
    b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\ntransfer-encoding: gzip, chunked\r\n\r\n5\r\nabcde\r\n0\r\na: b\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    // SETTINGS, and the end of its acknowledgement.
    b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x04\x01\x00\x00\x00\x00",
    b"\x15\x03\x03\x00\x02\x02\x28",
];

/// Frames of HTTP/2: type, flags, payload. Streams are drawn.
pub const FRAMES: &[(u8, u8, &[u8])] = &[
    // SETTINGS with a small window, its acknowledgement, PING, WINDOW_UPDATE, GOAWAY, PRIORITY, RST_STREAM.
    (4, 0, b"\x00\x04\x00\x00\x00\x10\x00\x03\x00\x00\x00\x64"),
    (4, 1, b""),
    (6, 0, b"12345678"),
    (8, 0, b"\x00\x00\xff\xff"),
    (7, 0, b"\x00\x00\x00\x00\x00\x00\x00\x00"),
    (2, 0, b"\x00\x00\x00\x00\x10"),
    (3, 0, b"\x00\x00\x00\x08"),
    // HEADERS: `:method: GET`, `:scheme: http`, `:path: /`, `:authority: t`; whole, with a body to come, and in two.
    (1, 5, b"\x82\x86\x84\x41\x01t"),
    (1, 4, b"\x83\x86\x84\x41\x01t\x40\x0fidempotency-key\x020a"),
    (1, 1, b"\x82\x86"),
    (9, 4, b"\x84\x41\x01t"),
    // DATA, in the middle and at the end, padded.
    (0, 0, b"hello"),
    (0, 1, b"world"),
    (0, 9, b"\x03abc\x00\x00\x00"),
    // PUSH_PROMISE, which no client may send, and what nobody knows.
    (5, 4, b"\x00\x00\x00\x02\x82"),
    (0x99, 0xff, b"?"),
];

/// Calls of the API: method, path, body.
pub const CALLS: &[(&str, &str, &str)] = &[
    ("GET", "/version", ""),
    ("GET", "/metrics", ""),
    ("GET", "/proxies", ""),
    ("POST", "/proxies", r#"{"name":"a","listen":"127.0.0.1:0","upstream":"127.0.0.1:1","enabled":true}"#),
    ("POST", "/proxies", r#"{"name":"b","listen":"localhost:0","upstream":"localhost:1","enabled":false}"#),
    ("GET", "/proxies/a", ""),
    ("POST", "/proxies/a", r#"{"enabled":false}"#),
    ("PATCH", "/proxies/a", r#"{"enabled":true,"upstream":"127.0.0.1:2"}"#),
    ("GET", "/proxies/a/toxics", ""),
    (
        "POST",
        "/proxies/a/toxics",
        r#"{"name":"t","type":"latency","stream":"upstream","toxicity":0.5,"attributes":{"latency":1,"jitter":2}}"#,
    ),
    ("POST", "/proxies/a/toxics", r#"{"type":"bandwidth","attributes":{"rate":1000}}"#),
    ("POST", "/proxies/a/toxics", r#"{"type":"slow_close","attributes":{"delay":10}}"#),
    ("POST", "/proxies/a/toxics", r#"{"type":"timeout","attributes":{"timeout":10}}"#),
    ("POST", "/proxies/a/toxics", r#"{"type":"reset_peer","attributes":{"timeout":1e1}}"#),
    ("POST", "/proxies/a/toxics", r#"{"type":"slicer","attributes":{"average_size":10,"size_variation":5,"delay":7}}"#),
    ("POST", "/proxies/b/toxics", r#"{"type":"limit_data","attributes":{"bytes":-1}}"#),
    ("GET", "/proxies/a/toxics/t", ""),
    ("POST", "/proxies/a/toxics/t", r#"{"toxicity":1,"attributes":{"latency":9223372036854775807}}"#),
    ("DELETE", "/proxies/a/toxics/t", ""),
    (
        "POST",
        "/populate",
        r#"[{"name":"a","listen":"127.0.0.1:0","upstream":"127.0.0.1:1"},{"name":"c","listen":"127.0.0.1:0","upstream":"127.0.0.1:1","toxics":[{"type":"noop"}]}]"#,
    ),
    ("POST", "/reset", ""),
    ("DELETE", "/proxies/a", ""),
    ("DELETE", "/proxies/\u{e4}%2F", ""),
    ("OPTIONS", "*", ""),
    ("GET", "/v1/proxies", ""),
    ("POST", "/v1/proxies", r#"{"name":"a","listen":"127.0.0.1:0","upstream":"127.0.0.1:1","protocol":"http"}"#),
    ("PATCH", "/v1/proxies/a", r#"{"enabled":true,"upstream":"127.0.0.1:2"}"#),
    ("PUT", "/v1/proxies/a/faults/f", r#"{"fault":{"status":{"code":"503","share":"10%","retry_after":"2s"}},"for":"1m"}"#),
    ("PUT", "/v1/proxies/a/faults/f", r#"{"fault":{"truncate":{"keep":"50%","end":"rst"}},"every":3,"ramp":{"in":"1s"}}"#),
    ("PUT", "/v1/proxies/a/faults/g", r#"{"fault":"hang","flap":{"on":"2s","off":"3s"},"match":{"method":"GET","path":"/x*"}}"#),
    ("GET", "/v1/proxies/a/faults", ""),
    ("DELETE", "/v1/proxies/a/faults/f", ""),
    ("PUT", "/v1/faults", r#"{"a":{"b":{"fault":{"latency":{"add":"10ms"}}}},"c":{}}"#),
    ("GET", "/v1/faults", ""),
    ("POST", "/v1/leases", r#"{"ttl":"1s"}"#),
    ("GET", "/v1/leases", ""),
    ("GET", "/v1/openapi.json", ""),
];
