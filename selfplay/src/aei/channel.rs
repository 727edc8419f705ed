//! The lines between a controller and the engine, over standard input and output or a socket.

use super::messages::Event;
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepidle};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// The most bytes of a line; those of the protocol have a few hundred.
const MAX_LINE_BYTES: u64 = 1 << 16;

/// The most lines that wait for a session; then the controller waits too.
const WAITING: usize = 256;

/// The time after which the system asks a silent controller's machine whether it is still there.
const SILENCE: Duration = Duration::from_secs(60);

/// The longest wait for a controller to read; then it counts as gone.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// The connection to the controller.
pub(super) enum Channel {
    /// Standard input and output.
    Standard,
    /// A connection.
    Socket(TcpStream),
}

impl Channel {
    /// Passes all lines of the controller to a session, from a thread of its own. Each line takes room; the session frees it by receiving
    /// once for each line.
    pub(super) fn listen(&self, events: Sender<Event>) -> io::Result<Receiver<()>> {
        let lines: Box<dyn Read + Send> = match self {
            Self::Standard => Box::new(io::stdin()),
            Self::Socket(stream) => {
                // Lines are short, and the controller waits for each.
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(WRITE_LIMIT))?;
                set_socket_keepalive(stream, true)?;
                set_tcp_keepidle(stream, SILENCE)?;
                Box::new(stream.try_clone()?)
            }
        };
        let (taken, room) = sync_channel(WAITING);
        let listen = move || read_lines(&mut BufReader::new(lines), &events, &taken);
        thread::Builder::new()
            .name("controller".into())
            .spawn(listen)?;
        Ok(room)
    }

    /// Whether the controller is at the other end of a connection, maybe on another machine.
    pub(super) const fn is_socket(&self) -> bool {
        matches!(self, Self::Socket(_))
    }

    /// Sends one line.
    pub(super) fn say(&mut self, line: &str) -> io::Result<()> {
        let line = format!("{line}\n");
        match self {
            Self::Standard => {
                let mut out = io::stdout().lock();
                out.write_all(line.as_bytes())?;
                out.flush()
            }
            Self::Socket(stream) => stream.write_all(line.as_bytes()),
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if let Self::Socket(stream) = self {
            // The other side may have closed the connection already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Passes lines on until the input or the session ends. Bytes that are no UTF-8 are replaced by a character that no message has.
fn read_lines(from: &mut dyn BufRead, events: &Sender<Event>, taken: &SyncSender<()>) {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let event = match from.take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => Event::End,
            Ok(_) if bytes.len() as u64 == MAX_LINE_BYTES && !bytes.ends_with(b"\n") => {
                Event::TooLong
            }
            Ok(_) => Event::Line(String::from_utf8_lossy(&bytes).into_owned()),
        };
        let goes_on = matches!(event, Event::Line(_));
        // The last event needs no room, and neither do the search thread's: the session would wait for itself.
        let has_room = !goes_on || taken.send(()).is_ok();
        if !has_room || events.send(event).is_err() || !goes_on {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn events(mut text: &[u8]) -> Vec<String> {
        let (events, seen) = channel();
        let (taken, _room) = sync_channel(WAITING);
        read_lines(&mut text, &events, &taken);
        drop(events);
        let name = |event| match event {
            Event::Line(line) => line,
            other => format!("{other:?}"),
        };
        seen.into_iter().map(name).collect()
    }

    #[test]
    fn lines_of_any_ending_are_passed_on_and_the_last_needs_none() {
        assert_eq!(events(b""), ["End"]);
        assert_eq!(
            events(b"aei\r\nis\xffready\nquit"),
            ["aei\r\n", "is\u{fffd}ready\n", "quit", "End"]
        );
    }

    #[test]
    fn lines_wait_for_room() {
        let (events, seen) = channel();
        let (taken, room) = sync_channel(2);
        let text = "isready\n".repeat(5);
        let reader = thread::spawn(move || read_lines(&mut text.as_bytes(), &events, &taken));
        for _ in 0..2 {
            assert!(matches!(seen.recv(), Ok(Event::Line(_))));
        }
        // The session makes no room any more.
        drop(room);
        reader.join().unwrap();
        assert_eq!(seen.into_iter().count(), 0);
    }

    #[test]
    fn a_line_without_end_is_not_kept_in_memory() {
        let long = vec![b'a'; 10 * MAX_LINE_BYTES as usize];
        assert_eq!(events(&long), ["TooLong"]);
        let longest = [&long[..MAX_LINE_BYTES as usize - 1], b"\nquit\n"].concat();
        assert_eq!(events(&longest).len(), 3);
    }
}
