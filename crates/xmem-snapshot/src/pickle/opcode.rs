//! Pickle's instructions, by their names in pickletools, and what this reader thinks of each.

/// Instructions that build plain data.
pub(super) mod plain {
    pub(in crate::pickle) const PROTO: u8 = 0x80;
    pub(in crate::pickle) const STOP: u8 = b'.';
    pub(in crate::pickle) const FRAME: u8 = 0x95;
    pub(in crate::pickle) const MARK: u8 = b'(';
    pub(in crate::pickle) const NONE: u8 = b'N';
    pub(in crate::pickle) const NEWTRUE: u8 = 0x88;
    pub(in crate::pickle) const NEWFALSE: u8 = 0x89;
    pub(in crate::pickle) const BININT: u8 = b'J';
    pub(in crate::pickle) const BININT1: u8 = b'K';
    pub(in crate::pickle) const BININT2: u8 = b'M';
    pub(in crate::pickle) const LONG1: u8 = 0x8a;
    pub(in crate::pickle) const LONG4: u8 = 0x8b;
    pub(in crate::pickle) const BINFLOAT: u8 = b'G';
    pub(in crate::pickle) const SHORT_BINUNICODE: u8 = 0x8c;
    pub(in crate::pickle) const BINUNICODE: u8 = b'X';
    pub(in crate::pickle) const BINUNICODE8: u8 = 0x8d;
    pub(in crate::pickle) const SHORT_BINBYTES: u8 = b'C';
    pub(in crate::pickle) const BINBYTES: u8 = b'B';
    pub(in crate::pickle) const BINBYTES8: u8 = 0x8e;
    pub(in crate::pickle) const BYTEARRAY8: u8 = 0x96;
    pub(in crate::pickle) const EMPTY_LIST: u8 = b']';
    pub(in crate::pickle) const APPEND: u8 = b'a';
    pub(in crate::pickle) const APPENDS: u8 = b'e';
    pub(in crate::pickle) const LIST: u8 = b'l';
    pub(in crate::pickle) const EMPTY_TUPLE: u8 = b')';
    pub(in crate::pickle) const TUPLE: u8 = b't';
    pub(in crate::pickle) const TUPLE1: u8 = 0x85;
    pub(in crate::pickle) const TUPLE2: u8 = 0x86;
    pub(in crate::pickle) const TUPLE3: u8 = 0x87;
    pub(in crate::pickle) const EMPTY_DICT: u8 = b'}';
    pub(in crate::pickle) const DICT: u8 = b'd';
    pub(in crate::pickle) const SETITEM: u8 = b's';
    pub(in crate::pickle) const SETITEMS: u8 = b'u';
    pub(in crate::pickle) const MEMOIZE: u8 = 0x94;
    pub(in crate::pickle) const BINPUT: u8 = b'q';
    pub(in crate::pickle) const LONG_BINPUT: u8 = b'r';
    pub(in crate::pickle) const BINGET: u8 = b'h';
    pub(in crate::pickle) const LONG_BINGET: u8 = b'j';
}

/// Instructions that import, call, or refer to something outside the file.
pub(super) const REFUSED: [(u8, &str); 15] = [
    (b'c', "GLOBAL"),
    (0x93, "STACK_GLOBAL"),
    (b'R', "REDUCE"),
    (b'b', "BUILD"),
    (b'i', "INST"),
    (b'o', "OBJ"),
    (0x81, "NEWOBJ"),
    (0x92, "NEWOBJ_EX"),
    (0x82, "EXT1"),
    (0x83, "EXT2"),
    (0x84, "EXT4"),
    (b'P', "PERSID"),
    (b'Q', "BINPERSID"),
    (0x97, "NEXT_BUFFER"),
    (0x98, "READONLY_BUFFER"),
];

/// Instructions that no writer of snapshots uses: protocol 0 and 1, Python 2's text, sets.
pub(super) const UNSUPPORTED: [(u8, &str); 15] = [
    (b'0', "POP"),
    (b'1', "POP_MARK"),
    (b'2', "DUP"),
    (b'F', "FLOAT"),
    (b'I', "INT"),
    (b'L', "LONG"),
    (b'S', "STRING"),
    (b'T', "BINSTRING"),
    (b'U', "SHORT_BINSTRING"),
    (b'V', "UNICODE"),
    (b'g', "GET"),
    (b'p', "PUT"),
    (0x8f, "EMPTY_SET"),
    (0x90, "ADDITEMS"),
    (0x91, "FROZENSET"),
];

/// The name of `byte` in one of the tables.
pub(super) fn name(table: &[(u8, &'static str)], byte: u8) -> Option<&'static str> {
    table.iter().find(|(code, _)| *code == byte).map(|(_, name)| *name)
}
