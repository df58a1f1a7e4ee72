//! Messages as they should not be, drawn by (seed, number).

use crate::corpus::{CALLS, FRAMES};
use stormwake::rng::{Key, Purpose, Stream};

/// The longest message, so that neither side of the test decides how much memory it needs.
const LONGEST: usize = 256 * 1024;

/// What numbers are replaced by.
const NUMBERS: &[&str] =
    &["0", "-1", "1", "65536", "2147483648", "9223372036854775808", "18446744073709551616", "1e999", "0x10", "1.5", "NaN", ""];

/// What is put in between.
const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b": ",
    b"\0",
    b"\xff\xfe",
    b"%00%2f%",
    b"{",
    b"[[[[[[[[",
    b"\"",
    b"\\ud800",
    b"null",
    b"chunked",
    b"transfer-encoding: chunked\r\n",
    b"content-length: 7\r\n",
    b"HTTP/1.1",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x00\x00\x04\x08\x00\x00\x00\x00\x00",
];

/// The draws of one message.
pub struct Dice(Stream);

impl Dice {
    pub fn of(seed: u64, number: u64) -> Self {
        Self(Key { seed, operation: number, ..Key::default() }.stream(Purpose::Bytes))
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.0.bits() % bound as u64) as usize
    }

    /// True once in so many times.
    pub fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// One of the messages, harmed.
    pub fn harmed(&mut self, all: &[&[u8]]) -> Vec<u8> {
        let mut bytes = self.pick(all).to_vec();
        for _ in 0..self.below(6) {
            self.harm(&mut bytes, all);
            bytes.truncate(LONGEST);
        }
        bytes
    }

    fn harm(&mut self, bytes: &mut Vec<u8>, all: &[&[u8]]) {
        let at = self.below(bytes.len() + 1);
        let to = (at + self.below(16)).min(bytes.len());
        match self.below(10) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..to)),
            2 => bytes[at..to].iter_mut().for_each(|byte| *byte ^= 1 << self.below(8)),
            3 => bytes[at..to].iter_mut().for_each(|byte| *byte = self.below(256) as u8),
            4 => drop(bytes.splice(at..at, self.pick(WORDS).iter().copied())),
            5 => self.replace_number(bytes),
            6 => bytes.extend_from_within(..),
            7 => drop(bytes.splice(at.., self.pick(all).iter().copied())),
            8 => {
                let (byte, many) = (self.below(256) as u8, 1 << self.below(18));
                drop(bytes.splice(at..at, std::iter::repeat_n(byte, many)));
            }
            _ => {
                // A line many times over: headers without end.
                let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |n| at + n + 1);
                let line = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, line.repeat(1 << self.below(9))));
            }
        }
    }

    fn replace_number(&mut self, bytes: &mut Vec<u8>) {
        let starts: Vec<usize> =
            (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit() && (at == 0 || !bytes[at - 1].is_ascii_digit())).collect();
        if starts.is_empty() {
            return;
        }
        let start = *self.pick(&starts);
        let end = bytes[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |n| start + n);
        drop(bytes.splice(start..end, self.pick(NUMBERS).bytes()));
    }

    /// A connection in HTTP/2: the preface and frames, some of them harmed.
    pub fn http2(&mut self) -> Vec<u8> {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let mut streams = 1;
        let payloads: Vec<&[u8]> = FRAMES.iter().map(|frame| frame.2).collect();
        for n in 0..self.below(40) {
            let (kind, flags, payload) = if n == 0 { FRAMES[0] } else { *self.pick(FRAMES) };
            let payload = if self.one_in(8) { self.harmed(&payloads) } else { payload.to_vec() };
            let stream = match kind {
                1 => {
                    streams += 2;
                    streams
                }
                4 | 6 | 7 => 0,
                _ if self.one_in(10) => self.below(1 << 20),
                _ => streams,
            };
            let flags = if self.one_in(10) { self.below(256) as u8 } else { flags };
            let length = if self.one_in(40) { self.below(1 << 24) } else { payload.len() };
            bytes.extend(&(length as u32).to_be_bytes()[1..]);
            bytes.extend([kind, flags]);
            bytes.extend((stream as u32).to_be_bytes());
            bytes.extend(payload);
        }
        if self.one_in(5) { self.harmed(&[&bytes]) } else { bytes }
    }

    /// Calls of the API, one behind the other: some as they should be, some with a harmed body or path of the right length, some harmed as a whole.
    pub fn calls(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..=self.below(3) {
            let (method, path, body) = *self.pick(CALLS);
            let bodies: Vec<&[u8]> = CALLS.iter().map(|call| call.2.as_bytes()).collect();
            let body = match self.below(3) {
                0 => body.as_bytes().to_vec(),
                1 => self.harmed(&[body.as_bytes()]),
                _ => self.harmed(&bodies),
            };
            let path = if self.one_in(4) { self.harmed(&[path.as_bytes()]) } else { path.as_bytes().to_vec() };
            bytes.extend(method.bytes().chain(*b" ").chain(path).chain(*b" HTTP/1.1\r\nhost: t\r\n"));
            bytes.extend(format!("user-agent: t\r\ncontent-length: {}\r\n\r\n", body.len()).bytes());
            bytes.extend(body);
        }
        if self.one_in(4) { self.harmed(&[&bytes]) } else { bytes }
    }
}
