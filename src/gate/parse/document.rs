//! A parsed document and cursors into it.

use super::pointer::Pointer;

/// The kinds of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    False,
    True,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    /// JSON Schema's name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::False | Kind::True => "boolean",
            Kind::Number => "number",
            Kind::String => "string",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }
}

/// One value, or one member name, on the tape: 16 bytes.
///
/// `at` and `len` are a place in the input or, where `scratch`, in the tape's own text; for arrays
/// and objects `len` counts items or members. `next` is the entry after the whole value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub kind: Kind,
    pub scratch: bool,
    pub at: u32,
    pub len: u32,
    pub next: u32,
}

/// A document: entries over the text they point into.
#[derive(Clone, Copy)]
pub struct Document<'t> {
    pub(super) input: &'t str,
    pub(super) scratch: &'t str,
    pub(super) entries: &'t [Entry],
}

impl<'t> Document<'t> {
    /// The one value that the document is.
    pub fn root(self) -> Node<'t> {
        Node { document: self, index: 0 }
    }
}

/// Tells the size and nothing of the content, which may be a response's.
impl std::fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Document").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

/// A cursor at one value. Copying it is free.
#[derive(Clone, Copy)]
pub struct Node<'t> {
    document: Document<'t>,
    index: u32,
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("kind", &self.kind()).finish_non_exhaustive()
    }
}

impl<'t> Node<'t> {
    #[inline]
    fn entry(&self) -> &'t Entry {
        &self.document.entries[self.index as usize]
    }

    /// The text of a string, name or number.
    #[inline]
    fn text(&self) -> &'t str {
        let entry = self.entry();
        let source = if entry.scratch { self.document.scratch } else { self.document.input };
        &source[entry.at as usize..(entry.at + entry.len) as usize]
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        self.entry().kind
    }

    /// The unescaped text of a string.
    #[inline]
    pub fn as_str(&self) -> Option<&'t str> {
        if self.kind() == Kind::String { Some(self.text()) } else { None }
    }

    /// A number's own digits, as they were written.
    #[inline]
    pub fn lexeme(&self) -> Option<&'t str> {
        if self.kind() == Kind::Number { Some(self.text()) } else { None }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.kind() {
            Kind::True => Some(true),
            Kind::False => Some(false),
            Kind::Null | Kind::Number | Kind::String | Kind::Array | Kind::Object => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// The value of a number that is written as an integer and fits.
    pub fn as_i64(&self) -> Option<i64> {
        self.lexeme()?.parse().ok()
    }

    /// Members of an object or items of an array; 0 for scalars.
    pub fn len(&self) -> usize {
        match self.kind() {
            Kind::Array | Kind::Object => self.entry().len as usize,
            Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::String => 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The member of this name. Linear in the members, which the limits bound.
    #[inline]
    pub fn get(&self, name: &str) -> Option<Node<'t>> {
        self.members().find(|(member, _)| *member == name).map(|(_, value)| value)
    }

    /// The item at this index.
    pub fn item(&self, index: usize) -> Option<Node<'t>> {
        self.items().nth(index)
    }

    /// The members of an object, in the order of the text; nothing for other kinds.
    #[inline]
    pub fn members(&self) -> Members<'t> {
        Members { rest: self.children(Kind::Object) }
    }

    /// The items of an array; nothing for other kinds.
    #[inline]
    pub fn items(&self) -> Items<'t> {
        Items { rest: self.children(Kind::Array) }
    }

    fn children(&self, kind: Kind) -> Rest<'t> {
        let end = if self.kind() == kind { self.entry().next } else { self.index + 1 };
        Rest { document: self.document, index: self.index + 1, end }
    }

    /// The value at an RFC 6901 pointer below this one.
    pub fn pointer(&self, pointer: &Pointer) -> Option<Node<'t>> {
        pointer.tokens().try_fold(*self, |node, token| match node.kind() {
            Kind::Object => node.get(token.name()),
            Kind::Array => node.item(token.index()?),
            Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::String => None,
        })
    }
}

#[derive(Clone, Copy)]
struct Rest<'t> {
    document: Document<'t>,
    index: u32,
    end: u32,
}

impl<'t> Rest<'t> {
    #[inline]
    fn take(&mut self) -> Option<Node<'t>> {
        if self.index >= self.end {
            return None;
        }
        let node = Node { document: self.document, index: self.index };
        self.index = node.entry().next;
        Some(node)
    }
}

/// Iterates over the members of an object.
#[allow(missing_debug_implementations, reason = "an iterator over content that must not be printed")]
#[derive(Clone)]
pub struct Members<'t> {
    rest: Rest<'t>,
}

impl<'t> Iterator for Members<'t> {
    type Item = (&'t str, Node<'t>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let name = self.rest.take()?;
        let value = self.rest.take()?;
        Some((name.text(), value))
    }
}

/// Iterates over the items of an array.
#[allow(missing_debug_implementations, reason = "an iterator over content that must not be printed")]
#[derive(Clone)]
pub struct Items<'t> {
    rest: Rest<'t>,
}

impl<'t> Iterator for Items<'t> {
    type Item = Node<'t>;

    #[inline]
    fn next(&mut self) -> Option<Node<'t>> {
        self.rest.take()
    }
}
