# Strings, hashes, symbols and arrays of records. Argument: how many rounds.
class Numbers
  def initialize(seed) = @state = seed

  def below(limit)
    @state = (@state * 1103515245 + 12345) & 0x7fffffff
    (@state >> 8) % limit
  end
end

Record = Struct.new(:key, :text, :parts)

numbers = Numbers.new(11)
kept = {}
total = 0
ARGV[0].to_i.times do
  records = Array.new(2000) do |place|
    text = "record #{numbers.below(3000)} " + "word " * numbers.below(30)
    Record.new("key#{numbers.below(800)}", text, text.split.map(&:reverse))
  end
  groups = records.group_by(&:key)
  groups.each { |key, members| kept[key] = members.map(&:text).sort.uniq.join(";") }
  total += records.sum { |one| one.parts.length + one.text.gsub(/o+/, "00").length }
  total += kept.select { |key, text| text.length > 200 }.keys.sort.join.length
end
puts total, kept.length
