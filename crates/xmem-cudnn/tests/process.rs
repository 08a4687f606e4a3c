//! Answers of a worker process that behaves in every possible way. The process is a shell script here.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "puts files in place and counts those of a cache")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use xmem_convolutions::{
    Basis, ConvPass, ConvShape, ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource,
    ElementType, FittedModel, Layout, NoWorkspaces, Plans, RecordedCudnn,
};
use xmem_cudnn::{
    AutomaticSource, ChoiceOrigin, Cudnn, FoundLibrary, SearchPath, SourceChoice, SourceSettings,
    WorkerCommand, keep,
};
use xmem_devices::Device;
use xmem_types::Bytes;

const SHAPE: ConvShape = ConvShape {
    input: [8, 64, 32, 32],
    weight: [64, 64, 3, 3],
    output: [8, 64, 32, 32],
    stride: [1, 1],
    padding: [1, 1],
    dilation: [1, 1],
    volume: None,
    transposed: false,
    groups: 1,
    element: ElementType::F32,
    layout: Layout::Nchw,
};

const QUESTION: ConvolutionQuestion = ConvolutionQuestion::new(ConvPass::BackwardWeight, SHAPE);

/// A convolution that PyTorch runs without cuDNN.
const DEPTHWISE: ConvolutionQuestion = ConvolutionQuestion::new(
    ConvPass::Forward,
    ConvShape { weight: [64, 1, 3, 3], groups: 64, ..SHAPE },
);

fn worker(script: &str) -> WorkerCommand {
    let arguments = ["-c", script, "worker"].map(Into::into).to_vec();
    WorkerCommand { program: PathBuf::from("/bin/sh"), arguments }
}

fn cudnn(script: &str, cache: Option<&Path>) -> Cudnn {
    let library = PathBuf::from("/opt/libcudnn.so.9");
    Cudnn::new(library, worker(script), cache.map(Path::to_path_buf))
}

fn device() -> Device {
    xmem_devices::find("rtx3060-12g").expect("built in").clone()
}

fn ask(source: &dyn ConvolutionSource) -> ConvolutionAnswers {
    source.answer(&device(), &[QUESTION])
}

fn plans(answers: &ConvolutionAnswers) -> &Plans {
    answers.get(&QUESTION).expect("every question is answered")
}

fn from_the_model() -> Plans {
    plans(&ask(&FittedModel)).clone()
}

#[test]
fn answers_are_read_among_other_output() {
    let cudnn = cudnn(
        "echo noise; echo cudnn 9.19.0; read device; read question; echo \"more $noise\"; \
         echo '= 70000000 30 0'; sleep 5",
        None,
    );
    let expected = Plans {
        sizes: vec![Bytes(70_000_000), Bytes(30), Bytes(0)],
        low: Bytes(70_000_000),
        high: Bytes(70_000_000),
        basis: Basis::Library,
        trial: None,
    };
    let answers = ask(&cudnn);
    assert_eq!(plans(&answers), &expected);
    assert_eq!(answers.source(), "cuDNN 9.19.0 at /opt/libcudnn.so.9");
    assert_eq!(answers.warning(), None);
}

#[test]
fn the_worker_gets_the_device_and_then_the_convolution() {
    let script = "echo cudnn 9.19.0; read device; read question; \
                  test \"$1\" = /opt/libcudnn.so.9 || exit 1; \
                  case \"$device\" in *'\"deviceVer\":860,\"multiProcessorCount\":28'*) ;; *) exit 2;; \
                  esac; test \"$question\" = 'backward-weight f32 nchw 8,64,32,32 64,64,3,3 \
                  8,64,32,32 1,1 1,1 1,1' || exit 3; test \"$XMEM_CUDNN\" = model || exit 4; \
                  echo '= 5'; read end";
    let answers = ask(&cudnn(script, None));
    assert_eq!((plans(&answers).first(), answers.warning()), (Bytes(5), None));
}

#[test]
fn the_model_answers_where_a_worker_fails() {
    for (script, reason) in [
        ("exit 3", "ended: exit status: 3"),
        ("echo '! cannot load the library: no such file'", "no such file"),
        ("echo cudnn 9.19.0; read device; kill -SEGV $$", "signal: 11"),
        ("echo cudnn 9.19.0; read device; read question; kill -ABRT $$", "signal: 6"),
        ("echo cudnn 9.19.0; read device; read question; echo '= many'", "answered `many`"),
    ] {
        let cudnn = cudnn(script, None);
        let answers = ask(&cudnn);
        assert_eq!(plans(&answers), &from_the_model(), "{script}");
        let warning = answers.warning().expect("a warning");
        assert!(warning.contains(reason), "{script}: {warning}");
        assert_eq!(ask(&cudnn), answers, "{script}, the second time");
    }
}

#[test]
fn a_failure_is_a_warning_for_the_answers_that_it_affects() {
    let script =
        "echo cudnn 9.19.0; read device; read question; echo '= 44 0'; read question; exit 3";
    let cudnn = cudnn(script, None);
    let first = ask(&cudnn);
    let other = ConvolutionQuestion { pass: ConvPass::Forward, ..QUESTION };
    let affected = cudnn.answer(&device(), &[QUESTION, other]);
    assert!(affected.warning().is_some_and(|warning| warning.contains("exit status: 3")));
    assert_eq!(affected.get(&QUESTION), first.get(&QUESTION));
    assert_eq!(ask(&cudnn), first, "answered before the failure");
}

#[test]
fn a_refusal_is_about_one_convolution() {
    let script = "echo cudnn 9.19.0; read device; read question; echo '! too large'; \
                  read question; echo '= 9'; read end";
    let cudnn = cudnn(script, None);
    assert_eq!(plans(&ask(&cudnn)), &from_the_model());
    let answers = ask(&cudnn);
    assert_eq!((plans(&answers).first(), answers.warning()), (Bytes(9), None));
}

#[test]
fn no_process_is_asked_about_a_kernel_of_pytorch() {
    let answers = cudnn("exit 3", None).answer(&device(), &[DEPTHWISE]);
    assert_eq!(answers.get(&DEPTHWISE), Some(&Plans::none()));
    assert_eq!((answers.source(), answers.warning()), ("cuDNN at /opt/libcudnn.so.9", None));
}

#[test]
fn a_cached_answer_is_not_requested_again() {
    let folder = tempfile::tempdir().expect("folder");
    let first = cudnn(
        "echo cudnn 9.19.0; read device; read q; echo '= 44 0'; read end",
        Some(folder.path()),
    );
    let answers = ask(&first);
    assert_eq!(ask(&first), answers);
    assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
    assert_eq!(ask(&cudnn("echo cudnn 9.19.0; exit 0", Some(folder.path()))), answers);
    let newer =
        cudnn("echo cudnn 9.20.0; read device; read q; echo '= 1'; read end", Some(folder.path()));
    assert_eq!(plans(&ask(&newer)).first(), Bytes(1));
}

#[test]
fn the_default_searches_and_starts_nothing_before_a_convolution_is_in_question() {
    let folder = tempfile::tempdir().expect("folder");
    let library = folder.path().join("libcudnn.so.9");
    let started = folder.path().join("started");
    let script = format!(
        "touch '{}'; echo cudnn 9.19.0; read device; read q; echo '= 44 0'; read end",
        started.display()
    );
    let source = AutomaticSource::new(SourceSettings {
        search: SearchPath { libraries: vec![folder.path().to_path_buf()], ..Default::default() },
        worker: Some(worker(&script)),
        ..SourceSettings::default()
    });
    for questions in [&[][..], &[DEPTHWISE]] {
        let answers = source.answer(&device(), questions);
        assert_eq!(answers, FittedModel.answer(&device(), questions));
    }
    std::fs::write(&library, "").expect("written");
    assert!(!started.exists(), "started without need");
    let answers = ask(&source);
    assert!(started.exists());
    assert_eq!(answers.source(), format!("cuDNN 9.19.0 at {}", library.display()));
    assert_eq!((plans(&answers).first(), answers.warning()), (Bytes(44), None));
}

#[test]
fn the_default_is_the_model_where_no_library_can_be_asked() {
    let folder = tempfile::tempdir().expect("folder");
    let ask_by = |settings| ask(&AutomaticSource::new(settings));
    assert_eq!(ask_by(SourceSettings::default()), ask(&FittedModel));

    std::fs::write(folder.path().join("libcudnn.so.9"), "").expect("written");
    let search = SearchPath { libraries: vec![folder.path().to_path_buf()], ..Default::default() };
    let found = SourceSettings { search, ..SourceSettings::default() };
    let nowhere = SourceChoice::At(folder.path().join("nowhere"));
    for (settings, reason) in [
        (found.clone(), "no `xmem` on PATH"),
        (SourceSettings { worker: Some(worker("exit 3")), ..found.clone() }, "exit status: 3"),
        (SourceSettings { choice: nowhere, ..found.clone() }, "no cuDNN library"),
    ] {
        let answers = ask_by(settings);
        assert_eq!(plans(&answers), &from_the_model(), "{reason}");
        assert_eq!(answers.source(), ask(&FittedModel).source(), "{reason}");
        let warning = answers.warning().expect("a warning");
        assert!(warning.contains(reason), "{warning}");
    }
    for (choice, source) in [
        (SourceChoice::Model, &FittedModel as &dyn ConvolutionSource),
        (SourceChoice::NoWorkspaces, &NoWorkspaces),
    ] {
        assert_eq!(ask_by(SourceSettings { choice, ..found.clone() }), ask(source));
    }
}

/// A source that searches `folder` and asks `script`.
fn found_in(folder: &Path, script: &str) -> AutomaticSource {
    AutomaticSource::new(SourceSettings {
        search: SearchPath { libraries: vec![folder.to_path_buf()], ..Default::default() },
        worker: Some(worker(script)),
        ..SourceSettings::default()
    })
}

/// Convolutions that need a workspace in the model, as a job has them.
fn job() -> Vec<ConvolutionQuestion> {
    let channels = (1..=6).map(|n| 32 * n);
    channels
        .map(|channels| ConvShape {
            input: [32, channels, 56, 56],
            weight: [channels, channels, 3, 3],
            output: [32, channels, 56, 56],
            ..SHAPE
        })
        .map(|shape| ConvolutionQuestion::new(ConvPass::BackwardWeight, shape))
        .collect()
}

/// A worker that gives one answer to all questions.
fn always(answer: &str) -> String {
    format!("echo cudnn 9.19.0; read device; while read question; do echo '{answer}'; done")
}

#[test]
fn a_library_that_lies_about_all_workspaces_is_not_believed() {
    let folder = tempfile::tempdir().expect("folder");
    let job = job();
    let fitted = FittedModel.answer(&device(), &job);
    for (answer, reason) in [
        ("= 0", "5 of 5 convolutions have too small a workspace"),
        ("= 4096 0", "5 of 5 convolutions have too small a workspace"),
        ("= 30 700", "are not in order"),
        ("= 9223372036854775807 0", "has a workspace of 8589934592.00 GiB"),
    ] {
        let cudnn = cudnn(&always(answer), Some(folder.path()));
        let answers = cudnn.answer(&device(), &job);
        for question in &job {
            assert_eq!(answers.get(question), fitted.get(question), "{answer}");
        }
        assert_eq!(answers.source(), fitted.source(), "{answer}");
        let warning = answers.warning().expect("a warning");
        assert!(warning.contains(reason), "{answer}: {warning}");
        assert!(warning.starts_with("cuDNN 9.19.0 at /opt/libcudnn.so.9 gave"), "{warning}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 0, "lies are not cached");
}

#[test]
fn a_library_that_lies_about_one_workspace_gets_no_certain_answer() {
    let cudnn = cudnn(&always("= 0"), None);
    let question = job()[5];
    let answers = cudnn.answer(&device(), &[question]);
    let plans = answers.get(&question).expect("an answer");
    let fitted = FittedModel.answer(&device(), &[question]);
    let expected = fitted.get(&question).expect("an answer").first();
    assert!(expected > Bytes::mib(8), "{expected}");
    assert_eq!((plans.first(), plans.high), (Bytes::ZERO, expected));
}

#[test]
fn a_library_that_others_can_change_is_not_loaded_if_it_is_found() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("libcudnn.so.9"), "").expect("written");
    let started = folder.path().join("started");
    let script = format!("touch '{}'; {}", started.display(), always("= 70000000 0"));
    let open = |mode| {
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode))
            .expect("set");
    };
    open(0o777);
    let answers = ask(&found_in(folder.path(), &script));
    assert!(!started.exists());
    assert_eq!((answers.source(), plans(&answers)), (FittedModel::NAME, &from_the_model()));
    let warning = answers.warning().expect("a warning");
    let place = folder.path().display();
    for part in [
        &format!("other users can write to `{place}` (mode 777); `chmod go-w {place}` ends that"),
        &format!("`--cudnn {place}/libcudnn.so.9` loads it"),
        "`--cudnn model` needs no library",
    ] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    open(0o755);
    let answers = ask(&found_in(folder.path(), &script));
    assert!(started.exists());
    assert_eq!((plans(&answers).first(), answers.warning()), (Bytes(70_000_000), None));
}

/// Each row: who names a library that others can change, and what follows.
#[test]
fn a_library_that_others_can_change_is_loaded_if_the_caller_names_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let is_root =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").expect("self")) == 0;
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("libcudnn.so.9"), "").expect("written");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("set");
    for origin in [ChoiceOrigin::Caller, ChoiceOrigin::Environment] {
        let settings = SourceSettings {
            choice: SourceChoice::At(folder.path().to_path_buf()),
            choice_origin: origin,
            worker: Some(worker(&always("= 70000000 0"))),
            ..SourceSettings::default()
        };
        match (settings.source(), origin, is_root) {
            (Ok(source), ChoiceOrigin::Caller, false) => {
                let answers = ask(&*source);
                assert_eq!((plans(&answers).first(), answers.warning()), (Bytes(70_000_000), None));
                let doubt = answers.doubt().expect("a doubt");
                assert!(doubt.contains("other users can write to"), "{doubt}");
            }
            (Err(error), ChoiceOrigin::Caller, true) => {
                let text = error.to_string();
                assert!(text.ends_with("root loads only what no other user can change"), "{text}");
            }
            (Err(error), ChoiceOrigin::Environment, _) => {
                assert!(error.to_string().contains("XMEM_CUDNN"), "{error}");
            }
            (other, ..) => panic!("{origin:?}: {other:?}"),
        }
    }
}

#[test]
fn cached_answers_that_others_can_change_are_not_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("folder");
    // The mode of such a folder depends on the umask.
    let closed = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), closed).expect("set");
    let cache = folder.path().join("cache/of/xmem");
    let answers = ask(&cudnn(&always("= 70000000 0"), Some(&cache)));
    assert_eq!(plans(&answers).first(), Bytes(70_000_000));
    let reads_the_cache = || {
        let answers = ask(&cudnn(&always("= 80000000 0"), Some(&cache)));
        plans(&answers).first() == Bytes(70_000_000)
    };
    assert!(reads_the_cache());
    let file =
        std::fs::read_dir(&cache).expect("folder").next().expect("one").expect("entry").path();
    for (place, mode, private) in [(&cache, 0o777, 0o700), (&file, 0o666, 0o600)] {
        let set = |mode| {
            std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).expect("set");
        };
        let found = place.metadata().expect("made").permissions().mode() & 0o777;
        assert_eq!(found, private, "{}", place.display());
        set(mode);
        assert!(!reads_the_cache(), "{}", place.display());
        set(private);
        assert!(reads_the_cache(), "{}", place.display());
    }
}

#[test]
fn the_cache_is_private_under_any_umask() {
    let tests = std::env::current_exe().expect("this program");
    let ran = Command::new("sh")
        .args(["-c", "umask 000; exec \"$0\" --exact \"$1\""])
        .arg(tests)
        .arg("cached_answers_that_others_can_change_are_not_read")
        .output()
        .expect("runs");
    let output = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && output.contains("1 passed"), "{output}");
}

#[test]
fn a_worker_has_nothing_of_the_environment_but_its_parent() {
    // The shell adds variables of its own.
    let script = "test \"$XMEM_CUDNN_PARENT\" = $PPID || exit 1; test -z \"$HOME$CARGO\" || exit 2; \
                  test \"$(env | grep -Ecv '^(XMEM_CUDNN|PWD|SHLVL|_|OLDPWD)')\" = 0 || exit 3; \
                  echo cudnn 9.19.0; read device; read question; echo '= 70000000'; read end";
    assert!(std::env::var_os("CARGO").is_some(), "the tests have variables");
    let answers = ask(&cudnn(script, None));
    assert_eq!((plans(&answers).first(), answers.warning()), (Bytes(70_000_000), None));
}

#[test]
fn a_worker_that_hangs_or_floods_costs_bounded_time_and_memory() {
    let release = "echo cudnn 9.19.0; read device; read question";
    for (script, reason) in [
        ("sleep 1000".to_owned(), "did not give its answers within 1 seconds"),
        (format!("{release}; sleep 1000"), "did not give its answers within 1 seconds"),
        (format!("{release}; exec >&-; sleep 1000"), "ended: signal: 9"),
        (format!("{release}; yes \"$device\""), "printed more than 1048576 bytes"),
        (format!("{release}; cat /dev/zero"), "a line that is too long"),
        ("cat /dev/zero".to_owned(), "a line that is too long"),
        ("printf 'cudnn 9.\\033[2J.0\\n'; sleep 1000".to_owned(), "instead of a release"),
    ] {
        let cudnn = cudnn(&script, None).with_patience(Duration::from_secs(1));
        let answers = ask(&cudnn);
        assert_eq!(plans(&answers), &from_the_model(), "{script}");
        let warning = answers.warning().expect("a warning");
        assert!(warning.contains(reason), "{script}: {warning}");
        assert!(!warning.contains('\u{1b}'), "{script}: {warning}");
    }
}

#[test]
fn the_questions_of_a_job_share_one_deadline() {
    let script = "echo cudnn 9.19.0; read device; while read question; do sleep 0.3; echo '= 70000000 0'; done";
    let cudnn = cudnn(script, None).with_patience(Duration::from_secs(1));
    let answers = cudnn.answer(&device(), &job());
    assert!(answers.warning().is_some_and(|warning| warning.contains("within 1 seconds")));
    let late = *job().last().expect("a question");
    let fitted = FittedModel.answer(&device(), &[late]);
    assert_eq!(answers.get(&late), fitted.get(&late));
    let again = cudnn.answer(&device(), &[late]);
    assert!(again.warning().is_some_and(|warning| warning.contains("within 1 seconds")));
}

#[test]
fn what_a_library_starts_ends_with_the_worker() {
    let folder = tempfile::tempdir().expect("folder");
    let started = folder.path().join("started");
    let script =
        format!("sleep 1000 & echo $! > '{}'; {}", started.display(), always("= 70000000 0"));
    let cudnn = cudnn(&script, None);
    assert_eq!(ask(&cudnn).warning(), None);
    let child = std::fs::read_to_string(&started).expect("started");
    let status = PathBuf::from(format!("/proc/{}/status", child.trim()));
    assert!(status.exists());
    drop(cudnn);
    // It stays in the list of processes until its new parent has waited for it.
    let is_over = || std::fs::read_to_string(&status).is_ok_and(|text| text.contains("State:\tZ"));
    let over = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !status.exists() || is_over()
    });
    assert!(over, "process {child} is there");
}

/// A worker that answers every question with a workspace of its own device's compute capability.
const BY_DEVICE: &str = "echo cudnn 9.19.0; read device; version=${device#*deviceVer\\\":}; \
     version=${version%%,*}; while read question; do echo \"= ${version}000000 0\"; done";

fn find(name: &str) -> &'static Device {
    xmem_devices::find(name).expect("built in")
}

#[test]
fn answers_that_are_kept_are_those_of_the_library_without_it() {
    let devices = [find("rtx3060-12g"), find("a100-40g"), find("h100-80g")];
    let questions = [QUESTION, DEPTHWISE];
    let library = || Some(cudnn(BY_DEVICE, None));
    let kept = keep(library, &devices, &questions, Duration::from_secs(60));
    let recorded = RecordedCudnn { answers: kept, ..RecordedCudnn::default() };
    assert_eq!(recorded.answers.len(), devices.len());
    for answers in &recorded.answers {
        assert_eq!((answers.release.as_str(), answers.workspaces.len()), ("9.19.0", 1));
    }
    let automatic = AutomaticSource::new(SourceSettings::default());
    for device in devices {
        let answers = automatic.answer_recorded(device, &questions, &recorded);
        let live = cudnn(BY_DEVICE, None).answer(device, &questions);
        assert!(answers.iter().eq(live.iter()), "{}", device.name);
        assert_eq!(answers.source(), "cuDNN 9.19.0, asked when the job was recorded");
        assert_eq!((answers.release(), answers.warning()), (live.release(), None));
    }
    // Another device of the same compute capability, one of another, and another choice.
    let sibling = automatic.answer_recorded(find("rtx3090-24g"), &questions, &recorded);
    let source = "cuDNN 9.19.0, asked about NVIDIA GeForce RTX 3060 when the job was recorded";
    assert_eq!((sibling.source(), plans(&sibling).first()), (source, Bytes(860_000_000)));
    let other = automatic.answer_recorded(find("t4-16g"), &questions, &recorded);
    assert_eq!(other, FittedModel.answer(find("t4-16g"), &questions));
    let settings = SourceSettings { choice: SourceChoice::Model, ..SourceSettings::default() };
    let model = AutomaticSource::new(settings).answer_recorded(&device(), &[QUESTION], &recorded);
    assert_eq!(model, ask(&FittedModel));
}

#[test]
fn a_question_that_was_not_kept_is_the_models_with_a_warning() {
    let kept = keep(
        || Some(cudnn(BY_DEVICE, None)),
        &[find("rtx3060-12g")],
        &[QUESTION],
        Duration::from_secs(60),
    );
    let recorded = RecordedCudnn { answers: kept, ..RecordedCudnn::default() };
    let forward = ConvolutionQuestion::new(ConvPass::Forward, SHAPE);
    let automatic = AutomaticSource::new(SourceSettings::default());
    let answers = automatic.answer_recorded(&device(), &[QUESTION, forward], &recorded);
    assert_eq!(plans(&answers).first(), Bytes(860_000_000));
    assert_eq!(answers.get(&forward), FittedModel.answer(&device(), &[forward]).get(&forward));
    let warning = answers.warning().expect("one is missing");
    assert!(warning.starts_with("1 convolutions are not among"), "{warning}");
}

#[test]
fn a_library_that_fails_or_takes_too_long_keeps_nothing() {
    for script in [
        "echo '! too old'; sleep 5",
        "echo cudnn 9.19.0; read device; read question; exit 1",
        "echo cudnn 9.19.0; sleep 30",
        "echo cudnn 9.19.0; read device; read question; echo '= 1 2'; sleep 5",
    ] {
        let library = || Some(cudnn(script, None));
        let kept = keep(library, &[find("t4-16g")], &[QUESTION], Duration::from_millis(500));
        assert_eq!(kept, [], "{script}");
    }
}

#[test]
fn a_library_that_a_recording_names_is_loaded_if_a_job_was_recorded_with_it_here() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("libcudnn.so.9");
    std::fs::write(&path, "?").expect("written");
    let recorded = RecordedCudnn { library: Some(path.clone()), ..RecordedCudnn::default() };
    let settings = || SourceSettings {
        worker: Some(worker(BY_DEVICE)),
        cache: Some(folder.path().join("cache")),
        ..SourceSettings::default()
    };
    let first = |settings: SourceSettings| {
        let source = AutomaticSource::new(settings);
        plans(&source.answer_recorded(&device(), &[QUESTION], &recorded)).first()
    };
    assert_eq!(first(settings()), from_the_model().first(), "named by the recording alone");
    assert!(settings().library_of_recording(Some(&path)).is_some());
    assert_eq!(first(settings()), Bytes(860_000_000), "a job was recorded with it");
    let refuse = SourceSettings { found: FoundLibrary::Refuse, ..settings() };
    assert_eq!(first(refuse), from_the_model().first(), "root");
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(first(settings()), from_the_model().first(), "no longer there");
}
