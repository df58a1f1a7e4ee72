//! What is right.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The statuses of the API, and those of the HTTP server below it.
const STATUSES: &[u16] = &[100, 200, 201, 204, 400, 403, 404, 405, 408, 409, 413, 414, 431, 505];
const MAX_HEADERS: usize = 32;

/// Whether all that came are whole and well-formed answers; how many there were. `cut`: whether a reset may have cut off the last.
pub fn answers(mut bytes: &[u8], asked: &[u8], cut: bool) -> Result<u64, String> {
    let mut count = 0;
    while !bytes.is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut answer = httparse::Response::new(&mut headers);
        let head = match answer.parse(bytes) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) if cut => return Ok(count),
            Ok(httparse::Status::Partial) => return Err("a head without its end".into()),
            Err(why) => return Err(format!("no head: {why}")),
        };
        let status = answer.code.unwrap_or(0);
        let header =
            |name: &str| answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value);
        let length = header("content-length").and_then(|value| std::str::from_utf8(value).ok()?.parse::<usize>().ok());
        let length = match (status, length) {
            (100 | 204, None | Some(0)) => 0,
            (100 | 204, Some(_)) => return Err("a body where none can be".into()),
            (_, None) => return Err("no length".into()),
            (_, Some(length)) => length,
        };
        let rest = &bytes[head..];
        // What answers HEAD has a length and no body.
        let for_head = length > 0 && (rest.is_empty() || rest.starts_with(b"HTTP/1.")) && contains(asked, b"HEAD");
        let Some(body) = rest.get(..if for_head { 0 } else { length }) else {
            return if cut { Ok(count) } else { Err("a body without its end".into()) };
        };
        let known = STATUSES.contains(&status) || (status == 500 && names_no_listener(body));
        if !known {
            return Err(format!("status {status}"));
        }
        if !for_head && header("content-type") == Some(b"application/json") {
            serde_json::from_slice::<serde_json::Value>(body).map_err(|why| format!("no JSON: {why}"))?;
        }
        bytes = &rest[body.len()..];
        count += 1;
    }
    Ok(count)
}

/// Whether it says that an address is none to listen on: there Toxiproxy answers 500, and so the proxy does.
fn names_no_listener(body: &[u8]) -> bool {
    let said = serde_json::from_slice::<serde_json::Value>(body).ok().and_then(|said| Some(said["error"].as_str()?.to_string()));
    said.is_some_and(|said| ["listen tcp: ", "lookup tcp/", "address "].iter().any(|start| said.starts_with(start)))
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// Whether somebody who asks as one should is answered.
pub fn is_served(addr: SocketAddr, within: Duration) -> Result<(), String> {
    let ask = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(addr)?;
        stream.set_read_timeout(Some(within))?;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: t\r\n\r\n")?;
        let (mut said, mut buffer) = (Vec::new(), [0; 256]);
        while !said.ends_with(b"fine") {
            match stream.read(&mut buffer)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                n => said.extend_from_slice(&buffer[..n]),
            }
        }
        Ok(said)
    };
    ask().map(drop).map_err(|error| format!("{addr}: {error}"))
}
