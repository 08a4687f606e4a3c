//! Programs in C that were linked with CUDA's libraries and run on the virtual GPU.
//!
//! The environment that they find has the form of a Python environment with torch, whose libraries are compiled
//! here: they have the names, symbols and versions of CUDA's, and each function returns 999. So a call that
//! reached one of them would be seen.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#![allow(clippy::disallowed_methods, reason = "tests write libraries and run programs")]

#[path = "programs/sanitized.rs"]
mod sanitized;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use xmem_devices::{Device, devices, find};
use xmem_virtual_gpu::{Call, Completion, Environment, Note, Preload, PrepareError, VirtualGpu};

/// Functions of a library by the names in the header of the test programs, and some that it lacks.
fn functions(prefix: &str) -> Vec<String> {
    let sources = [
        include_str!("programs/cuda.h"),
        include_str!("programs/vmm.c"),
        include_str!("programs/cudnn.c"),
    ];
    let declared = sources.iter().flat_map(|text| text.lines()).filter_map(|line| {
        let (_, rest) = line.split_once(' ')?;
        let (name, _) = rest.split_once('(')?;
        (line.ends_with(");") && !line.starts_with(' ')).then(|| name.trim_start_matches('*'))
    });
    let is_driver = |name: &str| name.as_bytes().get(2).is_some_and(u8::is_ascii_uppercase);
    declared
        .filter(|name| name.starts_with(prefix) && (prefix != "cu" || is_driver(name)))
        .map(str::to_owned)
        .collect()
}

fn compile(output: &Path, source: &str, arguments: &[&str]) {
    let file = output.with_extension("source.c");
    fs::write(&file, source).expect("written");
    let result = Command::new("cc")
        .current_dir(output.parent().expect("a folder"))
        .args([
            "-std=gnu11",
            "-Wall",
            "-Werror",
            "-Wno-builtin-declaration-mismatch",
            "-rdynamic",
            "-o",
        ])
        .args([output, &file])
        .args(arguments)
        .output()
        .expect("a C compiler");
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
}

/// A library called `name` with these functions, each in the version `node`.
fn library(folder: &Path, name: &str, functions: &[String], node: Option<&str>, more: &str) {
    fs::create_dir_all(folder).expect("made");
    let bodies: String =
        functions.iter().map(|name| format!("int {name}(void) {{ return 999; }}\n")).collect();
    let soname = format!("-Wl,-soname,{name}");
    let mut arguments = vec!["-shared", "-fPIC", &soname];
    let script = format!("-Wl,--version-script,{name}.map");
    if let Some(node) = node {
        fs::write(folder.join(format!("{name}.map")), format!("{node} {{ global: *; }};\n"))
            .expect("written");
        arguments.push(&script);
    }
    compile(&folder.join(name), &(bodies + more), &arguments);
}

/// A machine with a Python environment and a driver of its own.
struct Machine {
    root: TempDir,
    runtime: &'static str,
}

impl Machine {
    fn new(runtime: &'static str) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let machine = Self { root, runtime };
        let node = match runtime.split_once(".so.").expect("a name").1 {
            "11.0" => "libcudart.so.11.0",
            _ => runtime,
        };
        let mut of_runtime = functions("cuda");
        of_runtime.extend(functions("__cuda"));
        of_runtime.push("cudaSomethingNew".to_owned());
        library(&machine.nvidia(), runtime, &of_runtime, Some(node), "");
        let release = "size_t cudnnGetVersion(void) { return 90100; }";
        let mut cudnn = functions("cudnn");
        cudnn.retain(|name| name != "cudnnGetVersion");
        cudnn.push("cudnnBackendExecute".to_owned());
        let version = format!("#include <stddef.h>\n{release}\n");
        library(&machine.nvidia(), "libcudnn.so.9", &cudnn, Some("libcudnn.so.9"), &version);
        machine.add_driver();
        let torch = machine.path("site/torch/lib");
        fs::create_dir_all(&torch).expect("made");
        let nvidia = machine.nvidia();
        compile(
            &torch.join("libtorch_cuda.so"),
            "int cudaMalloc(void **, unsigned long);\nint cudnnBackendExecute(void);\n\
             int use(void) { return cudaMalloc(0, 0) + cudnnBackendExecute(); }\n",
            &[
                "-shared",
                "-fPIC",
                &format!("-L{}", nvidia.display()),
                &format!("-l:{runtime}"),
                "-l:libcudnn.so.9",
                "-Wl,-rpath,$ORIGIN/../../nvidia/cu/lib",
            ],
        );
        machine
    }

    /// A driver and NVML that leave a mark when they are loaded. Their functions return 999.
    fn add_driver(&self) {
        let constructor = format!(
            "#include <stdio.h>\n__attribute__((constructor)) static void loaded(void) {{\n  \
             FILE *f = fopen(\"{}\", \"w\");\n  if (f) fclose(f);\n}}\n",
            self.path("driver-was-loaded").display()
        );
        let management =
            ["nvmlInit_v2", "nvmlSystemGetCudaDriverVersion_v2", "nvmlDeviceGetFanSpeed"];
        let management = management.map(str::to_owned);
        let folder = self.path("driver");
        library(&folder, "libcuda.so.1", &functions("cu"), None, &constructor);
        library(&folder, "libnvidia-ml.so.1", &management, None, &constructor);
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn nvidia(&self) -> PathBuf {
        self.path("site/nvidia/cu/lib")
    }

    fn environment(&self) -> Environment {
        Environment::new(self.path("site/torch"), vec![self.path("site")])
    }

    fn prepare(&self, gpu: &VirtualGpu) -> Preload {
        let folder = self.path("private");
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("removed");
        }
        fs::create_dir(&folder).expect("made");
        let environment = self.environment().examine().expect("examined");
        gpu.prepare(&environment, &folder).expect("prepared")
    }

    /// Runs a program with these variables on the virtual GPU, which must succeed.
    fn run(
        &self,
        preload: &Preload,
        program: (&str, &str),
        arguments: &[String],
        variables: &[(&str, &str)],
    ) {
        let (name, source) = program;
        let [header, header_to] = [
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/cuda.h"),
            self.path("cuda.h"),
        ];
        fs::copy(header, header_to).expect("copied");
        let (nvidia, driver) = (self.nvidia(), self.path("driver"));
        compile(
            &self.path(name),
            source,
            &[
                &format!("-I{}", self.root.path().display()),
                &format!("-L{}", nvidia.display()),
                &format!("-L{}", driver.display()),
                &format!("-l:{}", self.runtime),
                "-l:libcudnn.so.9",
                "-l:libcuda.so.1",
                "-ldl",
                "-lpthread",
            ],
        );
        let mut command = Command::new(self.path(name));
        preload.apply(&mut command, None);
        let folders = format!("{}:{}", nvidia.display(), driver.display());
        command.args(arguments).env("LD_LIBRARY_PATH", folders);
        command.envs(variables.iter().copied());
        let output = command.output().expect("started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}\n{errors}", output.status);
        assert_eq!(errors, "", "{name}");
        assert!(!self.path("driver-was-loaded").exists(), "the driver of the machine was loaded");
    }
}

macro_rules! program {
    ($name:literal) => {
        ($name, include_str!(concat!("programs/", $name, ".c")))
    };
}

fn device(name: &str) -> Device {
    find(name).expect("a built-in device").clone()
}

fn numbers(numbers: &[u64]) -> Vec<String> {
    numbers.iter().map(u64::to_string).collect()
}

const RUNTIME: &str = "libcudart.so.13";

#[test]
fn memory_has_the_capacity_and_the_addresses_of_the_device() {
    let machine = Machine::new(RUNTIME);
    // The largest one has more memory than any machine.
    let mut huge = device("h100-80g");
    huge.memory = xmem_types::Bytes::gib(3 << 10);
    for device in [device("rtx3060-12g"), device("h200-141g"), huge] {
        let (memory, available) = (device.memory.get(), device.available().get());
        let preload = machine.prepare(&VirtualGpu::new(device));
        machine.run(&preload, program!("memory"), &numbers(&[memory, available]), &[]);
        let log = preload.log.read().expect("a log");
        let unimplemented =
            |function: &str| Call::Unimplemented { function: function.to_owned(), status: 801 };
        for function in ["cudaIpcGetMemHandle", "cudaImportExternalMemory"] {
            assert!(log.contains(&unimplemented(function)), "{log:?}");
        }
    }
}

#[test]
fn copies_and_fills_beyond_an_allocation_are_invalid_values() {
    let machine = Machine::new(RUNTIME);
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    machine.run(&preload, program!("bounds"), &[], &[]);
}

#[test]
fn handles_that_are_destroyed_twice_are_invalid_handles() {
    let machine = Machine::new(RUNTIME);
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    machine.run(&preload, program!("handles"), &[], &[]);
}

/// A device of capability 8.9 ran kernels of 8.6 as if they were compiled for 8.9, which CUB has no policy for.
#[test]
fn kernels_are_those_of_the_latest_architecture_that_the_device_runs() {
    let machine = Machine::new(RUNTIME);
    for (major, minor) in [(6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0)] {
        let mut device = device("a100-40g");
        (device.compute_capability.major, device.compute_capability.minor) = (major, minor);
        let preload = machine.prepare(&VirtualGpu::new(device));
        machine.run(&preload, program!("images"), &[format!("{major}{minor}")], &[]);
    }
}

#[test]
fn kernels_have_the_registers_that_their_image_names() {
    let machine = Machine::new(RUNTIME);
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    machine.run(&preload, program!("modules"), &[], &[]);
}

#[test]
fn virtual_memory_management_counts_memory_once() {
    let machine = Machine::new(RUNTIME);
    let device = device("a100-40g");
    let available = device.available().get();
    let preload = machine.prepare(&VirtualGpu::new(device));
    machine.run(&preload, program!("vmm"), &numbers(&[available]), &[]);
}

#[test]
fn captures_have_the_states_of_cuda() {
    let machine = Machine::new(RUNTIME);
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    machine.run(&preload, program!("capture"), &[], &[]);
}

#[test]
fn work_is_complete_at_once_or_when_the_host_waits() {
    let machine = Machine::new(RUNTIME);
    for completion in [Completion::AtOnce, Completion::HostWaits] {
        let gpu = VirtualGpu { completion, ..VirtualGpu::new(device("a100-40g")) };
        let late = u64::from(completion == Completion::HostWaits);
        machine.run(&machine.prepare(&gpu), program!("completion"), &numbers(&[late]), &[]);
    }
}

#[test]
fn the_profiler_of_torch_sees_no_calls_that_nobody_reads() {
    let machine = Machine::new(RUNTIME);
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    let torch = machine.path("libtorch_python.so");
    let tracer = "int events;\nint profile(void *object, void *frame, int what, void *argument) {\n  \
                  (void)object, (void)frame, (void)argument;\n  events++;\n  return 10 + what;\n}\n";
    compile(&torch, tracer, &["-shared", "-fPIC"]);
    let argument = torch.to_str().expect("UTF-8").to_owned();
    machine.run(&preload, program!("python"), &[argument], &[]);
}

/// The host read a count that an earlier block had held, and PyTorch allocated as many elements.
#[test]
fn blocks_that_are_used_again_read_as_zeros() {
    let machine = Machine::new(RUNTIME);
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    let c10 = machine.path("libc10.so");
    let reporter = "long heard;\nstruct device { signed char kind, index; };\n\
                    void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(\n  \
                    void *address, long size, unsigned long allocated, unsigned long reserved, struct device device) {\n  \
                    if (address && allocated == 512 && reserved == 1024 && device.kind == 1 && !device.index) heard += size;\n}\n";
    compile(&c10, reporter, &["-shared", "-fPIC", "-Wl,-soname,libc10.so"]);
    let argument = c10.to_str().expect("UTF-8").to_owned();
    machine.run(&preload, program!("fresh"), &[argument], &[]);
}

#[test]
fn pools_grow_and_are_trimmed() {
    let machine = Machine::new(RUNTIME);
    let device = device("a100-40g");
    let available = device.available().get();
    let preload = machine.prepare(&VirtualGpu::new(device));
    machine.run(&preload, program!("pool"), &numbers(&[available]), &[]);
}

#[test]
fn several_devices_have_accounts_of_their_own() {
    let machine = Machine::new(RUNTIME);
    let device = device("t4-16g");
    let available = device.available().get();
    let preload = machine.prepare(&VirtualGpu { devices: 4, ..VirtualGpu::new(device) });
    for (variable, visible) in [(None, 4), (Some("2,0"), 2), (Some("1,9,0"), 1), (Some(""), 0)] {
        let variables: Vec<_> = variable.map(|v| ("CUDA_VISIBLE_DEVICES", v)).into_iter().collect();
        let arguments = numbers(&[visible, available]);
        machine.run(&preload, program!("devices"), &arguments, &variables);
    }
    assert_eq!(preload.removed, ["CUDA_VISIBLE_DEVICES"]);
}

#[test]
fn properties_have_the_layout_of_each_major_version() {
    for (runtime, major) in
        [("libcudart-d0da41ae.so.11.0", 11), ("libcudart.so.12", 12), ("libcudart.so.13", 13)]
    {
        let machine = Machine::new(runtime);
        // All compute capabilities, not all devices: they differ in what is read from the profile alone.
        let mut seen = Vec::new();
        for device in devices() {
            let cc = device.compute_capability;
            if seen.contains(&cc) || (major < 13 && seen.len() > 1) {
                continue;
            }
            seen.push(cc);
            let arguments = numbers(&[
                major,
                device.memory.get(),
                device.sms.into(),
                device.max_threads_per_sm.into(),
                cc.major.into(),
                cc.minor.into(),
            ]);
            let preload = machine.prepare(&VirtualGpu::new(device.clone()));
            machine.run(&preload, program!("properties"), &arguments, &[]);
        }
    }
}

#[test]
fn an_old_cudnn_gets_plans_without_workspaces_and_a_line_in_the_log() {
    let machine = Machine::new(RUNTIME);
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    machine.run(&preload, program!("cudnn"), &[], &[]);
    let log = preload.log.read().expect("a log");
    let says_so = |call: &Call| matches!(call, Call::Cudnn(text) if text.contains("90100"));
    assert!(log.iter().any(says_so), "{log:?}");
}

#[test]
fn workspaces_that_are_split_are_those_measured_on_an_h100() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("splits");
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("native");
    let include = format!("-I{}", native.display());
    compile(&program, include_str!("programs/splits.c"), &[&include]);
    let output = Command::new(&program).output().expect("started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn memory_that_cannot_be_private_is_shared() {
    let folder = tempfile::tempdir().expect("a folder");
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let includes =
        ["native", "tests/programs"].map(|at| format!("-I{}", crate_folder.join(at).display()));
    let program = folder.path().join("shared");
    compile(
        &program,
        include_str!("programs/shared.c"),
        &[&includes[0], &includes[1], "-lpthread"],
    );
    let output = Command::new(program).output().expect("started");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn no_driver_is_needed_and_one_that_is_there_is_not_loaded() {
    let machine = Machine::new(RUNTIME);
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    compile(&machine.path("driver-user"), include_str!("programs/driver.c"), &["-ldl"]);
    let run = |libraries: &Path, preload: Option<&Preload>| {
        let mut command = Command::new(machine.path("driver-user"));
        if let Some(preload) = preload {
            preload.apply(&mut command, None);
        }
        let status = command.env("LD_LIBRARY_PATH", libraries).status().expect("started");
        (status.code(), machine.path("driver-was-loaded").exists())
    };
    let (driver, nothing) = (machine.path("driver"), machine.path("nothing"));
    assert_eq!(run(&nothing, Some(&preload)), (Some(0), false), "a machine without a driver");
    assert_eq!(run(&driver, Some(&preload)), (Some(0), false), "a machine with a driver");
    // The mark can be seen: without the virtual GPU, the driver is loaded, and its functions fail.
    assert_eq!(run(&driver, None), (Some(3), true), "without the virtual GPU");
    let log = preload.log.read().expect("a log");
    let fan = Call::Unimplemented { function: "nvmlDeviceGetFanSpeed".to_owned(), status: 3 };
    assert_eq!(log, [fan]);
}

/// As Triton does, whose releases differ in the name.
#[test]
fn a_linker_finds_the_driver_in_the_folder_for_triton() {
    let machine = Machine::new(RUNTIME);
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    let is_folder = |name: &str| name == "TRITON_LIBCUDA_PATH";
    let folder = preload.variables.iter().find(|(name, _)| name.to_str().is_some_and(is_folder));
    let link = format!("-L{}", Path::new(&folder.expect("a folder").1).display());
    let source = "int cuInit(unsigned);\nint use(void) { return cuInit(0); }\n";
    for name in ["-lcuda", "-l:libcuda.so.1"] {
        let arguments = ["-shared", "-fPIC", "-Wl,-z,defs", &link, name];
        compile(&machine.path("libutils.so"), source, &arguments);
    }
}

/// Programs that a command starts, and which know nothing of CUDA, run as always.
#[test]
fn other_programs_are_not_affected() {
    let machine = Machine::new(RUNTIME);
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    let mut command = Command::new("sh");
    preload.apply(&mut command, None);
    let output = command.args(["-c", "ls / | sort | wc -l"]).output().expect("started");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn without_the_address_space_the_reason_is_given() {
    let machine = Machine::new(RUNTIME);
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    let source = "int cudaSetDevice(int);\nint main(void) { return cudaSetDevice(0); }\n";
    let link = format!("-L{}", machine.nvidia().display());
    compile(&machine.path("limited"), source, &[&link, "-l:libcudart.so.13"]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 1000000; exec ./limited"]).current_dir(machine.root.path());
    preload.apply(&mut command, None);
    command.env("LD_LIBRARY_PATH", machine.nvidia());
    let output = command.output().expect("started");
    assert_eq!(output.status.code(), Some(3), "cudaErrorInitializationError");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("run it without `ulimit -v`"), "{errors}");
    let log = preload.log.read().expect("a log");
    assert!(matches!(&log[..], [Call::Error(text)] if text.contains("address space")), "{log:?}");
}

#[test]
fn files_are_private_and_libraries_that_are_not_found_are_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let machine = Machine::new(RUNTIME);
    fs::remove_file(machine.nvidia().join(RUNTIME)).expect("removed");
    let preload = machine.prepare(&VirtualGpu::new(device("a100-40g")));
    assert_eq!(preload.notes, [Note::NotFound(vec![RUNTIME.to_owned()])]);
    for entry in fs::read_dir(machine.path("private")).expect("a folder") {
        let entry = entry.expect("an entry");
        let mode = entry.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
    }
    let names: Vec<_> =
        preload.libraries.iter().map(|path| path.file_name().expect("a name")).collect();
    assert_eq!(
        names,
        ["libxmem-vgpu.so", "libcuda.so.1", RUNTIME, "libcudnn.so.9", "libnvidia-ml.so.1"]
    );
    let value = preload.ld_preload(Some("/other.so".as_ref())).into_string().expect("text");
    assert!(value.ends_with("/libnvidia-ml.so.1:/other.so"), "{value}");
}

#[test]
fn what_cannot_be_prepared_says_why() {
    let machine = Machine::new(RUNTIME);
    let gpu = VirtualGpu::new(device("a100-40g"));
    let refused = |gpu: &VirtualGpu, environment: &Environment, folder: &str| {
        let folder = machine.path(folder);
        fs::create_dir_all(&folder).expect("made");
        let prepared = environment.examine().and_then(|examined| gpu.prepare(&examined, &folder));
        let error: PrepareError = prepared.expect_err("refused");
        error.to_string()
    };
    let environment = machine.environment();
    let other = Environment::new(machine.path("no-torch"), Vec::new());
    for (message, expected) in [
        (refused(&gpu, &environment, "a b"), "LD_PRELOAD cannot hold"),
        (refused(&gpu, &other, "x"), "not a build of PyTorch for CUDA"),
        (refused(&VirtualGpu { devices: 0, ..gpu.clone() }, &environment, "y"), "from 1 to 64"),
    ] {
        assert!(message.contains(expected), "{message}");
    }
    let python = machine.path("no-such-python");
    let error = Environment::of_python(&python).expect_err("refused").to_string();
    assert!(error.contains("cannot start `"), "{error}");
}
