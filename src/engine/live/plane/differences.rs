//! Where the API answers otherwise than Toxiproxy 2.12, on purpose. The test that replays that server's answers
//! lets these pass and no others; ARCHITECTURE.md shows the same table.

/// A difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What the replay calls it.
    pub id: &'static str,
    /// What is otherwise.
    pub what: &'static str,
    /// Why.
    pub why: &'static str,
}

/// All of them.
pub const DIFFERENCES: &[Difference] = &[
    Difference {
        id: "validation",
        what: "a toxic that cannot be carried out is refused with 400 and the reason: a rate, size or count below 1, a negative time, a toxicity outside 0 to 1, a slicer whose variation reaches its size, an unknown attribute",
        why: "there it is accepted, and a slicer without size or a negative rate ends the server at the next request",
    },
    Difference {
        id: "populate-enabled",
        what: "`/populate` heeds `enabled` of a proxy that is there already",
        why: "there an equal proxy is left as it is, so that a list says one thing and the server another",
    },
    Difference {
        id: "populate-toxics",
        what: "`/populate` takes `toxics`; none said, or an empty list, leaves those of a proxy that does not move",
        why: "a whole set-up is one call; clients that always send an empty list keep what they had",
    },
    Difference {
        id: "populate-atomic",
        what: "`/populate` makes all proxies or none, and refuses a name that is there twice",
        why: "there a list that fails half way leaves its first half behind",
    },
    Difference {
        id: "loopback",
        what: "proxies listen on loopback: an address without a host is `127.0.0.1`, one beyond loopback is refused with 403 unless `--expose` was given, and a listen address is no name but `localhost`",
        why: "a proxy on a workstation must not open that to a network by default; a name could take long to look up",
    },
    Difference {
        id: "upstream",
        what: "an upstream is `host:port`, with `tcp://` or `http://` before it where one wishes, and anything else is refused with 400; beyond loopback it needs `--allow`, or is refused with 403",
        why: "there it is found out at the first connection; and faults go to what one names, not to what one mistypes",
    },
    Difference {
        id: "disabled-port",
        what: "a disabled proxy keeps its port, and `127.0.0.1:0` is resolved for it too",
        why: "it can always be enabled again",
    },
    Difference {
        id: "move-keeps-port",
        what: "a proxy that changes its upstream, or cannot have the address it is to move to, never gives up the one that it has",
        why: "there it stops first, and is down when the new address cannot be had",
    },
    Difference {
        id: "bounds",
        what: "bodies above 1 MiB are refused with 413, ones that take longer than 5 s with 408; at most 1,000 proxies, 100 toxics each, 256 connections to the API",
        why: "nothing that a client sends may take the server down",
    },
    Difference {
        id: "no-freezing",
        what: "every call is answered within 50 ms, whatever the connections do; only one that makes hundreds of proxies takes longer, by how many they are",
        why: "there a disable waits for an upstream that hangs, and the removal of a toxic for a client that has stopped reading",
    },
];
