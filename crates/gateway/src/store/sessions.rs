//! Sessions of the admin port, under the keyed hash of their id. A session is valid at every
//! replica while its row exists. The id itself is only in a cookie.

use super::db::args;
use super::seal::{HashOf, KeyedHash};
use super::{Store, StoreError};

/// Maximum number of stored sessions; new ones replace the oldest.
const SESSIONS_MAX: i64 = 1024;

impl Store {
    /// Stores the session with this id until `ends_ms`, wall time in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn begin_session(&self, id: &str, ends_ms: i64) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        tx.run(
            "INSERT INTO admin_sessions (hash, began_ms, ends_ms) VALUES ($1, $2, $3)",
            args![&self.session_hash(id)[..], self.clock.unix_ms(), ends_ms],
        )
        .await?;
        tx.run(
            "DELETE FROM admin_sessions WHERE hash IN \
             (SELECT hash FROM admin_sessions ORDER BY began_ms DESC, hash LIMIT 100 OFFSET $1)",
            args![SESSIONS_MAX],
        )
        .await?;
        tx.commit().await
    }

    /// Returns whether the session with this id is stored and has not expired.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn has_session(&self, id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT began_ms FROM admin_sessions WHERE hash = $1 AND ends_ms > $2";
        Ok(self.db.row(sql, args![&self.session_hash(id)[..], self.clock.unix_ms()]).await?.is_some())
    }

    /// Deletes the session with this id, if it is stored.
    ///
    /// # Errors
    ///
    /// The database does not answer or fails.
    pub async fn end_session(&self, id: &str) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        tx.run("DELETE FROM admin_sessions WHERE hash = $1", args![&self.session_hash(id)[..]]).await?;
        tx.commit().await
    }

    fn session_hash(&self, id: &str) -> KeyedHash {
        self.hasher.hash(HashOf::Session, id.as_bytes())
    }
}
