-- SPDX-License-Identifier: Apache-2.0
-- For CliFilterPlugins=lua: --container of srun, sbatch and salloc may name an image
-- (docs/slurm.md, docs/decisions/0167).
--
-- Nothing else that Slurm takes to the node with a step can be said here, and slurmstepd wants a
-- config.json at that path before anything of the step runs. So the path spells the name, by
-- directories that are there on each node and lead back: "a.b" is IMAGES/a/../dot/../b/..

local images = "/var/spool/berth/slurm/image"  -- as in image-bundles
local longest = 512  -- a path has 4096 bytes at most
local spelled = { ["."] = "dot", ["/"] = "slash" }

local function path_of(name)
   local parts = { images }
   for character in name:gmatch(".") do
      parts[#parts + 1] = (spelled[character] or character) .. "/.."
   end
   return table.concat(parts, "/")
end

local function is_name(text)
   return #text <= longest and text:match("^[A-Za-z0-9][A-Za-z0-9._:/@#+-]*$") ~= nil
end

function slurm_cli_setup_defaults(options, early)
   return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
   local container = options.container
   if container == nil or container:match("^[./]") then  -- none, or a bundle's path
      return slurm.SUCCESS
   end
   if not is_name(container) then
      slurm.log_error("--container: '%s' is no image's name, nor the path of a bundle, which begins with '/' or '.'",
                      container)
      return slurm.ERROR
   end
   options.container = path_of(container)
   return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
   return slurm.SUCCESS
end
