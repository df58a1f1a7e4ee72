//! A run against a real server: nginx with `limit_req`, which answers 429 above its rate.

use crate::support::{Folder, stormwake, with_evidence};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        // SIGTERM, so that the master takes its workers along.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

fn program() -> Option<&'static str> {
    ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"].into_iter().find(|path| Path::new(path).exists())
}

#[allow(clippy::zombie_processes, reason = "the value that is returned waits when it goes")]
fn start(program: &str, folder: &Folder, port: u16) -> Nginx {
    let at = folder.path().display();
    let config = format!(
        "daemon off;\nworker_processes 1;\npid {at}/nginx.pid;\nerror_log {at}/error.log;\n\
         events {{ worker_connections 2048; }}\n\
         http {{\n  access_log off;\n  client_body_temp_path {at}/body;\n  proxy_temp_path {at}/proxy;\n\
         fastcgi_temp_path {at}/fastcgi;\n  uwsgi_temp_path {at}/uwsgi;\n  scgi_temp_path {at}/scgi;\n\
         keepalive_requests 1000000;\n\
         limit_req_zone $server_port zone=all:1m rate=200r/s;\n  limit_req_status 429;\n\
         server {{\n    listen 127.0.0.1:{port};\n\
         root {at};\n\
         location / {{ limit_req zone=all burst=20 nodelay; add_header Retry-After 1 always; }}\n  }}\n}}\n"
    );
    let file = folder.write("nginx.conf", config);
    let nginx = Command::new(program)
        .args([
            "-c",
            file.to_str().expect("UTF-8"),
            "-p",
            folder.path().to_str().expect("UTF-8"),
            "-e",
            &format!("{at}/error.log"),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nginx starts");
    for _ in 0..250 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Nginx(nginx);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("nginx does not listen: {:?}", std::fs::read_to_string(folder.path().join("error.log")));
}

/// `limit_req` acts in nginx's preaccess phase and `return` in its rewrite phase, before it: so the answer comes
/// from a file instead.
const PLAN: &str = "\
version: 1
name: nginx-limit
target: { url: 'http://127.0.0.1:PORT/file' }
policies:
  app:
    attempts: 5
    timeout: 2s
    backoff: { exponential: { base: 100ms, cap: 2s, jitter: full } }
    retry_on: [connect, reset, timeout, 429, 5xx]
    retry_after: { honor: { spread: 100% } }
fleets:
  app: { clients: 200, policy: app, load: { poisson: { rate: 120/s } } }
steady_state: { for: 4s }
timeline:
  - { at: 5s, for: 3s, name: outage, fault: { blackhole: {} } }
recovery: { after: outage, within: 12s, hold: 5s }
length: 26s
";

#[test]
fn a_real_server_that_answers_429_recovers() {
    let Some(program) = program() else {
        // Straight to stderr: what goes through `eprintln!` is hidden where a test passes.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: nginx is not installed (Debian: apt-get install nginx-light); nothing was tested against a real server"
        );
        return;
    };
    let folder = Folder::new("nginx");
    folder.write("file", "ok");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let _nginx = start(program, &folder, port);
    let plan = folder.write("nginx-limit.yaml", PLAN.replace("PORT", &port.to_string()));
    let said = with_evidence(|| stormwake(&folder, &["run", plan.to_str().expect("UTF-8"), "--json"]));
    assert_eq!(said.code, Some(0), "{said:#?}");
    let result = said.result();
    assert_eq!(result["recovery"]["class"], "RECOVERED");
    let limited: u64 =
        result["windows"].as_array().expect("windows").iter().filter_map(|w| w["by_outcome"]["status_429"].as_u64()).sum();
    assert!(limited > 0, "the limit was met: {}", result["totals"]);
}
