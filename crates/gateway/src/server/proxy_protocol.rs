//! The PROXY protocol, versions 1 and 2: a header before the first byte of a connection, in which a
//! balancer names its client. Only the header is read, so that the connection continues as if it came
//! from the client.

use proxy_header::{ParseConfig, ProxyHeader};
use std::io;
use std::net::SocketAddr;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// The shortest header: `PROXY UNKNOWN` and a line break.
const SHORTEST: usize = 15;
/// The longest header of version 1 (section 2.1).
const LINE_MAX: usize = 107;
/// The fixed part of version 2; its last two bytes are the length of the rest (section 2.2).
const FIXED: usize = 16;
/// Longest rest of version 2: addresses, and fields such as a server name, which are ignored.
const REST_MAX: usize = 4096;
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Reads the header. Returns the client's address; `None` if the balancer itself connects, such as
/// for a health check, or does not know its client.
pub(super) async fn read_client(stream: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    let mut header = vec![0; SHORTEST];
    stream.read_exact(&mut header).await?;
    if header.starts_with(SIGNATURE) {
        header.push(stream.read_u8().await?);
        let rest = usize::from(u16::from_be_bytes([header[FIXED - 2], header[FIXED - 1]]));
        if rest > REST_MAX {
            return Err(invalid("the header is too long"));
        }
        header.resize(FIXED + rest, 0);
        stream.read_exact(&mut header[FIXED..]).await?;
    } else if header.starts_with(b"PROXY ") {
        read_line(stream, &mut header).await?;
    }
    let parsed = ProxyHeader::parse(&header, ParseConfig::default());
    let (parsed, _) = parsed.map_err(|_| invalid("the connection starts with no valid header"))?;
    Ok(parsed.proxied_address().map(|address| address.source))
}

/// Reads up to the end of the line, and no byte after it.
async fn read_line(stream: &mut TcpStream, header: &mut Vec<u8>) -> io::Result<()> {
    while !header.ends_with(b"\r\n") {
        let mut ahead = [0; LINE_MAX];
        let room = LINE_MAX.saturating_sub(header.len());
        let seen = stream.peek(&mut ahead[..room]).await?;
        if seen == 0 {
            return Err(invalid("the header ends early or is too long"));
        }
        let taken = ahead[..seen].iter().position(|byte| *byte == b'\n').map_or(seen, |at| at + 1);
        let start = header.len();
        header.resize(start + taken, 0);
        stream.read_exact(&mut header[start..]).await?;
    }
    Ok(())
}

fn invalid(detail: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, detail)
}
