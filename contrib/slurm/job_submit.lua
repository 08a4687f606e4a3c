--[[
The gate on the controller's side: holds the stamp of a job against the memory of the GPUs that it asks for.

The stamp is written by cli_filter.lua, or by the user who bypasses it: it is a claim, and not a proof. What
holds here whatever the user does: a stamp of a job that needs more memory than the GPU has is rejected, also
when the job is changed later, and in partitions with `fail_closed` a job without a stamp is rejected.

slurmctld holds a lock while this runs. Nothing here starts a process; it compares integers in the job's
description with those of xmem_site.lua, and reads no other file. If the table is missing, every job is
admitted.

Runs on Lua 5.1 to 5.4. README.md is the guide.
--]]

xmem_submit = {}

-- The fields of a job that ask for GPUs: `gres:gpu:a100:1`, `gres/gpu:a100:1`.
local RESOURCE_FIELDS = { "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task" }

-- The table that was read last, for when the file cannot be read.
local last_site

-- The folder of this file, which is that of slurm.conf.
local function folder()
    local source = debug and debug.getinfo(1, "S").source or ""
    return source:match("^@(.*)/[^/]*$") or "/etc/slurm"
end

-- Returns the site's table, or nil: xmem_site.lua beside this file, else in /etc/xmem. It is read for each
-- job, so that a new table counts at once. The file is data: it runs without any function.
function xmem_submit.site(folders)
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
        if chunk and loaded and type(found) == "table" and type(found.gpus) == "table" then
            last_site = found
            return found
        end
    end
    return last_site
end

-- Returns an integer of decimal digits that every Lua can hold, nil for anything else.
local function integer(text)
    if type(text) == "number" then
        text = string.format("%.0f", text)
    end
    text = type(text) == "string" and text:match("^%d+$")
    return text and #text <= 12 and tonumber(text) or nil
end

-- Returns the first stamp in a comment, and its text: `xmem:v1:need_mib=31234:device=a100-40g:decision=fits`.
function xmem_submit.stamp(comment)
    local text = (" " .. (comment or "")):match("%s(xmem:v1:[^%s]*)")
    if not text then
        return nil
    end
    local fields = {}
    for key, value in text:gmatch(":([%l_]+)=([^:]*)") do
        fields[key] = fields[key] or value
    end
    local need_mib = integer(fields.need_mib)
    if not need_mib or not fields.decision then
        return nil
    end
    return { need_mib = need_mib, device = fields.device, decision = fields.decision }, text
end

-- Returns a comment without stamps, nil if nothing else is in it.
function xmem_submit.without_stamps(comment)
    local words = (" " .. comment .. " "):gsub("%sxmem:v1:[^%s]*", ""):gsub("^%s+", ""):gsub("%s+$", "")
    return words ~= "" and words or nil
end

-- Returns the types of the GPUs that a job asks for, in lower case, "" for any; none if it asks for no GPU.
function xmem_submit.types(job)
    local types = {}
    for _, field in ipairs(RESOURCE_FIELDS) do
        for item in tostring(job[field] or ""):gmatch("[^,]+") do
            local resource = item:gsub("^%s+", ""):gsub("^gres[:/]", ""):lower()
            local rest = resource == "gpu" and "" or resource:match("^gpu([:=].*)$")
            if rest then
                local kind, count = rest:match("^:(.-)[:=](%d+)$")
                count = count or rest:match("^[:=](%d+)$")
                if not count then
                    kind = rest:match("^:(.+)$")
                end
                if not count or tonumber(count) > 0 then
                    types[#types + 1] = kind or ""
                end
            end
        end
    end
    return types
end

local function contains(list, wanted)
    for _, name in ipairs(type(list) == "table" and list or {}) do
        if tostring(name):lower() == wanted then
            return true
        end
    end
    return false
end

-- Returns those GPUs of which a list has a name among `names`.
local function gpus_with(gpus, list, names)
    local found = {}
    for _, gpu in ipairs(gpus) do
        for _, name in ipairs(names) do
            if contains(gpu[list], name) then
                found[#found + 1] = gpu
                break
            end
        end
    end
    return found
end

local function names_of(text)
    local names = {}
    for name in (text or ""):lower():gmatch("[%w_.-]+") do
        names[#names + 1] = name
    end
    return names
end

-- Returns the GPUs on which a request for a type may be served, by the rules of `xmem check`: those of the
-- type; without a type those with a feature of the constraint, else those of the partitions, else all. None
-- if the type is not in the table.
function xmem_submit.candidates(site, kind, features, partitions)
    local wanted = names_of(features)
    if kind ~= "" then
        local of_kind = gpus_with(site.gpus, "gres", { kind })
        local narrowed = gpus_with(of_kind, "features", wanted)
        return #narrowed > 0 and narrowed or of_kind
    end
    local found = gpus_with(site.gpus, "features", wanted)
    if #found > 0 then
        return found
    end
    local devices = {}
    for _, name in ipairs(partitions) do
        local own = type(site.partitions) == "table" and site.partitions[name]
        devices[#devices + 1] = type(own) == "table" and own.gpu or site.gpu
    end
    for _, gpu in ipairs(site.gpus) do
        for _, device in ipairs(devices) do
            if gpu.device == device then
                found[#found + 1] = gpu
                break
            end
        end
    end
    return #found > 0 and found or site.gpus
end

-- Returns the rules of partitions: the strictest, since the job may start in any of them, and a user can name one
-- more. Of a partition that does not reject, `fail_closed` says nothing.
function xmem_submit.rules(site, partitions)
    local ranks = { off = 0, warn = 1, reject = 2 }
    local policies = { [0] = "off", "warn", "reject" }
    local policy, fail_closed = ranks.off, false
    for _, name in ipairs(#partitions > 0 and partitions or { "" }) do
        local own = type(site.partitions) == "table" and site.partitions[name]
        own = type(own) == "table" and own or {}
        local rank = ranks[own.policy or site.policy] or ranks.reject
        local closed = own.fail_closed
        if closed == nil then
            closed = site.fail_closed
        end
        policy = math.max(policy, rank)
        fail_closed = fail_closed or (closed == true and rank == ranks.reject)
    end
    return { policy = policies[policy], fail_closed = fail_closed }
end

-- Returns the largest memory of the GPUs that a job may get in MiB, and its device; nil if a type is unknown.
function xmem_submit.largest(site, job, partitions)
    local memory_mib, device
    for _, kind in ipairs(xmem_submit.types(job)) do
        local candidates = xmem_submit.candidates(site, kind, job.features, partitions)
        if #candidates == 0 then
            return nil
        end
        for _, gpu in ipairs(candidates) do
            local memory = integer(gpu.memory_mib)
            if not memory then
                return nil
            end
            if not memory_mib or memory > memory_mib then
                memory_mib, device = memory, gpu.device
            end
        end
    end
    return memory_mib, device
end

-- Returns nil to admit a job; else a message, and true if the job is rejected.
function xmem_submit.judge(site, job, stamp, partitions)
    if #xmem_submit.types(job) == 0 then
        return nil
    end
    local rules = xmem_submit.rules(site, partitions)
    if rules.policy == "off" then
        return nil
    end
    if not stamp then
        if rules.fail_closed and rules.policy == "reject" then
            return "this partition takes only GPU jobs that `xmem check` has estimated", true
        end
        return nil
    end
    local memory_mib, device = xmem_submit.largest(site, job, partitions)
    if not memory_mib then
        if stamp.decision ~= "does_not_fit" then
            return nil
        end
        device, memory_mib = stamp.device or "the GPU", nil
    elseif stamp.need_mib <= memory_mib then
        return nil
    end
    local message = string.format("the job needs %d MiB of GPU memory", stamp.need_mib)
    if memory_mib then
        message = message .. string.format(", and %s has %d MiB", tostring(device), memory_mib)
    else
        message = message .. ", which " .. device .. " does not have"
    end
    return message, rules.policy == "reject"
end

-- Returns the names of the partitions of a job; without any, Slurm's default.
function xmem_submit.partitions(named, part_list)
    local names = {}
    for name in (named or ""):gmatch("[^,%s]+") do
        names[#names + 1] = name
    end
    if #names == 0 then
        for name, partition in pairs(part_list or {}) do
            if partition.flag_default == 1 then
                names[1] = name
            end
        end
    end
    return names
end

-- Returns slurm.SUCCESS or slurm.ERROR, and says why with `log`.
local function conclude(log, site, message, rejected)
    if not message then
        return slurm.SUCCESS
    end
    log("%s", "xmem: " .. (rejected and "rejected: " or "") .. message)
    if rejected and type(site.help) == "string" then
        log("%s", "xmem: " .. site.help)
    end
    return rejected and slurm.ERROR or slurm.SUCCESS
end

-- Judges a new job. Its stamp moves from the comment, which the user can change, to the comment of the
-- administrator, which only operators can.
function xmem_submit.submit(job, part_list)
    local site = xmem_submit.site()
    if not site then
        return slurm.SUCCESS
    end
    local stamp, text = xmem_submit.stamp(job.comment)
    local partitions = xmem_submit.partitions(job.partition, part_list)
    local message, rejected = xmem_submit.judge(site, job, stamp, partitions)
    if stamp and stamp.decision == "does_not_fit" and not rejected then
        -- The client has told the user.
        message = nil
    end
    local result = conclude(slurm.log_user, site, message, rejected)
    if result == slurm.SUCCESS and text then
        local rest = job.admin_comment and xmem_submit.without_stamps(job.admin_comment)
        job.admin_comment = rest and rest .. " " .. text or text
        job.comment = xmem_submit.without_stamps(job.comment) or ""
    end
    return result
end

-- Judges a change of a job that is in the queue, if it changes its GPUs or where it may start.
function xmem_submit.modify(change, record, part_list)
    local site = xmem_submit.site()
    local changed = change.features or change.partition
    for _, field in ipairs(RESOURCE_FIELDS) do
        changed = changed or change[field]
    end
    if not site or not changed then
        return slurm.SUCCESS
    end
    local job = {
        features = change.features or record.features,
        partition = change.partition or record.partition,
    }
    for _, field in ipairs(RESOURCE_FIELDS) do
        job[field] = change[field] or record[field]
    end
    local stamp = xmem_submit.stamp(record.admin_comment) or xmem_submit.stamp(record.comment)
    local partitions = xmem_submit.partitions(job.partition, part_list)
    local message, rejected = xmem_submit.judge(site, job, stamp, partitions)
    if message and record.job_id then
        message = string.format("job %.0f: %s", record.job_id, message)
    end
    -- Slurm shows users no message here (src/plugins/job_submit/lua/job_submit_lua.c, job_modify).
    return conclude(slurm.log_info, site, message, rejected)
end

-- Runs a function; if it fails, that is logged and the job is admitted.
local function guarded(judge, ...)
    local success, result = pcall(judge, ...)
    if success then
        return result
    end
    slurm.log_error("%s", "xmem: GPU memory was not checked: " .. tostring(result))
    return slurm.SUCCESS
end

function slurm_job_submit(job, part_list, uid)
    return guarded(xmem_submit.submit, job, part_list)
end

function slurm_job_modify(change, record, part_list, uid)
    return guarded(xmem_submit.modify, change, record, part_list)
end
