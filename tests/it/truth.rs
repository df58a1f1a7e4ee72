//! The truth test: a server stops for two of ten seconds, and the latencies must say so.

use crate::support::{Folder, Said, Server, read_head, stormwake, with_evidence};
use std::io::Write;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Answers at once, but for two seconds from the fourth after its first request on.
fn server_that_stops() -> Server {
    let first = OnceLock::new();
    Server::start(move |mut stream| {
        while read_head(&mut stream).is_some() {
            let since = first.get_or_init(Instant::now).elapsed();
            let (stop, go) = (Duration::from_secs(4), Duration::from_secs(6));
            if since >= stop && since < go {
                std::thread::sleep(go - since);
            }
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    })
}

fn run(folder: &Folder) -> Said {
    let server = server_that_stops();
    let plan = format!(
        "version: 1\nname: truth\ntarget: {{ url: '{}' }}\n\
         fleets: {{ all: {{ clients: 200, policy: {{ attempts: 1, timeout: 8s }}, load: {{ constant: {{ rate: 500/s }} }} }} }}\n\
         gates:\n  - {{ p90: '>= 950ms' }}\n  - {{ p90: '<= 1050ms' }}\n  - {{ p99: '>= 1805ms' }}\n  - {{ p99: '<= 1995ms' }}\n\
         length: 10s\n",
        server.url()
    );
    stormwake(folder, &["run", folder.write("truth.yaml", plan).to_str().expect("UTF-8"), "--json"])
}

/// 500 operations a second for ten seconds; those that start while the server stands still are a fifth of all, and
/// wait between no time and two seconds: the 90th percentile is 1.0 s, the 99th 1.9 s, whatever the client was doing.
#[test]
fn a_stopped_server_shows_in_the_latencies_from_the_intended_start() {
    let folder = Folder::new("truth");
    let said = with_evidence(|| run(&folder));
    assert_eq!(said.code, Some(0), "{said:#?}");
}
