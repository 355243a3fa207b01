//! The fixture behind TLS: the same answers and counts as `fixture.rs`, over HTTP/1.1 or HTTP/2 by
//! ALPN. It uses hyper, because HTTP/2 is too complex for handwritten code; its cost is on the core
//! of the load generator, not on that of a peer.

use crate::fixture::{Answers, Asked, Seen, Wire};
use crate::tls::HTTP_2;
use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, SERVER};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

/// Maximum number of concurrent streams on a connection of HTTP/2, as in nginx.
const STREAMS_MAX: u32 = 128;

/// A listener with a thread of its own, which stops on drop.
pub struct Secure {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Secure {
    /// Starts a listener on a free address.
    ///
    /// # Errors
    /// No address that can be listened on.
    pub fn start(config: Arc<ServerConfig>, seen: Arc<Seen>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("secure fixture".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::spawn(accept(listener, TlsAcceptor::from(config), seen));
                // Nothing is sent: dropping the sender is the signal.
                stopped.await.ok();
            });
        })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        drop(self.stop.take());
        drop(self.thread.take().map(std::thread::JoinHandle::join));
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, seen: Arc<Seen>) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let answers = Arc::new(Mutex::new(Answers::new()));
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        // The client notices a broken connection.
        let (tls, answers, seen) = (tls.clone(), answers.clone(), seen.clone());
        tokio::spawn(async move { serve(socket, tls, answers, seen).await.ok() });
    }
}

async fn serve(
    socket: TcpStream,
    tls: TlsAcceptor,
    answers: Arc<Mutex<Answers>>,
    seen: Arc<Seen>,
) -> Result<()> {
    let stream = tls.accept(socket).await?;
    let wire = match stream.get_ref().1.alpn_protocol() {
        Some(HTTP_2) => Wire::TlsHttp2,
        _ => Wire::TlsHttp1,
    };
    let service =
        hyper::service::service_fn(move |request| answer(request, wire, answers.clone(), seen.clone()));
    let stream = TokioIo::new(stream);
    if wire == Wire::TlsHttp2 {
        let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        server.max_concurrent_streams(STREAMS_MAX).serve_connection(stream, service).await?;
    } else {
        hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await?;
    }
    Ok(())
}

async fn answer(
    request: Request<Incoming>,
    wire: Wire,
    answers: Arc<Mutex<Answers>>,
    seen: Arc<Seen>,
) -> Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let asked = Asked {
        method: head.method.as_str().as_bytes(),
        target: head.uri.path().as_bytes(),
        authorization: head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes),
        body: &body,
    };
    let reply = answers.lock().expect("nothing panics while it is held").to(&asked, wire, &seen);
    let mut response = Response::new(Full::new(reply.body()));
    *response.status_mut() = reply.status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(SERVER, HeaderValue::from_static("fixture"));
    Ok(response)
}
