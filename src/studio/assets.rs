//! The static files of the pages, compiled into the program. Each has a hash in its URL, so that
//! browsers cache it indefinitely and never mix two versions.

use crate::admin::AdminResponse;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

/// A static file.
pub(super) struct Asset {
    /// URL path.
    pub(super) path: String,
    etag: String,
    content_type: &'static str,
    text: &'static str,
}

/// All static files.
pub(super) struct Assets {
    pub(super) style: Asset,
    pub(super) script: Asset,
    pub(super) icon: Asset,
    /// The editor of mapping files, built from `editor/` by `editor/build`.
    pub(super) editor: Asset,
}

/// The static files of this program.
pub(super) static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets {
    style: asset("studio", "css", "text/css; charset=utf-8", include_str!("assets/studio.css")),
    script: asset("studio", "js", "text/javascript; charset=utf-8", include_str!("assets/studio.js")),
    icon: asset("switchback", "svg", "image/svg+xml", include_str!("assets/switchback.svg")),
    editor: asset("editor", "js", "text/javascript; charset=utf-8", include_str!("assets/editor.js")),
});

fn asset(name: &str, kind: &str, content_type: &'static str, text: &'static str) -> Asset {
    let digest = Sha256::digest(text.as_bytes());
    let hash: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    Asset { path: format!("/assets/{name}-{hash}.{kind}"), etag: format!("\"{hash}\""), content_type, text }
}

/// Returns the file at a path, or 304 if the browser has it.
pub(super) fn at(path: &str, headers: &HeaderMap) -> Option<AdminResponse> {
    let Assets { style, script, icon, editor } = &*ASSETS;
    let asset = [style, script, icon, editor].into_iter().find(|asset| asset.path == path)?;
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| *known == *asset.etag);
    let (status, text) = if is_known { (StatusCode::NOT_MODIFIED, "") } else { (StatusCode::OK, asset.text) };
    let etag = HeaderValue::try_from(&asset.etag).expect("hexadecimal digits in quotes");
    Some(
        AdminResponse::text(status, asset.content_type, text)
            .header(ETAG, etag)
            .with_header("cache-control", "public, max-age=31536000, immutable"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_together_stay_small() {
        let bytes: usize =
            [&ASSETS.style, &ASSETS.script, &ASSETS.icon].map(|asset| asset.text.len()).iter().sum();
        assert!(bytes <= 150 << 10, "{bytes} bytes");
        assert!(ASSETS.editor.text.len() <= 400 << 10, "{} bytes", ASSETS.editor.text.len());
    }

    /// `editor/build` writes the digests of its sources and of the bundle that it has built from them.
    #[test]
    fn the_editor_is_the_bundle_that_its_lock_file_built() {
        let contents = [
            ("build", include_str!("editor/build")),
            ("entry.js", include_str!("editor/entry.js")),
            ("package.json", include_str!("editor/package.json")),
            ("package-lock.json", include_str!("editor/package-lock.json")),
            ("../assets/editor.js", ASSETS.editor.text),
        ];
        let digests: Vec<&str> = include_str!("editor/digests").lines().collect();
        let lines = contents.map(|(name, text)| {
            let digest = Sha256::digest(text.as_bytes());
            let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{digest}  {name}")
        });
        assert_eq!(digests, lines, "run src/studio/editor/build");
    }

    #[test]
    fn a_file_is_kept_by_its_name_and_known_by_its_hash() {
        let path = &ASSETS.style.path;
        let first = at(path, &HeaderMap::new()).expect("it is there").into_response(false);
        assert_eq!(first.status(), StatusCode::OK);
        assert!(first.headers()["cache-control"].to_str().unwrap().contains("immutable"));
        let known = HeaderMap::from_iter([(IF_NONE_MATCH, first.headers()[ETAG].clone())]);
        let again = at(path, &known).expect("it is there").into_response(false);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert!(at("/assets/studio.css", &HeaderMap::new()).is_none());
    }
}
