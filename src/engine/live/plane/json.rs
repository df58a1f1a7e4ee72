//! JSON as Toxiproxy's server reads it: the same values, and for what is no JSON the same words. Clients compare them.
//!
//! Owns the grammar; what a value must be, where it stands, is asked by [`super::decode`]. Bounded: the text by whoever
//! reads the body, the depth here. Only the first value of a text counts, as there.

use std::fmt::Write as _;

/// How deep arrays and objects may be nested.
const MAX_DEPTH: usize = 100;

/// A value. Numbers stay text: what reads one knows whether it must be whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as written.
    Number(String),
    /// A string without its escapes.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object, in order, as written: a key may come twice, and then the last one counts.
    Map(Vec<(String, Json)>),
}

impl Json {
    /// The word of its kind in an error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) => "object",
        }
    }

    /// Reads the first value of a text.
    ///
    /// # Errors
    /// What is wrong, in the words of the server that this stands in for.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let mut reader = Reader { text, at: 0 };
        reader.space();
        if reader.at == text.len() {
            return Err("EOF".into());
        }
        reader.value(0)
    }

    /// Reads a text that is one value, and nothing behind it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse_all(text: &[u8]) -> Result<Self, String> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        reader.space();
        if reader.at == text.len() { Ok(value) } else { reader.wrong("after top-level value") }
    }
}

/// A text as a JSON string, the characters escaped that the server escapes.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            // Writing to a String cannot fail.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => drop(write!(quoted, "\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Result<u8, String> {
        self.text.get(self.at).copied().ok_or_else(|| "unexpected EOF".into())
    }

    fn space(&mut self) {
        while self.text.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The next byte that is no space.
    fn next(&mut self) -> Result<u8, String> {
        self.space();
        self.peek()
    }

    fn wrong<T>(&self, context: &str) -> Result<T, String> {
        let byte = self.peek()?;
        Err(format!("invalid character {} {context}", named(byte)))
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth > MAX_DEPTH {
            return Err("exceeded max depth".into());
        }
        match self.next()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Json::Text),
            b'-' | b'0'..=b'9' => self.number().map(Json::Number),
            b't' => self.literal("true", Json::Bool(true)),
            b'f' => self.literal("false", Json::Bool(false)),
            b'n' => self.literal("null", Json::Null),
            _ => self.wrong("looking for beginning of value"),
        }
    }

    fn literal(&mut self, word: &str, value: Json) -> Result<Json, String> {
        for expected in word.bytes() {
            if self.peek()? != expected {
                return self.wrong(&format!("in literal {word} (expecting {})", named(expected)));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Json, String> {
        self.at += 1;
        let mut entries = Vec::new();
        if self.next()? == b'}' {
            self.at += 1;
            return Ok(Json::Map(entries));
        }
        loop {
            if self.next()? != b'"' {
                return self.wrong("looking for beginning of object key string");
            }
            let key = self.string()?;
            if self.next()? != b':' {
                return self.wrong("after object key");
            }
            self.at += 1;
            entries.push((key, self.value(depth + 1)?));
            match self.next()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(Json::Map(entries));
                }
                _ => return self.wrong("after object key:value pair"),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json, String> {
        self.at += 1;
        let mut items = Vec::new();
        if self.next()? == b']' {
            self.at += 1;
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.next()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(Json::List(items));
                }
                _ => return self.wrong("after array element"),
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<String, String> {
        let start = self.at;
        if self.peek()? == b'-' {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else if self.digits() == 0 {
            return self.wrong("in numeric literal");
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return self.wrong("after decimal point in numeric literal");
            }
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.text.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return self.wrong("in exponent of numeric literal");
            }
        }
        Ok(String::from_utf8_lossy(&self.text[start..self.at]).into_owned())
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Ok(String::from_utf8_lossy(&bytes).into_owned());
                }
                b'\\' => {
                    self.at += 1;
                    let c = self.escape()?;
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                0..=0x1f => return self.wrong("in string literal"),
                byte => {
                    bytes.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Result<char, String> {
        let c = match self.peek()? {
            b'u' => {
                self.at += 1;
                return self.unicode();
            }
            byte @ (b'"' | b'\\' | b'/') => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            _ => return self.wrong("in string escape code"),
        };
        self.at += 1;
        Ok(c)
    }

    /// The four digits of `\u`, and of its partner where it is half of a pair. Half alone is the replacement character.
    fn unicode(&mut self) -> Result<char, String> {
        let first = self.four()?;
        if !(0xd800..0xdc00).contains(&first) || !self.text[self.at..].starts_with(b"\\u") {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let before = self.at;
        self.at += 2;
        let second = self.four()?;
        if (0xdc00..0xe000).contains(&second) {
            let both = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Ok(char::from_u32(both).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        self.at = before;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn four(&mut self) -> Result<u32, String> {
        let mut number = 0;
        for _ in 0..4 {
            let Some(digit) = char::from(self.peek()?).to_digit(16) else {
                return self.wrong("in \\u hexadecimal character escape");
            };
            number = number << 4 | digit;
            self.at += 1;
        }
        Ok(number)
    }
}

/// A byte as errors show it.
fn named(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".into(),
        b'"' => "'\"'".into(),
        b'\\' => r"'\\'".into(),
        b'\n' => r"'\n'".into(),
        b'\r' => r"'\r'".into(),
        b'\t' => r"'\t'".into(),
        0..=0x1f | 0x7f => format!(r"'\x{byte:02x}'"),
        // There a byte is shown as the character of that number.
        0x80..=0x9f | 0xad => format!(r"'\u{byte:04x}'"),
        byte => format!("'{}'", char::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_written() {
        let text = |text: &str| Json::Text(text.into());
        let number = |text: &str| Json::Number(text.into());
        for (source, value) in [
            ("null", Json::Null),
            (" true garbage", Json::Bool(true)),
            ("-0.5e+3", number("-0.5e+3")),
            ("01", number("0")),
            (r#""a\"\\\/\n\u00e4\ud83d\ude00\ud83dx""#, text("a\"\\/\nä😀\u{fffd}x")),
            ("[]", Json::List(vec![])),
            ("[1, [null]]", Json::List(vec![number("1"), Json::List(vec![Json::Null])])),
            ("{ }", Json::Map(vec![])),
            (r#"{"a":1,"a":"b"}"#, Json::Map(vec![("a".into(), number("1")), ("a".into(), text("b"))])),
        ] {
            assert_eq!(Json::parse(source.as_bytes()), Ok(value), "{source}");
        }
        assert_eq!(Json::parse(b"\"a\xff\""), Ok(text("a\u{fffd}")));
    }

    #[test]
    fn what_is_no_json_is_said_in_known_words() {
        for (source, said) in [
            ("", "EOF"),
            ("  \n", "EOF"),
            ("not json", "invalid character 'o' in literal null (expecting 'u')"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("tru", "unexpected EOF"),
            ("{", "unexpected EOF"),
            ("{1:2}", "invalid character '1' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("-a", "invalid character 'a' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("\"a\nb\"", r"invalid character '\n' in string literal"),
            (r#""\q""#, "invalid character 'q' in string escape code"),
            (r#""\u12g4""#, r"invalid character 'g' in \u hexadecimal character escape"),
            ("'a'", r"invalid character '\'' looking for beginning of value"),
            ("\u{1}", r"invalid character '\x01' looking for beginning of value"),
        ] {
            assert_eq!(Json::parse(source.as_bytes()).unwrap_err(), said, "{source}");
        }
        assert_eq!(Json::parse(&[b'['; 10_000]).unwrap_err(), "exceeded max depth");
    }

    #[test]
    fn no_bytes_panic_and_what_is_quoted_reads_back() {
        use crate::rng::{Key, Purpose};
        let alphabet = b"{}[]\":,\\u0dD8ntfe-+.1 \xff\n";
        for case in 0..20_000 {
            let mut draws = Key { operation: case, ..Key::default() }.stream(Purpose::Kind);
            let text: Vec<u8> = (0..1 + case % 24).map(|_| alphabet[draws.bits() as usize % alphabet.len()]).collect();
            if let Ok(Json::Text(text)) = Json::parse(&text) {
                assert_eq!(Json::parse(quoted(&text).as_bytes()), Ok(Json::Text(text)));
            }
        }
        assert_eq!(quoted("<a>&\u{1}\u{2028}\"ä"), r#""\u003ca\u003e\u0026\u0001\u2028\"ä""#);
    }
}
