-- Tests of what needs no Slurm: lua5.4 contrib/slurm/tests/gate_test.lua
-- `cargo xtask test-slurm` runs it with every Lua from 5.1 to 5.4 that it finds.

local folder = (arg and arg[0] or ""):match("^(.*)/tests/[^/]*$") or "contrib/slurm"
local said = {}
local function log(format, ...)
    said[#said + 1] = string.format(format, ...)
end

slurm = { SUCCESS = 0, ERROR = -1, log_info = log, log_error = log, log_user = log }

dofile(folder .. "/cli_filter.lua")
dofile(folder .. "/job_submit.lua")

local failed, count = 0, 0

-- Returns a value as text in which the keys of tables have an order.
local function shown(value)
    if type(value) ~= "table" then
        return type(value) == "string" and string.format("%q", value) or tostring(value)
    end
    local parts = {}
    for key, member in pairs(value) do
        parts[#parts + 1] = tostring(key) .. " = " .. shown(member)
    end
    table.sort(parts)
    return "{ " .. table.concat(parts, ", ") .. " }"
end

local function check(name, found, expected)
    count = count + 1
    if shown(found) ~= shown(expected) then
        failed = failed + 1
        print("FAILED " .. name .. "\n  expected " .. shown(expected) .. "\n  found    " .. shown(found))
    end
end

-- The client.

for resources, expected in pairs({
    ["gpu"] = true,
    ["gpu:2"] = true,
    ["gpu:a100:1"] = true,
    ["gres:gpu:a100:1"] = true,
    ["gres/gpu:a100=1"] = true,
    ["cpu=4,gres/gpu=2"] = true,
    ["shard:4, gpu:1"] = true,
    ["gpu:0"] = false,
    ["gpu:a100:0"] = false,
    ["gpumem:100"] = false,
    ["shard:4,mps:100"] = false,
    ["license/gpu=1"] = false,
    [""] = false,
}) do
    check("has_gpus " .. resources, xmem_cli.has_gpus(resources), expected)
end

for _, row in ipairs({
    { { gpus = "1" }, true },
    { { gpus = "0" }, false },
    { { ["gpus-per-node"] = "a100:2" }, true },
    { { ["gpus-per-task"] = "1" }, true },
    { { ["tres-per-task"] = "gres/gpu:a100=1" }, true },
    { { gres = "gres:gpu:1" }, true },
    { { gres = "gres:nic:1" }, false },
    { { gpus = "invalid-context", ["gpus-per-socket"] = "unset" }, false },
    { {}, false },
}) do
    check("asks_for_gpus " .. shown(row[1]), xmem_cli.asks_for_gpus(row[1]), row[2])
end

check("a step has a job", xmem_cli.is_step({ type = "srun", jobid = "12" }), true)
check("sbatch is no step", xmem_cli.is_step({ type = "sbatch", jobid = "12" }), false)
check("srun without a job is no step", xmem_cli.is_step({ type = "srun", jobid = "unset" }), false)

check("script", xmem_cli.script({ type = "sbatch", argv = { "/a/b.sh", "x" } }), "/a/b.sh")
check("no script with --wrap", xmem_cli.script({ type = "sbatch", wrap = "x", argv = {} }), nil)
check("no script on standard input", xmem_cli.script({ type = "sbatch", argv = {} }), nil)
check("no script with srun", xmem_cli.script({ type = "srun", argv = { "python" } }), nil)

check("json_string", xmem_cli.json_string('a"b\\c\n\1é'), '"a\\u0022b\\u005cc\\u000a\\u0001é"')

local environment = '{"A":"1","XMEM_TRACE":"a \\"b\\\\","B":"XMEM_C","XMEM_":"{,","n":[1,"]"],"XMEM_Z":""}'
check(
    "members by prefix",
    xmem_cli.string_members(environment, "XMEM_"),
    '{"XMEM_TRACE":"a \\"b\\\\","XMEM_":"{,","XMEM_Z":""}'
)
for json, expected in pairs({
    ['{"gres":"gpu:1","argv":["a","]\\""],"x":{"y":[{}]},"z":"1"}'] = '{"gres":"gpu:1","z":"1"}',
    ['{ "a" : "b" , "c" : 1 }'] = '{"a" : "b"}',
    ['{"argv":[]}'] = "{}",
    ['{"a":"b'] = "{}",
    ['{"a'] = "{}",
    ['{"a":'] = "{}",
    ['{"a":["'] = "{}",
    ["{}"] = "{}",
    ["["] = "{}",
    [""] = "{}",
}) do
    check("string_members " .. json, xmem_cli.string_members(json, ""), expected)
end

slurm.json_cli_options = function()
    return '{"gres":"gres:gpu:1","argv":["job.sh"]}'
end
slurm.json_env = function()
    return '{"HOME":"/root","XMEM_TRACE":"t.json"}'
end
check(
    "document",
    xmem_cli.document({ type = "sbatch", argv = { "/a/job.sh", 'x"' }, chdir = "/a" }, 0),
    '{"type":"sbatch","component":0,"options":{"gres":"gres:gpu:1"},"environment":{"XMEM_TRACE":"t.json"},'
        .. '"script":"/a/job.sh","argv":["/a/job.sh","x\\u0022"],"directory":"/a"}'
)
slurm.json_env = function()
    error("not in this release")
end
check(
    "document of a command without a script",
    xmem_cli.document({ type = "salloc", argv = {} }, nil),
    '{"type":"salloc","component":0,"options":{"gres":"gres:gpu:1"},"environment":{},"script":null,"argv":[],'
        .. '"directory":null}'
)

check("quoted", xmem_cli.quoted("a'b $(c)"), "'a'\\''b $(c)'")
check(
    "command",
    xmem_cli.command("/tmp/lua_1", { xmem = "/opt/x y/xmem", timeout_ms = 1500 }),
    "timeout -k 1 1.500 '/opt/x y/xmem' check --format slurm --slurm-options - <'/tmp/lua_1' 2>&1; status=$?; "
        .. 'echo; echo "status=$status"'
)
local default = xmem_cli.command("f", {})
check("default command", default:match("^timeout %-k 1 2%.000 'xmem' check ") ~= nil, true)

local STAMP = "xmem:v1:need_mib=31234:device=a100-40g:decision=fits"
for _, row in ipairs({
    {
        "decision=fits\naction=admit\nstamp=" .. STAMP .. "\n\nstatus=0\n",
        { action = "admit", decision = "fits", stamp = STAMP, messages = {} },
    },
    {
        "a word on stderr\naction=reject\nmessage=too\27[1m large\nmessage=smaller\nstatus=1\n",
        { action = "reject", messages = { "too [1m large", "smaller" } },
    },
    { "action=admit\nstamp=xmem:v1:a b\nstatus=0\n", { action = "admit", messages = {} } },
    { "action=admit\nstamp=other\nstatus=0\n", { action = "admit", messages = {} } },
    { "action=admit\naction=reject\nstatus=0\n", { action = "admit", messages = {} } },
    { "action=admit\nstatus=124\n", nil, "xmem did not answer in time" },
    { "status=137\n", nil, "xmem did not answer in time" },
    { "sh: 1: timeout: not found\nstatus=127\n", nil, "xmem cannot be started" },
    { "action=admit\nstatus=134\n", nil, "xmem gave no answer (exit status 134)" },
    { "error: no such trace\n\nstatus=2\n", nil, "xmem gave no answer (exit status 2): error: no such trace" },
    { "action=allow\nstatus=0\n", nil, "xmem gave no answer (exit status 0)" },
    { "action=admit\n", nil, "xmem gave no answer" },
    { "\0\255\n", nil, "xmem gave no answer: \32\255" },
    { "", nil, "xmem gave no answer" },
}) do
    local answer, reason = xmem_cli.answer(row[1])
    check("answer " .. shown(row[1]), { answer, reason }, { row[2], row[3] })
end
local many = xmem_cli.answer("action=warn\n" .. ("message=x\n"):rep(1000) .. "status=0")
check("messages are limited", #many.messages, 16)

for _, row in ipairs({
    { nil, STAMP, STAMP },
    { "mine", STAMP, "mine " .. STAMP },
    { "xmem:v1:need_mib=1:decision=fits", STAMP, STAMP },
    { "a xmem:v1:x b xmem:v1:y", STAMP, "a b " .. STAMP },
    { "a xmem:v1:x", nil, "a" },
    { "xmem:v1:x", nil, nil },
    { "notxmem:v1:x", STAMP, "notxmem:v1:x " .. STAMP },
}) do
    check("stamped " .. shown(row), xmem_cli.stamped(row[1], row[2]), row[3])
end

local site = dofile(folder .. "/xmem_site.sample.lua")
for _, row in ipairs({
    { "gpu", false, false },
    { "debug", true, false },
    { "strict", false, true },
    { "strict,gpu", false, true },
    { "gpu,strict", false, true },
    { "debug,strict", false, true },
    { "trial", false, false },
    { "trial,strict", false, true },
    { "trial,gpu", false, false },
    { "debug,gpu", false, false },
    { "", false, false },
}) do
    local found = xmem_cli.rules(site, row[1])
    check("rules " .. row[1], { found.off, found.fail_closed }, { row[2], row[3] })
end
check("rules of a site that fails closed and warns", xmem_cli.rules({ policy = "warn", fail_closed = true }, nil), { off = false, fail_closed = false })
check("no site", xmem_cli.site({ "/nonexistent" }), {})

local answered
xmem_cli.site = function()
    return site
end
xmem_cli.ask = function()
    return answered, "no answer"
end
for name, row in pairs({
    ["admitted"] = { {}, { action = "admit", stamp = STAMP }, slurm.SUCCESS, "mine " .. STAMP },
    ["rejected"] = { {}, { action = "reject", stamp = STAMP }, slurm.ERROR, "mine " .. STAMP },
    ["no answer"] = { {}, nil, slurm.SUCCESS, "mine" },
    ["no answer where it fails closed"] = { { partition = "strict" }, nil, slurm.ERROR, "mine" },
    ["policy off"] = { { partition = "debug" }, nil, slurm.SUCCESS, "mine" },
    ["no GPU"] = { { gpus = "0" }, { action = "reject" }, slurm.SUCCESS, "mine" },
}) do
    local options = { type = "sbatch", gpus = "1", comment = "mine xmem:v1:need_mib=1:decision=fits" }
    for option, value in pairs(row[1]) do
        options[option] = value
    end
    answered = row[2]
    if answered then
        answered.messages = {}
    end
    check("pre_submit: " .. name, { slurm_cli_pre_submit(options, 0), options.comment }, { row[3], row[4] })
end
local step = { type = "srun", jobid = "7", gpus = "1", comment = STAMP }
check("pre_submit: a step", { slurm_cli_pre_submit(step, 0), step.comment }, { slurm.SUCCESS, STAMP })
xmem_cli.ask = function()
    error("unexpected")
end
check("pre_submit: an error", slurm_cli_pre_submit({ type = "sbatch", gpus = "1" }, 0), slurm.SUCCESS)

-- The controller.

check("stamp", { xmem_submit.stamp("mine " .. STAMP) }, {
    { need_mib = 31234, device = "a100-40g", decision = "fits" },
    STAMP,
})
for _, comment in ipairs({
    "",
    "mine",
    "xmem:v1:decision=fits",
    "xmem:v1:need_mib=-1:decision=fits",
    "xmem:v1:need_mib=1e3:decision=fits",
    "xmem:v1:need_mib=0x10:decision=fits",
    "xmem:v1:need_mib=1234567890123:decision=fits",
    "xmem:v2:need_mib=1:decision=fits",
    "axmem:v1:need_mib=1:decision=fits",
}) do
    check("no stamp in " .. comment, (xmem_submit.stamp(comment)), nil)
end

for _, row in ipairs({
    { { tres_per_node = "gres:gpu:a100:1" }, { "a100" } },
    { { tres_per_node = "gres/gpu:A100=2" }, { "a100" } },
    { { tres_per_job = "gres:gpu:2" }, { "" } },
    { { tres_per_task = "gpu" }, { "" } },
    { { tres_per_socket = "gpu:1g.5gb" }, { "1g.5gb" } },
    { { tres_per_node = "gres:gpu:a100:1,gres:gpu:v100:2,gres:nic:1" }, { "a100", "v100" } },
    { { tres_per_node = "gres:gpu:0" }, {} },
    { { tres_per_node = "cpu:1" }, {} },
    { {}, {} },
}) do
    check("types " .. shown(row[1]), xmem_submit.types(row[1]), row[2])
end

local function judged(job, need, decision, partitions)
    local stamp = need and { need_mib = need, device = "v100-16g", decision = decision or "fits" }
    local message, rejected = xmem_submit.judge(site, job, stamp, partitions or {})
    return { message or "admitted", rejected or false }
end

local A100, V100 = { tres_per_node = "gres:gpu:a100:1" }, { tres_per_node = "gres:gpu:v100:1" }
local ANY, TPU = { tres_per_job = "gres:gpu:1" }, { tres_per_job = "gres:gpu:other:1" }
local ADMITTED = { "admitted", false }
local TOO_LARGE = { "the job needs 16152 MiB of GPU memory, and v100-16g has 16151 MiB", true }
local UNKNOWN = { "this partition takes only GPU jobs that `xmem check` has estimated", true }
for name, row in pairs({
    ["all of the memory"] = { judged(V100, 16151), ADMITTED },
    ["more than the memory"] = { judged(V100, 16152), TOO_LARGE },
    ["a larger GPU"] = { judged(A100, 16152), ADMITTED },
    ["either GPU"] = { judged({ tres_per_node = "gres:gpu:a100:1,gres:gpu:v100:1" }, 16152), ADMITTED },
    ["the site's default"] = { judged(ANY, 16152), ADMITTED },
    ["the partition's default"] = { judged(ANY, 16152, "fits", { "strict" }), TOO_LARGE },
    ["the larger of two partitions"] = { judged(ANY, 16152, "fits", { "strict", "gpu" }), ADMITTED },
    ["a feature"] = { judged({ tres_per_job = "gpu:1", features = "V100&ib" }, 16152), TOO_LARGE },
    ["one of two features"] = { judged({ tres_per_job = "gpu:1", features = "v100|a100" }, 16152), ADMITTED },
    ["a type before a feature"] = { judged({ tres_per_job = "gpu:v100:1", features = "a100" }, 16152), TOO_LARGE },
    ["policy off"] = { judged(V100, 16152, "fits", { "debug" }), ADMITTED },
    ["no stamp"] = { judged(V100), ADMITTED },
    ["no stamp where it fails closed"] = { judged(V100, nil, nil, { "strict" }), UNKNOWN },
    ["no stamp where it would fail closed but warns"] = { judged(V100, nil, nil, { "trial" }), ADMITTED },
    ["no stamp, and a partition beside the one that fails closed"] = { judged(V100, nil, nil, { "strict", "gpu" }), UNKNOWN },
    ["no stamp, and the one that fails closed last"] = { judged(V100, nil, nil, { "debug", "gpu", "strict" }), UNKNOWN },
    ["no stamp in one that would fail closed but warns, and one that rejects"] = {
        judged(V100, nil, nil, { "trial", "gpu" }),
        ADMITTED,
    },
    ["more than the memory, and a partition that warns"] = { judged(V100, 16152, "fits", { "gpu", "trial" }), TOO_LARGE },
    ["more than the memory, and a partition with policy off"] = { judged(V100, 16152, "fits", { "debug", "gpu" }), TOO_LARGE },
    ["no GPU where it fails closed"] = { judged({}, nil, nil, { "strict" }), ADMITTED },
    ["an unknown type"] = { judged(TPU, 99999), ADMITTED },
    ["an unknown type that does not fit"] = {
        judged(TPU, 99999, "does_not_fit"),
        { "the job needs 99999 MiB of GPU memory, which v100-16g does not have", true },
    },
}) do
    check("judge: " .. name, row[1], row[2])
end

check("default partition", xmem_submit.partitions(nil, { a = {}, b = { flag_default = 1 } }), { "b" })
check("named partitions", xmem_submit.partitions("x,y", {}), { "x", "y" })

xmem_submit.site = function()
    return site
end
local job = { comment = "mine " .. STAMP, tres_per_node = "gres:gpu:a100:1" }
check("submit", slurm_job_submit(job, {}, 0), slurm.SUCCESS)
check("the stamp moves", { job.comment, job.admin_comment }, { "mine", STAMP })
said = {}
job = { comment = STAMP, tres_per_node = "gres:gpu:v100:1" }
check("submit what does not fit", slurm_job_submit(job, {}, 0), slurm.ERROR)
check("messages", said, {
    "xmem: rejected: the job needs 31234 MiB of GPU memory, and v100-16g has 16151 MiB",
    "xmem: see https://hpc.example.org/gpu-memory",
})
local warned = { comment = STAMP, tres_per_node = "gres:gpu:v100:1", partition = "trial" }
said = {}
check("a warning", slurm_job_submit(warned, {}, 0), slurm.SUCCESS)
check("of the controller alone", said, { "xmem: the job needs 31234 MiB of GPU memory, and v100-16g has 16151 MiB" })
warned.comment, said = STAMP:gsub("decision=.*", "decision=does_not_fit"), {}
check("a warning that the client gave", slurm_job_submit(warned, {}, 0), slurm.SUCCESS)
check("is not given twice", said, {})
local record = { job_id = 7, admin_comment = STAMP, tres_per_node = "gres:gpu:a100:1" }
said = {}
check("a change of GPU", slurm_job_modify({ tres_per_node = "gres:gpu:v100:1" }, record, {}, 0), slurm.ERROR)
check("the log names the job", said[1], "xmem: rejected: job 7: the job needs 31234 MiB of GPU memory, and v100-16g has 16151 MiB")
check("another change", slurm_job_modify({ comment = "x" }, record, {}, 0), slurm.SUCCESS)
xmem_submit.site = function()
    error("the table is wrong")
end
check("an error admits", slurm_job_submit(job, {}, 0), slurm.SUCCESS)

print(string.format("%s: %d checks, %d failed", _VERSION, count, failed))
os.exit(failed == 0 and 0 or 1)
