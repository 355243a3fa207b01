//! See the map in `src/README.md`.
