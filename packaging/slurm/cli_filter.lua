-- SPDX-License-Identifier: Apache-2.0
-- For CliFilterPlugins=lua: --container of srun, sbatch and salloc may name an image
-- (docs/slurm.md, docs/decisions/0167).
--
-- Nothing else that Slurm takes to the node with a step can be said here, and slurmstepd wants a
-- config.json at that path before anything of the step runs. So the path spells the name, by
-- directories that are there on each node and lead back: "a.b" is IMAGES/a/../dot/../b/..

local images = "/var/spool/berth/slurm/image"  -- as in image-bundles
local longest = 256  -- of each; a path has 4096 bytes at most
local spelled = { ["."] = "dot", ["/"] = "slash" }

local function spell(text, parts)
   for character in text:gmatch(".") do
      parts[#parts + 1] = (spelled[character] or character) .. "/.."
   end
end

local function path_of(image, program)
   local parts = { images }
   spell(image, parts)
   if program then
      parts[#parts + 1] = "program/.."
      spell(program, parts)
   end
   return table.concat(parts, "/")
end

local function is_spelled(text)
   return #text <= longest and text:match("^[A-Za-z0-9._:/@#+-]+$") ~= nil
end

-- The program of a step, unless it is a path already: slurmstepd since 23.02 looks it up on the node.
local function program_of(options)
   if options.type ~= "srun" or options.argv == nil then
      return nil
   end
   local program = options.argv[1]
   if program ~= nil and is_spelled(program) and not program:match("^/") then
      return program
   end
end

function slurm_cli_setup_defaults(options, early)
   return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
   local container = options.container
   if container == nil or container:match("^[./]") then  -- none, or a bundle's path
      return slurm.SUCCESS
   end
   if not (is_spelled(container) and container:match("^[A-Za-z0-9]")) then
      slurm.log_error("--container: '%s' is neither the name of an image nor the path of a bundle, which begins with '/' or '.'",
                      container)
      return slurm.ERROR
   end
   options.container = path_of(container, program_of(options))
   return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job, step)
   return slurm.SUCCESS
end
