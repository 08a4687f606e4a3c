-- A sample of the site's table for cli_filter.lua and job_submit.lua. `xmem config --format lua` writes it from
-- the site file of xmem. It is a chunk that returns a table of strings, booleans, integers and lists; it
-- runs without any function. Keys that are not known are left out.
return {
    -- What happens to a job that does not fit, where its partition says nothing else: off, warn or reject.
    policy = "reject",
    -- True to reject jobs of which nothing can be said, where their partition says nothing else and the policy
    -- is to reject.
    fail_closed = false,
    -- The device of requests without a type, where their partition says nothing else. Without it, a job may
    -- need as much memory as the largest GPU has.
    gpu = "a100-40g",
    -- A line for users whose job the controller rejects.
    help = "see https://hpc.example.org/gpu-memory",
    -- The program that the client runs, and the longest time that it may take.
    xmem = "/usr/bin/xmem",
    timeout_ms = 2000,
    -- The GPUs: the whole memory in MiB, rounded down; types in `Gres=gpu:TYPE:COUNT`; features of nodes.
    gpus = {
        { device = "a100-40g", memory_mib = 40436, gres = { "a100" }, features = { "a100" } },
        { device = "v100-16g", memory_mib = 16151, gres = { "v100" }, features = { "v100" } },
    },
    -- Partitions with rules of their own. Of several that a job names, the strictest rules count.
    partitions = {
        debug = { policy = "off" },
        strict = { fail_closed = true, gpu = "v100-16g" },
        trial = { policy = "warn", fail_closed = true },
    },
}
