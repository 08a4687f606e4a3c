//! Stand-ins as the dynamic linker, binutils' way of reading and the reader of this crate see them.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::disallowed_methods, reason = "tests write libraries and load them")]

use proptest::prelude::*;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;
use xmem_elf::{Definition, Export, ExportKind, Library, Machine, StandIn, Symbol, SymbolVersion};

fn symbol(name: &str, version: Option<(&str, bool)>, definition: Definition) -> Symbol {
    let version =
        version.map(|(name, is_default)| SymbolVersion { name: name.to_owned(), is_default });
    Symbol { name: name.to_owned(), version, definition }
}

fn forwards(to: &str) -> Definition {
    Definition::Forwards { to: to.to_owned() }
}

fn stand_in() -> StandIn {
    let mut symbols = vec![
        symbol("answer", Some(("NODE_2", true)), Definition::Returns(-42)),
        symbol("answer", Some(("NODE_1", false)), Definition::Returns(7)),
        symbol("add", Some(("NODE_1", true)), forwards("provider_add")),
        symbol("sum", None, forwards("provider_sum")),
        symbol(
            "missing",
            Some(("NODE_2", true)),
            Definition::Reports { to: "provider_report".to_owned(), status: 801 },
        ),
        symbol("table", Some(("NODE_2", true)), Definition::Data { size: 100 }),
        symbol("counter", None, Definition::Data { size: 8 }),
    ];
    // Enough of them for several buckets and words of the hash table.
    symbols.extend((0..500).map(|i| symbol(&format!("f{i}"), None, Definition::Returns(i))));
    StandIn {
        machine: Machine::X86_64,
        name: "libstandin.so.3".to_owned(),
        needed: vec!["libprovider.so".to_owned()],
        search: Some("$ORIGIN".to_owned()),
        symbols,
    }
}

fn compile(folder: &Path, name: &str, text: &str, arguments: &[&str]) {
    let source = folder.join(format!("{name}.c"));
    fs::write(&source, text).expect("written");
    let output = Command::new("cc")
        .current_dir(folder)
        .args(["-Wall", "-Werror", "-o", name])
        .arg(&source)
        .args(arguments)
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const PROVIDER: &str = r#"
#include <string.h>
long provider_add(long a, long b) { return a + b; }
double provider_sum(int n, double a, double b, long c, long d, long e, long f, long g, long h) {
  return n + a + b + c + d + e + f + g + h;
}
char provider_text[64];
int provider_report(const char *name, int status) { strcpy(provider_text, name); return status; }
"#;

/// A program that finds everything by name, some of it linked by the linker and some by `dlsym`.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int answer(void);
long add(long, long);
double sum(int, double, double, long, long, long, long, long, long);
int missing(void);
extern char provider_text[64];
int main(void) {
  assert(answer() == -42);
  assert(add(40, 2) == 42);
  assert(sum(1, 0.5, 0.25, 2, 3, 4, 5, 6, 7) == 28.75);
  assert(missing() == 801);
  assert(!strcmp(provider_text, "missing"));
  void *h = dlopen("libstandin.so.3", RTLD_NOW | RTLD_NOLOAD);
  assert(h);
  assert(((int (*)(void))dlvsym(h, "answer", "NODE_1"))() == 7);
  assert(((int (*)(void))dlvsym(h, "answer", "NODE_2"))() == -42);
  assert(!dlvsym(h, "answer", "NODE_3"));
  assert(!dlsym(h, "absent"));
  char *table = dlsym(h, "table");
  long *counter = dlsym(h, "counter");
  for (int i = 0; i < 100; i++) assert(table[i] == 0);
  memset(table, 1, 100);
  assert(*counter == 0);
  for (int i = 0; i < 500; i++) {
    char name[16];
    sprintf(name, "f%d", i);
    int (*f)(void) = dlsym(h, name);
    assert(f && f() == i);
  }
  return 0;
}
"#;

#[test]
fn a_stand_in_links_loads_and_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    compile(path, "libprovider.so", PROVIDER, &["-shared", "-fPIC", "-Wl,-soname,libprovider.so"]);
    fs::write(path.join("libstandin.so.3"), stand_in().to_bytes().expect("valid"))
        .expect("written");
    compile(
        path,
        "program",
        PROGRAM,
        &["libstandin.so.3", "libprovider.so", "-ldl", "-Wl,-rpath,$ORIGIN"],
    );
    let status = Command::new(path.join("program")).status().expect("started");
    assert!(status.success(), "{status}");

    // A library of this name that was loaded before satisfies `dlopen` of the bare name.
    compile(
        path,
        "bare",
        "#include <dlfcn.h>\nint main(void) { return dlopen(\"libstandin.so.3\", RTLD_NOW) ? 0 : 1; }",
        &["-ldl"],
    );
    let preloaded = Command::new(path.join("bare"))
        .env("LD_PRELOAD", path.join("libstandin.so.3"))
        .status()
        .expect("started");
    assert!(preloaded.success(), "{preloaded}");
    assert!(!Command::new(path.join("bare")).status().expect("started").success());
}

#[test]
fn what_is_written_is_read_back() {
    let stand_in = stand_in();
    let library = Library::read(Cursor::new(stand_in.to_bytes().expect("valid"))).expect("read");
    assert_eq!(library.name.as_deref(), Some("libstandin.so.3"));
    assert_eq!(library.needed, ["libprovider.so"]);
    assert_eq!(library.search, ["$ORIGIN"]);
    let mut imports = library.imports;
    imports.sort();
    assert_eq!(imports, ["provider_add", "provider_report", "provider_sum"]);
    let by_name = |a: &Export, b: &Export| (&a.name, &a.version).cmp(&(&b.name, &b.version));
    let mut exports = library.exports;
    exports.sort_by(by_name);
    let mut expected: Vec<Export> = stand_in
        .symbols
        .into_iter()
        .map(|symbol| Export {
            name: symbol.name,
            version: symbol.version,
            kind: match symbol.definition {
                Definition::Data { size } => ExportKind::Data { size },
                _ => ExportKind::Function,
            },
        })
        .collect();
    expected.sort_by(by_name);
    assert_eq!(exports, expected);
}

#[test]
fn a_library_of_the_compiler_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(
        path.join("map"),
        "V_1 { global: one; }; V_2 { global: two; data; local: *; } V_1;\n",
    )
    .expect("written");
    compile(
        path,
        "libreal.so",
        "#include <stdlib.h>\nint one(void) { return 1; }\nint two(void) { return abs(-2); }\n\
         char data[12];\nint unseen(void) { return atoi(\"1\"); }\n",
        &[
            "-shared",
            "-fPIC",
            "-fno-builtin",
            "-Wl,-soname,libreal.so.1,--version-script,map,-rpath,$ORIGIN/x:/y",
        ],
    );
    let file = fs::File::open(path.join("libreal.so")).expect("there");
    let library = Library::read(file).expect("read");
    assert_eq!(library.name.as_deref(), Some("libreal.so.1"));
    assert_eq!(library.search, ["$ORIGIN/x", "/y"]);
    assert!(library.needed.iter().any(|name| name == "libc.so.6"), "{:?}", library.needed);
    assert!(library.imports.iter().any(|name| name == "atoi"), "{:?}", library.imports);
    let mut exports: Vec<String> = library
        .exports
        .iter()
        .filter(|export| export.kind != ExportKind::Other)
        .map(|e| format!("{} {:?} {:?}", e.name, e.version.as_ref().map(|v| &*v.name), e.kind))
        .collect();
    exports.sort();
    assert_eq!(
        exports,
        [
            "data Some(\"V_2\") Data { size: 12 }",
            "one Some(\"V_1\") Function",
            "two Some(\"V_2\") Function"
        ]
    );
}

#[test]
fn impossible_libraries_are_refused() {
    let with = |change: fn(&mut StandIn)| {
        let mut stand_in = stand_in();
        change(&mut stand_in);
        stand_in.to_bytes().expect_err("refused").to_string()
    };
    for (change, expected) in [
        ((|s| s.name.clear()) as fn(&mut StandIn), "cannot be a name"),
        (|s| s.needed.push("a\0b".to_owned()), "cannot be a name"),
        (|s| s.symbols.push(s.symbols[0].clone()), "`answer` is given twice"),
        (|s| s.machine = Machine::Aarch64, "`answer` needs code"),
        (|s| s.symbols.push(symbol("d", None, Definition::Data { size: 1 << 40 })), "larger than"),
    ] {
        let message = with(change);
        assert!(message.contains(expected), "{message}");
    }
}

proptest! {
    /// Damaged files end in an error or in odd content.
    #[test]
    fn damaged_libraries_are_read_without_a_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = stand_in().to_bytes().expect("valid");
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = Library::read(Cursor::new(bytes));
    }

    /// The headers decide about everything else.
    #[test]
    fn damaged_headers_are_read_without_a_panic(
        changes in prop::collection::vec((0usize..1200, any::<u8>()), 1..20),
    ) {
        let mut bytes = stand_in().to_bytes().expect("valid");
        let len = bytes.len();
        for (at, value) in changes {
            // The header of the file, and those of the sections at its end.
            let at = if at < 64 { at } else { len - 1 - (at - 64) % 768 };
            bytes[at] = value;
        }
        let _ = Library::read(Cursor::new(bytes));
    }
}
