//! Blocks of 64 bytes within an array or object, checked without looking at one token after the other.
//!
//! A bit stands for a byte. What may follow a token depends on the token, and for a comma, and for a string after one, on what
//! it stands in. So all tokens of one kind are held at once against what follows them, in one or two operations on a word;
//! brackets alone are gone through one by one, and between two of them all commas stand in the same array or object.
//! A string is one run of bits: adding a bit at its start carries to its end, which tells ends by what stood before the start.

use super::super::reader::is_blank;
use super::super::scan::{Classes, Scan, Task, escaped};
use super::super::text;
use super::{Grammar, Inside, Next};

pub(super) const BLOCK_BYTES: usize = 64;

/// Bytes of a number that is looked at to its end from the block on that it begins in: a longer one is read byte by byte.
const BARE_MAX: usize = 1024;

/// As many whole blocks of a chunk as are in order, from `at` on; gives the place that has been reached.
pub(super) struct Blocks<'a> {
    pub grammar: &'a mut Grammar,
    pub chunk: &'a [u8],
    pub at: usize,
}

/// What the last token of a block asks of the first one of the next, each 0 or 1.
#[derive(Clone, Copy, Default)]
struct Pending {
    /// A value: after a colon, or after a comma of an array.
    value: u64,
    value_or_end: u64,
    /// A name: after a comma of an object.
    key: u64,
    key_or_end: u64,
    colon: u64,
    /// A comma or an end: after a value.
    after: u64,
    /// More of a number or word, which has been looked at to its end, or what may follow it.
    bare: u64,
    /// The block ends in a string that is a name.
    in_key: u64,
    /// All ones where the block ends in a string.
    in_string: u64,
    /// Whether that string's last byte is a backslash that escapes what follows.
    escapes: bool,
}

impl Pending {
    fn of(grammar: &Grammar) -> Pending {
        let mut pending = Pending::default();
        if grammar.inside == Inside::String {
            pending.in_string = !0;
            pending.in_key = u64::from(grammar.next == Next::Colon);
            return pending;
        }
        match grammar.next {
            Next::Value => pending.value = 1,
            Next::ValueOrEnd => pending.value_or_end = 1,
            Next::Key => pending.key = 1,
            Next::KeyOrEnd => pending.key_or_end = 1,
            Next::Colon => pending.colon = 1,
            Next::AfterElement | Next::AfterMember | Next::End => pending.after = 1,
        }
        pending
    }

    fn keep_in(self, grammar: &mut Grammar) {
        grammar.inside = match (self.in_string, self.escapes) {
            (0, _) => Inside::Nothing,
            (_, false) => Inside::String,
            (_, true) => Inside::Escape,
        };
        grammar.next = match self {
            Pending { value: 1, .. } => Next::Value,
            Pending { value_or_end: 1, .. } => Next::ValueOrEnd,
            Pending { key: 1, .. } => Next::Key,
            Pending { key_or_end: 1, .. } => Next::KeyOrEnd,
            Pending { colon: 1, .. } | Pending { in_key: 1, .. } => Next::Colon,
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
            let Some(next) = (Block { chunk, block, at }).read(scan, pending, grammar) else { break };
            pending = next;
            at += BLOCK_BYTES;
        }
        if pending.bare == 1 {
            at += bare_len(chunk.get(at..).unwrap_or_default());
        }
        pending.keep_in(grammar);
        at
    }
}

/// One block of a chunk.
#[derive(Clone, Copy)]
struct Block<'a> {
    chunk: &'a [u8],
    block: &'a [u8; BLOCK_BYTES],
    at: usize,
}

impl Block<'_> {
    /// What the block asks of what follows. None where something is wrong or unusual; then nothing has happened.
    #[inline(always)]
    fn read<S: Scan>(self, scan: S, before: Pending, grammar: &mut Grammar) -> Option<Pending> {
        let Classes { quote, backslash, control, low, comma, colon, opens, closes, bit_5, digit, zero } =
            scan.classes(self.block);
        let (escaped, escapes) = escaped(backslash, false);
        let quote = quote & !escaped;
        // With the quote that opens it, without the one that closes it.
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
        let after_colon = follow.after(colon, before.value);
        let after_comma = follow.after(comma, 0);
        let after_curly = follow.after(opens & bit_5, before.key_or_end);
        let after_square = follow.after(opens & !bit_5, before.value_or_end);
        let at_key = follow.after(0, before.key);
        let values = string_opens | starts | opens;
        wrong |= (after_colon.places | after_comma.places) & !values;
        wrong |= at_key.places & !string_opens;
        wrong |= after_curly.places & !(string_opens | closes & bit_5);
        wrong |= after_square.places & !(values | closes & !bit_5);

        let keys = string_opens & (after_curly.places | at_key.places);
        let either = string_opens & after_comma.places;
        let (key_ends, key_goes_on) = ends(strings, keys | before.in_key);
        let (either_ends, either_goes_on) = ends(strings, either);
        let string_ends = quote & outside;
        let bare_ends = bare & !(bare >> 1 | 1 << 63);
        let value_ends = string_ends & !(key_ends | either_ends) | closes | bare_ends;
        let after_value = follow.after(value_ends, before.after | before.bare & !bare);
        let after_key = follow.after(key_ends, before.colon);
        let after_either = follow.after(either_ends, 0);
        wrong |= after_value.places & !(comma | closes);
        wrong |= after_key.places & !colon;

        // What is wrong in an object, and what is in an array.
        let in_object = after_comma.places & !string_opens | after_either.places & !colon;
        let in_array = after_either.places & !(comma | closes);
        if wrong != 0 {
            return None;
        }
        let is_object = Brackets { opens, closes, bit_5, in_object, in_array }.read(grammar)?;
        let is_array = is_object ^ 1;
        let (comma, either) = (after_comma.goes_on, after_either.goes_on);
        let in_string = (strings >> 63).wrapping_neg();
        let pending = Pending {
            value: after_colon.goes_on | comma & is_array,
            value_or_end: after_square.goes_on,
            key: at_key.goes_on | comma & is_object,
            key_or_end: after_curly.goes_on,
            colon: after_key.goes_on | either & is_object,
            after: after_value.goes_on | either & is_array,
            bare: is_cut,
            in_key: u64::from(key_goes_on) | u64::from(either_goes_on) & is_object,
            in_string,
            escapes: escapes && in_string != 0,
        };
        Some(pending)
    }

    /// Whether what stands behind backslashes may, and hexadecimal digits follow where they have to.
    #[cold]
    fn escapes(self, places: u64) -> Option<()> {
        let mut places = places;
        while places != 0 {
            let place = places.trailing_zeros() as usize;
            places &= places - 1;
            match self.block[place % BLOCK_BYTES] {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                b'u' => {
                    let digits = self.chunk.get(self.at + place + 1..)?.first_chunk::<4>()?;
                    digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// The bare bytes but for those of the last number or word, which goes on after the block, or may. None where that one is
    /// wrong, or its end is not in the chunk.
    #[inline(always)]
    fn cut_scalar(self, bare: u64, starts: u64) -> Option<u64> {
        let len = bare.leading_ones();
        let before = !0u64 >> 1 >> (len - 1);
        if starts >> (64 - len) & 1 == 0 {
            // It began in a block before, and has been looked at.
            return Some(bare & before);
        }
        let rest = &self.chunk[self.at + (64 - len) as usize..];
        let rest = &rest[..rest.len().min(BARE_MAX)];
        let scalar = &rest[..bare_len(rest)];
        let is_one = matches!(scalar, b"null" | b"true" | b"false") || text::check_number(scalar).is_ok();
        (is_one && scalar.len() < rest.len()).then_some(bare & before)
    }

    /// Whether all numbers and words are such; `bare` has their bytes, `starts` the first ones, `digits` those that are digits.
    #[inline(always)]
    fn bare_scalars(self, bare: u64, starts: u64, digits: u64, zero: u64) -> Option<()> {
        // Most numbers are digits that do not begin with a zero.
        if starts & zero & digits >> 1 != 0 {
            return None;
        }
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

    /// The number or word that begins at `start`.
    #[inline(always)]
    fn bare(&self, bare: u64, start: u32) -> &[u8] {
        let len = (!(bare >> start)).trailing_zeros();
        self.block.get(start as usize..(start + len) as usize).unwrap_or_default()
    }
}

/// How many bytes of a number or word, or of what is none, `bytes` begins with.
#[inline(always)]
fn bare_len(bytes: &[u8]) -> usize {
    let is_other =
        |byte: &u8| matches!(byte, b',' | b':' | b'"' | b'[' | b']' | b'{' | b'}') || is_blank(*byte);
    bytes.iter().position(is_other).unwrap_or(bytes.len())
}

/// The places of tokens that follow others.
struct Follow {
    /// White space outside of strings.
    blank: u64,
}

#[derive(Clone, Copy)]
struct Following {
    places: u64,
    /// 1 where one of them lies behind the block.
    goes_on: u64,
}

impl Follow {
    /// The first byte that is not white space after each of `tokens`, which end there; and after the block before, where
    /// `before` is 1.
    #[inline(always)]
    fn after(&self, tokens: u64, before: u64) -> Following {
        let next = tokens << 1 | before;
        let goes_on = tokens >> 63;
        if self.blank == 0 {
            return Following { places: next, goes_on };
        }
        // Adding a bit at the start of a run of white space carries to what follows the run.
        let (carried, over) = self.blank.overflowing_add(next & self.blank);
        Following { places: (next | carried) & !self.blank, goes_on: goes_on | u64::from(over) }
    }
}

/// The quotes that end those strings that have a bit of `starts`, and whether the one that the block cuts is one of them.
#[inline(always)]
fn ends(strings: u64, starts: u64) -> (u64, bool) {
    let (carried, goes_on) = strings.overflowing_add(starts);
    (carried & !strings, goes_on)
}

/// The brackets of a block, and what is wrong between them.
struct Brackets {
    opens: u64,
    closes: u64,
    /// Set where the bracket is a curly one.
    bit_5: u64,
    in_object: u64,
    in_array: u64,
}

impl Brackets {
    /// 1 where the innermost one that is open at the end is an object. None where something is wrong, too deep, or where the
    /// outermost one is closed; then `grammar` is as before.
    #[inline(always)]
    fn read(self, grammar: &mut Grammar) -> Option<u64> {
        let wrong_in = |after| if after == Next::AfterMember { self.in_object } else { self.in_array };
        let (mut after, mut outer) = (grammar.after, grammar.open.len());
        let (mut opened, mut count) = ([Next::End; BLOCK_BYTES], 0);
        let (mut wrong, mut done) = (0, 0);
        let mut brackets = self.opens | self.closes;
        let is_without = brackets == 0;
        while brackets != 0 {
            let place = brackets.trailing_zeros();
            brackets &= brackets - 1;
            let up_to = !0 >> (63 - place);
            wrong |= wrong_in(after) & up_to & !done;
            done = up_to;
            let of_curly = if self.bit_5 >> place & 1 == 1 { Next::AfterMember } else { Next::AfterElement };
            if self.opens >> place & 1 == 1 {
                opened[count % BLOCK_BYTES] = after;
                count += 1;
                after = of_curly;
                if outer + count > grammar.depth_max {
                    return None;
                }
                continue;
            }
            if of_curly != after || outer + count == 1 {
                return None;
            }
            if count > 0 {
                count -= 1;
                after = opened[count % BLOCK_BYTES];
            } else {
                outer -= 1;
                after = grammar.open[outer];
            }
        }
        if wrong | wrong_in(after) & !done != 0 {
            return None;
        }
        if !is_without {
            grammar.open.truncate(outer);
            grammar.open.extend_from_slice(&opened[..count]);
            grammar.after = after;
        }
        Some(u64::from(after == Next::AfterMember))
    }
}
