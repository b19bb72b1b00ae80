-- 遊び 🎲
local M = {}

--- Throws a die.
-- @param sides how many
function M.throw(sides)
  return math.random(sides)
end

function M:again()
  return self.throw(6)
end

local function helper()
  local function inner() end
  return inner()
end

M.twice = function(x)
  return helper() + x
end

local lambda = function() end

local options = {
  on_start = function() end,
  nested = { on_end = function() end },
}

return M
