//! How a side's authorization server wants to be asked for tokens, where that is not as the RFCs say. Data of the pack; the
//! configuration has the last word.

/// How requests for tokens are written. What is left open is as the RFCs say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenRequests {
    /// What the body is written in; none = a form, as RFC 6749 has it.
    pub body: Option<BodyForm>,
    /// How the application shows who it is; none = as the server's metadata says, else by HTTP Basic.
    pub client_auth: Option<ClientAuth>,
    /// What a refresh carries besides the refresh token.
    pub refresh_sends: Option<Vec<RefreshExtra>>,
}

impl TokenRequests {
    /// These, and `others` where these leave something open.
    #[must_use]
    pub fn or(self, others: TokenRequests) -> TokenRequests {
        TokenRequests {
            body: self.body.or(others.body),
            client_auth: self.client_auth.or(others.client_auth),
            refresh_sends: self.refresh_sends.or(others.refresh_sends),
        }
    }
}

/// Defines an enumeration with the word that packs and configurations use for each of its values.
macro_rules! words {
    ($(#[doc = $about:literal])+ $name:ident { $( $(#[doc = $doc:literal])+ $value:ident = $word:literal, )+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $doc])+ $value, )+ }

        impl $name {
            /// All words, in order.
            pub const WORDS: &[&str] = &[$($word),+];

            /// The value of a word.
            pub fn of_word(word: &str) -> Option<Self> {
                match word { $( $word => Some($name::$value), )+ _ => None }
            }

            /// The word of the value.
            pub fn word(self) -> &'static str {
                match self { $( $name::$value => $word, )+ }
            }
        }
    };
}

words! {
    /// The form of a request's body.
    BodyForm {
        /// `application/x-www-form-urlencoded`, as RFC 6749 has it.
        Form = "form",
        /// A JSON object.
        Json = "json",
    }
}

words! {
    /// How the application shows who it is (RFC 6749, section 2.3.1; RFC 7591, section 2).
    ClientAuth {
        /// `client_secret_basic`: by HTTP Basic.
        Basic = "basic",
        /// `client_secret_post`: in the body.
        Post = "post",
        /// `none`: it has no secret; its code verifier is all it shows.
        None = "none",
    }
}

words! {
    /// What a refresh may carry besides.
    RefreshExtra {
        /// The access token that ends.
        AccessToken = "access_token",
        /// The scopes, all of them.
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
