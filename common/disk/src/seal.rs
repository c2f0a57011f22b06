//! A text with its checksum in a last line: people and tools read it, and no flipped bit goes unseen.
//!
//! `TEXT\ncrc32 0a1b2c3d\n`, where the checksum covers the text. A text without that line is one of a version
//! that wrote none.

const MARK: &[u8] = b"\ncrc32 ";
/// Eight hexadecimal digits and the end of the line.
const DIGITS: usize = 8;

/// What a file turned out to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsealed<'a> {
    /// The text is what was written.
    Sound(&'a [u8]),
    /// There is no checksum: an older file, or one that is cut. Only its own grammar can tell.
    Bare(&'a [u8]),
    /// The text is not what was written.
    Damaged { expected: u32, found: u32 },
}

/// The text with its last line.
#[must_use]
pub fn seal(text: &[u8]) -> Vec<u8> {
    let mut sealed = text.to_vec();
    sealed.extend_from_slice(MARK);
    sealed.extend_from_slice(format!("{:08x}\n", crc32fast::hash(text)).as_bytes());
    sealed
}

/// The text without its last line, if that agrees.
#[must_use]
pub fn unseal(sealed: &[u8]) -> Unsealed<'_> {
    let Some(at) = sealed.len().checked_sub(MARK.len() + DIGITS + 1) else {
        return Unsealed::Bare(sealed);
    };
    let (text, line) = sealed.split_at(at);
    let digits = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(b"\n"));
    // Only the digits as they are written: a flipped bit must not turn one spelling into another.
    let plain = |digits: &&[u8]| digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let expected = digits
        .filter(plain)
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match (expected, crc32fast::hash(text)) {
        (None, _) => Unsealed::Bare(sealed),
        (Some(expected), found) if expected == found => Unsealed::Sound(text),
        (Some(expected), found) => Unsealed::Damaged { expected, found },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_seen() {
        let sealed = seal(b"{\"a\":1}");
        assert_eq!(unseal(&sealed), Unsealed::Sound(b"{\"a\":1}"));
        for position in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[position / 8] ^= 1 << (position % 8);
            assert!(!matches!(unseal(&flipped), Unsealed::Sound(_)), "bit {position}");
        }
    }

    #[test]
    fn a_text_without_checksum_is_told_as_such() {
        for text in [&b""[..], b"{}", b"{\"name\":\"a text of more than a few bytes\"}"] {
            assert_eq!(unseal(text), Unsealed::Bare(text));
        }
    }
}
