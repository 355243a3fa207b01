//! However a body of parts is cut, its reader finds the same, and what it finds is written so that
//! it is found again.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use switchback_engine::translate::multipart::{
    MultipartFault, PartHead, Piece, Reader, boundary_for, write_end,
};

const PARTS_MAX: usize = 100;

type Parts = Vec<(PartHead, Vec<u8>)>;

fn read<'p>(boundary: &str, pieces: impl Iterator<Item = &'p [u8]>) -> Result<Parts, MultipartFault> {
    let mut reader = Reader::new(boundary, PARTS_MAX);
    let mut parts: Parts = Vec::new();
    for piece in pieces {
        reader.push(Bytes::copy_from_slice(piece));
        while let Some(piece) = reader.next_piece()? {
            match piece {
                Piece::Head(head) => parts.push((head, Vec::new())),
                Piece::Data(data) => parts.last_mut().expect("a head comes first").1.extend_from_slice(&data),
                Piece::End => {}
            }
        }
    }
    reader.finish().map(|()| parts)
}

fuzz_target!(|input: &[u8]| {
    let Some((size, body)) = input.split_first() else { return };
    let whole = read("B", std::iter::once(body));
    assert_eq!(read("B", body.chunks(1)), whole);
    assert_eq!(read("B", body.chunks(usize::from(*size).max(1))), whole);
    let Ok(parts) = whole else { return };
    let boundary = boundary_for(Some("B"), u64::from(*size), std::iter::empty()).expect("there is room");
    let mut out = Vec::new();
    for (head, content) in &parts {
        assert!(!content.starts_with(b"--B"));
        assert!(!content.windows(5).any(|window| window == b"\r\n--B"));
        head.write(&boundary, &head.name, &mut out);
        out.extend_from_slice(content);
        out.extend_from_slice(b"\r\n");
    }
    write_end(&boundary, &mut out);
    let again = read(&boundary, std::iter::once(&out[..])).expect("what is written is read");
    assert_eq!(again, parts);
});
