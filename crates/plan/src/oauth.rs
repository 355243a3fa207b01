//! Variants of OAuth token requests: differences between a side's authorization server and the
//! RFCs. The pack declares them, and the configuration overrides them.

/// The format of token requests. `None` means the behavior of the RFCs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenRequests {
    /// Format of the body; a form by default (RFC 6749).
    pub body: Option<BodyForm>,
    /// Client authentication; by default from the server's metadata, otherwise HTTP Basic.
    pub client_auth: Option<ClientAuth>,
    /// Parameters of a refresh in addition to the refresh token.
    pub refresh_sends: Option<Vec<RefreshExtra>>,
}

impl TokenRequests {
    /// Returns these settings, with `others` for those that are `None`.
    #[must_use]
    pub fn or(self, others: TokenRequests) -> TokenRequests {
        // Each property falls back separately, so that a configuration which sets one keeps the pack's
        // others.
        TokenRequests {
            body: self.body.or(others.body),
            client_auth: self.client_auth.or(others.client_auth),
            refresh_sends: self.refresh_sends.or(others.refresh_sends),
        }
    }
}

/// Defines an enumeration with the word for each value in packs and configurations.
macro_rules! words {
    ($(#[doc = $about:literal])+ $name:ident { $( $(#[doc = $doc:literal])+ $value:ident = $word:literal, )+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $doc])+ $value, )+ }

        impl $name {
            /// All words, in order.
            pub const WORDS: &[&str] = &[$($word),+];

            /// Returns the value of a word.
            pub fn of_word(word: &str) -> Option<Self> {
                match word { $( $word => Some($name::$value), )+ _ => None }
            }

            /// Returns the word of the value.
            pub fn word(self) -> &'static str {
                match self { $( $name::$value => $word, )+ }
            }
        }
    };
}

words! {
    /// The format of a request body.
    BodyForm {
        /// `application/x-www-form-urlencoded` (RFC 6749).
        Form = "form",
        /// A JSON object.
        Json = "json",
    }
}

words! {
    /// The client authentication method (RFC 6749, section 2.3.1; RFC 7591, section 2).
    ClientAuth {
        /// `client_secret_basic`: HTTP Basic.
        Basic = "basic",
        /// `client_secret_post`: parameters in the body.
        Post = "post",
        /// `none`: a public client, authenticated only by its code verifier.
        None = "none",
        /// `private_key_jwt`: an assertion signed with the client's private key (RFC 7523, section 2.2).
        PrivateKeyJwt = "private_key_jwt",
    }
}

words! {
    /// An additional parameter of a refresh.
    RefreshExtra {
        /// The expiring access token.
        AccessToken = "access_token",
        /// All scopes.
        Scope = "scope",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_its_value() {
        for word in ClientAuth::WORDS {
            assert_eq!(ClientAuth::of_word(word).map(ClientAuth::word), Some(*word));
        }
        assert_eq!(BodyForm::of_word("xml"), None);
    }

    #[test]
    fn the_first_to_say_something_is_heard() {
        let operator = TokenRequests { body: Some(BodyForm::Form), ..TokenRequests::default() };
        let pack = TokenRequests {
            body: Some(BodyForm::Json),
            refresh_sends: Some(vec![RefreshExtra::AccessToken]),
            ..TokenRequests::default()
        };
        let both = operator.or(pack);
        assert_eq!(both.body, Some(BodyForm::Form));
        assert_eq!(both.refresh_sends, Some(vec![RefreshExtra::AccessToken]));
        assert_eq!(both.client_auth, None);
    }
}
