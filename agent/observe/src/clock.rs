//! Whether somebody keeps the machine's clock right, as the kernel knows it.

use std::io;

/// Whether a time service has set the clock and vouches for it; asking changes nothing and needs no rights.
///
/// # Errors
/// When the kernel does not answer.
#[expect(unsafe_code, reason = "no safe wrapper of adjtimex(2) is at hand")]
pub fn is_synchronised() -> io::Result<bool> {
    // SAFETY: a timex of zeros is a valid one, and its `modes` of zero asks without setting.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a timex of ours, which outlives the call.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_answers() {
        super::is_synchronised().unwrap();
    }
}
