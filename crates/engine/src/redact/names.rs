//! Which names tell a secret, and which header fields are harmless: the lists by which captures, findings, logs and the
//! configuration mask. A header field that is on neither list is masked unless its value is a number or a moment. In doubt a name
//! belongs among those that tell: a masked identifier costs a reader a look at its hash, a shown token costs more.

/// Names, as they stand in headers, query strings, members and token answers, whose value is a credential or a person's
/// number. Compared in lower case without `-` and `_`. In the languages that programmers name members in; a name in another
/// one is no loss where texts are masked anyway.
const TELLING: [&str; 53] = [
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "clientsecret",
    "authorization",
    "proxyauthorization",
    "xauthorization",
    "authenticate",
    "apikey",
    "secretkey",
    "privatekey",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "credentials",
    "cookie",
    "setcookie",
    "session",
    "signature",
    "passwort",
    "kennwort",
    "geheim",
    "geheimnis",
    "senha",
    "segredo",
    "chave",
    "contraseña",
    "contrasena",
    "secreto",
    "clave",
    "motdepasse",
    "mdp",
    "jeton",
    "parola",
    "wachtwoord",
    "lösenord",
    "hasło",
    "haslo",
    "heslo",
    "şifre",
    "пароль",
    "секрет",
    "токен",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    "iban",
    "cpf",
];

/// Names that tell only when they are the whole name.
const TELLING_ALONE: [&str; 9] = ["code", "pin", "otp", "auth", "jwt", "cvv", "cvc", "ssn", "sid"];

/// Endings after which a name is a credential's, whatever stands before.
const TELLING_ENDS: [&str; 12] = [
    "token",
    "secret",
    "password",
    "passphrase",
    "apikey",
    "authorization",
    "credential",
    "passwort",
    "kennwort",
    "senha",
    "contraseña",
    "motdepasse",
];

/// Whether a value under this name is a credential, by the name alone.
///
/// ```
/// use switchback_engine::redact::is_telling_name;
/// assert!(is_telling_name("X-Authorization") && is_telling_name("client_secret") && is_telling_name("botToken"));
/// assert!(is_telling_name("Passwort") && is_telling_name("nova_senha") && is_telling_name("contraseña"));
/// assert!(!is_telling_name("barcode") && !is_telling_name("tokens_used"));
/// ```
pub fn is_telling_name(name: &str) -> bool {
    let bare: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(64).collect();
    TELLING.contains(&bare.as_str())
        || TELLING_ALONE.contains(&bare.as_str())
        || TELLING_ENDS.iter().any(|end| bare.ends_with(end))
}

/// Header fields whose values say nothing of a person and open nothing: what messages are and how they travel. Any other field
/// may be a credential under a name of somebody's own.
const HARMLESS_HEADERS: [&str; 31] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "date",
    "deprecation",
    "expect",
    "expires",
    "host",
    "keep-alive",
    "last-modified",
    "pragma",
    "prefer",
    "range",
    "retry-after",
    "server",
    "sunset",
    "te",
    "transfer-encoding",
    "upgrade",
    "vary",
    "via",
];

/// Whether the value of this header field (in any case) may be shown as far as it does not look like a secret.
pub fn is_harmless_header(name: &str) -> bool {
    HARMLESS_HEADERS.iter().any(|harmless| harmless.eq_ignore_ascii_case(name))
}

/// Names whose value is a credential wherever they occur in running text. Few, since there nothing else says that a word is a name.
pub(super) const CREDENTIAL_NAMES: [&str; 9] = [
    "access_token",
    "refresh_token",
    "id_token",
    "client_secret",
    "authorization",
    "api_key",
    "password",
    "token",
    "code",
];
