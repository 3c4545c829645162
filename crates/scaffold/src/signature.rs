//! Types of F#, as F# Interactive and the explorer print them.
//!
//! Reads what they print and prints it back. Names of arguments and constraints are read over, since no test is made of them.

use std::fmt::{Display, Formatter};

/// The longest text of a type, in bytes.
const TEXT_BYTES: usize = 2000;
/// How deep parentheses and angle brackets may be within one another.
const DEPTH: usize = 64;

/// A type of F#.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// `'a`, without its mark.
    Variable(String),
    /// A name, and what it is applied to: `int`, `int list`, `Map<string,int>`.
    Named {
        /// The name of the type.
        name: String,
        /// The type's arguments, in their order.
        arguments: Vec<Type>,
    },
    /// `int []`, of this many dimensions.
    Array {
        /// What is in it.
        item: Box<Type>,
        /// How many indexes an item has.
        rank: usize,
    },
    /// Of two or more.
    Tuple(Vec<Type>),
    /// From one type to another.
    Function(Box<Type>, Box<Type>),
}

/// The type of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    arguments: Vec<Type>,
    result: Type,
}

/// Why a text is no type of a function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// There is too much of it.
    #[error("a signature may have {TEXT_BYTES} bytes at most")]
    TooLong,
    /// It goes too deep.
    #[error("a signature may be {DEPTH} levels deep at most")]
    TooDeep,
    /// It stops being a type somewhere.
    #[error("the signature cannot be read from character {place} on: {expected} is expected there")]
    Unreadable {
        /// The column in the text, from 1.
        place: usize,
        /// What could stand there.
        expected: &'static str,
    },
    /// It is a type, and not of a function.
    #[error("`{0}` is not the type of a function: there is no `->` in it")]
    NotAFunction(String),
}

impl Type {
    /// A name that is applied to nothing.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::Named { name: name.to_owned(), arguments: Vec::new() }
    }

    /// With `int` for every variable.
    #[must_use]
    pub fn grounded(&self) -> Self {
        match self {
            Self::Variable(_) => Self::named("int"),
            Self::Named { name, arguments } => {
                Self::Named { name: name.clone(), arguments: arguments.iter().map(Self::grounded).collect() }
            }
            Self::Array { item, rank } => Self::Array { item: Box::new(item.grounded()), rank: *rank },
            Self::Tuple(items) => Self::Tuple(items.iter().map(Self::grounded).collect()),
            Self::Function(from, to) => Self::Function(Box::new(from.grounded()), Box::new(to.grounded())),
        }
    }

    /// In parentheses where something stands behind it or `*` beside it.
    fn enclosed(&self) -> String {
        match self {
            Self::Tuple(_) | Self::Function(..) => format!("({self})"),
            Self::Variable(_) | Self::Named { .. } | Self::Array { .. } => self.to_string(),
        }
    }
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "'{name}"),
            Self::Named { name, arguments } => match arguments.as_slice() {
                [] => f.write_str(name),
                [one] if ["list", "option", "ref"].contains(&name.as_str()) => {
                    write!(f, "{} {name}", one.enclosed())
                }
                several => {
                    let several: Vec<_> = several.iter().map(Self::to_string).collect();
                    write!(f, "{name}<{}>", several.join(","))
                }
            },
            Self::Array { item, rank } => write!(f, "{} [{}]", item.enclosed(), ",".repeat(rank - 1)),
            Self::Tuple(items) => {
                let items: Vec<_> = items.iter().map(Self::enclosed).collect();
                f.write_str(&items.join(" * "))
            }
            Self::Function(from, to) => match from.as_ref() {
                Self::Function(..) => write!(f, "({from}) -> {to}"),
                Self::Variable(_) | Self::Named { .. } | Self::Array { .. } | Self::Tuple(_) => {
                    write!(f, "{from} -> {to}")
                }
            },
        }
    }
}

impl Signature {
    /// From one argument to a result.
    #[must_use]
    pub fn of(argument: Type, result: Type) -> Self {
        Self { arguments: vec![argument], result }
    }

    /// Reads the type of a function.
    ///
    /// # Errors
    /// The text is no type, or none of a function.
    pub fn parse(text: &str) -> Result<Self, SignatureError> {
        let mut result = parse(text)?;
        let mut arguments = Vec::new();
        while let Type::Function(from, to) = result {
            arguments.push(*from);
            result = *to;
        }
        match arguments.is_empty() {
            true => Err(SignatureError::NotAFunction(result.to_string())),
            false => Ok(Self { arguments, result }),
        }
    }

    /// What it takes, one after the other.
    #[must_use]
    pub fn arguments(&self) -> &[Type] {
        &self.arguments
    }

    /// What it gives when it has all of them.
    #[must_use]
    pub fn result(&self) -> &Type {
        &self.result
    }

    /// With `int` for every variable.
    #[must_use]
    pub fn grounded(&self) -> Self {
        let arguments = self.arguments.iter().map(Type::grounded).collect();
        Self { arguments, result: self.result.grounded() }
    }
}

impl Display for Signature {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for argument in &self.arguments {
            match argument {
                Type::Function(..) => write!(f, "({argument}) -> ")?,
                Type::Variable(_) | Type::Named { .. } | Type::Array { .. } | Type::Tuple(_) => {
                    write!(f, "{argument} -> ")?;
                }
            }
        }
        write!(f, "{}", self.result)
    }
}

/// Parses a type as F# writes it.
pub(super) fn parse(text: &str) -> Result<Type, SignatureError> {
    if text.len() > TEXT_BYTES {
        return Err(SignatureError::TooLong);
    }
    let mut reader = Reader { letters: text.chars().collect(), at: 0, depth: 0 };
    let read = reader.function()?;
    match reader.peek() {
        None => Ok(read),
        Some(_) if reader.keyword("when") => Ok(read),
        Some(_) => Err(reader.expected("the end of the type")),
    }
}

struct Reader {
    letters: Vec<char>,
    at: usize,
    depth: usize,
}

impl Reader {
    /// Reads a function type, `a -> b`.
    fn function(&mut self) -> Result<Type, SignatureError> {
        let mut parts = vec![self.tuple()?];
        while self.take("->") {
            parts.push(self.tuple()?);
        }
        let last = parts.pop().ok_or_else(|| self.expected("a type"))?;
        Ok(parts.into_iter().rev().fold(last, |to, from| Type::Function(Box::new(from), Box::new(to))))
    }

    /// Reads a tuple type, `a * b`.
    fn tuple(&mut self) -> Result<Type, SignatureError> {
        let first = self.applied()?;
        let mut items = vec![first];
        while self.take("*") {
            items.push(self.applied()?);
        }
        match items.len() {
            1 => items.pop().ok_or_else(|| self.expected("a type")),
            _ => Ok(Type::Tuple(items)),
        }
    }

    /// Reads an applied type, `a list []`.
    fn applied(&mut self) -> Result<Type, SignatureError> {
        self.pass_argument_name();
        let mut read = self.single()?;
        loop {
            if self.take("[") {
                let mut rank = 1;
                while self.take(",") {
                    rank += 1;
                }
                self.want("]", "`]`")?;
                read = Type::Array { item: Box::new(read), rank };
            } else if self.begins_name() && !self.is_at("when") {
                let name = self.name()?;
                read = applied_to(name, vec![read]);
            } else {
                return Ok(read);
            }
        }
    }

    fn single(&mut self) -> Result<Type, SignatureError> {
        if self.take("(") {
            let within = self.deeper(Self::function)?;
            self.want(")", "`)`")?;
            return Ok(within);
        }
        // A flexible type is tested as the type it bends to.
        let _ = self.take("#");
        if self.take("'") || self.take("^") {
            return Ok(Type::Variable(self.name()?));
        }
        let name = self.name()?;
        if !self.take("<") {
            return Ok(applied_to(name, Vec::new()));
        }
        let mut arguments = vec![self.deeper(Self::function)?];
        while self.take(",") {
            arguments.push(self.deeper(Self::function)?);
        }
        self.want(">", "`>`")?;
        Ok(applied_to(name, arguments))
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SignatureError>,
    ) -> Result<T, SignatureError> {
        if self.depth == DEPTH {
            return Err(SignatureError::TooDeep);
        }
        self.depth += 1;
        let within = read(self);
        self.depth -= 1;
        within
    }

    /// The `x:` of `x:int -> int`.
    fn pass_argument_name(&mut self) {
        let before = self.at;
        let _ = self.take("?");
        if self.name().is_err() || !self.take(":") {
            self.at = before;
        }
    }

    /// With its dots; a part of it may stand in double backticks.
    fn name(&mut self) -> Result<String, SignatureError> {
        self.peek();
        let begin = self.at;
        loop {
            if self.rest().starts_with(&['`', '`']) {
                self.at += 2;
                while !self.rest().is_empty() && !self.rest().starts_with(&['`', '`']) {
                    self.at += 1;
                }
                if self.rest().is_empty() {
                    return Err(self.expected("two backticks"));
                }
                self.at += 2;
            } else if self.rest().first().is_some_and(|c| c.is_alphabetic() || *c == '_') {
                while self.rest().first().is_some_and(|c| c.is_alphanumeric() || ['_', '\''].contains(c)) {
                    self.at += 1;
                }
            } else {
                return Err(self.expected("a type"));
            }
            if self.rest().first() != Some(&'.') {
                return Ok(self.letters[begin..self.at].iter().collect());
            }
            self.at += 1;
        }
    }

    fn begins_name(&mut self) -> bool {
        self.peek().is_some_and(|c| c.is_alphabetic() || ['_', '`'].contains(&c))
    }

    fn is_at(&mut self, word: &str) -> bool {
        let before = self.at;
        let found = self.keyword(word);
        self.at = before;
        found
    }

    fn keyword(&mut self, word: &str) -> bool {
        self.name().is_ok_and(|name| name == word)
    }

    fn take(&mut self, token: &str) -> bool {
        self.peek();
        let token: Vec<_> = token.chars().collect();
        let is_there = self.rest().starts_with(&token);
        if is_there {
            self.at += token.len();
        }
        is_there
    }

    fn want(&mut self, token: &str, expected: &'static str) -> Result<(), SignatureError> {
        match self.take(token) {
            true => Ok(()),
            false => Err(self.expected(expected)),
        }
    }

    /// What stands there, behind blanks.
    fn peek(&mut self) -> Option<char> {
        while self.rest().first().is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.rest().first().copied()
    }

    fn rest(&self) -> &[char] {
        self.letters.get(self.at..).unwrap_or_default()
    }

    fn expected(&self, expected: &'static str) -> SignatureError {
        SignatureError::Unreadable { place: self.at + 1, expected }
    }
}

/// The same tree for both ways to write an array.
fn applied_to(name: String, mut arguments: Vec<Type>) -> Type {
    if name == "array"
        && arguments.len() == 1
        && let Some(item) = arguments.pop()
    {
        return Type::Array { item: Box::new(item), rank: 1 };
    }
    Type::Named { name, arguments }
}
