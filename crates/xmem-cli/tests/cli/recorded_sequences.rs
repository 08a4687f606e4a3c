//! `xmem simulate` on recordings of PyTorch's own allocator: what it prints is what was recorded.

use crate::schema_check::check;
use crate::shell::xmem;
use serde_json::Value;
use std::path::{Path, PathBuf};

const SCHEMA: &str = include_str!("../../../../docs/schema/xmem.simulate.1.schema.json");

#[test]
fn recorded_sequences_give_the_recorded_answers() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("schema");
    let paths = recordings();
    assert!(paths.len() >= 25, "the recorded sequences are missing");
    let mut compared = 0;
    for path in &paths {
        let name = path.display().to_string();
        let mut recorded = Recording::read(path);
        if recorded.breaks_pytorch() || recorded.has_addresses_of_its_own() {
            continue;
        }
        let ran = xmem(["simulate", &name, "--format", "json", "--segments", "every"]);
        if ran.stderr.contains("is not simulated") {
            continue;
        }
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{name}");
        let mut printed = ran.json();
        check(&schema, &printed).unwrap_or_else(|e| panic!("{name}: {e}"));
        recorded.forget_what_is_not_compared(&mut printed);
        for key in ["results", "trace"] {
            let (got, want) = (&printed[key], &recorded.0[key]);
            let got = got.as_array().expect("a list");
            for (i, want) in want.as_array().expect("a list").iter().enumerate() {
                assert_eq!(got.get(i), Some(want), "{name}: {key} {i}");
            }
        }
        compared += 1;
    }
    assert!(compared * 10 >= paths.len() * 9, "only {compared} of {} compared", paths.len());
}

fn recordings() -> Vec<PathBuf> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../xmem-simulator/tests/data/sequences");
    let more = std::env::var_os("XMEM_SEQUENCES").map(PathBuf::from);
    let mut paths: Vec<PathBuf> = [Some(folder), more]
        .into_iter()
        .flatten()
        .flat_map(|folder| std::fs::read_dir(folder).expect("the folder is there"))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

struct Recording(Value);

impl Recording {
    fn read(path: &Path) -> Self {
        let packed = std::fs::read(path).expect("readable");
        let text = zstd::decode_all(&packed[..]).expect("zstd");
        Self(serde_json::from_slice(&text).expect("JSON"))
    }

    /// Some operations fail an assertion of PyTorch itself, which leaves its allocator in a state
    /// that nothing follows from.
    fn breaks_pytorch(&self) -> bool {
        let results = self.0["results"].as_array().expect("results");
        let breaks = |message: &str| message.contains("INTERNAL ASSERT FAILED");
        results.iter().any(|result| result["message"].as_str().is_some_and(breaks))
    }

    /// Sequences with the order `driver` were recorded with an earlier model of the driver, which gave
    /// other addresses after a release. xmem-simulator's tests replay these with their addresses.
    fn has_addresses_of_its_own(&self) -> bool {
        let mut actions = self.0["trace"].as_array().expect("trace").iter().map(|e| &e["action"]);
        self.0["address_order"] == "driver"
            && actions.any(|action| action == "segment_free")
            && actions.any(|action| action == "segment_alloc")
    }

    /// Takes out of both what does not have to be equal.
    fn forget_what_is_not_compared(&mut self, printed: &mut Value) {
        let uncached = self.0["env"]["PYTORCH_NO_CUDA_MEMORY_CACHING"].is_string();
        let partial = self.shows_one_pool_alone();
        let keys = if uncached { &["addr", "oom", "cuda_free"] as &[_] } else { &[] };
        let (want, got) = (list(&mut self.0["results"]), list(&mut printed["results"]));
        for (i, (want, got)) in want.iter_mut().zip(got).enumerate() {
            let (want, got) = (object(want), object(got));
            // PyTorch's words differ from release to release.
            want.remove("message");
            got.remove("message");
            if !keys.is_empty() {
                // PyTorch counts nothing without caching.
                want.retain(|key, _| keys.contains(&key.as_str()));
                got.retain(|key, _| keys.contains(&key.as_str()));
            }
            if partial[i] || !want.contains_key("segments") {
                want.remove("segments");
                got.remove("segments");
            }
            for segment in want.get_mut("segments").map(list).into_iter().flatten() {
                for block in list(&mut segment["blocks"]) {
                    // What was last asked for of a free block means nothing.
                    if block[2] == "inactive" {
                        block[1] = 0.into();
                    }
                }
            }
        }
        let defers = self.defers_frees();
        let (want, got) = (list(&mut self.0["trace"]), list(&mut printed["trace"]));
        if uncached {
            want.clear();
            got.clear();
        }
        if !want.iter().any(|event| event.get("device_free").is_some()) {
            got.iter_mut().for_each(|event| drop(object(event).remove("device_free")));
        }
        assert_eq!(want.len(), got.len(), "events");
        if defers {
            settle(want);
            settle(got);
        }
    }

    fn ops(&self) -> &[Value] {
        self.0["ops"].as_array().expect("ops")
    }

    fn has(&self, names: &[&str]) -> bool {
        self.ops().iter().any(|op| op["op"].as_str().is_some_and(|op| names.contains(&op)))
    }

    /// Frees that were deferred during a capture complete in an order that differs from run to run.
    fn defers_frees(&self) -> bool {
        self.has(&["record_stream"]) && self.has(&["pool_begin", "capture_begin"])
    }

    /// In a pool's scope, releases before 2.8 show that pool alone.
    fn shows_one_pool_alone(&self) -> Vec<bool> {
        let release = self.0["torch"].as_str().unwrap_or("2.11").parse();
        let partial = release < Ok(xmem::TorchVersion::new(2, 8));
        let mut scopes = 0;
        let scope = |op: &Value| {
            match op["op"].as_str() {
                Some("pool_begin") => scopes += 1,
                Some("pool_end") => scopes -= 1,
                _ => {}
            }
            partial && scopes > 0
        };
        self.ops().iter().map(scope).collect()
    }
}

fn settle(events: &mut [Value]) {
    let completes = |event: &Value| event["action"] == "free_completed";
    for run in events.chunk_by_mut(|a, b| completes(a) && completes(b)) {
        if run.len() > 1 {
            run.sort_by_key(|event| event["addr"].as_i64());
        }
    }
}

fn list(value: &mut Value) -> &mut Vec<Value> {
    value.as_array_mut().expect("a list")
}

fn object(value: &mut Value) -> &mut serde_json::Map<String, Value> {
    value.as_object_mut().expect("an object")
}
