//! The parts of a Rust file that the rules look at: code without comments and literals, its tokens, its
//! paths from the crate's root. This is a scanner, not a parser: macros are not expanded.

/// A file of the tree.
pub struct Source {
    /// Path from the root, with `/`.
    pub path: String,
    /// The unchanged text of the file.
    pub text: String,
    /// `text` with comments and the insides of literals blanked, byte for byte. Empty unless Rust.
    pub code: String,
}

/// A token and the offset at which it starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token<'a> {
    pub text: &'a str,
    pub start: usize,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Source {
        let code = if path.ends_with(".rs") { blank(text) } else { String::new() };
        Source { path: path.into(), text: text.into(), code }
    }

    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Line number of a byte, from 1.
    pub fn line(&self, at: usize) -> usize {
        self.text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1
    }

    /// Words, `::`, and single characters.
    pub fn tokens(&self) -> Vec<Token<'_>> {
        let code = self.code.as_bytes();
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < code.len() {
            let start = at;
            at += 1;
            if is_word(code[start]) {
                while at < code.len() && is_word(code[at]) {
                    at += 1;
                }
            } else if code[start].is_ascii_whitespace() {
                continue;
            } else if code[start..].starts_with(b"::") {
                at += 1;
            }
            tokens.push(Token { text: &self.code[start..at], start });
        }
        tokens
    }

    /// Every path that starts at the crate's root, by `crate`, `self`, `super` or the crate's own
    /// name, groups of `use` expanded: `use super::{a, b::c}` in `src/x/y.rs` gives `x::a`,
    /// `x::b::c`, each without the root.
    pub fn paths(&self) -> Vec<(usize, Vec<String>)> {
        let tokens = self.tokens();
        let text = |i: usize| tokens.get(i).map_or("", |token: &Token| token.text);
        let mut module = module_of(&self.path);
        let mut blocks = Vec::new();
        let mut paths = Vec::new();
        for i in 0..tokens.len() {
            match text(i) {
                "{" if i >= 2 && text(i - 2) == "mod" => {
                    module.push(text(i - 1).into());
                    blocks.push(true);
                }
                "{" => blocks.push(false),
                "}" if blocks.pop() == Some(true) => _ = module.pop(),
                first @ ("crate" | "self" | "super" | "swath")
                    if text(i + 1) == "::" && (i == 0 || text(i - 1) != "::") =>
                {
                    let base = match first {
                        "crate" | "swath" => Vec::new(),
                        "self" => module.clone(),
                        _ => module[..module.len().saturating_sub(1)].to_vec(),
                    };
                    let mut found = Vec::new();
                    expand(&tokens, i + 2, base, &mut found);
                    paths.extend(found.into_iter().map(|path| (tokens[i].start, path)));
                }
                _ => (),
            }
        }
        paths
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// `src/backend/cpu.rs` is module `backend::cpu`.
fn module_of(path: &str) -> Vec<String> {
    let inside = path.split_once("src/").map_or("", |(_, inside)| inside);
    let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    let root = matches!(inside, "" | "lib" | "main");
    if root { Vec::new() } else { inside.split('/').map(String::from).collect() }
}

/// Reads what follows a `::` at token `i`; returns the token after it.
fn expand(
    tokens: &[Token],
    mut i: usize,
    mut path: Vec<String>,
    found: &mut Vec<Vec<String>>,
) -> usize {
    let text = |i: usize| tokens.get(i).map_or("", |token: &Token| token.text);
    if text(i) == "{" {
        i += 1;
        while !matches!(text(i), "}" | "") {
            i = expand(tokens, i, path.clone(), found);
            while !matches!(text(i), "," | "}" | "") {
                i += 1;
            }
            i += usize::from(text(i) == ",");
        }
        return i + 1;
    }
    match text(i) {
        "super" => _ = path.pop(),
        "self" => (),
        word => path.push(word.into()),
    }
    if text(i + 1) == "::" && text(i + 2) != "<" {
        return expand(tokens, i + 2, path, found);
    }
    found.push(path);
    i + 1
}

/// Replaces comments and the insides of string and character literals by spaces.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (keep, end) = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => (0, at + line_length(&bytes[at..])),
            b'/' if bytes[at..].starts_with(b"/*") => (0, at + block_length(&bytes[at..])),
            b'"' => (1, at + string_length(&bytes[at..])),
            b'r' if at == 0 || !is_word(bytes[at - 1]) || is_byte_prefix(bytes, at - 1) => {
                match raw_string_length(&bytes[at..]) {
                    Some(length) => (1, at + length),
                    None => (usize::MAX, at + 1),
                }
            }
            b'\'' => match char_length(&text[at..]) {
                Some(length) => (1, at + length),
                None => (usize::MAX, at + 1),
            },
            _ => (usize::MAX, at + 1),
        };
        if keep != usize::MAX {
            for byte in &mut code[at + keep..(end - keep).max(at + keep)] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        at = end;
    }
    String::from_utf8(code).expect("whole characters were blanked")
}

/// The `b` of a `br"…"` literal.
fn is_byte_prefix(bytes: &[u8], at: usize) -> bool {
    matches!(bytes[at], b'b' | b'c') && (at == 0 || !is_word(bytes[at - 1]))
}

fn line_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len())
}

fn block_length(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn raw_string_length(bytes: &[u8]) -> Option<usize> {
    let hashes = bytes[1..].iter().take_while(|&&byte| byte == b'#').count();
    if bytes.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let end = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let body = 2 + hashes;
    let found = bytes[body..].windows(end.len()).position(|window| window == end);
    Some(found.map_or(bytes.len(), |at| body + at + end.len()))
}

/// Length of a character literal; `None` for a lifetime.
fn char_length(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        let (_, escaped) = chars.next()?;
        let at = chars.next()?.0;
        return if escaped == 'u' || escaped == 'x' {
            text[at..].find('\'').map(|end| at + end + 1)
        } else {
            Some(at + 1)
        };
    }
    chars.next().filter(|&(_, end)| end == '\'' && first != '\'').map(|(at, _)| at + 1)
}
