//! Decimal arithmetic on digits and a power of ten. Only operations with a [`Rounding`] round; the
//! others return `None` if the result is not exact or too long.

use std::cmp::Ordering;

/// The way in which a number is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest number; halves away from zero.
    HalfUp,
    /// To the nearest number; halves to the one with an even last digit.
    HalfEven,
    /// Towards zero.
    Down,
    /// Away from zero.
    Up,
}

/// `digits * 10^exponent`, normalized: `digits` has no trailing zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: i128,
    exponent: i32,
}

/// Maximum number of digits of a parsed number.
const DIGITS_MAX: usize = 30;
/// Maximum exponent, positive or negative, of a number that [`Decimal::text`] formats.
const PLACES_MAX: i32 = 60;

impl Decimal {
    /// Returns 10 to this power.
    pub fn power_of_ten(exponent: i32) -> Decimal {
        Decimal { digits: 1, exponent }
    }

    /// Returns whether the number has no fraction.
    pub fn is_integer(self) -> bool {
        self.exponent >= 0
    }

    /// Returns whether the number is greater than 0.
    pub fn is_positive(self) -> bool {
        self.digits > 0
    }

    /// Returns whether the number is a power of ten.
    pub fn is_power_of_ten(self) -> bool {
        // Sufficient because every constructor returns the normal form, without trailing zeros in the
        // digits.
        self.digits == 1
    }

    /// Returns the exact sum, or `None` if it is too long.
    pub fn plus(self, other: Decimal) -> Option<Decimal> {
        // Align both numbers to the smaller exponent, so that no digit is lost.
        let exponent = self.exponent.min(other.exponent);
        let aligned = |number: Decimal| {
            let places = number.exponent.checked_sub(exponent)?.try_into().ok()?;
            number.digits.checked_mul(10i128.checked_pow(places)?)
        };
        Some(Decimal { digits: aligned(self)?.checked_add(aligned(other)?)?, exponent }.least())
    }

    /// Returns whether the number is zero.
    pub fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Returns the exact difference, or `None` if it is too long.
    pub fn minus(self, other: Decimal) -> Option<Decimal> {
        // A parsed number has at most 30 digits, so it has an opposite.
        self.plus(Decimal { digits: other.digits.checked_neg()?, ..other })
    }

    /// Rounds to this number of decimal places.
    pub fn rounded(self, places: i32, mode: Rounding) -> Option<Decimal> {
        self.quotient(Decimal::from(1), places, mode)
    }

    /// Returns the quotient, rounded to this number of decimal places, or `None` if it is too long
    /// or `other` is zero.
    pub fn quotient(self, other: Decimal, places: i32, mode: Rounding) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        // The quotient in units of its last place.
        let exponent = self.exponent.checked_sub(other.exponent)?.checked_add(places)?;
        let power = |exponent: i32| 10i128.checked_pow(u32::try_from(exponent).ok()?);
        let (dividend, divisor) = match exponent {
            0.. => (self.digits.checked_mul(power(exponent)?)?, other.digits),
            _ => match power(-exponent).and_then(|power| other.digits.checked_mul(power)) {
                Some(divisor) => (self.digits, divisor),
                // The quotient is less than half a unit, as `digits` is far from the limits of `i128`.
                None if self.digits == 0 => (0, 1),
                None => (self.digits.signum() * other.digits.signum(), 3),
            },
        };
        let (whole, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
        let distance = rest.unsigned_abs();
        let is_away = match (mode, distance.cmp(&(divisor.unsigned_abs() - distance))) {
            (_, _) if distance == 0 => false,
            (Rounding::Up, _) => true,
            (Rounding::Down, _) | (_, Ordering::Less) => false,
            (_, Ordering::Greater) | (Rounding::HalfUp, Ordering::Equal) => true,
            (Rounding::HalfEven, Ordering::Equal) => whole % 2 != 0,
        };
        let sign = if (dividend < 0) == (divisor < 0) { 1 } else { -1 };
        let digits = if is_away { whole.checked_add(sign)? } else { whole };
        Some(Decimal { digits, exponent: -places }.least())
    }

    /// Parses a JSON number. Returns `None` if the text is not a number, or too long.
    pub fn parse(json: &[u8]) -> Option<Decimal> {
        let text = std::str::from_utf8(json).ok()?;
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // Thirty digits fit into `i128` with eight to spare for sums and factors. The bound of the
        // exponent keeps sums of exponents far from the limits of `i32`.
        let digits = whole.len() + fraction.len();
        if digits > DIGITS_MAX || whole.is_empty() || !(-1000..=1000).contains(&exponent) {
            return None;
        }
        if !whole.trim_start_matches('-').bytes().chain(fraction.bytes()).all(|digit| digit.is_ascii_digit())
        {
            return None;
        }
        // Rejects a text with several signs.
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        Some(Decimal { digits, exponent: exponent - fraction.len() as i32 }.least())
    }

    /// Normalizes the number.
    fn least(mut self) -> Decimal {
        // `0`, `0.0` and `0e5` are equal numbers. The derived `==` compares digits and exponent, so equal
        // numbers need one form; the loop below would also never end for zero.
        if self.digits == 0 {
            return Decimal { digits: 0, exponent: 0 };
        }
        while self.digits % 10 == 0 {
            self.digits /= 10;
            self.exponent += 1;
        }
        self
    }

    /// Returns the exact product, or `None` if it is too long.
    pub fn times(self, other: Decimal) -> Option<Decimal> {
        let digits = self.digits.checked_mul(other.digits)?;
        Some(Decimal { digits, exponent: self.exponent.checked_add(other.exponent)? }.least())
    }

    /// Multiplies an integer of any length exactly. Returns `None` unless `self` is a positive
    /// integer and `integer` has neither a fraction nor an exponent.
    pub fn times_integer(self, integer: &[u8]) -> Option<String> {
        let (sign, digits) = integer_of(integer)?;
        // A negative exponent would leave a fraction, which this integer arithmetic does not represent.
        let zeros = usize::try_from(self.exponent).ok().filter(|_| self.digits > 0)?;
        // Long multiplication. A parsed factor has at most 30 digits, so its product with a digit,
        // plus the carry, fits into `u128`.
        let (factor, mut carry) = (self.digits.unsigned_abs(), 0);
        let mut product = Vec::with_capacity(digits.len() + DIGITS_MAX);
        for digit in digits.iter().rev() {
            carry += factor * u128::from(digit - b'0');
            product.push((carry % 10) as u8 + b'0');
            carry /= 10;
        }
        while carry > 0 {
            product.push((carry % 10) as u8 + b'0');
            carry /= 10;
        }
        product.reverse();
        Some(format!("{sign}{}{}", String::from_utf8(product).ok()?, "0".repeat(zeros)))
    }

    /// Multiplies a number of any length without an exponent exactly. Returns `None` unless `self`
    /// is a positive integer.
    pub fn times_long(self, number: &[u8]) -> Option<String> {
        let Some(point) = number.iter().position(|byte| *byte == b'.') else {
            return self.times_integer(number);
        };
        // The product of the digits, with the point at its place from the end.
        let (whole, fraction) = (&number[..point], &number[point + 1..]);
        let product = self.times_integer(&[whole, fraction].concat())?;
        let (sign, digits) = product.strip_prefix('-').map_or(("", product.as_str()), |digits| ("-", digits));
        let padded = format!("{:0>width$}", digits.trim_start_matches('0'), width = fraction.len() + 1);
        let (whole, fraction) = padded.split_at(padded.len() - fraction.len());
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        Some(format!("{sign}{whole}{point}{fraction}"))
    }

    /// Divides an integer of any length by this power of ten exactly. Returns `None` if `self` is
    /// not a power of ten of at least 1, or `integer` has a fraction or an exponent.
    pub fn divide_integer(self, integer: &[u8]) -> Option<String> {
        let (sign, digits) = integer_of(integer)?;
        let places = usize::try_from(self.exponent).ok().filter(|_| self.is_power_of_ten())?;
        let digits = std::str::from_utf8(digits).ok()?;
        // JSON requires a digit before the point (RFC 8259, section 6): 5 / 1000 is `0.005`.
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        Some(format!("{sign}{whole}{point}{fraction}"))
    }

    /// Returns the exact quotient, or `None` if its expansion is infinite or too long.
    pub fn over(self, other: Decimal) -> Option<Decimal> {
        let (mut digits, mut exponent) = (self.digits, self.exponent.checked_sub(other.exponent)?);
        // Each digit removes one factor 2 and one factor 5 from the divisor. Any other factor makes
        // the expansion infinite.
        for _ in 0..DIGITS_MAX {
            if digits % other.digits == 0 {
                return Some(Decimal { digits: digits / other.digits, exponent }.least());
            }
            digits = digits.checked_mul(10)?;
            exponent -= 1;
        }
        None
    }

    /// Formats the number with digits and a point, without an exponent. Returns `None` if the
    /// exponent exceeds 60.
    pub fn text(self) -> Option<String> {
        // `1e1000` is a short input. Without the bound, it would become a text of a thousand digits.
        if self.exponent.abs() > PLACES_MAX {
            return None;
        }
        if self.exponent >= 0 {
            return Some(format!("{}{}", self.digits, "0".repeat(self.exponent as usize)));
        }
        let places = self.exponent.unsigned_abs() as usize;
        let digits = format!("{:0>width$}", self.digits.unsigned_abs(), width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let sign = if self.digits < 0 { "-" } else { "" };
        Some(format!("{sign}{whole}.{fraction}"))
    }
}

/// Returns the sign and the digits of a JSON integer without a fraction or exponent.
fn integer_of(json: &[u8]) -> Option<(&'static str, &[u8])> {
    let (sign, digits) = json.strip_prefix(b"-").map_or(("", json), |digits| ("-", digits));
    let is_integer = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_integer.then_some((sign, digits))
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Decimal {
        Decimal { digits: number.into(), exponent: 0 }.least()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_any_length_are_scaled() {
        let nines = "9".repeat(40);
        let by = |factor: &str| Decimal::parse(factor.as_bytes()).expect("a factor");
        assert_eq!(by("100").times_integer(nines.as_bytes()), Some(format!("{nines}00")));
        assert_eq!(by("12").times_integer(b"-15").as_deref(), Some("-180"));
        assert_eq!(by("7").times_integer(b"0").as_deref(), Some("0"));
        assert_eq!(by("0.5").times_integer(b"2"), None);
        assert_eq!(by("7").times_integer(b"1.5"), None);
        assert_eq!(by("100").divide_integer(nines.as_bytes()), Some(format!("{}.99", "9".repeat(38))));
        assert_eq!(by("100").times_long(format!("-{nines}.995").as_bytes()), Some(format!("-{nines}99.5")));
        assert_eq!(by("1000").times_long(b"0.0050").as_deref(), Some("5"));
        assert_eq!(by("10").times_long(b"0.0050").as_deref(), Some("0.05"));
        assert_eq!(by("100").divide_integer(b"-5").as_deref(), Some("-0.05"));
        assert_eq!(by("100").divide_integer(b"500").as_deref(), Some("5"));
        assert_eq!(by("60").divide_integer(b"120"), None);
    }

    #[test]
    fn sums_are_exact() {
        let sum = |numbers: &[&str]| {
            let mut numbers = numbers.iter().map(|number| Decimal::parse(number.as_bytes()));
            let sum = numbers.try_fold(Decimal::from(0), |sum, number| sum.plus(number?));
            sum.and_then(Decimal::text)
        };
        assert_eq!(sum(&["0.1", "0.2"]).as_deref(), Some("0.3"));
        assert_eq!(sum(&["1e3", "-0.001"]).as_deref(), Some("999.999"));
        assert_eq!(sum(&["99999999999999999999", "1"]).as_deref(), Some("100000000000000000000"));
        assert_eq!(sum(&["1e900", "1e-900"]), None);
        assert_eq!(sum(&[]).as_deref(), Some("0"));
    }
}
