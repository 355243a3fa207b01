//! Forms of dates: strftime patterns, and names for common forms.

use super::calendar::{self, Fields, Moment};
use crate::convert::ArgumentError;

/// A form, parsed when the pack is compiled.
#[derive(Debug)]
pub(super) struct Form {
    pieces: Vec<Piece>,
    /// Whether the date is written as a JSON number.
    pub number: bool,
    pub parts: Parts,
    /// Whether it identifies a moment, rather than a local time.
    pub zoned: bool,
    /// Whether it contains a zone offset.
    pub has_offset: bool,
    /// Digits of the fraction of a second.
    pub places: u8,
    /// Whether one date has several spellings, of which one is written.
    pub is_spelt_freely: bool,
    /// The `format` by which contracts call it.
    pub format: Option<&'static str>,
}

/// The parts that a form contains: year, month, day, hour, minute, second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts([bool; 6]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Literal(char),
    /// Index into [`LETTERS`].
    Part(usize),
    MonthName,
    Weekday,
    /// Fraction of a second, written with this many digits. Any number of digits is read.
    Fraction(u8),
    /// Optional fraction: a point and any number of digits.
    MaybeFraction,
    /// `+0200`, or `+02:00` with a colon.
    Offset {
        colon: bool,
    },
    /// `Z` for UTC, otherwise an offset with a colon.
    Zulu,
    /// Seconds or milliseconds since 1970.
    Epoch {
        millis: bool,
    },
    /// `T`; `t` and a space are read too (RFC 3339, section 5.6).
    Tee,
}

/// The parts of a pattern and their widths in digits, in the order of [`Fields`].
const LETTERS: [(char, usize); 6] = [('Y', 4), ('m', 2), ('d', 2), ('H', 2), ('M', 2), ('S', 2)];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Names of common forms.
const WORDS: [&str; 3] = ["rfc3339", "epoch_second", "epoch_millis"];

impl Parts {
    /// Returns the letter of the first part that `other` has and `self` lacks.
    pub(super) fn missing(self, other: Parts) -> Option<char> {
        (0..6).find(|&at| other.0[at] && !self.0[at]).map(|at| LETTERS[at].0)
    }
}

impl Form {
    /// Parses a form as written in mappings. The error is part of a sentence.
    pub(super) fn parse(written: &str) -> Result<Form, ArgumentError> {
        let pieces = match written {
            "rfc3339" => {
                let date = pieces("%Y-%m-%d")?.into_iter().chain([Piece::Tee]);
                date.chain(pieces("%H:%M:%S")?).chain([Piece::MaybeFraction, Piece::Zulu]).collect()
            }
            "epoch_second" => vec![Piece::Epoch { millis: false }],
            "epoch_millis" => vec![Piece::Epoch { millis: true }],
            pattern => pieces(pattern)?,
        };
        let mut form = Form {
            number: written.starts_with("epoch_"),
            parts: Parts::default(),
            zoned: false,
            has_offset: false,
            places: 0,
            is_spelt_freely: false,
            format: match written {
                "rfc3339" => Some("date-time"),
                "%Y-%m-%d" => Some("date"),
                _ => None,
            },
            pieces: Vec::new(),
        };
        for piece in &pieces {
            form.count(*piece, written)?;
        }
        if form.parts == Parts::default() {
            let words = WORDS.map(|word| format!("`{word}`")).join(", ");
            return Err(format!("`{written}` has no part of a date, and is none of {words}").into());
        }
        // The weekday is verified against the date.
        if pieces.contains(&Piece::Weekday) && form.parts.0[..3] != [true; 3] {
            return Err("`%a` needs `%Y`, `%m` and `%d` beside it".into());
        }
        // An offset may shift the time to another day.
        if form.has_offset && form.parts.0 != [true; 6] {
            return Err("an offset needs a whole date and time beside it".into());
        }
        Ok(Form { pieces, ..form })
    }

    fn count(&mut self, piece: Piece, written: &str) -> Result<(), ArgumentError> {
        // Two occurrences of a part could contradict each other.
        let mut add = |at: usize, letter: char| match std::mem::replace(&mut self.parts.0[at], true) {
            true => Err(ArgumentError::from(format!("`%{letter}` occurs twice in `{written}`"))),
            false => Ok(()),
        };
        match piece {
            Piece::Part(at) => add(at, LETTERS[at].0)?,
            // `%b` and `%m` denote the same part, so a form with both has it twice.
            Piece::MonthName => add(1, 'b')?,
            Piece::Epoch { millis } => {
                (0..6).try_for_each(|at| add(at, 's'))?;
                self.zoned = true;
                self.places = if millis { 3 } else { 0 };
            }
            Piece::Fraction(places) => self.places = places,
            Piece::MaybeFraction => {
                self.places = 9;
                self.is_spelt_freely = true;
            }
            Piece::Offset { .. } | Piece::Zulu => {
                self.zoned = true;
                self.has_offset = true;
                // UTC may be written as `Z` or `+00:00`.
                self.is_spelt_freely = true;
            }
            Piece::Literal(_) | Piece::Weekday | Piece::Tee => {}
        }
        Ok(())
    }

    /// Returns the smallest and the largest valid number of a numeric form.
    pub(super) fn range(&self) -> [i64; 2] {
        let scale = if self.places == 3 { 1000 } else { 1 };
        // The last second has 1,000 milliseconds.
        [calendar::FIRST * scale, calendar::LAST * scale + scale - 1]
    }

    pub(super) fn read_number(&self, number: i64) -> Option<Moment> {
        let [least, most] = self.range();
        if !self.number || !(least..=most).contains(&number) {
            return None;
        }
        Some(match self.places {
            3 => Moment::of_epoch(number.div_euclid(1000), number.rem_euclid(1000) as u32 * 1_000_000),
            _ => Moment::of_epoch(number, 0),
        })
    }

    pub(super) fn read_text(&self, date: &str) -> Option<Moment> {
        if self.number {
            return None;
        }
        let (mut moment, mut weekday, mut rest) = (Moment::default(), None, date);
        for piece in &self.pieces {
            match *piece {
                Piece::Literal(letter) => rest = rest.strip_prefix(letter)?,
                // RFC 3339, section 5.6, permits a lower-case `t` and, for readability, a space.
                Piece::Tee => rest = rest.strip_prefix(['T', 't', ' '])?,
                // Fixed widths, as otherwise `%Y%m%d` would have several readings.
                Piece::Part(part) => {
                    let digits = rest.get(..LETTERS[part].1).filter(|text| is_digits(text))?;
                    moment.fields[part] = Some(digits.parse().ok()?);
                    rest = &rest[digits.len()..];
                }
                Piece::MonthName => {
                    let at = MONTHS.iter().position(|name| rest.starts_with(name))?;
                    moment.fields[1] = Some(at as u16 + 1);
                    rest = &rest[3..];
                }
                Piece::Weekday => {
                    weekday = Some(WEEKDAYS.iter().position(|name| rest.starts_with(name))?);
                    rest = &rest[3..];
                }
                Piece::Fraction(_) => (moment.nanos, rest) = fraction(rest)?,
                Piece::MaybeFraction => {
                    if let Some(digits) = rest.strip_prefix('.') {
                        (moment.nanos, rest) = fraction(digits)?;
                    }
                }
                Piece::Offset { .. } | Piece::Zulu => {
                    let (offset, after) = calendar::offset(rest)?;
                    moment.offset = Some(offset);
                    rest = after;
                }
                Piece::Epoch { .. } => {
                    let signed = usize::from(rest.starts_with('-'));
                    let digits = rest[signed..].bytes().take_while(u8::is_ascii_digit).count();
                    let seconds: i64 = rest[..signed + digits].parse().ok()?;
                    if !(calendar::FIRST..=calendar::LAST).contains(&seconds) {
                        return None;
                    }
                    // Preserve a fraction that was read before the seconds.
                    moment = Moment { nanos: moment.nanos, ..Moment::of_epoch(seconds, 0) };
                    rest = &rest[signed + digits..];
                }
            }
        }
        // A weekday that contradicts the date is an error.
        let is_day = weekday.is_none_or(|day| moment.weekday() == Some(day));
        (rest.is_empty() && moment.is_possible() && is_day).then_some(moment)
    }

    /// Formats a moment. Returns `None` if the moment lacks a part, which `Date::check` rules out,
    /// or if its epoch is out of range.
    pub(super) fn write(&self, moment: &Moment) -> Option<String> {
        let mut out = String::new();
        for piece in &self.pieces {
            match *piece {
                Piece::Literal(letter) => out.push(letter),
                Piece::Tee => out.push('T'),
                Piece::Part(part) => {
                    out.push_str(&format!(
                        "{:0width$}",
                        field(&moment.fields, part)?,
                        width = LETTERS[part].1
                    ));
                }
                Piece::MonthName => out.push_str(MONTHS.get(usize::from(field(&moment.fields, 1)?) - 1)?),
                Piece::Weekday => out.push_str(WEEKDAYS[moment.weekday()?]),
                Piece::Fraction(places) => {
                    // Truncated, because rounding could carry into the seconds.
                    out.push_str(&format!("{:09}", moment.nanos)[..usize::from(places)]);
                }
                Piece::MaybeFraction if moment.nanos == 0 => {}
                Piece::MaybeFraction => {
                    out.push('.');
                    out.push_str(format!("{:09}", moment.nanos).trim_end_matches('0'));
                }
                // A moment without an offset counts as UTC.
                Piece::Zulu if moment.offset.unwrap_or(0) == 0 => out.push('Z'),
                Piece::Zulu => write_offset(moment.offset.unwrap_or(0), true, &mut out),
                Piece::Offset { colon } => write_offset(moment.offset.unwrap_or(0), colon, &mut out),
                Piece::Epoch { millis: false } => out.push_str(&epoch_of(moment)?.to_string()),
                Piece::Epoch { millis: true } => {
                    let millis = epoch_of(moment)? * 1000 + i64::from(moment.nanos / 1_000_000);
                    out.push_str(&millis.to_string());
                }
            }
        }
        Some(out)
    }
}

/// Returns the seconds since 1970 if they are in the range that is also read.
fn epoch_of(moment: &Moment) -> Option<i64> {
    moment.epoch().filter(|seconds| (calendar::FIRST..=calendar::LAST).contains(seconds))
}

fn field(fields: &Fields, part: usize) -> Option<u16> {
    fields[part]
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Parses the digits of a fraction at the start of a text. Returns nanoseconds and the remaining
/// text. Digits after the ninth are skipped.
fn fraction(text: &str) -> Option<(u32, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    // Nanoseconds are the finest stored unit. Some services write more digits, which is not an error.
    let digits = text.get(..count.min(9)).filter(|digits| !digits.is_empty())?;
    let nanos: u32 = digits.parse().ok()?;
    Some((nanos * 10u32.pow(9 - digits.len() as u32), &text[count..]))
}

fn write_offset(minutes: i32, colon: bool, out: &mut String) {
    let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.abs());
    let between = if colon { ":" } else { "" };
    out.push_str(&format!("{sign}{:02}{between}{:02}", minutes / 60, minutes % 60));
}

/// Parses a pattern into pieces.
fn pieces(pattern: &str) -> Result<Vec<Piece>, ArgumentError> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        if letter != '%' {
            pieces.push(Piece::Literal(letter));
            continue;
        }
        // Codes of several characters take precedence over those of one.
        const LONG: [(&str, Piece); 5] = [
            (":z", Piece::Offset { colon: true }),
            (".f", Piece::MaybeFraction),
            ("3f", Piece::Fraction(3)),
            ("6f", Piece::Fraction(6)),
            ("9f", Piece::Fraction(9)),
        ];
        if let Some((written, piece)) = LONG.iter().find(|(written, _)| rest.starts_with(written)) {
            pieces.push(*piece);
            rest = &rest[written.len()..];
            continue;
        }
        let part = rest.chars().next().unwrap_or(' ');
        pieces.push(match part {
            '%' => Piece::Literal('%'),
            'b' => Piece::MonthName,
            'a' => Piece::Weekday,
            'f' => Piece::Fraction(6),
            'z' => Piece::Offset { colon: false },
            's' => Piece::Epoch { millis: false },
            _ => match LETTERS.iter().position(|(known, _)| *known == part) {
                Some(at) => Piece::Part(at),
                None => return Err(format!("`%{part}` is not a part of a date").into()),
            },
        });
        rest = &rest[part.len_utf8().min(rest.len())..];
    }
    Ok(pieces)
}
