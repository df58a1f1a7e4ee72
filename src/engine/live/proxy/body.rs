//! Where the body of a message ends: by length, by chunks, or with the connection.

/// The rest of a body, as far as its end must be known. Bytes are counted here, never kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes.
    Length(u64),
    /// Chunks (RFC 9112, section 7.1).
    Chunked(Chunks),
    /// Everything until the connection ends.
    UntilClose,
}

/// A body that breaks the rules of its framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Body {
    pub(super) const NONE: Self = Self::Length(0);

    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunks { at: At::Size { digits: 0 }, left: 0, line: 0 })
    }

    /// Whether nothing more belongs to it.
    pub(super) fn done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => chunks.at == At::End,
            Self::UntilClose => false,
        }
    }

    /// How many of these bytes, from the front, belong to it.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match self {
            Self::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                Ok(taken)
            }
            Self::Chunked(chunks) => chunks.take(bytes),
            Self::UntilClose => Ok(bytes.len()),
        }
    }
}

/// The longest chunk extension or trailer line, and with [`MAX_TRAILERS`] a bound on what is not data.
const MAX_LINE: u32 = 8 * 1024;
const MAX_TRAILERS: u64 = 100;

/// The place in a chunked body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunks {
    at: At,
    /// Bytes of data left in this chunk; lines of trailers seen once that is where we are.
    left: u64,
    /// Bytes of the current line so far.
    line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the hexadecimal size, after so many digits.
    Size { digits: u8 },
    /// Behind the size: an extension, up to the end of the line.
    Extension,
    /// In the data.
    Data,
    /// Behind the data: a line break.
    DataEnd,
    /// In a line of the trailers, or in the empty line that ends everything.
    Trailer,
    /// Behind everything.
    End,
}

impl Chunks {
    fn take(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut taken = 0;
        while taken < bytes.len() && self.at != At::End {
            if self.at == At::Data {
                let data = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len() - taken);
                self.left -= data as u64;
                taken += data;
                if self.left == 0 {
                    self.at = At::DataEnd;
                }
            } else {
                self.step(bytes[taken])?;
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// One byte that is not data. A lone line feed ends a line, as most parsers have it.
    fn step(&mut self, byte: u8) -> Result<(), Malformed> {
        self.line += 1;
        if self.line > MAX_LINE {
            return Err(Malformed);
        }
        match (self.at, byte) {
            (At::Size { digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < 15 => {
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                self.left = self.left << 4 | u64::from(digit);
                self.at = At::Size { digits: digits + 1 };
            }
            (At::Size { digits: 1.. }, b'\r' | b';' | b' ' | b'\t') => self.at = At::Extension,
            (At::Size { digits: 1.. } | At::Extension, b'\n') => self.size_known(),
            (At::Extension, _) => {}
            (At::DataEnd, b'\r') if self.line == 1 => {}
            (At::DataEnd, b'\n') => self.line_at(At::Size { digits: 0 }),
            (At::Trailer, b'\n') => self.trailer_line()?,
            (At::Trailer, _) => {}
            _ => return Err(Malformed),
        }
        Ok(())
    }

    fn size_known(&mut self) {
        self.line_at(if self.left == 0 { At::Trailer } else { At::Data });
    }

    /// A line of the trailers has ended; an empty one ends the body. (A line feed alone, or with a carriage return.)
    fn trailer_line(&mut self) -> Result<(), Malformed> {
        self.left += 1;
        if self.left > MAX_TRAILERS {
            return Err(Malformed);
        }
        self.line_at(if self.line <= 2 { At::End } else { At::Trailer });
        Ok(())
    }

    fn line_at(&mut self, at: At) {
        self.at = at;
        self.line = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    /// Takes a whole message in pieces of these sizes, repeated; gives what belonged to the body.
    fn taken(mut body: Body, message: &[u8], sizes: &[usize]) -> Result<usize, Malformed> {
        let (mut at, mut turn) = (0, 0);
        while at < message.len() && !body.done() {
            let end = (at + sizes[turn % sizes.len()]).min(message.len());
            turn += 1;
            let piece = body.take(&message[at..end])?;
            at += piece;
            assert!(at == end || body.done(), "it takes all that it is given until it is done");
        }
        assert!(body.done(), "it sees its end");
        Ok(at)
    }

    #[test]
    fn a_length_counts_down_and_leaves_what_follows() {
        assert_eq!(taken(Body::Length(5), b"helloGET", &[1]), Ok(5));
        assert_eq!(taken(Body::Length(5), b"helloGET", &[8]), Ok(5));
        assert!(Body::NONE.done());
        assert_eq!(Body::UntilClose.take(b"abc"), Ok(3));
        assert!(!Body::UntilClose.done());
    }

    #[test]
    fn chunks_end_where_they_should_however_they_are_cut() {
        for message in [
            "0\r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            "5;name=value\r\nhello\r\n1 \r\nx\r\n000\r\n\r\n",
            "A\r\n0123456789\r\n0\r\nTrailer: x\r\nAnother: y\r\n\r\n",
            "1\nx\n0\n\n",
        ] {
            let more = format!("{message}GET / HTTP/1.1\r\n\r\n");
            for sizes in [&[1][..], &[2], &[3], &[7, 1], &[1000]] {
                assert_eq!(taken(Body::chunked(), more.as_bytes(), sizes), Ok(message.len()), "{message:?} by {sizes:?}");
            }
        }
    }

    #[test]
    fn random_chunked_bodies_in_random_pieces() {
        for case in 0..300 {
            let mut draw = Key { seed: case, ..Key::default() }.stream(Purpose::Network);
            let mut below = |n: u64| draw.bits() % n;
            let mut message = Vec::new();
            for _ in 0..below(6) {
                let size = 1 + below(300) as usize;
                message.extend_from_slice(format!("{size:x}\r\n").as_bytes());
                message.extend((0..size).map(|_| below(256) as u8));
                message.extend_from_slice(b"\r\n");
            }
            message.extend_from_slice(b"0\r\n\r\n");
            let length = message.len();
            message.extend_from_slice(b"next");
            let sizes: Vec<usize> = (0..8).map(|_| 1 + below(100) as usize).collect();
            assert_eq!(taken(Body::chunked(), &message, &sizes), Ok(length), "case {case}");
        }
    }

    #[test]
    fn what_is_no_chunk_is_an_error() {
        let endless_extension = format!("1;{}", "x".repeat(10_000));
        let endless_trailers = format!("0\r\n{}", "a: b\r\n".repeat(200));
        for message in [
            "g\r\n",
            "\r\n",
            ";\r\n",
            "1\r\nxy\r\n",
            "1\r\nx\r\r\n",
            "ffffffffffffffff\r\n",
            &endless_extension,
            &endless_trailers,
        ] {
            assert_eq!(Body::chunked().take(message.as_bytes()), Err(Malformed), "{:?}", &message[..message.len().min(20)]);
        }
    }
}
