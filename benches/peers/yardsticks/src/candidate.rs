//! Upstreams that clients should not have to wait for: a slow one, and one with endless answers.
//! They replace the new version behind a gateway that calls it only in the shadow.

use crate::wire::Reader;
use anyhow::Result;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Duration of a slow answer, which is longer than a shadow waits.
const SLOW: Duration = Duration::from_secs(8);
/// An endless answer is sent in pieces with pauses, so that its reader is not busy but never
/// finished.
const PAUSE: Duration = Duration::from_millis(5);
const PIECE_BYTES: usize = 8 * 1024;

/// The defect of an upstream.
#[derive(Clone, Copy)]
pub enum Manner {
    Slow,
    Endless,
}

/// An upstream with this defect, which runs until the process ends.
pub struct Candidate {
    pub address: SocketAddr,
    calls: Arc<AtomicU64>,
}

impl Candidate {
    /// Starts an upstream on a free address.
    ///
    /// # Errors
    /// No address that can be listened on.
    pub fn start(manner: Manner) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, calls) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
        let counted = calls.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let counted = counted.clone();
                // Broken connections are intended in some cases.
                std::thread::spawn(move || answer(socket, manner, &counted).ok());
            }
        });
        Ok(Self { address, calls })
    }

    /// Returns the number of calls received.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

fn answer(mut socket: TcpStream, manner: Manner, calls: &AtomicU64) -> Result<()> {
    let (mut reader, mut buffer) = (Reader::new(false), vec![0; 16 * 1024]);
    loop {
        while !reader.is_complete() {
            let read = socket.read(&mut buffer)?;
            anyhow::ensure!(read > 0, "the connection ended");
            reader.push(&buffer[..read])?;
        }
        reader.reset();
        calls.fetch_add(1, Ordering::Relaxed);
        match manner {
            Manner::Slow => {
                std::thread::sleep(SLOW);
                socket.write_all(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n[]",
                )?;
            }
            Manner::Endless => loop_forever(&mut socket)?,
        }
    }
}

/// Sends a list until the reader disconnects.
fn loop_forever(socket: &mut TcpStream) -> Result<()> {
    let head =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n[\r\n";
    socket.write_all(head)?;
    let elements = r#"{"id":1,"text":"and on"},"#.repeat(PIECE_BYTES / 24);
    let chunk = format!("{:x}\r\n{elements}\r\n", elements.len());
    loop {
        socket.write_all(chunk.as_bytes())?;
        std::thread::sleep(PAUSE);
    }
}
