//! A proxy in front of the services that resets connections: one share of the calls before the
//! service receives them, one after its work and before the answer, one within the answer. It
//! parses HTTP only as far as needed for the start of a call, and records the tokens of calls,
//! which must not appear anywhere.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    target: SocketAddr,
    seed: u64,
    resets: f64,
    connections: AtomicU64,
    calls: AtomicU64,
    reset: AtomicU64,
    tokens: Mutex<HashSet<String>>,
}

/// The fault of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Passed,
    /// The service never sees it.
    Lost,
    /// The service answers, but the answer is lost.
    Unheard,
    /// Half of the first data is forwarded.
    Cut,
}

impl Proxy {
    pub async fn start(target: SocketAddr, seed: u64, resets: f64) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            target,
            seed,
            resets,
            connections: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            reset: AtomicU64::new(0),
            tokens: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let shared = Arc::clone(&accepting);
                tokio::spawn(async move {
                    // Broken connections are the purpose.
                    let _ = shared.pass(client).await;
                });
            }
        });
        Proxy { address, shared }
    }

    /// Received calls, and those that were reset.
    pub fn counts(&self) -> (u64, u64) {
        (self.shared.calls.load(Relaxed), self.shared.reset.load(Relaxed))
    }

    /// All tokens of calls.
    pub fn tokens(&self) -> HashSet<String> {
        self.shared.tokens.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Shared {
    async fn pass(&self, mut client: TcpStream) -> std::io::Result<()> {
        let mut dice = fastrand::Rng::with_seed(self.seed ^ self.connections.fetch_add(1, Relaxed));
        let mut service = TcpStream::connect(self.target).await?;
        client.set_nodelay(true)?;
        service.set_nodelay(true)?;
        let (mut from_client, mut from_service) = (vec![0; 64 << 10], vec![0; 64 << 10]);
        let mut fate = Fate::Passed;
        loop {
            tokio::select! {
                count = client.read(&mut from_client) => {
                    let piece = &from_client[..count?];
                    if piece.is_empty() {
                        return Ok(());
                    }
                    if begins_a_call(piece) {
                        fate = self.fate(&mut dice);
                        self.note(piece);
                    }
                    if fate == Fate::Lost {
                        return client.set_zero_linger();
                    }
                    service.write_all(piece).await?;
                }
                count = service.read(&mut from_service) => {
                    let piece = &from_service[..count?];
                    match fate {
                        _ if piece.is_empty() => return Ok(()),
                        Fate::Unheard => return client.set_zero_linger(),
                        Fate::Cut => {
                            client.write_all(&piece[..piece.len() / 2]).await?;
                            return client.set_zero_linger();
                        }
                        Fate::Passed | Fate::Lost => client.write_all(piece).await?,
                    }
                }
            }
        }
    }

    fn fate(&self, dice: &mut fastrand::Rng) -> Fate {
        self.calls.fetch_add(1, Relaxed);
        if dice.f64() >= self.resets {
            return Fate::Passed;
        }
        self.reset.fetch_add(1, Relaxed);
        [Fate::Lost, Fate::Unheard, Fate::Cut][dice.usize(..3)]
    }

    fn note(&self, piece: &[u8]) {
        let text = String::from_utf8_lossy(piece);
        let fields = text.lines().skip(1).filter_map(|line| line.split_once(':'));
        let bearers = fields.filter(|(name, _)| name.to_ascii_lowercase().ends_with("authorization"));
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        for token in bearers.filter_map(|(_, value)| value.trim().strip_prefix("Bearer ")) {
            if !tokens.contains(token) {
                tokens.insert(token.to_owned());
            }
        }
    }
}

fn begins_a_call(piece: &[u8]) -> bool {
    [&b"GET "[..], b"POST ", b"PUT ", b"DELETE "].iter().any(|method| piece.starts_with(method))
}
