//! The plans of devices, in virtual time: each gets what it expects, and its cure is one.

use crate::support::{Folder, shared, stormwake};

#[test]
fn the_plans_of_devices_get_what_they_expect() {
    let _machine = shared();
    let folder = Folder::new("devices");
    let spread = ["--set", "fleets.returning.load.on_reconnect.spread=60s", "--set", "expect.class=RECOVERED"];
    let cases: [(&str, &[&str]); 4] =
        [("morning", &[]), ("region-returns", &[]), ("region-returns", &spread), ("mixed-population", &[])];
    for (plan, more) in cases {
        let path = format!("{}/plans/{plan}.yaml", env!("CARGO_MANIFEST_DIR"));
        let said = stormwake(&folder, &[&["simulate", &path, "--seed", "1", "--quiet"], more].concat());
        assert_eq!(said.code, Some(0), "{plan} {more:?}: {said:#?}");
    }
}
