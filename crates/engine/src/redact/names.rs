//! Lists of names that indicate a secret, and of harmless header fields. Captures, findings, logs
//! and the configuration mask by these lists. A header field on neither list is masked unless its
//! value is a number or a time. In doubt, add a name to the secret ones: a masked identifier is
//! still comparable by its hash, whereas a disclosed token cannot be recalled.

/// Names of headers, parameters, members and token fields whose value is a credential or a personal
/// number. Compared in lower case without `-` and `_`. The list covers common languages of member
/// names; texts under other names are masked by default anyway.
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

/// Names that indicate a secret only as a complete name, not as a suffix.
const TELLING_ALONE: [&str; 9] = ["code", "pin", "otp", "auth", "jwt", "cvv", "cvc", "ssn", "sid"];

/// Suffixes of names that indicate a credential.
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

/// Returns whether the name alone indicates that its value is a credential.
///
/// ```
/// use switchback_engine::redact::is_telling_name;
/// assert!(is_telling_name("X-Authorization") && is_telling_name("client_secret"));
/// assert!(is_telling_name("botToken") && is_telling_name("contraseña"));
/// assert!(is_telling_name("Passwort") && is_telling_name("nova_senha"));
/// assert!(!is_telling_name("barcode") && !is_telling_name("tokens_used"));
/// ```
pub fn is_telling_name(name: &str) -> bool {
    let bare: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(64).collect();
    TELLING.contains(&bare.as_str())
        || TELLING_ALONE.contains(&bare.as_str())
        || TELLING_ENDS.iter().any(|end| bare.ends_with(end))
}

/// Header fields that describe the message and its transfer, without credentials or personal data.
/// Any other field may be a credential under a custom name.
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

/// Returns whether the value of this header field (in any case) may be disclosed unless it looks
/// like a secret.
pub fn is_harmless_header(name: &str) -> bool {
    HARMLESS_HEADERS.iter().any(|harmless| harmless.eq_ignore_ascii_case(name))
}

/// Names whose value is a credential even in running text. The list is short, because in running
/// text no syntax marks a word as a name.
pub(super) const CREDENTIAL_NAMES: [&str; 10] = [
    "access_token",
    "refresh_token",
    "id_token",
    "client_secret",
    "client_assertion",
    "authorization",
    "api_key",
    "password",
    "token",
    "code",
];
