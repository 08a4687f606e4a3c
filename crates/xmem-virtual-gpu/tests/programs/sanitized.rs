//! The same programs with the native library inside of them, compiled with the address sanitizer and the one for
//! undefined behavior. `.ci/run` runs it as the stage `sanitize`.

use super::{compile, device, functions, numbers};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const SANITIZERS: [&str; 5] = [
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
];

/// Bytes of the device, and of its context.
const MEMORY: u64 = 40 << 30;
const CONTEXT: u64 = 500_000_000;

/// The configuration, as `config.rs` writes it.
fn configuration(run_ahead: bool) -> String {
    let device = device("a100-40g");
    let compute = device.compute_capability;
    let run_ahead = u8::from(run_ahead);
    format!(
        "name=a device\nmemory={MEMORY}\ncontext={CONTEXT}\ndevices=1\nmajor={}\nminor={}\nsms={}\n\
         threads_per_sm={}\nruntime=13000\ndriver=13000\ncopy_limit=65536\nrun_ahead={run_ahead}\n",
        compute.major, compute.minor, device.sms, device.max_threads_per_sm
    )
}

/// Compiles a program with the native library; its calls go there without a stand-in.
fn compile_with_library(folder: &Path, name: &str, source: &str, objects: &[String]) {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut stubs = String::new();
    let mut names = Vec::new();
    for function in functions("cu")
        .into_iter()
        .chain(functions("cuda"))
        .chain(functions("__cuda"))
        .chain(functions("cudnn"))
    {
        // As a stand-in does for what is not implemented: cudaErrorNotSupported.
        stubs += &format!("__attribute__((weak)) int vgpu_{function}(void) {{ return 801; }}\n");
        names.push(format!("-D{function}=vgpu_{function}"));
    }
    let stubs_file = folder.join(format!("{name}-stubs.c"));
    fs::write(&stubs_file, stubs).expect("written");
    let include = format!("-I{}", crate_folder.join("tests/programs").display());
    let stubs_file = stubs_file.display().to_string();
    let mut arguments: Vec<&str> = SANITIZERS.to_vec();
    arguments.extend(names.iter().map(String::as_str));
    arguments.extend([include.as_str(), stubs_file.as_str()]);
    arguments.extend(objects.iter().map(String::as_str));
    arguments.extend(["-rdynamic", "-ldl", "-lpthread"]);
    compile(&folder.join(name), source, &arguments);
}

/// The native library's files, compiled; none with a compiler that has no sanitizers.
fn objects(folder: &Path) -> Option<Vec<String>> {
    let probe = folder.join("probe.c");
    fs::write(&probe, "int main(void) { return 0; }\n").expect("written");
    let output = folder.join("probe");
    let mut command = Command::new("cc");
    command.args(SANITIZERS).arg("-o").args([&output, &probe]);
    let succeeds =
        |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    if !succeeds(&mut command) || !succeeds(&mut Command::new(&output)) {
        return None;
    }
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("native");
    let mut objects = Vec::new();
    for entry in fs::read_dir(native).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "c") {
            continue;
        }
        let object = folder.join(path.with_extension("o").file_name().expect("a name"));
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-c", "-o"]).arg(&object);
        let output = command.args(SANITIZERS).arg(&path).output().expect("a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        objects.push(object.display().to_string());
    }
    Some(objects)
}

#[test]
#[ignore = "compiles the native library with sanitizers: the stage `sanitize` of .ci/run"]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn no_program_harms_memory_or_has_undefined_behavior() {
    let folder = TempDir::new().expect("a folder");
    let Some(objects) = objects(folder.path()) else {
        eprintln!("skipped: the C compiler has no address sanitizer");
        return;
    };
    let available = MEMORY - CONTEXT;
    let rows: [(&str, &str, &[u64], bool); 10] = [
        ("bounds", include_str!("bounds.c"), &[], false),
        ("handles", include_str!("handles.c"), &[], false),
        ("images", include_str!("images.c"), &[80], false),
        ("modules", include_str!("modules.c"), &[], false),
        ("memory", include_str!("memory.c"), &[MEMORY, available], false),
        ("vmm", include_str!("vmm.c"), &[available], false),
        ("pool", include_str!("pool.c"), &[available], false),
        ("capture", include_str!("capture.c"), &[], false),
        ("completion", include_str!("completion.c"), &[0], false),
        ("completion", include_str!("completion.c"), &[1], true),
    ];
    for (name, source, arguments, run_ahead) in rows {
        let config = folder.path().join("config");
        fs::write(&config, configuration(run_ahead)).expect("written");
        compile_with_library(folder.path(), name, source, &objects);
        let mut command = Command::new(folder.path().join(name));
        command.args(numbers(arguments)).env("XMEM_VGPU_CONFIG", config);
        // What a program has at its end is no leak: the library keeps its tables.
        command.env("ASAN_OPTIONS", "detect_leaks=0:abort_on_error=0");
        let output = command.output().expect("started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} {arguments:?}: {}\n{errors}", output.status);
    }
}
