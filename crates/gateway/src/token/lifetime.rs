//! Token lifetimes: pure functions that compute expiry and refresh times from the server's
//! response. They read no clock.

use serde_json::Value;
use std::time::Duration;

/// Upper bound for `expires_in`. Larger values are usually milliseconds sent by mistake, and would
/// overflow later arithmetic.
const LIFETIME_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Fraction of its lifetime after which a token is replaced at the latest; jitter moves that
/// forward by up to [`JITTER`].
const REPLACE_BY: f64 = 0.8;
const JITTER: f64 = 0.1;

/// Parses `expires_in` (RFC 6749, section 5.1): seconds as a number, or as a string, which some
/// servers send. Returns `None` if the value is absent, not a number, or less than one second;
/// expiry is then detected by a 401 from the API.
pub(super) fn parse_expires_in(value: Option<&Value>) -> Option<Duration> {
    let seconds = match value? {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse::<f64>().ok()?,
        _ => return None,
    };
    // Such a lifetime would cause a refresh for each call.
    if !seconds.is_finite() || seconds < 1.0 {
        return None;
    }
    Some(if seconds >= LIFETIME_MAX.as_secs_f64() {
        LIFETIME_MAX
    } else {
        Duration::from_secs_f64(seconds.floor())
    })
}

/// Returns the remaining lifetime; wall times are in milliseconds. The result is clamped to
/// `0..=lifetime`, so wall-clock jumps cannot extend or invert it.
pub(super) fn remaining(issued_ms: i64, lifetime: Duration, now_ms: i64) -> Duration {
    match u64::try_from(now_ms.saturating_sub(issued_ms)) {
        Ok(age) => lifetime.saturating_sub(Duration::from_millis(age)),
        // The clock was set back since. The full lifetime is safe: a 401 would end it earlier.
        Err(_) => lifetime,
    }
}

/// Returns how long before its expiry a token is to be replaced. `jitter` from 0 to 1 spreads
/// grants that were issued together.
pub(super) fn replace_before_end(lifetime: Duration, jitter: f64) -> Duration {
    lifetime.mul_f64(1.0 - REPLACE_BY + JITTER * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn expires_in_is_read_as_servers_send_it() {
        let seconds = |value: Value| parse_expires_in(Some(&value)).map(|lifetime| lifetime.as_secs());
        assert_eq!(seconds(json!(2_592_000)), Some(2_592_000));
        assert_eq!(seconds(json!("2505600")), Some(2_505_600));
        assert_eq!(seconds(json!(3599.7)), Some(3599));
        for nonsense in
            [json!(0), json!(-5), json!("soon"), json!("NaN"), json!(null), json!([60]), json!("")]
        {
            assert_eq!(seconds(nonsense.clone()), None, "{nonsense}");
        }
        for huge in [json!(u64::MAX), json!(1e300), json!("99999999999999999999")] {
            assert_eq!(seconds(huge.clone()), Some(LIFETIME_MAX.as_secs()), "{huge}");
        }
        assert_eq!(parse_expires_in(None), None);
    }

    #[test]
    fn a_jump_of_the_wall_clock_neither_lengthens_nor_overflows_a_lifetime() {
        let hour = Duration::from_secs(3600);
        let days = 40 * 86_400_000;
        assert_eq!(remaining(0, hour, 600_000), Duration::from_secs(3000));
        assert_eq!(remaining(0, hour, days), Duration::ZERO);
        assert_eq!(remaining(0, hour, -days), hour);
        assert_eq!(remaining(i64::MIN, hour, i64::MAX), Duration::ZERO);
        assert_eq!(remaining(i64::MAX, hour, i64::MIN), hour);
    }

    #[test]
    fn a_token_is_replaced_between_seven_and_eight_tenths_of_its_life() {
        let lifetime = Duration::from_secs(1000);
        assert_eq!(lifetime - replace_before_end(lifetime, 0.0), Duration::from_secs(800));
        assert_eq!(lifetime - replace_before_end(lifetime, 1.0), Duration::from_secs(700));
    }
}
