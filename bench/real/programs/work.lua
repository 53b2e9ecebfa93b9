-- Tables, strings and closures that come and go. Argument: how many rounds.
local state = 7
local function below(limit)
    state = (state * 1103515245 + 12345) & 0x7fffffff
    return (state >> 8) % limit
end

local function tree(depth)
    if depth == 0 then
        return { value = below(1000) }
    end
    return { left = tree(depth - 1), right = tree(depth - 1), name = "node " .. below(5000) }
end

local function sum(node)
    return node.value or sum(node.left) + sum(node.right) + #node.name
end

local kept, total = {}, 0
for round = 1, tonumber(arg[1]) do
    local words, counts = {}, {}
    for number = 1, 2000 do
        local word = string.format("%x%s", below(4000), string.rep("ab", below(20)))
        words[number] = word
        counts[word] = (counts[word] or 0) + 1
    end
    table.sort(words)
    local text = table.concat(words, " ")
    for word in text:gmatch("%S+") do
        total = total + counts[word]
    end
    kept[below(200) + 1] = { tree(10), text:gsub("ab", "c"), function() return #words end }
end
for place = 1, 200 do
    local row = kept[place]
    if row then
        total = total + sum(row[1]) + #row[2] + row[#row]()
    end
end
print(total)
