//! Checks blocks of 64 bytes within an array or object without a loop over tokens.
//!
//! Each byte has one bit in a word. The bytes that may follow a token depend on the token; after a
//! comma, and after a string that follows one, also on the container. So all tokens of one kind are
//! compared with their successors at once, in one or two operations on a word. Only brackets are
//! processed one by one: between two of them, all commas are in the same container. A string is one
//! run of bits. Adding the bit at its start carries past its last byte, which yields the closing
//! quotes grouped by the token before the string.

use super::super::reader::is_blank;
use super::super::scan::{Classes, Scan, Task, escaped};
use super::super::text;
use super::{Grammar, Inside, Next};

pub(super) const BLOCK_BYTES: usize = 64;

/// Minimum length of the rest of a chunk that is checked as a padded block.
pub(super) const TAIL_BYTES: usize = 16;

/// Maximum length of a number that is checked across the end of a block. A longer one is checked
/// byte by byte.
const BARE_MAX: usize = 1024;

/// Checks as many valid blocks as there are from `at`. Returns the position after them.
pub(super) struct Blocks<'a> {
    pub grammar: &'a mut Grammar,
    pub chunk: &'a [u8],
    pub at: usize,
}

/// The state after a block. The last bit of a word is set if the last token of the block is of that
/// kind. The container determines the valid successors of a comma or an opening bracket; the next
/// block reads it from the grammar.
#[derive(Clone, Copy, Default)]
struct Pending {
    colon: u64,
    comma: u64,
    opens: u64,
    /// The end of a value.
    value: u64,
    /// The end of a string that is a name in an object or a value in an array.
    either: u64,
    /// 1 if the next bytes are the rest of a number or literal, which was checked to its end.
    bare: u64,
    /// 1 if the end of the block is inside a string that is a name in an object.
    in_either: u64,
    /// All ones if the end of the block is inside a string.
    in_string: u64,
    /// Whether the last byte of that string is a backslash that starts an escape.
    escapes: bool,
}

const LAST: u64 = 1 << 63;

impl Pending {
    fn of(grammar: &Grammar) -> Pending {
        let pending = Pending::default();
        if grammar.inside == Inside::String {
            let in_either = u64::from(grammar.next == Next::Colon);
            return Pending { in_string: !0, in_either, ..pending };
        }
        match grammar.next {
            Next::Value => Pending { colon: LAST, ..pending },
            Next::Key => Pending { comma: LAST, ..pending },
            Next::ValueOrEnd | Next::KeyOrEnd => Pending { opens: LAST, ..pending },
            Next::Colon => Pending { either: LAST, ..pending },
            Next::AfterElement | Next::AfterMember | Next::End => Pending { value: LAST, ..pending },
        }
    }

    fn keep_in(self, grammar: &mut Grammar) {
        grammar.inside = match (self.in_string, self.escapes) {
            (0, _) => Inside::Nothing,
            (_, false) => Inside::String,
            (_, true) => Inside::Escape,
        };
        let is_object = grammar.after == Next::AfterMember;
        let is_last = |word: u64| word & LAST != 0;
        grammar.next = match self {
            _ if is_last(self.either) || self.in_either == 1 => {
                if is_object {
                    Next::Colon
                } else {
                    grammar.after
                }
            }
            _ if is_last(self.comma) && is_object => Next::Key,
            _ if is_last(self.colon | self.comma) => Next::Value,
            _ if is_last(self.opens) && is_object => Next::KeyOrEnd,
            _ if is_last(self.opens) => Next::ValueOrEnd,
            _ => grammar.after,
        };
    }
}

impl Task for Blocks<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Scan>(self, scan: S) -> usize {
        let Blocks { grammar, chunk, mut at } = self;
        let mut pending = Pending::of(grammar);
        while !grammar.open.is_empty()
            && !pending.escapes
            && let Some(block) = chunk.get(at..).and_then(<[u8]>::first_chunk::<BLOCK_BYTES>)
        {
            let Some(read) = (Block { chunk, block, at }).read(scan, pending, grammar) else { break };
            (pending, at) = (read.pending, at + read.len);
        }
        let tail = chunk.get(at..).unwrap_or_default();
        // `cut_scalar` has checked this number or literal up to its end, so it is skipped here.
        if pending.bare == 1 {
            at += bare_len(tail);
        } else if (TAIL_BYTES..BLOCK_BYTES).contains(&tail.len())
            && !pending.escapes
            && !grammar.open.is_empty()
        {
            // Blanks before the tail are valid inside strings and between tokens.
            let mut block = [b' '; BLOCK_BYTES];
            let blanks = BLOCK_BYTES - tail.len();
            block[blanks..].copy_from_slice(tail);
            let read = (Block { chunk: &block, block: &block, at: 0 }).read(scan, pending, grammar);
            // If the tail has an incomplete scalar, the grammar checks it byte by byte.
            if let Some(read) = read {
                (pending, at) = (read.pending, at + read.len - blanks);
            }
        }
        pending.keep_in(grammar);
        at
    }
}

/// The result of a block.
struct Read {
    pending: Pending,
    /// Checked bytes: all of the block, or up to the end of the outermost container.
    len: usize,
}

/// One block of a chunk.
#[derive(Clone, Copy)]
struct Block<'a> {
    chunk: &'a [u8],
    block: &'a [u8; BLOCK_BYTES],
    at: usize,
}

impl Block<'_> {
    /// Checks the block. Returns `None`, without an effect, if the block is invalid or unusual.
    #[inline(always)]
    fn read<S: Scan>(self, scan: S, before: Pending, grammar: &mut Grammar) -> Option<Read> {
        let Classes { quote, backslash, control, low, comma, colon, opens, closes, digit, zero } =
            scan.classes(self.block);
        if before.in_string & !(quote | backslash) == !0 {
            // A block inside a long string.
            return (control == 0).then_some(Read { pending: before, len: BLOCK_BYTES });
        }
        let (escaped, escapes) = escaped(backslash);
        let quote = quote & !escaped;
        // Includes the opening quote, but not the closing one.
        let strings = scan.prefix_xor(quote) ^ before.in_string;
        let outside = !strings;
        let blank = if low & outside == 0 { 0 } else { scan.blanks(self.block) & outside };
        let bare = outside & !(comma | colon | opens | closes | quote | blank);
        let mut wrong = control & strings;
        if escaped & strings != 0 {
            self.escapes(escaped & strings)?;
        }
        let (comma, colon) = (comma & outside, colon & outside);
        let (opens, closes) = (opens & outside, closes & outside);

        let starts = bare & !(bare << 1 | before.bare);
        let is_cut = bare >> 63;
        let whole = if is_cut == 1 { self.cut_scalar(bare, starts)? } else { bare };
        self.bare_scalars(whole, starts & whole, whole & digit, zero)?;

        let string_opens = quote & strings;
        let follow = Follow { blank };
        let after_colon = follow.after(colon, before.colon >> 63);
        let after_comma = follow.after(comma, before.comma >> 63);
        let after_open = follow.after(opens, before.opens >> 63);
        let values = string_opens | starts | opens;
        wrong |= (after_colon.places | after_comma.places) & !values;
        wrong |= after_open.places & !(values | closes);

        let either = string_opens & (after_comma.places | after_open.places);
        let (either_ends, in_either) = ends(strings, either | before.in_either);
        let string_ends = quote & outside;
        let bare_ends = bare & !(bare >> 1 | LAST);
        let value_ends = string_ends & !either_ends | closes | bare_ends;
        let after_value = follow.after(value_ends, before.value >> 63 | before.bare & !bare);
        let after_either = follow.after(either_ends, before.either >> 63);
        wrong |= after_value.places & !(comma | closes);

        // Faults that depend on the container.
        let no_name = (after_comma.places | after_open.places & !closes) & !string_opens;
        let in_object = no_name | after_either.places & !colon;
        let in_array = after_either.places & !(comma | closes);
        let end = Brackets { block: self.block, opens, closes, wrong, in_object, in_array }.read(grammar)?;
        if let Some(end) = end {
            return Some(Read { pending: Pending::default(), len: end + 1 });
        }
        let in_string = (strings >> 63).wrapping_neg();
        let pending = Pending {
            colon: after_colon.pending,
            comma: after_comma.pending,
            opens: after_open.pending,
            value: after_value.pending,
            either: after_either.pending,
            bare: is_cut,
            in_either: u64::from(in_either),
            in_string,
            escapes: escapes && in_string != 0,
        };
        Some(Read { pending, len: BLOCK_BYTES })
    }

    /// Checks the escapes whose second bytes are at `places`. No escape starts before the block, so
    /// `place` is never 0.
    #[cold]
    fn escapes(self, places: u64) -> Option<()> {
        let mut places = places;
        while places != 0 {
            let place = places.trailing_zeros() as usize;
            places &= places - 1;
            text::escape_len(self.chunk.get(self.at + place - 1..)?)?;
        }
        Some(())
    }

    /// Returns the bare bytes without the last number or literal, if it may continue after the
    /// block. Returns `None` if that one is invalid, or its end is not in the chunk.
    #[inline(always)]
    fn cut_scalar(self, bare: u64, starts: u64) -> Option<u64> {
        let len = bare.leading_ones();
        let before = !0u64 >> 1 >> (len - 1);
        if starts >> (64 - len) & 1 == 0 {
            // It started in a previous block, which checked it.
            return Some(bare & before);
        }
        let rest = &self.chunk[self.at + (64 - len) as usize..];
        // Without a bound, a chunk that consists of one number would be read again for each block.
        let rest = &rest[..rest.len().min(BARE_MAX)];
        let scalar = &rest[..bare_len(rest)];
        let is_one = matches!(scalar, b"null" | b"true" | b"false") || text::check_number(scalar).is_ok();
        // A scalar that reaches the end of the chunk may continue in the next one.
        (is_one && scalar.len() < rest.len()).then_some(bare & before)
    }

    /// Checks all numbers and literals. `bare` marks their bytes, `starts` their first bytes,
    /// `digits` their digits.
    #[inline(always)]
    fn bare_scalars(self, bare: u64, starts: u64, digits: u64, zero: u64) -> Option<()> {
        // Most numbers consist of digits without a leading zero.
        // A zero that is followed by a digit starts a number with a leading zero.
        if starts & zero & digits >> 1 != 0 {
            return None;
        }
        // Carries through the digits of each number: a number has another part, such as a fraction,
        // where the bit after them is still bare.
        let (after_digits, _) = digits.overflowing_add(starts & digits);
        let mut others = after_digits & !digits & bare;
        while others != 0 {
            let before = !0 >> 1 >> (63 - others.trailing_zeros());
            others &= others - 1;
            let start = 63 - (starts & before).leading_zeros();
            text::check_number(self.bare(bare, start)).ok()?;
        }
        let mut words = starts & !digits;
        while words != 0 {
            let start = words.trailing_zeros();
            words &= words - 1;
            let word = self.bare(bare, start);
            let is_one = match self.chunk.get(self.at + start as usize..).and_then(<[u8]>::first_chunk::<4>) {
                Some(b"null" | b"true") => word.len() == 4,
                Some(b"fals") => word.len() == 5 && word[4] == b'e',
                _ => text::check_number(word).is_ok(),
            };
            is_one.then_some(())?;
        }
        Some(())
    }

    /// Returns the number or literal that starts at `start`.
    #[inline(always)]
    fn bare(&self, bare: u64, start: u32) -> &[u8] {
        let len = (!(bare >> start)).trailing_zeros();
        self.block.get(start as usize..(start + len) as usize).unwrap_or_default()
    }
}

/// Returns the number of bare bytes at the start of `bytes`.
#[inline(always)]
fn bare_len(bytes: &[u8]) -> usize {
    let is_other =
        |byte: &u8| matches!(byte, b',' | b':' | b'"' | b'[' | b']' | b'{' | b'}') || is_blank(*byte);
    bytes.iter().position(is_other).unwrap_or(bytes.len())
}

/// Positions after tokens.
struct Follow {
    /// White space outside of strings.
    blank: u64,
}

#[derive(Clone, Copy)]
struct Following {
    places: u64,
    /// The last bit is set if such a position is after the block.
    pending: u64,
}

impl Follow {
    /// Returns the position of the first byte that is not white space after each of `tokens`, and
    /// at the start if `before` is 1.
    #[inline(always)]
    fn after(&self, tokens: u64, before: u64) -> Following {
        let next = tokens << 1 | before;
        if self.blank == 0 {
            return Following { places: next, pending: tokens };
        }
        // Adding the bit at the start of a run of white space carries to the byte after it.
        let (carried, over) = self.blank.overflowing_add(next & self.blank);
        Following { places: (next | carried) & !self.blank, pending: tokens | u64::from(over) << 63 }
    }
}

/// Returns the closing quotes of the strings that start at `starts`, and whether the string at the
/// end of the block is one of them.
#[inline(always)]
fn ends(strings: u64, starts: u64) -> (u64, bool) {
    let (carried, goes_on) = strings.overflowing_add(starts);
    (carried & !strings, goes_on)
}

/// The brackets of a block, and the faults between them.
struct Brackets<'a> {
    block: &'a [u8; BLOCK_BYTES],
    opens: u64,
    closes: u64,
    wrong: u64,
    in_object: u64,
    in_array: u64,
}

impl Brackets<'_> {
    /// Opens and closes containers. Returns the position at which the outermost one closes, if it
    /// does; faults after it are ignored. Returns `None`, without a change of `grammar`, if the
    /// block is invalid or too deep.
    #[inline(always)]
    fn read(self, grammar: &mut Grammar) -> Option<Option<usize>> {
        let wrong_in = |after| if after == Next::AfterMember { self.in_object } else { self.in_array };
        let (mut after, mut outer) = (grammar.after, grammar.open.len());
        // Collected aside, because the block may still turn out invalid and must then have no
        // effect.
        let (mut opened, mut count) = ([Next::End; BLOCK_BYTES], 0);
        let (mut wrong, mut done) = (0, 0);
        let (mut end, mut care) = (None, !0);
        let mut brackets = self.opens | self.closes;
        let is_without = brackets == 0;
        while brackets != 0 {
            let place = brackets.trailing_zeros();
            brackets &= brackets - 1;
            let up_to = !0 >> (63 - place);
            // Only the faults since the last bracket lie in this container.
            wrong |= wrong_in(after) & up_to & !done;
            done = up_to;
            let of_curly = match self.block[place as usize % BLOCK_BYTES] {
                b'{' | b'}' => Next::AfterMember,
                _ => Next::AfterElement,
            };
            if self.opens >> place & 1 == 1 {
                opened[count % BLOCK_BYTES] = after;
                count += 1;
                after = of_curly;
                if outer + count > grammar.depth_max {
                    return None;
                }
                continue;
            }
            let is_outermost = outer + count == 1;
            if of_curly != after {
                return None;
            }
            if count > 0 {
                count -= 1;
                after = opened[count % BLOCK_BYTES];
            } else {
                outer -= 1;
                after = grammar.open[outer];
            }
            if is_outermost {
                (end, care, done) = (Some(place as usize), up_to, !0);
                break;
            }
        }
        if wrong | wrong_in(after) & !done | self.wrong & care != 0 {
            return None;
        }
        if !is_without {
            grammar.open.truncate(outer);
            // A call to `memcpy` would cost more than this loop over a few bytes.
            for outer in opened.iter().take(count) {
                grammar.open.push(*outer);
            }
            grammar.after = after;
        }
        Some(end)
    }
}
