--[[
The gate on the client's side: asks `xmem check` about a submission before it reaches the controller.

sbatch, salloc and srun call slurm_cli_pre_submit with the options of the submission. One that asks for GPUs
is described to `xmem check --format slurm --slurm-options -` as a JSON document. The answer admits the job,
warns, or rejects it. Its stamp goes into the comment of the job, where job_submit.lua reads it.

The gate fails open: without an answer in time, the job goes through with a note, unless its partition has
`fail_closed` in xmem_site.lua. Users can submit without this file; job_submit.lua is what they cannot bypass.

Runs on Lua 5.1 to 5.4. README.md is the guide.
--]]

xmem_cli = {}

-- The longest time that xmem may take, where the site sets no other, in milliseconds.
local TIMEOUT_MS = 2000
-- The part of an answer that is read, in bytes.
local ANSWER_LIMIT = 65536
-- The lines of messages that are shown, and their length in bytes.
local MESSAGES_LIMIT = 16
local LINE_LIMIT = 400

-- Options that ask for GPUs by type and count (`2`, `a100:1`), and for resources of any kind (`gpu:a100:1`).
local GPU_OPTIONS = { "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task" }
local RESOURCE_OPTIONS = { "gres", "tres-per-task" }

-- Returns the value of an option, nil if it is not set. Slurm's word for a flag that is not given is
-- `unset`, and `invalid-context` for an option that the command does not have (src/common/slurm_opt.c).
function xmem_cli.option(options, name)
    local value = options[name]
    if value == nil or value == "" or value == "unset" or value == "invalid-context" then
        return nil
    end
    return tostring(value)
end

-- Returns true if a list of resources has GPUs: `gpu`, `gpu:a100:1`, `gres:gpu:1`, `gres/gpu=1`.
function xmem_cli.has_gpus(resources)
    for item in resources:gmatch("[^,]+") do
        local resource = item:gsub("^%s+", ""):gsub("^gres[:/]", "")
        local rest = resource:match("^gpu$") or resource:match("^gpu([:=].*)$")
        if rest and not rest:match("[:=]0+$") then
            return true
        end
    end
    return false
end

-- Returns true if a submission asks for GPUs.
function xmem_cli.asks_for_gpus(options)
    for _, name in ipairs(GPU_OPTIONS) do
        local value = xmem_cli.option(options, name)
        if value and not value:match("^0+$") then
            return true
        end
    end
    for _, name in ipairs(RESOURCE_OPTIONS) do
        local value = xmem_cli.option(options, name)
        if value and xmem_cli.has_gpus(value) then
            return true
        end
    end
    return false
end

-- Returns true if a submission is a step of a job, which has its GPUs already: srun in an allocation.
function xmem_cli.is_step(options)
    if options["type"] ~= "srun" then
        return false
    end
    local job = xmem_cli.option(options, "jobid") or os.getenv("SLURM_JOB_ID") or ""
    return job:match("^[1-9]") ~= nil
end

-- Returns the path of the job script, nil if there is none to read: with --wrap, on standard input, and
-- for commands that take a program instead.
function xmem_cli.script(options)
    if options["type"] ~= "sbatch" or xmem_cli.option(options, "wrap") then
        return nil
    end
    return (options["argv"] or {})[1]
end

-- Returns a JSON string. Bytes above ASCII stay as they are, in UTF-8 as a rule.
function xmem_cli.json_string(text)
    local escaped = text:gsub('[%c"\\]', function(c)
        return string.format("\\u%04x", c:byte())
    end)
    return '"' .. escaped .. '"'
end

-- Returns the place of the quote that ends the JSON string that begins at `start`, nil if none does.
local function string_end(json, start)
    local at = start + 1
    while true do
        local found = json:find('["\\]', at)
        if not found or json:sub(found, found) == '"' then
            return found
        end
        at = found + 2
    end
end

-- Returns the place behind a JSON value that is not a string, which begins at `start`.
local function value_end(json, start)
    local at, depth = start, 0
    while at <= #json do
        local c = json:sub(at, at)
        if c == '"' then
            at = string_end(json, at) or #json
        elseif c == "[" or c == "{" then
            depth = depth + 1
        elseif depth == 0 and (c == "," or c == "}") then
            break
        elseif c == "]" or c == "}" then
            depth = depth - 1
        end
        at = at + 1
    end
    return at
end

-- Returns a JSON object with those members of another that are strings, and whose names begin with `prefix`.
-- Lua has no list of a submission's options or of the environment; Slurm has both as JSON.
function xmem_cli.string_members(json, prefix)
    local kept = {}
    local at = json:match("^%s*{()")
    while at do
        local name = json:match('^[%s,]*()"', at)
        local name_end = name and string_end(json, name)
        local value = name_end and json:match("^%s*:%s*()", name_end + 1)
        if not value then
            break
        end
        if json:sub(value, value) == '"' then
            local last = string_end(json, value)
            if not last then
                break
            end
            if json:sub(name + 1, name + #prefix) == prefix then
                kept[#kept + 1] = json:sub(name, last)
            end
            at = last + 1
        else
            at = value_end(json, value)
        end
    end
    return "{" .. table.concat(kept, ",") .. "}"
end

-- Returns the JSON document that describes a submission.
function xmem_cli.document(options, offset)
    local function text(value)
        return value and xmem_cli.json_string(value) or "null"
    end
    local given = slurm.json_cli_options(options)
    if type(given) ~= "string" or not given:match("^%s*{") then
        error("Slurm does not tell the options of the submission", 0)
    end
    local listed, environment = pcall(slurm.json_env)
    local arguments = {}
    for _, argument in ipairs(options["argv"] or {}) do
        arguments[#arguments + 1] = xmem_cli.json_string(argument)
    end
    local members = {
        '"type":' .. text(options["type"]),
        '"component":' .. string.format("%d", offset or 0),
        '"options":' .. xmem_cli.string_members(given, ""),
        '"environment":' .. xmem_cli.string_members(listed and environment or "{}", "XMEM_"),
        '"script":' .. text(xmem_cli.script(options)),
        '"argv":[' .. table.concat(arguments, ",") .. "]",
        '"directory":' .. text(xmem_cli.option(options, "chdir")),
    }
    return "{" .. table.concat(members, ",") .. "}"
end

-- Returns a word of a shell command.
function xmem_cli.quoted(word)
    return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- Returns the shell command that asks xmem about the document in a file, and prints the exit status last.
-- What users write is in the document alone. `timeout` ends xmem's children with it.
function xmem_cli.command(file, site)
    local ms = tonumber(site.timeout_ms) or TIMEOUT_MS
    local program = type(site.xmem) == "string" and site.xmem or "xmem"
    local limit = string.format("%d.%03d", math.floor(ms / 1000), ms % 1000)
    return "timeout -k 1 " .. limit .. " " .. xmem_cli.quoted(program)
        .. " check --format slurm --slurm-options - <" .. xmem_cli.quoted(file)
        .. ' 2>&1; status=$?; echo; echo "status=$status"'
end

-- Returns a line as it may be shown on a terminal.
local function printable(line)
    return (line:gsub("%c", " "):sub(1, LINE_LIMIT))
end

-- Returns the answer in the output of the command, or nil and the reason why it has none.
function xmem_cli.answer(output)
    local answer, messages, other, status = {}, {}, nil, nil
    for line in output:gmatch("[^\r\n]+") do
        local key, value = line:match("^([%a_]+)=(.*)$")
        if key == "status" then
            status = tonumber(value)
        elseif key == "message" then
            if #messages < MESSAGES_LIMIT then
                messages[#messages + 1] = printable(value)
            end
        elseif key then
            answer[key] = answer[key] or value
        elseif not other and line:match("%S") then
            other = printable(line)
        end
    end
    if status == 124 or status == 137 then
        return nil, "xmem did not answer in time"
    end
    if status == 126 or status == 127 then
        return nil, "xmem cannot be started"
    end
    local actions = { admit = true, warn = true, reject = true }
    -- A status without an action is a failure, and so is a signal with one. Others are part of the answer.
    if not status or status > 127 or not actions[answer.action or ""] then
        local ending = status and " (exit status " .. string.format("%d", status) .. ")" or ""
        return nil, "xmem gave no answer" .. ending .. (other and ": " .. other or "")
    end
    if not (answer.stamp or ""):match("^xmem:v1:[%w_=:.+-]+$") then
        answer.stamp = nil
    end
    answer.messages = messages
    return answer
end

-- Returns a comment without stamps, nil if nothing else is in it.
function xmem_cli.without_stamps(comment)
    local words = (" " .. comment .. " "):gsub("%sxmem:v1:[^%s]*", ""):gsub("^%s+", ""):gsub("%s+$", "")
    return words ~= "" and words or nil
end

-- Returns the comment of a job with a stamp; a stamp that was there before is dropped.
function xmem_cli.stamped(comment, stamp)
    local rest = comment and xmem_cli.without_stamps(comment)
    return rest and stamp and rest .. " " .. stamp or rest or stamp
end

-- Returns the rules of the partitions that a job names: the strictest, as in job_submit.lua. Nothing is rejected
-- where the policy is to warn, also by `fail_closed`.
function xmem_cli.rules(site, partitions)
    local all = type(site.partitions) == "table" and site.partitions or {}
    local names = {}
    for name in (partitions or ""):gmatch("[^,%s]+") do
        names[#names + 1] = name
    end
    local off, fail_closed = true, false
    for _, name in ipairs(#names > 0 and names or { "" }) do
        local own = type(all[name]) == "table" and all[name] or {}
        local closed = own.fail_closed
        if closed == nil then
            closed = site.fail_closed
        end
        local policy = own.policy or site.policy or "reject"
        off = off and policy == "off"
        fail_closed = fail_closed or (closed == true and policy == "reject")
    end
    return { off = off, fail_closed = fail_closed }
end

-- The folder of this file, which is that of slurm.conf.
local function folder()
    local source = debug and debug.getinfo(1, "S").source or ""
    return source:match("^@(.*)/[^/]*$") or "/etc/slurm"
end

-- Returns the site's table: xmem_site.lua beside this file, else in /etc/xmem; empty if there is none. The
-- file is data: it runs without any function.
function xmem_cli.site(folders)
    for _, place in ipairs(folders or { folder(), "/etc/xmem" }) do
        local path = place .. "/xmem_site.lua"
        local chunk
        if setfenv then
            chunk = loadfile(path)
            chunk = chunk and setfenv(chunk, {})
        else
            chunk = loadfile(path, "t", {})
        end
        local loaded, found = pcall(chunk)
        if chunk and loaded and type(found) == "table" then
            return found
        end
    end
    return {}
end

-- Returns what xmem says about a document, or nil and the reason why it says nothing.
function xmem_cli.ask(document, site)
    -- With mode 600: Lua creates it with mkstemp.
    local named, file = pcall(os.tmpname)
    local exists = named and io.open(file, "r")
    if not exists then
        return nil, "no temporary file can be made"
    end
    exists:close()
    local function written()
        local out = assert(io.open(file, "w"))
        local complete = out:write(document)
        return out:close() and complete
    end
    local success, complete = pcall(written)
    local output
    if success and complete then
        local _, pipe = pcall(io.popen, xmem_cli.command(file, site), "r")
        if io.type(pipe) == "file" then
            output = pipe:read(ANSWER_LIMIT)
            pipe:close()
        end
    end
    os.remove(file)
    if not (success and complete) then
        return nil, "no temporary file can be written"
    end
    return xmem_cli.answer(output or "")
end

-- Sets the stamp of a submission. One that was in the comment says nothing about this submission: it may be
-- of the component before, whose options Slurm takes over.
local function set_stamp(options, stamp)
    local comment = xmem_cli.option(options, "comment")
    local stamped = xmem_cli.stamped(comment, stamp)
    if stamped ~= comment then
        options["comment"] = stamped or ""
    end
end

-- Returns slurm.SUCCESS or slurm.ERROR for a submission.
function xmem_cli.pre_submit(options, offset)
    if xmem_cli.is_step(options) then
        return slurm.SUCCESS
    end
    local site = xmem_cli.site()
    local rules = xmem_cli.rules(site, xmem_cli.option(options, "partition"))
    if rules.off or not xmem_cli.asks_for_gpus(options) then
        set_stamp(options, nil)
        return slurm.SUCCESS
    end
    local success, answer, reason = pcall(function()
        return xmem_cli.ask(xmem_cli.document(options, offset), site)
    end)
    if not success then
        answer, reason = nil, tostring(answer)
    end
    set_stamp(options, answer and answer.stamp)
    if not answer then
        if rules.fail_closed then
            slurm.log_error("%s", "xmem: rejected: GPU memory was not checked: " .. reason)
            return slurm.ERROR
        end
        slurm.log_info("%s", "xmem: GPU memory was not checked: " .. reason)
        return slurm.SUCCESS
    end
    local log = answer.action == "reject" and slurm.log_error or slurm.log_info
    for _, message in ipairs(answer.messages) do
        log("%s", "xmem: " .. message)
    end
    if answer.action == "reject" then
        if #answer.messages == 0 then
            log("%s", "xmem: rejected: the job does not fit into the GPU's memory")
        end
        return slurm.ERROR
    end
    return slurm.SUCCESS
end

function slurm_cli_setup_defaults(options, early)
    return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
    local success, result = pcall(xmem_cli.pre_submit, options, offset)
    if success then
        return result
    end
    slurm.log_info("%s", "xmem: GPU memory was not checked: " .. tostring(result))
    return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
    return slurm.SUCCESS
end
