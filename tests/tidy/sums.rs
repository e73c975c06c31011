//! Comparisons that wrap: `assert!(first + count <= len)` holds for `first = usize::MAX` and `count = 1` in a
//! build without overflow checks, and the unsafe code that relies on it reads outside its slice.
//!
//! In a file with an `unsafe` block, no side of a comparison in a function may be an unchecked sum, product
//! or shift. Numbers and constants may be added: the compiler computes them.

use super::source::Token;

pub const REASON: &str = "may wrap where overflow is not checked, beside `unsafe`: write \
    `b <= len && a <= len - b`, or use checked_add, checked_mul or saturating_mul";

/// Start and text of each side of a comparison that the rule forbids.
pub fn wrapping_sides<'a>(code: &'a str, tokens: &[Token<'a>]) -> Vec<(usize, &'a str)> {
    let is_unsafe = |pair: &[Token]| pair[0].text == "unsafe" && pair[1].text == "{";
    let mut found = Vec::new();
    if !tokens.windows(2).any(is_unsafe) {
        return found;
    }
    let mut i = 0;
    while i < tokens.len() {
        i += 1;
        if tokens[i - 1].text != "fn" {
            continue;
        }
        let Some(open) = body(tokens, i) else { continue };
        let end = close(tokens, open);
        for side in sides(&tokens[open..end]).into_iter().filter(|side| wraps(side)) {
            let (first, last) = (side[0].start, side[side.len() - 1]);
            found.push((first, &code[first..last.start + last.text.len()]));
        }
        i = end;
    }
    found
}

/// The `{` of a function's body: `None` if it is declared only.
fn body(tokens: &[Token], from: usize) -> Option<usize> {
    let mut i = from;
    while i < tokens.len() {
        match tokens[i].text {
            "{" => return Some(i),
            ";" => return None,
            "(" | "[" => i = close(tokens, i),
            _ => (),
        }
        i += 1;
    }
    None
}

/// The token that closes what token `open` opens.
fn close(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            return i;
        }
    }
    tokens.len()
}

/// Both sides of each `<`, `<=`, `>` and `>=`, up to `&&`, `||`, a comma or the parentheses around them.
fn sides<'a, 'b>(condition: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let text = |i: usize| condition.get(i).map_or("", |token| token.text);
    let adjacent = |i: usize, first: &str, second: &str| {
        text(i) == first
            && text(i + 1) == second
            && condition[i].start + 1 == condition[i + 1].start
    };
    let ends = |i: usize| {
        matches!(text(i), "," | ";" | "{" | "}" | "|" | "=")
            || KEYWORDS.contains(&text(i))
            || adjacent(i, "&", "&")
            || i > 0 && adjacent(i - 1, "&", "&")
    };
    let mut found = Vec::new();
    let mut i = 0;
    while i < condition.len() {
        let before = if i > 0 { text(i - 1) } else { "" };
        match text(i) {
            // Generic arguments, and types whose constant is meant: `<S as Lanes<f64>>::LANES`.
            "<" if !is_operand(before) => {
                let mut depth = 0;
                while i < condition.len() {
                    depth += i32::from(text(i) == "<") - i32::from(text(i) == ">");
                    if depth == 0 {
                        break;
                    }
                    i += 1;
                }
            }
            // Shifts.
            "<" | ">" if adjacent(i, text(i), text(i)) => i += 1,
            // Arrows.
            ">" if i > 0 && (adjacent(i - 1, "-", ">") || adjacent(i - 1, "=", ">")) => (),
            "<" | ">" => {
                let right = i + 1 + usize::from(adjacent(i, text(i), "="));
                let (mut from, mut depth) = (i, 0);
                while from > 0 && !(depth == 0 && ends(from - 1)) {
                    depth += i32::from(matches!(text(from - 1), ")" | "]" | "}"));
                    depth -= i32::from(matches!(text(from - 1), "(" | "[" | "{"));
                    if depth < 0 {
                        break;
                    }
                    from -= 1;
                }
                let (mut to, mut depth) = (right, 0);
                while to < condition.len() && !(depth == 0 && ends(to)) {
                    depth += i32::from(matches!(text(to), "(" | "[" | "{"));
                    depth -= i32::from(matches!(text(to), ")" | "]" | "}"));
                    if depth < 0 {
                        break;
                    }
                    to += 1;
                }
                found.extend(
                    [from..i, right..to]
                        .map(|side| &condition[side])
                        .into_iter()
                        .filter(|side| !side.is_empty()),
                );
            }
            _ => (),
        }
        i += 1;
    }
    found
}

/// Whether a `+`, `*` or `<<` stands in it, outside arguments and indices, of anything but numbers and constants.
fn wraps(side: &[Token]) -> bool {
    let is_variable = |token: &Token| token.text.contains(|c: char| c.is_lowercase());
    if !side.iter().any(is_variable) {
        return false;
    }
    let mut i = 0;
    while i < side.len() {
        let before = if i > 0 { side[i - 1].text } else { "" };
        match side[i].text {
            "(" | "[" if is_operand(before) || before == "!" => i = close(side, i),
            "+" | "*" if is_operand(before) => return true,
            "<" if before == "<" => return true,
            _ => (),
        }
        i += 1;
    }
    false
}

/// Whether an operator after it takes two operands.
fn is_operand(token: &str) -> bool {
    let is_word = token.contains(|c: char| c.is_alphanumeric() || c == '_');
    is_word && !KEYWORDS.contains(&token) || matches!(token, ")" | "]" | ">" | "?")
}

/// Words that an expression follows.
const KEYWORDS: [&str; 7] = ["if", "while", "match", "return", "in", "else", "let"];
