//! What travels on a connection: once the sender's name, then items.
//!
//! Greeting: one byte length, then the task's name. Item: header of 12 bytes, big-endian
//! (u32 bytes that follow, u64 item number), then that many bytes of noise.

use std::io::{self, Read, Write};

/// Bytes of an item's header.
pub(crate) const HEADER_BYTES: u32 = 12;

/// Read and written at once at most.
const CHUNK_BYTES: usize = 64 * 1024;

/// What an item's body is made of: incompressible is not needed, no one looks at it.
static BODY: [u8; CHUNK_BYTES] = [0x5a; CHUNK_BYTES];

/// Tells the peer who sends.
pub(crate) fn write_greeting(to: &mut impl Write, task: &str) -> io::Result<()> {
    let length = u8::try_from(task.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    to.write_all(&[&[length], task.as_bytes()].concat())
}

/// Reads who sends.
pub(crate) fn read_greeting(from: &mut impl Read) -> io::Result<String> {
    let mut length = [0];
    from.read_exact(&mut length)?;
    let mut name = vec![0; usize::from(length[0])];
    from.read_exact(&mut name)?;
    String::from_utf8(name).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Sends one item that takes `item_bytes` on the connection, header included.
pub(crate) fn write_item(to: &mut impl Write, number: u64, item_bytes: u32) -> io::Result<()> {
    let body = item_bytes.saturating_sub(HEADER_BYTES);
    let header = [&body.to_be_bytes()[..], &number.to_be_bytes()].concat();
    // Header and first bytes leave in one write: on a no-delay socket two writes are two packets.
    let first = (body as usize).min(CHUNK_BYTES - header.len());
    to.write_all(&[&header, &BODY[..first]].concat())?;
    let mut left = body as usize - first;
    while left > 0 {
        let chunk = left.min(CHUNK_BYTES);
        to.write_all(&BODY[..chunk])?;
        left -= chunk;
    }
    Ok(())
}

/// Receives one item whole and answers its number. `scratch` is overwritten.
pub(crate) fn read_item(from: &mut impl Read, scratch: &mut Vec<u8>) -> io::Result<u64> {
    let mut length = [0; 4];
    let mut number = [0; 8];
    from.read_exact(&mut length)?;
    from.read_exact(&mut number)?;
    let mut left = u32::from_be_bytes(length) as usize;
    scratch.resize(CHUNK_BYTES, 0);
    while left > 0 {
        let chunk = left.min(CHUNK_BYTES);
        from.read_exact(&mut scratch[..chunk])?;
        left -= chunk;
    }
    Ok(u64::from_be_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_takes_exactly_its_declared_bytes_and_reads_back() {
        for bytes in [12, 13, 4_000, 65_536, 65_537, 600_000] {
            let mut wire = Vec::new();
            write_item(&mut wire, 7, bytes).unwrap();
            assert_eq!(wire.len(), bytes as usize);
            let mut rest = wire.as_slice();
            assert_eq!(read_item(&mut rest, &mut Vec::new()).unwrap(), 7);
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_greeting_reads_back_and_a_cut_one_is_refused() {
        let mut wire = Vec::new();
        write_greeting(&mut wire, "detect").unwrap();
        assert_eq!(read_greeting(&mut wire.as_slice()).unwrap(), "detect");
        assert!(read_greeting(&mut &wire[..3]).is_err());
        assert!(write_greeting(&mut Vec::new(), &"x".repeat(300)).is_err());
    }
}
