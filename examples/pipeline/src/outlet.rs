//! Sends items to one downstream task, over one connection that is renewed when it breaks.

use crate::frame;
use crate::settings::Output;
use std::io;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Items that wait for a slow downstream before the stage is held back.
const QUEUE_MAX: usize = 2;

/// A downstream that has moved answers at its new place soon after it is there: what is tried is short, and
/// tried again soon.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// Starts the sending thread of one output; item numbers put into the channel are sent in order.
pub(crate) fn start(task: String, output: Output) -> SyncSender<u64> {
    let (sender, numbers) = sync_channel(QUEUE_MAX);
    thread::spawn(move || send_all(&task, &output, &numbers));
    sender
}

fn send_all(task: &str, output: &Output, numbers: &Receiver<u64>) {
    let mut connection = connect(task, output);
    for number in numbers {
        // The item whose sending broke is sent again as a whole; the join drops it if it came twice.
        while frame::write_item(&mut connection, number, output.item_bytes).is_err() {
            connection = connect(task, output);
        }
    }
}

/// Tries until the downstream answers: it may start later, or be on its way back.
fn connect(task: &str, output: &Output) -> TcpStream {
    let mut pause = PAUSE_MIN;
    loop {
        match try_connect(task, output) {
            Ok(connection) => return connection,
            Err(_) => thread::sleep(pause),
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

fn try_connect(task: &str, output: &Output) -> io::Result<TcpStream> {
    let mut connection = TcpStream::connect_timeout(&output.address, CONNECT_TIMEOUT)?;
    connection.set_nodelay(true)?;
    frame::write_greeting(&mut connection, task)?;
    Ok(connection)
}
