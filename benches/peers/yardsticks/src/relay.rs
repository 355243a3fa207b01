//! A distant service: forwards bytes in both directions, each piece after a fixed delay. It has one
//! thread, with waits finer than a millisecond.

use anyhow::{Context, Result};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Listener and connections are identified by number; a connection has two, one for each of its
/// sockets.
const LISTENER: u64 = u64::MAX;
/// Maximum number of bytes under way in one direction; a faster sender has to wait.
const UNDER_WAY_MAX: usize = 4 * 1024 * 1024;
const WAIT_MAX: Duration = Duration::from_millis(500);

/// Starts a relay that runs as long as the process, and returns its address.
///
/// # Errors
/// No address that can be listened on.
pub fn start(to: SocketAddr, delay: Duration) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("the relay cannot listen")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut relay = Relay { listener, epoll, to, delay, ends: HashMap::new(), next: 0, due: VecDeque::new() };
    std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
        // Otherwise waits end up to 50 µs late.
        rustix::thread::set_current_timer_slack(std::num::NonZero::new(1)).ok();
        if let Err(error) = relay.run() {
            eprintln!("the relay failed: {error:#}");
        }
    })?;
    Ok(address)
}

struct Relay {
    listener: TcpListener,
    epoll: OwnedFd,
    to: SocketAddr,
    delay: Duration,
    /// Sockets by number; the other end of number `n` is `n ^ 1`.
    ends: HashMap<u64, End>,
    next: u64,
    /// Received pieces, with their due time and the number of the receiving socket. All have the
    /// same delay, so they are in order.
    due: VecDeque<(Instant, u64, Vec<u8>)>,
}

struct End {
    socket: TcpStream,
    /// Bytes that are due and do not fit into the socket's buffer yet.
    unsent: VecDeque<u8>,
    /// Bytes on their way to this end, `unsent` included.
    under_way: usize,
    /// Whether the other end sends no more after the bytes that are under way.
    ending: bool,
    /// Whether this end sends no more.
    is_read: bool,
}

impl End {
    /// Whether all bytes for this end were written.
    fn is_done(&self) -> bool {
        self.ending && self.unsent.is_empty()
    }
}

impl Relay {
    fn run(&mut self) -> Result<()> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let wait = self.pass_on_what_is_due();
            let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    id => self.advance(id, &mut buffer),
                }
            }
        }
    }

    fn accept(&mut self) -> Result<()> {
        let from = match self.listener.accept() {
            Ok((socket, _)) => socket,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // An unreachable service appears as a closed connection.
        let Ok(to) = TcpStream::connect(self.to) else { return Ok(()) };
        for socket in [from, to] {
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            epoll::add(&self.epoll, &socket, EventData::new_u64(self.next), EventFlags::IN)?;
            let end = End { socket, unsent: VecDeque::new(), under_way: 0, ending: false, is_read: false };
            self.ends.insert(self.next, end);
            self.next += 1;
        }
        Ok(())
    }

    /// Reads from an end as much as the other one has room for, and writes as much as its socket
    /// accepts.
    fn advance(&mut self, id: u64, buffer: &mut [u8]) {
        let room = self.ends.get(&(id ^ 1)).is_some_and(|other| other.under_way < UNDER_WAY_MAX);
        let Some(end) = self.ends.get_mut(&id) else { return };
        if room && !end.is_read {
            match end.socket.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return self.forget(id),
                Ok(read) => {
                    end.is_read = read == 0;
                    if let Some(other) = self.ends.get_mut(&(id ^ 1)) {
                        other.under_way += read;
                    }
                    // An empty piece represents the end.
                    self.due.push_back((Instant::now() + self.delay, id ^ 1, buffer[..read].to_vec()));
                }
            }
        }
        self.write(id);
    }

    /// Writes the due pieces. Returns the time until the next one.
    fn pass_on_what_is_due(&mut self) -> Duration {
        while let Some((at, ..)) = self.due.front() {
            let left = at.saturating_duration_since(Instant::now());
            if left > Duration::ZERO {
                return left.min(WAIT_MAX);
            }
            let Some((_, id, bytes)) = self.due.pop_front() else { break };
            if let Some(end) = self.ends.get_mut(&id) {
                end.ending |= bytes.is_empty();
                end.unsent.extend(bytes);
                self.write(id);
            }
        }
        WAIT_MAX
    }

    fn write(&mut self, id: u64) {
        let Some(end) = self.ends.get_mut(&id) else { return };
        while !end.unsent.is_empty() {
            match end.socket.write(end.unsent.as_slices().0) {
                Ok(written) => {
                    end.unsent.drain(..written);
                    end.under_way -= written;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return self.forget(id),
            }
        }
        if end.is_done() {
            end.socket.shutdown(Shutdown::Write).ok();
        }
        if [id, id ^ 1].iter().all(|id| self.ends.get(id).is_some_and(End::is_done)) {
            return self.forget(id);
        }
        // The events to wait for depend on the bytes under way to both ends.
        for id in [id, id ^ 1] {
            self.watch(id);
        }
    }

    fn watch(&self, id: u64) {
        let (Some(end), Some(other)) = (self.ends.get(&id), self.ends.get(&(id ^ 1))) else { return };
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, !end.is_read && other.under_way < UNDER_WAY_MAX);
        flags.set(EventFlags::OUT, !end.unsent.is_empty());
        epoll::modify(&self.epoll, &end.socket, EventData::new_u64(id), flags).ok();
    }

    /// Closes both ends of a connection.
    fn forget(&mut self, id: u64) {
        self.ends.remove(&id);
        self.ends.remove(&(id ^ 1));
    }
}

#[cfg(test)]
mod tests {
    use super::start;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    #[test]
    fn bytes_go_through_whole_and_late_and_ends_are_passed_on() {
        const DELAY: Duration = Duration::from_millis(20);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = start(listener.local_addr().unwrap(), DELAY).unwrap();
        let sent: Vec<u8> = (0..9_000_000_u32).map(|at| (at / 7) as u8).collect();
        let begun = Instant::now();
        let mut client = TcpStream::connect(address).unwrap();
        let (mut service, _) = listener.accept().unwrap();
        let echo = std::thread::spawn(move || {
            let mut all = Vec::new();
            service.read_to_end(&mut all).unwrap();
            service.write_all(&all).unwrap();
        });
        client.write_all(&sent).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        client.read_to_end(&mut back).unwrap();
        echo.join().unwrap();
        assert!(back == sent, "{} of {} bytes came back", back.len(), sent.len());
        // A minimum, because a busy machine adds to it.
        assert!(begun.elapsed() >= 2 * DELAY);
    }
}
