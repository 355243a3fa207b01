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

/// Bytes at the end of a chunk that are worth a block of their own.
pub(super) const TAIL_BYTES: usize = 16;

/// Bytes of a number that is looked at to its end from the block on that it begins in: a longer one is read byte by byte.
const BARE_MAX: usize = 1024;

/// As many whole blocks of a chunk as are in order, from `at` on; gives the place that has been reached.
pub(super) struct Blocks<'a> {
    pub grammar: &'a mut Grammar,
    pub chunk: &'a [u8],
    pub at: usize,
}

/// What goes on behind a block. Of a word the last bit counts: whether a token of that kind is the last one that the block ends.
/// What follows a comma or an opening bracket, and a string there, depends on what they stand in; that is known where it follows.
#[derive(Clone, Copy, Default)]
struct Pending {
    colon: u64,
    comma: u64,
    opens: u64,
    /// The end of a value.
    value: u64,
    /// The end of a string that is a name in an object, and a value in an array.
    either: u64,
    /// 1 where more of a number or word comes, which has been looked at to its end, or what may follow it.
    bare: u64,
    /// 1 where the block ends in a string that is a name in an object.
    in_either: u64,
    /// All ones where the block ends in a string.
    in_string: u64,
    /// Whether that string's last byte is a backslash that escapes what follows.
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
        if pending.bare == 1 {
            at += bare_len(tail);
        } else if (TAIL_BYTES..BLOCK_BYTES).contains(&tail.len())
            && !pending.escapes
            && !grammar.open.is_empty()
        {
            // What stands before it may be blank, in strings and between tokens.
            let mut block = [b' '; BLOCK_BYTES];
            let blanks = BLOCK_BYTES - tail.len();
            block[blanks..].copy_from_slice(tail);
            let read = (Block { chunk: &block, block: &block, at: 0 }).read(scan, pending, grammar);
            // Where it ends in the midst of a scalar, that is left to others.
            if let Some(read) = read {
                (pending, at) = (read.pending, at + read.len - blanks);
            }
        }
        pending.keep_in(grammar);
        at
    }
}

/// Bytes of the escape that goes on here, behind its backslash.
#[cold]
fn escape_len(text: &[u8]) -> Option<usize> {
    match text {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(1),
        [b'u', digits @ ..] => digits.first_chunk::<4>()?.iter().all(u8::is_ascii_hexdigit).then_some(5),
        _ => None,
    }
}

/// What a block says.
struct Read {
    pending: Pending,
    /// Bytes of the block, or of what it has of the outermost array or object.
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
    /// What the block asks of what follows. None where something is wrong or unusual; then nothing has happened.
    #[inline(always)]
    fn read<S: Scan>(self, scan: S, before: Pending, grammar: &mut Grammar) -> Option<Read> {
        let Classes { quote, backslash, control, low, comma, colon, opens, closes, digit, zero } =
            scan.classes(self.block);
        if before.in_string & !(quote | backslash) == !0 {
            // Nothing but text, as much of long ones is.
            return (control == 0).then_some(Read { pending: before, len: BLOCK_BYTES });
        }
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

        // What is wrong in an object, and what is in an array.
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

    /// Whether what stands behind backslashes may, and hexadecimal digits follow where they have to.
    #[cold]
    fn escapes(self, places: u64) -> Option<()> {
        let mut places = places;
        while places != 0 {
            let place = places.trailing_zeros() as usize;
            places &= places - 1;
            escape_len(self.chunk.get(self.at + place..)?)?;
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
    /// The last bit is set where one of them lies behind the block.
    pending: u64,
}

impl Follow {
    /// The first byte that is not white space after each of `tokens`, which end there; and after the block before, where
    /// `before` is 1.
    #[inline(always)]
    fn after(&self, tokens: u64, before: u64) -> Following {
        let next = tokens << 1 | before;
        if self.blank == 0 {
            return Following { places: next, pending: tokens };
        }
        // Adding a bit at the start of a run of white space carries to what follows the run.
        let (carried, over) = self.blank.overflowing_add(next & self.blank);
        Following { places: (next | carried) & !self.blank, pending: tokens | u64::from(over) << 63 }
    }
}

/// The quotes that end those strings that have a bit of `starts`, and whether the one that the block cuts is one of them.
#[inline(always)]
fn ends(strings: u64, starts: u64) -> (u64, bool) {
    let (carried, goes_on) = strings.overflowing_add(starts);
    (carried & !strings, goes_on)
}

/// The brackets of a block, and what is wrong between them.
struct Brackets<'a> {
    block: &'a [u8; BLOCK_BYTES],
    opens: u64,
    closes: u64,
    wrong: u64,
    in_object: u64,
    in_array: u64,
}

impl Brackets<'_> {
    /// Opens and closes them; tells where the outermost one is closed, if it is: what is wrong behind it does not count. None
    /// where something is wrong or too deep; then `grammar` is as before.
    #[inline(always)]
    fn read(self, grammar: &mut Grammar) -> Option<Option<usize>> {
        let wrong_in = |after| if after == Next::AfterMember { self.in_object } else { self.in_array };
        let (mut after, mut outer) = (grammar.after, grammar.open.len());
        let (mut opened, mut count) = ([Next::End; BLOCK_BYTES], 0);
        let (mut wrong, mut done) = (0, 0);
        let (mut end, mut care) = (None, !0);
        let mut brackets = self.opens | self.closes;
        let is_without = brackets == 0;
        while brackets != 0 {
            let place = brackets.trailing_zeros();
            brackets &= brackets - 1;
            let up_to = !0 >> (63 - place);
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
            // There are few: one by one costs less than a call.
            for outer in opened.iter().take(count) {
                grammar.open.push(*outer);
            }
            grammar.after = after;
        }
        Some(end)
    }
}
