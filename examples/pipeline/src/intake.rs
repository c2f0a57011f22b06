//! Accepts the upstreams' connections and feeds their items to the join.

use crate::frame;
use crate::join::Join;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A peer that does not say its name in this time is no upstream.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// Accepts for ever; each connection is read by a thread of its own.
pub(crate) fn accept(listener: &TcpListener, inputs: &[String], join: &Arc<Join>) {
    for connection in listener.incoming() {
        let Ok(connection) = connection else {
            // Out of descriptors or the like: give others time to end.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let (inputs, join) = (inputs.to_vec(), Arc::clone(join));
        thread::spawn(move || {
            // A broken connection is the sender's to renew.
            let _ended = receive(connection, &inputs, &join);
        });
    }
}

fn receive(mut connection: TcpStream, inputs: &[String], join: &Join) -> io::Result<()> {
    connection.set_read_timeout(Some(GREETING_TIMEOUT))?;
    let name = frame::read_greeting(&mut connection)?;
    connection.set_read_timeout(None)?;
    let upstream = inputs.iter().position(|input| *input == name).ok_or(io::ErrorKind::PermissionDenied)?;
    let turn = join.connect(upstream);
    let mut scratch = Vec::new();
    loop {
        let number = frame::read_item(&mut connection, &mut scratch)?;
        if !join.offer(upstream, turn, number) {
            return Ok(());
        }
    }
}
